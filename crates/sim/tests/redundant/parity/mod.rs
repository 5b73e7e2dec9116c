//! Arrays with parity: raid4, raid5 and raid6.
//!
//! * `images`: the content of disks' images, by plain arithmetic.
//! * `conformance`: a random load agrees with the oracle, for every shape.
//! * `shapes`: every write and read within two stripes, with every loss.
//! * `counted`: the number of requests to its members that a write costs.
//! * `crash`: the possible results of a crash, and the checks of them.
//! * `crash_writes`: a crash at every moment of one write, of every shape, with every loss.
//! * `crash_loads`: crashes of random loads, also while members fail, come and go.
//! * `logs`: logs that must not be used.
//! * `log_rules`: rules of logs, each shown by one small case.
//! * `rows`: the writes that wait for each other.
//! * `cache`: memory for stripes in flight is bounded, and no write blocks another for ever.
//! * `failure`: members that fail under load.
//! * `memory`: members that answer in the call, for which small writes take a shorter way.
//! * `reads`: unreadable sectors.
//! * `life`: members that come, go, take over and are replaced; resyncs.
//! * `scrub`: silent corruption, the report of a check about it, and the writes of a repair.

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
mod memory;
mod reads;
mod rows;
mod scrub;
mod shapes;
