//! Arrays of copies: raid1 and raid10.
//!
//! * `cancel`: requests whose client no longer waits for them.
//! * `conformance`: a random load agrees with the oracle, for every shape.
//! * `failure`: members that fail; the content of disks when a degraded write is answered.
//! * `crash`: the state after a crash at any moment, and after the resync that follows.
//! * `life`: members that come, go, take over and are replaced, under load, and crashes meanwhile.
//! * `reads`: reads that fail, and the choice of the member to read.
//! * `speed`: the rate of passes, and their effect on clients.
//! * `majority`: copies that differ, and their treatment by a scrub.
//! * `behind`: members that carry writes out after their answers.
//! * `memory`: members that answer in the call, for which writes take a shorter way.

mod behind;
mod cancel;
mod conformance;
mod crash;
pub(crate) mod failure;
pub(crate) mod life;
mod majority;
pub(crate) mod memory;
mod reads;
mod speed;
