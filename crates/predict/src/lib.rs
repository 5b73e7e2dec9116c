//! Predictions for modelled devices: layouts and tools on a virtual clock, without contents.
//!
//! ```text
//!  conditions ──▶ load ──▶ machine: layout, queues, timetables, buses ──▶ a rate
//! ```
//!
//! Invariants: a prediction is a function of its conditions and of the profiles' constants. Deliberately
//! absent: contents, errors of devices, and the engine: its geometries and plans are used (`braid_array`),
//! caches hold the same blocks (`braid_cache::Shadow`), but no code here calls the engine.

pub mod advise;
mod array;
mod cached;
mod layout;
mod load;
mod machine;
pub mod off;
mod queue;
mod rounds;
mod tool;
mod workload;

pub use array::{Array, CannotBe, MEMORY, Offer, Tree, usual_shape};
pub use braid_cache::Behind;
pub use layout::Layout;
pub use load::{
    Bonnie, Closed, Files, Outcome, Places, Program, Random, Reading, Trees, Window, closed,
    closed_cut, closed_within, random_reads, random_writes, read_ahead, replay, synced, write_back,
};
pub use machine::{Machine, MemberModel, Next};
pub use queue::Merge;
pub use tool::Run;
pub use workload::{NAMES, Named, What, Workload};
