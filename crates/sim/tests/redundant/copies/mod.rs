//! Arrays of copies: raid1 and raid10.
//!
//! * `cancel`: requests that nobody waits for any more.
//! * `conformance`: a random load agrees with the oracle, whatever the shape.
//! * `failure`: members that fail; what is on the disks when a degraded write is answered.
//! * `crash`: what holds after a crash at any moment, and after the resync that follows.
//! * `life`: members that come, go, take over and are replaced, under load, and crashes meanwhile.
//! * `reads`: reads that fail, and where reads go.
//! * `speed`: how fast passes go, and what clients feel of them.
//! * `majority`: copies that differ, and what a scrub does with them.
//! * `memory`: members that answer in the call, where writes take a shorter way.

mod cancel;
mod conformance;
mod crash;
pub(crate) mod failure;
pub(crate) mod life;
mod majority;
mod memory;
mod reads;
mod speed;
