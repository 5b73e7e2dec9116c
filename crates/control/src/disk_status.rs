//! What is known of the disk below a member: a part of the schema of `braid status --json`.
//!
//! The volume's process says nothing of it: whoever asks the volume asks the disk beside it, so that no request
//! waits for a disk that answers no questions.

use serde::{Deserialize, Serialize};

/// The disk that a member is, or is a partition of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiskStatus {
    /// The kernel's name of the whole disk, such as `sda`; `null` for a member that is none.
    pub disk: Option<String>,
    /// Why nothing is known by SMART, or nothing newer than `smart`.
    pub absent: Option<String>,
    /// What the disk says of itself.
    pub smart: Option<SmartStatus>,
    /// Commands that ended with an error since the disk is there, as the kernel counts them: `ioerr_cnt` of
    /// SCSI, which has harmless ones too, `diag/command_error_count` of NVMe.
    pub kernel_errors: Option<u64>,
    /// Commands that were not answered in time: `iotmo_cnt` of SCSI.
    pub kernel_timeouts: Option<u64>,
}

/// What a disk says of itself, as `smartctl` prints it. `null` for what it does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SmartStatus {
    /// When it said so, in seconds since 1970.
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
    /// Of the writes that it was made for: NVMe, SCSI; may be above 100.
    pub percentage_used: Option<u64>,
    /// In degrees Celsius.
    pub temperature_celsius: Option<i64>,
    /// What it should stay below, in degrees Celsius.
    pub temperature_limit_celsius: Option<i64>,
    /// Hours that it was on.
    pub power_on_hours: Option<u64>,
    /// Why it is about to fail, by its own word.
    pub failing: Vec<String>,
    /// What is worth a warning.
    pub warnings: Vec<String>,
}
