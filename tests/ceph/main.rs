//! Images of a Ceph cluster as volumes, members and origins, with a real cluster on the loopback.
//!
//! Each test has a cluster of its own, in memory (`scripts/ceph-loopback.sh`). Without Ceph's packages only the refusals run.

#[path = "../common/mod.rs"]
mod common;

mod cluster;
mod faults;
mod volumes;

use common::Scratch;

#[test]
fn a_cluster_that_is_not_there_is_a_failure_with_the_next_step() {
    let scratch = Scratch::new();
    let conf = scratch.join("none.conf");
    let stack = format!("rbd(rbd/disk, conf={})", conf.display());
    let refused = scratch.run(&["up", &stack, "--attach", "none"]);
    let has_library = ["librbd1", "none.conf"].iter().any(|word| refused.err.contains(word));
    assert!(refused.code() == 1 && has_library, "{}", refused.err);
}
