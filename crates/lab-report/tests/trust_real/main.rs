//! Each verdict triggered for real: tools are run on real devices, the machine is looked at around
//! them, and the judgement is asked for. A file for each family of rules, as under `src/trust/`.
//!
//! Needs root for loop devices and mounts, and fio, btrfs-progs and util-linux; what is missing is
//! printed and skipped. Every loop device and mount is given back, also by a test that fails.
//! `KLAB=PROGRAM`, a launcher of guests that have md, adds a real rebuild; `BRAID=PROGRAM` arrays
//! that are served.
//!
//! What cannot be forced on an ordinary machine comes from a tree of files instead of `/sys`: heat,
//! and a governor that changes.

mod array;
mod bytes;
mod campaign;
mod content;
mod machine;
mod meddler;
mod members;
mod runs;
mod steady;
mod time;

use std::fs;
use std::time::{Duration, Instant};

use braid_lab::evidence::{Evidence, Watch, take};

use machine::alone;

/// The cost of two looks, with all processes, disks and mounts of this machine. It is printed and not asserted:
/// see docs/trust.md for measured values.
#[test]
fn two_looks_are_cheap() {
    let _turn = alone();
    let watch = Watch {
        target: Some("loop0".into()),
        members: vec!["vda".into(), "sda".into()],
        server_pid: Some(std::process::id()),
        mountpoint: Some("/".into()),
        ..Watch::default()
    };
    let count: usize = std::env::var("TRUST_LOOKS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let mut times: Vec<Duration> = (0..count)
        .map(|_| {
            let start = Instant::now();
            let evidence = Evidence::between(&take(&watch), &take(&watch));
            assert!(evidence.span_s.is_some());
            start.elapsed()
        })
        .collect();
    times.sort();
    let is_process =
        |entry: &fs::DirEntry| entry.file_name().to_string_lossy().parse::<u32>().is_ok();
    let processes =
        fs::read_dir("/proc").unwrap().filter_map(Result::ok).filter(is_process).count();
    println!("{processes} processes: {:?} for both looks, median of {count}", times[count / 2]);
}
