//! Who leaves when a block comes in and there is no room: one file for each policy, pure.
//!
//! | policy | keeps | source |
//! |---|---|---|
//! | [`S3Fifo`] | blocks that were used again while they were new, or that come back sooner than those that are in | Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023; Jiang and Zhang, "LIRS", SIGMETRICS 2002 |
//! | [`Lru`] | blocks that were used last | |
//!
//! Invariants
//! * A policy knows exactly the slots that were admitted and not evicted or forgotten since.
//! * Nothing is allocated after a policy is made, and nothing depends on a clock or on chance.

mod history;
mod lru;
mod s3_fifo;

pub use lru::Lru;
pub use s3_fifo::S3Fifo;

use braid_level::CachePolicy;

use crate::slot::Slot;

/// What a policy asks about slots when one has to leave.
pub trait Occupants {
    /// The block in `slot`.
    fn block_of(&self, slot: Slot) -> u64;

    /// Whether `slot` can be evicted now: nothing is under way in it, and what it holds is held
    /// elsewhere.
    fn may_leave(&self, slot: Slot) -> bool;
}

/// Decides who leaves.
pub trait Policy {
    /// `slot` is used again.
    fn touch(&mut self, slot: Slot);

    /// `block` is in `slot` now.
    fn admit(&mut self, slot: Slot, block: u64);

    /// Chooses who leaves so that `block` can come in, of those that may. The one that is answered is
    /// out; none if nobody may leave.
    fn evict(&mut self, block: u64, occupants: &dyn Occupants) -> Option<Slot>;

    /// What `slot` held is gone, and was not evicted: it says nothing about who comes back.
    fn forget(&mut self, slot: Slot);

    /// Bytes that it takes.
    fn bytes(&self) -> usize;
}

/// The policy of this name, for so many slots.
pub fn policy(name: CachePolicy, slots: u32) -> Box<dyn Policy> {
    match name {
        CachePolicy::S3Fifo => Box::new(S3Fifo::new(slots)),
        CachePolicy::Lru => Box::new(Lru::new(slots)),
    }
}
