//! Written data are there: after an unmount, after a check, after `down` and `up`.

use std::fs::File;
use std::io::Write;

use crate::common::{MIB, Mounted, Tool, drivers, skip_without, with_files_open};
use crate::tree::Tree;
use crate::{BTRFS, EXT4, Kind, XFS, can_attach, is_anything_mounted, is_behind, up_new};

fn round_trip(kind: &Kind, drivers: &[&str]) {
    if !can_attach() || !kind.is_installed() {
        return;
    }
    for driver in drivers {
        println!("{} by {driver}", kind.name);
        let scratch = crate::with_members(kind.size);
        let (first, second) = (Tree::new(1, 250), Tree::new(2, 50));
        let point = scratch.join("mnt");

        let volume = up_new(&scratch, &["--io", driver]);
        kind.make(volume.device());
        let mounted = Mounted::device(volume.device(), &point);
        first.write(&point, false);
        first.check(&point);
        mounted.unmount();
        kind.check(volume.device());
        let device = volume.device().to_owned();
        volume.down();
        assert!(!is_behind(&device, &scratch), "it is free");
        assert!(!is_anything_mounted(scratch.path()), "the FUSE mount is gone");

        // What the members carry now is the volume's own: nothing needs to be forced.
        let volume = scratch.up("v", &[]);
        kind.check(volume.device());
        let mounted = Mounted::device(volume.device(), &point);
        first.check(&point);
        second.write(&point, true);
        with_files_open(|| std::fs::remove_dir_all(point.join("1-0"))).expect("a folder");
        mounted.unmount();
        kind.check(volume.device());
        let mounted = Mounted::device(volume.device(), &point);
        second.check(&point);
        assert!(!point.join("1-0").exists());
        mounted.unmount();
        let attached = volume.status()["attached"].clone();
        assert_eq!(attached["kind"], "fuse");
        assert_eq!(attached["errors"], 0, "{attached:#}");
        assert!(attached["written_bytes"].as_u64() > Some(MIB), "{attached:#}");
        volume.down();
    }
}

#[test]
fn ext4_keeps_its_files() {
    round_trip(&EXT4, &drivers());
}

#[test]
fn xfs_keeps_its_files() {
    round_trip(&XFS, &["auto"]);
}

#[test]
fn btrfs_keeps_its_files() {
    let _turn = crate::without_dead_servers();
    round_trip(&BTRFS, &["auto"]);
}

#[test]
fn fio_verifies_what_it_wrote_to_the_device() {
    skip_without!("fio");
    if !can_attach() {
        return;
    }
    for driver in drivers() {
        let scratch = crate::with_members(16 * MIB);
        let volume = up_new(&scratch, &["--io", driver, "--shards", "2"]);
        let file = format!("--filename={}", volume.device().display());
        let fio = Tool::new("fio")
            .args(["--name=verify", "--ioengine=psync", "--direct=1", "--thread", "--numjobs=8"])
            .args([file.as_str(), "--rw=randwrite", "--bsrange=512-128k", "--fsync=32"])
            .args(["--size=2m", "--offset_increment=2m", "--group_reporting"])
            .args(["--verify=crc32c", "--do_verify=1", "--verify_fatal=1"])
            .folder(scratch.path());
        let output = fio.run().ok();
        assert!(output.out.contains("err= 0"), "{output}");
        volume.down();
    }
}

#[test]
fn the_device_and_nbd_show_the_same_bytes() {
    skip_without!("nbdcopy", "cmp");
    if !can_attach() {
        return;
    }
    let scratch = crate::with_members(8 * MIB);
    let source = scratch.file("source", 8 * MIB, 1);
    let volume = up_new(&scratch, &["--nbd", "unix:v.nbd"]);
    Tool::new("nbdcopy").arg("--flush").arg(&source).arg(&volume.uris[0]).run().ok();
    Tool::new("cmp").arg(&source).arg(volume.device()).run().ok();
    volume.down();
}

#[test]
fn a_read_only_volume_is_a_read_only_device() {
    if !can_attach() || !EXT4.is_installed() {
        return;
    }
    let scratch = crate::with_members(EXT4.size);
    let tree = Tree::new(1, 20);
    let point = scratch.join("mnt");
    let volume = up_new(&scratch, &[]);
    EXT4.make(volume.device());
    let mounted = Mounted::device(volume.device(), &point);
    tree.write(&point, true);
    mounted.unmount();
    volume.down();
    let before = [scratch.read("a.img"), scratch.read("b.img")];
    let volume = scratch.up("v", &["--read-only"]);
    let write = || File::options().write(true).open(volume.device())?.write_all(&[0; 512]);
    let written = with_files_open(write);
    assert!(written.is_err(), "a read-only device takes no writes");
    // `mount` falls back to a read-only mount by itself.
    let mounted = Mounted::device(volume.device(), &point);
    tree.check(&point);
    assert!(with_files_open(|| std::fs::write(point.join("new"), "x")).is_err());
    mounted.unmount();
    volume.down();
    assert!(before == [scratch.read("a.img"), scratch.read("b.img")], "no byte was changed");
}
