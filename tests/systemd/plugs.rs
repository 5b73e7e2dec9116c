//! A disk that is unplugged under load, and plugged in again.

use crate::{Site, assemble, mirror};

/// The number of chunks in the bitmap.
const CHUNK: usize = 64 << 10;

#[test]
fn a_disk_is_unplugged_under_load_and_comes_back_by_the_bitmap() {
    let Some(site) = Site::new() else { return };
    let scratch = &site.scratch;
    mirror(scratch, "home", ["a", "b"]);
    let mut machine = site.boot(&["a", "b"]);
    // Sixteen chunks are written repeatedly.
    machine.ok(&format!(
        "set -e; {}
         systemctl start braid@home
         head -c 1M /dev/urandom >/root/data
         systemd-run -q --unit load sh -c 'while dd if=/root/data of=/dev/braid/home bs=64k oflag=direct conv=notrunc; do :; done'",
        assemble("home", ["a", "b"])
    ));
    assert_eq!(machine.status("home")["state"], "online");

    machine.watch(
        "! test -e /dev/disk/by-id/virtio-b",
        "braid status home --json | grep -q '\"state\": *\"degraded\"'",
    );
    machine.unplug("b");
    let seconds = machine.watched("the volume to be degraded");
    println!("from the link's end to the first `braid status` that says degraded: {seconds:.2} s");
    // The write that meets a disk without bytes may be the first to report it; then the log has the error of
    // that write.
    machine.wait_until(
        "the member to be called gone",
        "braid status home --json | grep -q 'its device went away'",
    );
    machine.ok("systemctl is-active load braid@home; dd if=/root/data of=/dev/braid/home bs=64k oflag=direct conv=notrunc");

    // A difference that only a copy of the whole member would repair.
    let superblock = scratch.run(&["examine", "a.img", "--json"]).json();
    let data = superblock["members"][0]["superblocks"][0]["data_offset_bytes"].as_u64();
    let data = data.expect("an offset") as usize;
    let place = data + 40 * CHUNK;
    scratch.patch("b.img", place as u64, &[9; 512]);
    machine.watch(
        "test -e /dev/disk/by-id/virtio-b",
        "braid status home --json | grep -q '\"state\": *\"online\"'",
    );
    machine.plug("b");
    let seconds = machine.watched("the member to be back and filled");
    println!("from its link to the first `braid status` that says online: {seconds:.2} s");
    machine.ok("systemctl is-active load braid@home && systemctl stop load");
    machine.power_off();
    let (a, b) = (scratch.read("a.img"), scratch.read("b.img"));
    assert!(a[data..][..16 * CHUNK] == b[data..][..16 * CHUNK], "what was written is on both");
    assert!(b[place..][..512] == [9; 512], "what was not written meanwhile is not copied");
}
