//! What modelled devices would do: layouts and tools on a virtual clock, without contents.
//!
//! ```text
//!  published conditions ──study──▶ load ──▶ machine: layout, queues, timetables, buses ──▶ a rate
//! ```
//!
//! Invariants: a prediction is a function of its conditions and of the profiles' constants. Deliberately
//! absent: contents, errors of devices, and the engine: what it does to arrays with redundancy is not
//! known here.

pub mod advise;
mod array;
mod layout;
mod load;
mod machine;
mod queue;
mod study;
mod tool;
mod workload;

pub use array::{Array, Offer};
pub use layout::Layout;
pub use load::{
    Closed, Outcome, Places, Random, Reading, closed, random_reads, random_writes, read_ahead,
    replay, synced, write_back,
};
pub use machine::{Machine, MemberModel, Next};
pub use queue::Merge;
pub use study::Models;
pub use tool::Run;
pub use workload::{NAMES, Named, What, Workload};
