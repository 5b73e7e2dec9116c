//! Planted faults that test the tests: each one breaks a rule of ordering in write-back mode.
//!
//! Without the feature `canary`, a planted fault is a constant `false`, and the program contains
//! none of it.

/// A broken rule of ordering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canary {
    /// Records are replayed although their data are not verified.
    HeaderBeforeData,
    /// Records of an earlier generation of the log are replayed.
    OlderGenerationReplayed,
    /// Dirty data are drained before the log has them.
    DrainBeforeLog,
    /// A flush completes although the log was not written.
    FlushSkipsLog,
    /// A flush completes although the log's device was not flushed.
    LogNotFlushed,
    /// Records are retired although the origin was not flushed.
    TailBeforeOriginFlush,
    /// Space of the ring is reused although the superblock still refers to it.
    RoomBeforeTail,
    /// Zeroes bypass the log, whose older records would overwrite them in a replay.
    ZeroesPastLog,
    /// Data are not logged because waiting zeroes replace them, although a flush waits for the
    /// data.
    ZeroesLeaveOutData,
    /// Data read from the origin replace newer written data.
    MissReplacesDirty,
    /// Data written during a drain are marked as drained.
    RewriteCountsAsDrained,
    /// Writes to a dirty block do not wait for a record.
    RewriteCountsAsLogged,
    /// A large write bypasses the cache although the log has older data of its sectors.
    PastOlderRecords,
    /// A flush completes although the origin, which received large writes, was not flushed.
    PastNotFlushed,
    /// A flush completes although the origin, which received writes before write-back mode began,
    /// was not flushed.
    SwitchNotFlushed,
    /// A failed log is abandoned although the origin lacks its data.
    ForsakenBeforeDrain,
    /// Records in flight hold memory while the next record waits for some.
    MemoryHeld,
    /// An unreadable record counts as the end of the log.
    UnreadableIsEnd,
    /// Damage of a record counts as a torn end.
    RotIsTornEnd,
}

impl Canary {
    /// All canaries except those that need an exhausted pool, failed reads or damaged logs.
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

braid_canary::plantable!(Canary);
