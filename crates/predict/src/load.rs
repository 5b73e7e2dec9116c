//! Loads: what the tools of the published measurements ask of a machine.
//!
//! A load runs a [`Machine`](crate::Machine) from rest and answers a rate. It knows the host's page
//! cache in the form that these tools need, no more.

mod closed;
mod files;
mod random;
mod sequential;

pub use closed::{Closed, Outcome, Places, Window, closed, closed_cut, closed_within, replay};
pub use files::{Bonnie, Files, Program, Trees};
pub use random::{Random, random_reads, random_writes};
pub use sequential::{Reading, read_ahead, synced, write_back};
