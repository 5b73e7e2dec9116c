//! The known facts about the disk below a member: a part of the schema of `braid status --json`.
//!
//! The volume's process reports nothing about it: the program that asks the volume also asks the disk, so that
//! no request waits for a disk that does not answer.

use serde::{Deserialize, Serialize};

/// The disk that a member is, or is a partition of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskStatus {
    /// The kernel's name of the whole disk, such as `sda`; `null` for a member that is none.
    pub disk: Option<String>,
    /// Why nothing is known by SMART, or nothing newer than `smart`.
    pub absent: Option<String>,
    /// The disk's own report.
    pub smart: Option<SmartStatus>,
    /// Commands that ended with an error since the disk appeared, as the kernel counts them: `ioerr_cnt` of
    /// SCSI, which includes harmless ones, `diag/command_error_count` of NVMe.
    pub kernel_errors: Option<u64>,
    /// Commands that were not answered in time: `iotmo_cnt` of SCSI.
    pub kernel_timeouts: Option<u64>,
}

/// A disk's own report, as `smartctl` prints it. Missing values are `null`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SmartStatus {
    /// The time of the report, in seconds since 1970.
    pub seen: u64,
    /// Its own verdict.
    pub passed: Option<bool>,
    /// ATA attribute 5, or SCSI's list of grown defects.
    pub reallocated_sectors: Option<u64>,
    /// ATA attribute 197.
    pub pending_sectors: Option<u64>,
    /// ATA attribute 198, or what SCSI counts of reads, writes and verifications.
    pub uncorrectable: Option<u64>,
    /// NVMe.
    pub media_errors: Option<u64>,
    /// The used share of the writes that it was made for: NVMe, SCSI; may be above 100.
    pub percentage_used: Option<u64>,
    /// The temperature in degrees Celsius.
    pub temperature_celsius: Option<i64>,
    /// The temperature that it should stay below, in degrees Celsius.
    pub temperature_limit_celsius: Option<i64>,
    /// The hours of operation.
    pub power_on_hours: Option<u64>,
    /// The reasons why it will soon fail, according to itself.
    pub failing: Vec<String>,
    /// Values that deserve a warning.
    pub warnings: Vec<String>,
}
