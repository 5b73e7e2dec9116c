//! Planted faults, for tests of the tests: each breaks one rule of order of write-back.
//!
//! Without the feature `canary` a planted fault is a constant `false`, and nothing of it is in the program.

/// A rule of order, broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canary {
    /// A record counts although its data is not proved.
    HeaderBeforeData,
    /// Records of an earlier time that the log was open count.
    OlderGenerationReplayed,
    /// What is dirty goes to the origin although the log does not have it.
    DrainBeforeLog,
    /// A flush is answered although the log was not written.
    FlushSkipsLog,
    /// A flush is answered although the log's device was not flushed.
    LogNotFlushed,
    /// Records stop counting although the origin was not flushed.
    TailBeforeOriginFlush,
    /// Room of the ring is used again although its superblock still counts on it.
    RoomBeforeTail,
    /// Zeroes go to the origin past the log, whose older records come after them in a replay.
    ZeroesPastLog,
    /// Data does not go into the log where zeroes wait that replace it, although a flush waits for the data.
    ZeroesLeaveOutData,
    /// What was read of the origin replaces what was written meanwhile.
    MissReplacesDirty,
    /// What was written while it was being drained counts as drained.
    RewriteCountsAsDrained,
    /// What is written where something is dirty already does not wait for a record.
    RewriteCountsAsLogged,
    /// A large write goes past although the log has something older of its place.
    PastOlderRecords,
    /// A flush is answered although the origin was not flushed, to which large writes went.
    PastNotFlushed,
    /// A flush is answered although the origin was not flushed, to which writes went until write-back mode began.
    SwitchNotFlushed,
    /// A log that failed is given up although the origin does not have what it has.
    ForsakenBeforeDrain,
}

impl Canary {
    /// All of them.
    pub const ALL: &[Canary] = &[
        Canary::HeaderBeforeData,
        Canary::OlderGenerationReplayed,
        Canary::DrainBeforeLog,
        Canary::FlushSkipsLog,
        Canary::LogNotFlushed,
        Canary::TailBeforeOriginFlush,
        Canary::RoomBeforeTail,
        Canary::ZeroesPastLog,
        Canary::ZeroesLeaveOutData,
        Canary::MissReplacesDirty,
        Canary::RewriteCountsAsDrained,
        Canary::RewriteCountsAsLogged,
        Canary::PastOlderRecords,
        Canary::PastNotFlushed,
        Canary::SwitchNotFlushed,
        Canary::ForsakenBeforeDrain,
    ];
}

braid_engine::plantable!(Canary);
