//! Members that fail, disks that are full, and processes that end at the wrong moment.
//!
//! A member's error must reach the client that asked, be counted and told by `braid status`, and
//! touch nothing else. Whatever ends a volume's process, what the volume has acknowledged is on
//! its members.

#[path = "../common/mod.rs"]
mod common;
mod cuts;
mod ends;
mod full;
mod kills;
mod left;
mod limits;
mod members;
mod memory;
mod panics;
mod shards;
mod stopped;

/// True if members can fail, and a scrub has something to compare.
fn is_redundant(level: &str) -> bool {
    !["linear", "raid0"].contains(&level)
}
