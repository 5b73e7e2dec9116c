//! Eviction policies, one file each, pure.
//!
//! | policy | keeps | source |
//! |---|---|---|
//! | [`S3Fifo`] | blocks that were used again while new, or that return sooner than cached blocks are used | Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023; Jiang and Zhang, "LIRS", SIGMETRICS 2002 |
//! | [`Lru`] | the most recently used blocks | |
//!
//! Invariants
//! * A policy knows exactly the slots that were admitted and neither evicted nor forgotten since.
//! * A policy allocates nothing after its creation, and uses neither a clock nor random numbers.

mod history;
mod lru;
mod s3_fifo;

pub use lru::Lru;
pub use s3_fifo::S3Fifo;

use braid_level::CachePolicy;

use crate::slot::Slot;

/// Properties of slots that a policy needs.
pub trait Occupants {
    /// Returns the block in `slot`.
    fn block_of(&self, slot: Slot) -> u64;

    /// Returns whether `slot` can be evicted now: it has no request in flight, and its data exist
    /// elsewhere.
    fn can_evict(&self, slot: Slot) -> bool;
}

/// An eviction policy.
pub trait Policy {
    /// Notes a use of `slot`.
    fn touch(&mut self, slot: Slot);

    /// Notes that `block` is now in `slot`.
    fn admit(&mut self, slot: Slot, block: u64);

    /// Chooses a slot to evict for `block`, among those that may be evicted. The policy no longer
    /// knows the returned slot. `None` if no slot may be evicted.
    fn evict(&mut self, block: u64, occupants: &dyn Occupants) -> Option<Slot>;

    /// Removes `slot` without an eviction, for example after a discard: it says nothing about
    /// future uses.
    fn forget(&mut self, slot: Slot);

    /// Returns its memory in bytes.
    fn bytes(&self) -> usize;
}

/// Creates the policy `name` for `slots` slots.
pub fn policy(name: CachePolicy, slots: u32) -> Box<dyn Policy> {
    match name {
        CachePolicy::S3Fifo => Box::new(S3Fifo::new(slots)),
        CachePolicy::Lru => Box::new(Lru::new(slots)),
    }
}
