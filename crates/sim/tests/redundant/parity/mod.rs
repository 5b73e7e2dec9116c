//! Arrays with parity: raid4, raid5 and raid6.
//!
//! * `images`: what images of disks hold, by plain arithmetic.
//! * `conformance`: a random load agrees with the oracle, whatever the shape.
//! * `shapes`: every write and read within two stripes, with every loss.
//! * `counted`: how many requests of its members a write costs.
//! * `crash`: what a crash may leave, and what is checked of it.
//! * `crash_writes`: a crash at every moment of one write, of every shape, with every loss.
//! * `crash_loads`: crashes of random loads, also while members fail, come and go.
//! * `logs`: logs that must not be used.
//! * `log_rules`: rules of logs that one small case each shows.
//! * `rows`: which writes wait for each other.
//! * `cache`: memory for stripes under way is bounded, and nobody stops anybody.
//! * `failure`: members that fail under load.
//! * `reads`: sectors that cannot be read.
//! * `life`: members that come, go, take over and are replaced; resyncs.
//! * `scrub`: silent corruption, what a check tells of it, and what a repair writes.

mod cache;
mod conformance;
mod counted;
pub(crate) mod crash;
pub(crate) mod crash_loads;
mod crash_writes;
mod failure;
pub(crate) mod images;
mod life;
mod log_rules;
mod logs;
mod reads;
mod rows;
mod scrub;
mod shapes;
