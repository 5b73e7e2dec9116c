//! Nothing of a volume lies on the volume itself: it would write over its content, and wait for itself.

use std::path::Path;

use braid_control::ErrorCode;

use crate::REFUSED;
use crate::codes::failure;
use crate::common::{
    LoopDevice, MIB, Mounted, Scratch, Tool, UpVolume, skip_unless_root, skip_without,
};

/// A mirror of two files that is attached, with content.
fn mirror(scratch: &Scratch) -> UpVolume<'_> {
    for name in ["a.img", "b.img"] {
        scratch.sparse(name, 96 * MIB);
    }
    let create = ["create", "s", "--level", "raid1", "--bitmap", "internal", "--assume-clean"];
    scratch.run(&[&create[..], &["a.img", "b.img"]].concat()).ok();
    scratch.up("s", &["--attach", "fuse"])
}

/// Every order that names a file or device refuses `path`, and says that it is the volume by `way`.
#[track_caller]
fn assert_refused(scratch: &Scratch, path: &Path, way: &[&str]) {
    let path = path.to_str().expect("plain names");
    let log = format!("log={path}");
    let warm = format!("warm={path}");
    let attach = ["cache", "attach", "s", "size=8M"];
    let mut words = vec!["is refused: ", "volume s itself", "does not lie on s"];
    words.extend(way);
    for order in [
        &["member", "add", "s", path][..],
        &["member", "add", "s", path, "--force"],
        &["member", "re-add", "s", path],
        &["member", "replace", "s", "a.img", path],
        &[&attach[..], &["mode=write-back", &log]].concat(),
        &[&attach[..], &[warm.as_str()]].concat(),
        &["save", "s", path, "--force"],
        &["restore", "s", path, "--force"],
    ] {
        scratch.run(order).fails(REFUSED, &words);
    }
    assert_eq!(failure(scratch, &["save", "s", path]).code, ErrorCode::OnItself);
}

#[test]
fn the_device_of_a_volume_is_nothing_of_the_volume() {
    skip_unless_root!();
    skip_without!("losetup");
    let scratch = Scratch::new();
    let volume = mirror(&scratch);
    let device = volume.device().to_owned();
    std::fs::write(&device, [7; 65536]).expect("a write");
    assert_refused(&scratch, &device, &[" is volume s itself"]);
    // By other names, and by the file that is served.
    std::os::unix::fs::symlink(&device, scratch.join("link")).expect("a link");
    assert_refused(&scratch, &scratch.join("link"), &["link is volume s itself"]);
    let served = scratch.run_folder().join("s.mount/volume");
    assert_refused(&scratch, &served, &["volume is volume s itself"]);
    if let Some(above) = LoopDevice::attach(&device) {
        let way = format!("{} stands on {}, which", above.text(), device.display());
        assert_refused(&scratch, above.path(), &[&way]);
    }
    volume.down();
    let content = scratch.braid().args(["cat", "s", "--length", "64K"]).run().ok().out;
    assert!(content == "\u{7}".repeat(65536), "nothing was written to it");
}

#[test]
fn a_file_on_the_file_system_of_a_volume_is_nothing_of_the_volume() {
    skip_unless_root!();
    skip_without!("losetup", "mkfs.ext4");
    let scratch = Scratch::new();
    let volume = mirror(&scratch);
    let device = volume.device().to_owned();
    Tool::new("mkfs.ext4").arg("-q").arg(&device).run().ok();
    let mounted = Mounted::device(&device, &scratch.join("m"));
    let file = scratch.sparse("m/log.img", 40 * MIB);
    let way = format!("lies on ext4 on {}, which is", device.display());
    assert_refused(&scratch, &file, &[&way]);
    // One that is not there yet.
    let new = scratch.join("m/new.img");
    let save = ["save", "s", new.to_str().expect("plain names")];
    scratch.run(&save).fails(REFUSED, &[&way]);
    // A loop device on it, and another volume.
    if let Some(above) = LoopDevice::attach(&file) {
        assert_refused(&scratch, above.path(), &["stands on", "m/log.img, which lies", &way]);
    }
    let other = scratch.up(file.to_str().expect("plain names"), &["--name", "t"]);
    let through = ["is volume t, which stands on", "m/log.img, which lies", &way];
    assert_refused(&scratch, other.device(), &through);
    other.down();
    mounted.unmount();
    volume.down();
}

#[test]
fn other_volumes_and_devices_are_taken() {
    skip_unless_root!();
    let scratch = Scratch::new();
    let volume = mirror(&scratch);
    scratch.sparse("c.img", 128 * MIB);
    let other = scratch.up("./c.img", &["--name", "t"]);
    let path = other.device().to_str().expect("plain names").to_owned();
    scratch.run(&["member", "add", "s", &path]).ok();
    // Now t is below s: the other way round is a circle.
    let device = volume.device().to_str().expect("plain names").to_owned();
    let attach = ["cache", "attach", "t", "size=8M", "mode=write-back"];
    let log = format!("log={device}");
    let order = [&attach[..], &[&log]].concat();
    let way = format!("{device} is volume s, which stands on {path}, which is volume t itself");
    scratch.run(&order).fails(REFUSED, &[&way]);
    volume.down();
    other.down();
}
