//! The common parts of the whole-system tests: the real binary, real tools, and guards that clean up.
//!
//! ```text
//!   Scratch ── a folder of its own, with the run and config folders of braid in it
//!     ├─ serve(STACK)  ──▶ Volume     `braid serve` in the foreground, on a Unix socket
//!     ├─ up(STACK)     ──▶ UpVolume   `braid up` … `braid down`
//!     └─ sparse, file  ──▶ members
//!   Tool ── any program, with a time limit, its output captured
//!   Ledger ── a write load that knows what may be found after the volume's end
//!   Client ── an NBD client of our own, for requests that no tool makes
//!   loops ── loop devices and mounts that are removed when they are dropped
//!   package ── the Debian package of the binary
//! ```
//!
//! Rules
//! * Tests run in parallel: nothing has a fixed name or port.
//! * Every wait ends. An event that does not happen within its limit is a failure, whose message names it.
//! * Everything that was started, attached or mounted is undone by a guard, also after a panic.
//! * No test asserts a duration.
//! * A test that cannot run here is skipped, and prints the reason: see [`skip_without`].

// Each test target uses its own part of this module.
#![allow(dead_code, unused_imports, unused_macros)]

mod client;
mod ledger;
mod loops;
mod package;
mod pattern;
mod scratch;
mod tool;
mod volume;

pub(crate) use client::{Answer, Client, Failed, RawClient};
pub(crate) use ledger::Ledger;
pub(crate) use loops::{LoopDevice, Mounted};
pub(crate) use package::{package, sources};
pub(crate) use pattern::{Random, assert_same_bytes, fill, pattern};
pub(crate) use scratch::Scratch;
pub(crate) use tool::{
    LIMIT, Output, Tool, find as find_program, start, wait_until, with_files_open,
};
pub(crate) use volume::{Stopped, UpVolume, Volume, cpu_ns_of, is_alive, send_signal, state_of};

/// The I/O drivers of volumes: each test of the data path runs with both.
pub(crate) const DRIVERS: [&str; 2] = ["uring", "threads"];

pub(crate) const KIB: u64 = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;

/// The drivers that this machine allows; says which it does not.
pub(crate) fn drivers() -> Vec<&'static str> {
    let scratch = Scratch::new();
    let is_there = |driver: &&str| {
        let probe = scratch.try_serve("ram(1M)", &["--io", driver]);
        if let Err(output) = &probe {
            println!("skipped: --io {driver} is not to be had here: {}", output.err.trim());
        }
        probe.is_ok()
    };
    DRIVERS.into_iter().filter(is_there).collect()
}

/// The first of these programs that is not installed.
pub(crate) fn first_missing(programs: &[&str]) -> Option<String> {
    programs.iter().find(|program| tool::find(program).is_none()).map(|program| (*program).into())
}

/// True if this process is root.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Ends the test, saying why, when a program is missing.
macro_rules! skip_without {
    ($($program:literal),+) => {
        if let Some(program) = $crate::common::first_missing(&[$($program),+]) {
            println!("skipped: {program} is not installed");
            return;
        }
    };
}

/// Ends the test, saying why, for anybody but root.
macro_rules! skip_unless_root {
    () => {
        if !$crate::common::is_root() {
            println!("skipped: only root has loop devices and mounts");
            return;
        }
    };
}

pub(crate) use {skip_unless_root, skip_without};
