//! Refusals and failures.

use std::time::Duration;

use crate::cluster::{Cluster, skip_without_ceph};
use crate::common::{MIB, Scratch, Tool, pattern, skip_without};

#[test]
fn a_lock_held_elsewhere_is_refused_with_its_owner() {
    skip_without_ceph!();
    let cluster = Cluster::start();
    let (scratch, other) = (Scratch::new(), Scratch::new());
    cluster.rbd(&["create", "rbd/disk", "--size", "16M"]).ok();
    let stack = cluster.stack("rbd/disk", "");
    let volume = scratch.serve(&stack, &[]);
    let refused = other.run(&["up", &stack, "--attach", "none"]);
    refused.fails(3, &["exclusive lock is held by 127.0.0.1", "stop the client"]);
    // The first one still has it.
    volume.client().write(0, &[1; 4096], true).unwrap();
    volume.stop();
    other.serve(&stack, &[]).stop();
    cluster.rbd(&["create", "rbd/open", "--size", "16M", "--image-feature", "layering"]).ok();
    let refused = other.run(&["up", &cluster.stack("rbd/open", ""), "--attach", "none"]);
    refused.fails(1, &["exclusive-lock is off", "rbd feature enable"]);
    let refused = other.run(&["up", &cluster.stack("rbd/none", ""), "--attach", "none"]);
    refused.fails(1, &["rbd(rbd/none) cannot be used", "No such file", "rbd create"]);
    let refused = other.run(&["up", &cluster.stack("none/disk", ""), "--attach", "none"]);
    refused.fails(1, &["the pool none cannot be opened"]);
}

#[test]
fn an_osd_is_killed_under_a_verified_load() {
    skip_without_ceph!();
    skip_without!("fio");
    let cluster = Cluster::start();
    let scratch = Scratch::new();
    cluster.rbd(&["create", "rbd/disk", "--size", "128M"]).ok();
    let volume = scratch.serve(&cluster.stack("rbd/disk", ""), &[]);
    let fio = Tool::new("fio").args(["--name=v", "--ioengine=nbd", "--rw=randwrite", "--bs=16k"]);
    let fio = fio.args(["--size=128M", "--iodepth=16", "--verify=crc32c", "--verify_fatal=1"]);
    let fio = fio.arg(format!("--uri={}", volume.uri())).folder(scratch.path());
    let fio = fio.limit(Duration::from_secs(240));
    std::thread::scope(|scope| {
        let load = scope.spawn(|| fio.run());
        std::thread::sleep(Duration::from_secs(1));
        cluster.kill(1);
        load.join().unwrap().ok();
    });
    let mut client = volume.client();
    client.write(0, &pattern(1, 0, MIB), true).unwrap();
    drop(client);
    volume.stop();
}

#[test]
fn a_blocklisted_client_gets_errors_and_the_volume_ends() {
    skip_without_ceph!();
    let cluster = Cluster::start();
    let scratch = Scratch::new();
    cluster.rbd(&["create", "rbd/disk", "--size", "16M"]).ok();
    let volume = scratch.serve(&cluster.stack("rbd/disk", ", deadline=5s"), &[]);
    let mut client = volume.client();
    client.write(0, &[1; 4096], true).unwrap();
    let watchers = cluster.rbd(&["status", "--format", "json", "rbd/disk"]).ok().json();
    let address = watchers["watchers"][0]["address"].as_str().unwrap().to_owned();
    cluster.ceph(&["osd", "blocklist", "add", &address]).ok();
    let failed = (0..300).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        client.write(0, &[2; 4096], true).is_err()
    });
    assert!(failed, "a client that the cluster refuses has its writes answered");
    drop(client);
    volume.stop();
}

#[test]
fn a_full_cluster_ends_writes_by_their_deadline() {
    skip_without_ceph!();
    let cluster = Cluster::start();
    let scratch = Scratch::new();
    cluster.rbd(&["create", "rbd/disk", "--size", "16M"]).ok();
    let volume = scratch.serve(&cluster.stack("rbd/disk", ", deadline=3s"), &[]);
    let mut client = volume.client();
    client.write(0, &[1; 4096], true).unwrap();
    cluster.ceph(&["osd", "pool", "set-quota", "rbd", "max_bytes", "1"]).ok();
    let failed = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        client.write(0, &[2; 4096], true).is_err()
    });
    assert!(failed, "a pool that is full takes writes");
    // What would write metadata does not get as far: the lock is a write, too.
    drop(client);
    volume.stop();
    scratch.sparse("a.img", 16 * MIB);
    let image = cluster.stack("rbd/disk", ", deadline=3s");
    let create = ["create", "home", "--level", "1", "a.img", &image, "--force", &image];
    scratch.run(&create).fails(1, &["rbd(rbd/disk) cannot be used", "did not answer within 3 s"]);
}
