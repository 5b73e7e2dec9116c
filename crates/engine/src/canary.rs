//! Planted faults, for tests of the tests: each breaks one rule of order.
//!
//! A simulation that does not find a fault that was planted finds no other of its kind either, so
//! each run of the simulator plants every one of these and must find it. Without the feature
//! `canary` a planted fault is a constant `false`, and nothing of it is in the program.

/// A rule of order, broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canary {
    /// Data is written before the bit of its chunk is on the members.
    BitmapAfterData,
    /// A write is answered before the superblocks say who does not have it.
    SuperblocksAfterAnswer,
    /// Parity is changed by two writes at the same time.
    ParityWithoutLock,
    /// A flush is sent to one member only.
    FlushOfOneMember,
    /// Bits are cleared although the data that they stood for was not flushed.
    BitsClearedBeforeFlush,
    /// The superblocks go on counting on a member that failed.
    StaleMemberBelieved,
    /// After a crash the log is not replayed.
    LogNotReplayed,
    /// A log forgets units before the superblocks say who does not have them.
    LogForgottenBeforeFence,
    /// A member that was filled is in sync before it was flushed.
    InSyncBeforeFlush,
    /// A unit of a part of a stripe is stored although the log was not told.
    PartialWriteNotLogged,
    /// A replacement is promoted when half of it is filled.
    ReplacementPromotedEarly,
    /// The recovery offset is recorded ahead of the data.
    RecoveryOffsetAhead,
    /// A resync that ended forgets that members came to differ behind it.
    DoubtOfResyncDropped,
    /// A write that is tried again after a failure sets no bit.
    RetrySkipsBit,
    /// The first record that a member's log lacks is taken for the log's end.
    TornHeaderIsEnd,
    /// Superblocks are written once where twice is needed to be ahead of a member that is gone.
    SecondSuperblockLeftOut,
    /// Superblocks still say "clean" when data is written.
    WriteWhileClean,
    /// A recovery goes on at its offset after a crash, whatever the bitmap says.
    RecoveryTrustsOffsetAfterCrash,
    /// A whole stripe is stored while an older record of its rows may still be replayed.
    OldRecordsOfStripeKept,
    /// What cannot be read is reconstructed from parity that is in doubt.
    DoubtfulParityBelieved,
    /// Superblocks name a new bitmap before it is on the members.
    BitmapNamedBeforeWritten,
    /// Writes set no bits any more while superblocks still name the bitmap.
    BitmapLeftBeforeRecorded,
    /// A bitmap that gets other chunks loses its bits.
    NewChunksForgetBits,
    /// A raid10 with something to resync names the member that is being filled.
    FilledWhileDirty,
    /// A member that a write failed on stays in sync.
    FailedWriteForgotten,
    /// A repair takes the first of several copies for the right one.
    FirstCopyBelieved,
    /// A repair makes parity fit although nothing proves that the data is right.
    UnprovedWritten,
    /// A sweep clears bits on the members and leaves the header, which says up to which event, for later.
    EventsClearedAfterBits,
    /// The copy of the bitmap on one member is believed alone.
    OneBitmapBelieved,
    /// A member is asked again while a write that was answered for it at its deadline is under way.
    AskedWhileOverdue,
    /// A member that went on alone comes back by what the bitmap of the others says.
    HalfTakenBack,
    /// The head of a log is left out if its time is before the superblock's.
    OlderHeadLeftOut,
    /// A pass takes the memory for its copies one by one, and holds some while it waits for the next.
    MemoryInParts,
    /// A member being filled has a vote in a repair of copies. Only a directed test finds this: no seed draws two
    /// members that return with the same old content while a window waits for its lock.
    FilledVotes,
}

impl Canary {
    /// All faults that seeds have to find.
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
        Canary::ReplacementPromotedEarly,
        Canary::RecoveryOffsetAhead,
        Canary::DoubtOfResyncDropped,
        Canary::RetrySkipsBit,
        Canary::TornHeaderIsEnd,
        Canary::SecondSuperblockLeftOut,
        Canary::WriteWhileClean,
        Canary::RecoveryTrustsOffsetAfterCrash,
        Canary::OldRecordsOfStripeKept,
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
    ];

    /// What it is called in reports: its name in the source.
    pub fn name(self) -> String {
        format!("{self:?}")
    }
}

/// Whether faults can be planted in this build. Nothing that is shipped can.
pub const ARE_THERE: bool = cfg!(feature = "canary");

/// What it takes to plant the faults of a type: in the crate that has the type, if that has its feature
/// `canary`.
#[macro_export]
macro_rules! plantable {
    ($canary:ty) => {
        impl $canary {
            /// Whether this fault is planted in this thread.
            #[cfg(feature = "canary")]
            pub fn is_planted(self) -> bool {
                PLANTED.get() == Some(self)
            }

            /// Whether this fault is planted in this thread: never, without the feature.
            #[cfg(not(feature = "canary"))]
            #[inline(always)]
            pub const fn is_planted(self) -> bool {
                false
            }
        }

        #[cfg(feature = "canary")]
        thread_local! {
            static PLANTED: std::cell::Cell<Option<$canary>> = const { std::cell::Cell::new(None) };
        }

        /// Plants a fault in this thread, or takes out the one that is planted.
        #[cfg(feature = "canary")]
        pub fn plant(canary: Option<$canary>) {
            PLANTED.set(canary);
        }
    };
}

plantable!(Canary);
