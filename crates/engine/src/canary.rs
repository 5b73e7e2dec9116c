//! Planted faults, for tests of the tests. Each breaks one rule of order.
//!
//! A simulation that misses a planted fault also misses real faults of its kind, so each run of the simulator
//! plants every fault and must find it. Without the feature `canary` a planted fault is a constant `false`, and
//! the program contains no code for it.

/// A rule of order, broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canary {
    /// Data is written before the bit of its chunk is on the members.
    BitmapAfterData,
    /// A write completes before the superblocks say which members lack it.
    SuperblocksAfterAnswer,
    /// Two writes change the same parity at the same time.
    ParityWithoutLock,
    /// A flush is sent to one member only.
    FlushOfOneMember,
    /// Bits are cleared before the data of their chunks is flushed.
    BitsClearedBeforeFlush,
    /// The superblocks still count on a member that failed.
    StaleMemberBelieved,
    /// After a crash the log is not replayed.
    LogNotReplayed,
    /// A log forgets units before the superblocks say which members lack them.
    LogForgottenBeforeFence,
    /// A member that was filled becomes in sync before it is flushed.
    InSyncBeforeFlush,
    /// A unit of a part of a stripe is stored without a log entry.
    PartialWriteNotLogged,
    /// Whole stripes of zeroes are made without a log entry.
    ZeroesNotLogged,
    /// A discard reaches the members of an array with parity as it is.
    DiscardPassedOn,
    /// A replacement is promoted when half of it is filled.
    ReplacementPromotedEarly,
    /// The recovery offset is recorded ahead of the data.
    RecoveryOffsetAhead,
    /// A finished resync forgets that members differ again behind its frontier.
    DoubtOfResyncDropped,
    /// A write that is retried after a failure sets no bit.
    RetrySkipsBit,
    /// The first missing record of a member's log is taken for the log's end.
    TornHeaderIsEnd,
    /// Superblocks are written only once to be ahead of a missing member, which takes two writes.
    SecondSuperblockLeftOut,
    /// Data is written while superblocks still say "clean".
    WriteWhileClean,
    /// A recovery continues at its offset after a crash and ignores the bitmap.
    RecoveryTrustsOffsetAfterCrash,
    /// A whole stripe is stored while an older record of its rows may still be replayed.
    OldRecordsOfStripeKept,
    /// Records that units share are retired when the first of these units is durable in place.
    GroupEndsWithAUnit,
    /// Unreadable data is reconstructed from parity that is in doubt.
    DoubtfulParityBelieved,
    /// Superblocks name a new bitmap before it is on the members.
    BitmapNamedBeforeWritten,
    /// Writes stop setting bits while superblocks still name the bitmap.
    BitmapLeftBeforeRecorded,
    /// A bitmap loses its bits when its chunk size changes.
    NewChunksForgetBits,
    /// The superblocks of a raid10 with data to resync name the member that is being filled.
    FilledWhileDirty,
    /// A member stays in sync after a failed write.
    FailedWriteForgotten,
    /// A repair takes the first of several copies as correct.
    FirstCopyBelieved,
    /// A repair recomputes parity although nothing proves that the data is correct.
    UnprovedWritten,
    /// A sweep clears bits on the members before it stores the header with the event up to which they are
    /// cleared.
    EventsClearedAfterBits,
    /// The copy of the bitmap on one member is used alone.
    OneBitmapBelieved,
    /// A member is asked again while a write that was completed for it at its deadline is still under way.
    AskedWhileOverdue,
    /// A member that went on alone comes back by the bitmap of the other members.
    HalfTakenBack,
    /// The head of a log is ignored if its time is before the superblock's.
    OlderHeadLeftOut,
    /// A pass takes the memory for its copies one by one, and holds some while it waits for more.
    MemoryInParts,
    /// A resync skips what is a hole on one member only.
    HoleOfOneMember,
    /// A write that a member failed completes before other shards know that reads must not use the member.
    ShardsNotWaitedFor,
    /// Two shards change the same parity, or write the same place, at the same time.
    BlocksNotLeased,
    /// The home shard does not wait for the writes of others before it locks, clears bits, or says "clean".
    BranchesNotAwaited,
    /// A flush does not wait for the writes that write-mostly members carry out after their answer.
    FlushLeavesBehind,
    /// A write lets its range and its bits go at its answer, though write-mostly members do not have it yet.
    LateWriteLetGo,
    /// A write-mostly member is read though it does not have a write yet that was answered. Only a directed test finds this:
    /// in seeds no member fails in the moments between.
    LateMemberRead,
    /// A member being filled has a vote in a repair of copies. Only a directed test finds this: no seed draws two
    /// members that return with the same old content while a window waits for its lock.
    FilledVotes,
}

