//! Errors of a log, and the result of a replay.

use braid_block::Errno;

use super::format::Rejection;

/// Reason why a log cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// Too small for a few blocks.
    #[error("it has {got} bytes, and needs at least {least}")]
    TooSmall {
        /// Its size in bytes.
        got: u64,
        /// The minimum for the cache's block size in bytes.
        least: u64,
    },
    /// A log of braid with damaged superblocks.
    #[error("it is a cache's log, and its superblocks are damaged: {0}")]
    Damaged(Rejection),
    /// A durable record is damaged.
    #[error(
        "the flushed record at byte {} is damaged: its {} bytes are not what was written; {} at stake, and the log holds \
         {} bytes that the origin does not have", .0.offset, .0.len, at_stake(.0.records), .0.bytes
    )]
    Rotten(Rot),
    /// The log of another cache.
    #[error("it is the log of a cache in front of {text} ({size} bytes){}", not_drained(*bytes))]
    OtherOrigin {
        /// The origin of the other cache.
        text: String,
        /// The size of that origin in bytes.
        size: u64,
        /// Bytes in the log that were not drained.
        bytes: u64,
    },
    /// The log has data to replay, and writing is not permitted.
    #[error("it holds {0} bytes that the origin does not have, and nothing may be written")]
    NotReplayed(u64),
    /// The log has data to replay, but the origin is in use.
    #[error("it holds {0} bytes that the origin does not have, and the origin is in use")]
    InUse(u64),
    /// The log's device failed.
    #[error("it cannot be read or written: {0}")]
    Device(Errno),
    /// It is unknown whether the log was abandoned.
    #[error("whether it was given up cannot be looked up: {0}")]
    Unknown(Errno),
    /// The origin failed during the replay; the log keeps all its data.
    #[error("what it holds cannot be written to the origin: {0}")]
    Origin(Errno),
}

/// Damage of durable records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rot {
    /// Offset of the first damaged record on the log's device, in bytes.
    pub offset: u64,
    /// Its length in bytes, as far as its header tells.
    pub len: u64,
    /// Number of durable records from this one on, which a start without this log gives up.
    pub records: u64,
    /// Bytes of data in all known records, which the origin may lack.
    pub bytes: u64,
}

fn at_stake(records: u64) -> String {
    match records {
        1 => "it is".to_owned(),
        records => format!("{records} flushed records, this one and those after it, are"),
    }
}

fn not_drained(bytes: u64) -> String {
    match bytes {
        0 => "; it has nothing that the origin does not have".to_owned(),
        bytes => format!(", and holds {bytes} bytes that the origin does not have"),
    }
}

/// Result of opening a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// A new log was created.
    pub is_new: bool,
    /// The log had been abandoned, when the origin had all its data.
    pub was_given_up: bool,
    /// Number of replayed records.
    pub records: u64,
    /// Bytes of data in these records.
    pub bytes: u64,
    /// Offset of a damaged superblock on the log's device, in bytes; its copy was used.
    pub damaged: Option<u64>,
    /// An incomplete record, cut off by a crash, follows the last one.
    pub is_torn: bool,
}
