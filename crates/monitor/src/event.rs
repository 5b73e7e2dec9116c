//! The kinds of events, mdadm's under mdadm's names and meanings, and an event.
//!
//! The table is the only place that defines the name of a kind, its severity and its meaning; `docs/monitor.md`
//! is compared with it.

pub use braid_control::Severity;
use serde::{Deserialize, Serialize};

/// A kind of event.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name; `RebuildNN` stands for `Rebuild20`, `Rebuild40` ….
    pub name: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The meaning for the receiver.
    pub meaning: &'static str,
}

macro_rules! kinds {
    ($($constant:ident = $name:literal, $severity:ident, $meaning:literal;)*) => {
        $(pub(crate) const $constant: &Kind =
            &Kind { name: $name, severity: Severity::$severity, meaning: $meaning };)*
        /// All kinds: mdadm's first.
        pub const KINDS: &[&Kind] = &[$($constant),*];
    };
}

kinds! {
    DEVICE_DISAPPEARED = "DeviceDisappeared", Info,
        "it was up and is not any more: it was taken down, or the machine was started anew";
    REBUILD_STARTED = "RebuildStarted", Info,
        "a resync, recovery, replacement, check or repair runs";
    REBUILD_NN = "RebuildNN", Info,
        "the pass has come so many percent far";
    REBUILD_FINISHED = "RebuildFinished", Info,
        "the pass runs no more: it has come to its end, or was ended";
    FAIL = "Fail", Critical,
        "a member that was in use is not used any more: the array works on with less redundancy, or without";
    FAIL_SPARE = "FailSpare", Critical,
        "a spare, or the member that was being filled, failed: the array is as degraded as before";
    SPARE_ACTIVE = "SpareActive", Info,
        "a member was filled, and is in use from now on";
    NEW_ARRAY = "NewArray", Info,
        "it was not up when the monitor looked last";
    DEGRADED_ARRAY = "DegradedArray", Critical,
        "members are missing: another failure may lose data";
    MOVE_SPARE = "MoveSpare", Info,
        "a spare went from one array to another that needed it";
    SPARES_MISSING = "SparesMissing", Warning,
        "fewer spares than the monitor's configuration wants: after the next failure nothing takes over";
    TEST_MESSAGE = "TestMessage", Info,
        "this is a test of whether messages arrive: nothing has happened";
    WELL_AGAIN = "WellAgain", Info,
        "what was told before is not so any more";
    VOLUME_FAILED = "VolumeFailed", Critical,
        "nothing can be written to the volume any more";
    VOLUME_FAILING = "VolumeFailing", Critical,
        "requests fail, or contents go with the volume, and nothing makes up for it";
    VOLUME_STALLED = "VolumeStalled", Critical,
        "the volume does not answer: its users wait";
    VOLUME_GONE = "VolumeGone", Critical,
        "the volume's process ended without being told to: its device answers with errors, or hangs";
    VOLUME_UNREADABLE = "VolumeUnreadable", Warning,
        "the monitor cannot ask the volume: nothing is known of it";
    DATA_LOST = "DataLost", Critical,
        "bytes of the array can be given by no member any more";
    SLOW_MEMBER = "SlowMember", Warning,
        "a member takes far longer than its siblings: it slows the array down, and may be about to fail";
    MEMBER_HANGS = "MemberHangs", Critical,
        "a member does not answer: requests to it ended with an error at their deadline, and it is asked for nothing";
    MEMBER_UNREACHABLE = "MemberUnreachable", Warning,
        "a remote member is not connected, or does not answer: requests to it wait until its deadline";
    MEMBER_GONE = "MemberGone", Critical,
        "a member's file was deleted, or another lies at its path: what it holds goes when the volume goes down";
    DISK_FAILING = "DiskFailing", Critical,
        "the disk below a member says itself that it fails, or is about to";
    SMART_WARNING = "SmartWarning", Warning,
        "the disk below a member counts what disks count before they fail, or is too warm";
    MOVE_SPARE_FAILED = "MoveSpareFailed", Warning,
        "a spare that another array needs did not get there: that array is as degraded as before";
    SCRUB_FOUND = "ScrubFound", Warning,
        "copies, or data and parity, did not agree, or could not be read: something wrote wrong, or rots";
    LOG_FULL = "LogFull", Warning,
        "the cache's log has hardly any room: writers wait for the origin";
    LOG_FAILED = "LogFailed", Critical,
        "the cache's log cannot be written: a power cut loses what the origin does not have";
    DRAIN_FAILED = "DrainFailed", Critical,
        "the origin does not take what the cache holds: it exists in the cache alone";
    WRITE_BACK_AGE = "WriteBackAge", Warning,
        "the cache has held writes for longer than it should: the origin is too slow for what is written";
    CERTIFICATE = "Certificate", Warning,
        "the certificate of an export's TLS is about to expire, is not valid, or could not be replaced";
    MEMORY_SHORT = "MemoryShort", Warning,
        "the machine has little memory left: RAM disks and caches may not get what they were promised";
}

/// Something that happened, or is so, or is not so any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The kind's name, such as `Fail` or `Rebuild40`.
    #[serde(rename = "event")]
    pub name: String,
    /// The severity.
    pub severity: Severity,
    /// The volume's name; empty for an event of the machine.
    pub volume: String,
    /// Its block device on this machine, if it has one.
    pub device: Option<String>,
    /// The array, as it is called.
    pub array: Option<String>,
    /// The member, as the stack spells it.
    pub member: Option<String>,
    /// Since when it is so, as far as the monitor saw, in seconds since 1970.
    pub since: u64,
    /// When this is told, in seconds since 1970.
    pub at: u64,
    /// The event in words.
    pub what: String,
    /// The meaning of the event.
    pub meaning: String,
    /// The next command.
    pub next: Option<String>,
    /// Distinguishes the cause from others; equal as long as it lasts.
    pub cause: String,
    /// For `WellAgain`: the event that has ended.
    pub ended: Option<String>,
    /// True if it was reported before, and still lasts.
    pub reminder: bool,
}

impl Event {
    /// mdadm's name for the device: the block device, or the volume's name.
    pub(crate) fn device_or_name(&self) -> &str {
        match (&self.device, self.volume.as_str()) {
            (Some(device), _) => device,
            (None, "") => "machine",
            (None, volume) => volume,
        }
    }

    /// The place of the event, for people.
    pub(crate) fn place(&self) -> String {
        let mut place = match self.volume.as_str() {
            "" => "this machine".to_owned(),
            volume => volume.to_owned(),
        };
        // An array is often called as the only volume that it is of.
        let array = self.array.as_ref().filter(|array| **array != self.volume);
        for part in array.into_iter().chain(&self.member) {
            place = format!("{place} {part}");
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::KINDS;

    #[test]
    fn the_table_of_the_documentation_has_all_events_in_order() {
        let page = include_str!("../../../docs/monitor.md");
        let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
        let told: Vec<Vec<&str>> = rows.map(|row| row.split(['`', '|']).collect()).collect();
        assert_eq!(told.len(), KINDS.len());
        for (row, kind) in told.iter().zip(KINDS) {
            assert_eq!(row[0], kind.name);
            let severity = row[2].trim();
            assert!(severity == kind.severity.word() || kind.name == "WellAgain", "{row:?}");
        }
    }
}