impl Canary {
    /// All planted faults that seeds have to find.
    pub const ALL: &[Canary] = &[
        Canary::BitmapAfterData,
        Canary::SuperblocksAfterAnswer,
        Canary::ParityWithoutLock,
        Canary::FlushOfOneMember,
        Canary::BitsClearedBeforeFlush,
        Canary::StaleMemberBelieved,
        Canary::LogNotReplayed,
        Canary::LogForgottenBeforeFence,
        Canary::InSyncBeforeFlush,
        Canary::PartialWriteNotLogged,
        Canary::ZeroesNotLogged,
        Canary::DiscardPassedOn,
        Canary::ReplacementPromotedEarly,
        Canary::RecoveryOffsetAhead,
        Canary::DoubtOfResyncDropped,
        Canary::RetrySkipsBit,
        Canary::TornHeaderIsEnd,
        Canary::SecondSuperblockLeftOut,
        Canary::WriteWhileClean,
        Canary::RecoveryTrustsOffsetAfterCrash,
        Canary::OldRecordsOfStripeKept,
        Canary::GroupEndsWithAUnit,
        Canary::DoubtfulParityBelieved,
        Canary::BitmapNamedBeforeWritten,
        Canary::BitmapLeftBeforeRecorded,
        Canary::NewChunksForgetBits,
        Canary::FilledWhileDirty,
        Canary::FailedWriteForgotten,
        Canary::FirstCopyBelieved,
        Canary::UnprovedWritten,
        Canary::EventsClearedAfterBits,
        Canary::OneBitmapBelieved,
        Canary::AskedWhileOverdue,
        Canary::HalfTakenBack,
        Canary::OlderHeadLeftOut,
        Canary::MemoryInParts,
        Canary::HoleOfOneMember,
        Canary::ShardsNotWaitedFor,
        Canary::BlocksNotLeased,
        Canary::BranchesNotAwaited,
        Canary::FlushLeavesBehind,
        Canary::LateWriteLetGo,
    ];

    /// Returns the name in reports: the name in the source.
    pub fn name(self) -> String {
        format!("{self:?}")
    }
}

/// True if this build can plant faults. A release build cannot.
pub const ARE_THERE: bool = cfg!(feature = "canary");

braid_canary::plantable!(Canary);

braid_canary::faults!(
    "engine",
    OfferedCanary {
        /// Clients may write to a locked volume.
        LockNotTold: "src/offered.rs::it_is_quiet_when_all_that_were_let_through_are_answered",
        /// A write that was let through has no permit.
        NoPermit: "src/offered.rs::it_is_quiet_when_all_that_were_let_through_are_answered",
        /// A wait for earlier writes leaves out those before the exchange before.
        ErasApart: "src/offered.rs::earlier_writes_are_those_of_all_eras_before",
        /// A device that is offered later is offered without the one that an export has put in front.
        FrontForgotten: "src/offered.rs::an_export_sees_what_is_offered_later_through_its_own_front",
    }
);

#[cfg(test)]
mod tests {
    #[test]
    fn planted_faults_are_found() {
        braid_canary::hunt(super::OfferedCanary::ALL, file!());
    }
}
