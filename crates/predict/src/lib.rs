//! What modelled devices would do: layouts and tools on a virtual clock, without contents.
//!
//! ```text
//!  published conditions ──study──▶ load ──▶ machine: layout, queues, timetables, buses ──▶ a rate
//! ```
//!
//! Invariants: a prediction is a function of its conditions and of the profiles' constants. Deliberately
//! absent: contents, errors of devices, and the engine: what it does to arrays with redundancy is not
//! known here.

mod load;
mod machine;
mod queue;
mod study;

pub use load::{Random, Reading, random_reads, random_writes, read_ahead, synced, write_back};
pub use machine::{Layout, Machine, MemberModel, Next};
pub use study::Models;
