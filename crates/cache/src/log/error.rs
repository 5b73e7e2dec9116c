//! Why a log cannot be used, and what was found of one that can.

use braid_block::Errno;

use super::format::Rejection;

/// Why a log cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// It has no room for a few blocks.
    #[error("it has {got} bytes, and needs at least {least}")]
    TooSmall {
        /// Its size in bytes.
        got: u64,
        /// The least for the cache's blocks.
        least: u64,
    },
    /// It is a log of braid's, and its superblocks cannot be believed.
    #[error("it is a cache's log, and its superblocks are damaged: {0}")]
    Damaged(Rejection),
    /// A record of it was durable, and is not sound any more.
    #[error(
        "{} flushed records from byte {} on are damaged: the {} bytes there are not what was written; it holds {} \
         bytes that the origin does not have", .0.records, .0.offset, .0.len, .0.bytes
    )]
    Rotten(Rot),
    /// It is another cache's.
    #[error("it is the log of a cache in front of {text} ({size} bytes){}", not_drained(*bytes))]
    OtherOrigin {
        /// The other cache's origin.
        text: String,
        /// Its size in bytes.
        size: u64,
        /// Of it that were not drained.
        bytes: u64,
    },
    /// It holds what has to be written to the origin, which may not be written.
    #[error("it holds {0} bytes that the origin does not have, and nothing may be written")]
    NotReplayed(u64),
    /// It holds what has to be written to the origin, which is in use.
    #[error("it holds {0} bytes that the origin does not have, and the origin is in use")]
    InUse(u64),
    /// Its device failed.
    #[error("it cannot be read or written: {0}")]
    Device(Errno),
    /// Whether it was given up is not known.
    #[error("whether it was given up cannot be looked up: {0}")]
    Unknown(Errno),
    /// The origin failed while the log was replayed: nothing of the log is lost.
    #[error("what it holds cannot be written to the origin: {0}")]
    Origin(Errno),
}

/// Damage in what a log had durably.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rot {
    /// Where on the log's device the first damaged record lies, in bytes.
    pub offset: u64,
    /// Its bytes, as far as its header says them.
    pub len: u64,
    /// Records from this one on that were durable.
    pub records: u64,
    /// Bytes of data in all records that are known, which the origin may not have.
    pub bytes: u64,
}

fn not_drained(bytes: u64) -> String {
    match bytes {
        0 => "; it has nothing that the origin does not have".to_owned(),
        bytes => format!(", and holds {bytes} bytes that the origin does not have"),
    }
}

/// What was found of a log, and done with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// It was made anew.
    pub is_new: bool,
    /// What it held was given up before, when the origin had all of it.
    pub was_given_up: bool,
    /// Records that were written to the origin.
    pub records: u64,
    /// Their data in bytes.
    pub bytes: u64,
    /// Where on the log's device a superblock is damaged, in bytes: its copy counts.
    pub damaged: Option<u64>,
    /// Whether something follows the last one that started as a record and is not whole: what a crash
    /// cut off.
    pub is_torn: bool,
}
