//! Members that are not there, not whole, not free, or not empty.

use std::fs::File;

use crate::common::{
    KIB, LoopDevice, MIB, Mounted, Scratch, Tool, pattern, skip_unless_root, skip_without,
    with_files_open,
};
use crate::{REFUSED, USAGE, refuses};

#[test]
fn what_is_not_there() {
    let scratch = Scratch::new();
    scratch.file("a.img", MIB, 1);
    let parts = ["nope.img is refused", "it does not exist", "next:", "truncate -s SIZE"];
    refuses(&scratch, "./nope.img", &[], REFUSED, &parts);
    refuses(&scratch, "linear(./a.img, ./nope.img)", &[], REFUSED, &parts);
    refuses(&scratch, "./nope.img", &["--force", "./nope.img"], REFUSED, &parts);
    std::os::unix::fs::symlink("gone", scratch.join("dangling")).unwrap();
    refuses(&scratch, "./dangling", &[], REFUSED, &["dangling is refused", "does not exist"]);
}

#[test]
fn what_is_neither_file_nor_device() {
    let scratch = Scratch::new();
    std::fs::create_dir(scratch.join("folder")).unwrap();
    Tool::new("mkfifo").arg(scratch.join("pipe")).run().ok();
    let next = "next: name a regular file or a block device";
    refuses(&scratch, "./folder", &[], REFUSED, &["folder is refused", "it is a directory", next]);
    refuses(&scratch, "./pipe", &[], REFUSED, &["pipe is refused", next]);
    refuses(&scratch, "/dev/null", &[], REFUSED, &["/dev/null is refused", next]);
    refuses(&scratch, "./folder", &["--read-only"], REFUSED, &["it is a directory"]);
}

#[test]
fn what_is_too_small() {
    let scratch = Scratch::new();
    scratch.file("small.img", 4095, 1);
    scratch.sparse("empty.img", 0);
    let parts = ["small.img is refused", "at least 4 KiB are needed", "next: truncate -s 4096"];
    refuses(&scratch, "./small.img", &[], REFUSED, &parts);
    refuses(&scratch, "./small.img", &["--force", "./small.img"], REFUSED, &parts);
    refuses(&scratch, "./empty.img", &[], REFUSED, &["it has 0 B", "next: truncate"]);
}

#[test]
fn what_is_mounted_or_behind_a_loop_device() {
    skip_unless_root!();
    skip_without!("mkfs.ext4", "losetup");
    let scratch = Scratch::new();
    let image = scratch.sparse("fs.img", 8 * MIB);
    Tool::new("mkfs.ext4").arg("-q").arg(&image).run().ok();
    let Some(device) = LoopDevice::attach(&image) else { return };
    // The file behind an unused loop device: two ways to the same bytes.
    let parts = ["fs.img is refused", "backing file of", "next: losetup --detach"];
    refuses(&scratch, "./fs.img", &["--force", "./fs.img"], REFUSED, &parts);
    let point = scratch.join("mnt");
    let mounted = Mounted::device(device.path(), &point);
    with_files_open(|| std::fs::write(point.join("file"), "precious")).unwrap();
    // The file system writes as it likes, so that bytes cannot be compared here.
    let mount = format!("mounted at {}", point.display());
    let umount = format!("next: umount {}", point.display());
    for options in [&[][..], &["--force", device.text()], &["--read-only"]] {
        let Err(output) = scratch.try_serve(device.text(), options) else {
            panic!("a mounted device was taken")
        };
        output.fails(REFUSED, &["is refused: it is in use", &mount, &umount]);
    }
    let file = with_files_open(|| std::fs::read(point.join("file"))).unwrap();
    assert_eq!(file, b"precious");
    mounted.unmount();
}

#[test]
fn what_another_volume_uses() {
    let scratch = Scratch::new();
    scratch.file("a.img", MIB, 1);
    let mut volume = scratch.serve("./a.img", &[]);
    let parts =
        ["a.img is refused: it is in use", "open by braid-volume", "next: end braid-volume (pid"];
    refuses(&scratch, "./a.img", &[], REFUSED, &parts);
    refuses(&scratch, "linear(ram(1M), ./a.img)", &[], REFUSED, &parts);
    refuses(&scratch, "./a.img", &["--force", "./a.img"], REFUSED, &parts);
    volume.assert_serves();
    drop(volume);
    scratch.serve("./a.img", &[]).assert_serves();
}

#[test]
fn what_any_other_process_has_locked() {
    let scratch = Scratch::new();
    let file = File::options().append(true).open(scratch.file("a.img", MIB, 1)).unwrap();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
    refuses(&scratch, "./a.img", &[], REFUSED, &["a.img is refused: it is in use", "next:"]);
}

#[test]
fn a_block_device_that_another_volume_claims() {
    skip_unless_root!();
    skip_without!("losetup");
    let scratch = Scratch::new();
    let image = scratch.file("a.img", MIB, 1);
    let Some(device) = LoopDevice::attach(&image) else { return };
    let mut volume = scratch.serve(device.text(), &[]);
    let parts =
        ["is refused: it is in use", "claimed exclusively", "next: find the process that holds it"];
    refuses(&scratch, device.text(), &[], REFUSED, &parts);
    refuses(&scratch, device.text(), &["--force", device.text()], REFUSED, &parts);
    volume.assert_serves();
}

#[test]
fn the_same_bytes_twice() {
    let scratch = Scratch::new();
    scratch.file("a.img", MIB, 1);
    std::os::unix::fs::symlink("a.img", scratch.join("link.img")).unwrap();
    std::fs::hard_link(scratch.join("a.img"), scratch.join("hard.img")).unwrap();
    let twice = ["`./a.img` is a member twice", "already at column 8"];
    refuses(&scratch, "linear(./a.img, ./a.img)", &[], USAGE, &twice);
    for other in ["link.img", "hard.img"] {
        let refused = format!("{other} is refused: it is the same as");
        let parts = [refused.as_str(), "a.img", "next: name each member once"];
        refuses(&scratch, &format!("linear(./a.img, ./{other})"), &[], REFUSED, &parts);
        refuses(&scratch, &format!("raid0(linear(./a.img), ./{other})"), &[], REFUSED, &parts);
    }
    let plain = scratch.join("a.img");
    let absolute = format!("linear(./a.img, {})", plain.display());
    refuses(&scratch, &absolute, &[], USAGE, &["a.img` is a member twice"]);
}

/// Makes a member that carries something: how it is called, and what the refusal calls it.
fn carriers(scratch: &Scratch) -> Vec<(&'static str, &'static str)> {
    let mut carriers = vec![("md.img", "md 1.2"), ("mbr.img", "MBR (2 MiB)")];
    scratch.sparse("md.img", 16 * MIB);
    let superblock = include_bytes!("../../crates/probe/tests/golden/md-1.2.sb");
    scratch.patch("md.img", 4096, superblock);
    // One partition of type 0x83: 2048 sectors from sector 2048 on.
    scratch.sparse("mbr.img", 4 * MIB);
    let entry = [0, 0, 2, 0, 0x83, 0, 2, 0, 0, 8, 0, 0, 0, 8, 0, 0];
    scratch.patch("mbr.img", 446, &entry);
    scratch.patch("mbr.img", 510, &[0x55, 0xaa]);
    for (name, contains, size, program) in [
        ("ext4.img", "ext4", 8 * MIB, "mkfs.ext4"),
        ("xfs.img", "xfs", 300 * MIB, "mkfs.xfs"),
        ("btrfs.img", "btrfs", 128 * MIB, "mkfs.btrfs"),
        ("swap.img", "swap", MIB, "mkswap"),
    ] {
        if crate::common::first_missing(&[program]).is_some() {
            println!("skipped: {program} is not installed");
            continue;
        }
        let image = scratch.sparse(name, size);
        Tool::new(program).arg("-q").arg(&image).run().ok();
        carriers.push((name, contains));
    }
    carriers
}

#[test]
fn what_carries_something() {
    let scratch = Scratch::new();
    for (name, contains) in carriers(&scratch) {
        let alone = Scratch::new();
        std::fs::rename(scratch.join(name), alone.join(name)).unwrap();
        let image = alone.join(name);
        let refused = format!("{name} is refused: it contains {contains}");
        let next = format!("to serve what it contains: --force {}", image.display());
        refuses(&alone, &format!("./{name}"), &[], REFUSED, &[&refused, &next]);
        let pair = format!("raid0(chunk=4K, ram(1M), ./{name})");
        refuses(&alone, &pair, &[], REFUSED, &[&refused, &next]);
        // A path that is no member's does not help.
        let stranger = "other.img: the stack has no such member";
        refuses(&alone, &pair, &["--force", "other.img"], USAGE, &[stranger]);
        // To look at it is no harm.
        alone.serve(&format!("./{name}"), &["--read-only"]).assert_serves();
    }
}

#[test]
fn an_image_of_a_format_of_its_own() {
    skip_without!("qemu-img");
    let scratch = Scratch::new();
    let image = scratch.join("a.qcow2");
    Tool::new("qemu-img").args(["create", "-f", "qcow2"]).arg(&image).arg("8M").run().ok();
    let parts = ["it is a qcow2 image, not a raw one", "next: qemu-img convert -O raw", "--force"];
    refuses(&scratch, "./a.qcow2", &[], REFUSED, &parts);
    // Its bytes as they are would be garbage to their reader.
    refuses(&scratch, "./a.qcow2", &["--read-only"], REFUSED, &parts);
    scratch.serve("./a.qcow2", &["--force", "./a.qcow2"]).assert_serves();
}

#[test]
fn force_takes_what_is_named_again() {
    skip_without!("mkfs.ext4");
    let scratch = Scratch::new();
    for name in ["a.img", "b.img"] {
        Tool::new("mkfs.ext4").arg("-q").arg(scratch.sparse(name, 8 * MIB)).run().ok();
    }
    let stack = "raid0(chunk=4K, ./a.img, ./b.img)";
    let parts = ["b.img is refused: it contains ext4", "--force"];
    refuses(&scratch, stack, &["--force", "./a.img"], REFUSED, &parts);
    // As the stack spells it, without its `./`, and as the refusal spells it.
    let whole = scratch.join("b.img");
    for again in ["./b.img", "b.img", whole.to_str().unwrap()] {
        let options = ["--force", "./a.img", "--force", again];
        scratch.serve(stack, &options).assert_serves();
        let up = scratch.up(
            stack,
            &["--name", "v", "--attach", "none", options[0], options[1], options[2], options[3]],
        );
        let bytes = pattern(7, 0, 64 * KIB);
        up.client().write(0, &bytes, true).unwrap();
        up.down();
        std::fs::remove_file(scratch.config_file("v")).unwrap();
    }
}

/// ```text
///   holder     locked ─────────── unlocks
///   braid          locked? waits ────── locks
/// ```
#[test]
fn a_member_whose_holder_is_on_its_way_out_is_waited_for() {
    skip_unless_root!();
    skip_without!("unshare", "flock", "sleep");
    let scratch = Scratch::new();
    scratch.file("a.img", MIB, 1);
    // In its own namespace braid does not see the holder of the lock, as it does not see the open files of a
    // process that is ending.
    let alone = |seconds: &str| {
        let hold = Tool::new("flock").args(["--no-fork", "-x"]).arg(scratch.join("a.img"));
        let holder = crate::common::start(&mut hold.args(["sleep", seconds]).into_command());
        let mut holder = holder.expect("a process can be started");
        crate::common::wait_until("the lock", || {
            let member = with_files_open(|| File::open(scratch.join("a.img"))).unwrap();
            let free = rustix::fs::FlockOperation::NonBlockingLockShared;
            rustix::fs::flock(&member, free).is_err()
        });
        let up = ["up", "./a.img", "--name", "v", "--attach", "none"];
        // The namespace has copies of other tests' mounts, whose devices would be in use until it ends.
        let script = "awk '$2 ~ \"^/tmp/\" { print $2 }' /proc/mounts | xargs -r umount -l; exec \"$0\" \"$@\"";
        let inside = Tool::new("unshare").args(["--pid", "--fork", "--mount-proc", "sh", "-c"]);
        let output = inside
            .arg(script)
            .arg(env!("CARGO_BIN_EXE_braid"))
            .args(up)
            .env("BRAID_RUN_DIR", scratch.run_folder())
            .env("BRAID_CONFIG_DIR", scratch.join("config"))
            .folder(scratch.path())
            .run();
        let _ = holder.kill();
        let _ = holder.wait();
        output
    };
    let waited = alone("0.7");
    if waited.err.contains("unshare") {
        println!("skipped: no namespaces here: {}", waited.err.trim());
        return;
    }
    assert!(waited.ok().out.contains("v.nbd"));
    // Not for ever.
    let parts = ["a.img is in use: another program has it locked, and did not let go of it"];
    alone("60").fails(1, &parts);
}

#[test]
fn what_a_volume_has_is_told_by_its_name() {
    let scratch = Scratch::new();
    scratch.file("a.img", MIB, 1);
    scratch.file("b.img", MIB, 2);
    let _volume = scratch.up("./a.img", &["--name", "v", "--attach", "none"]);
    let parts = ["a.img is refused: it is a member of v, which is up", "next: braid down v"];
    scratch.run(&["up", "raid0(a.img, b.img)", "--name", "w"]).fails(REFUSED, &parts);
    scratch.run(&["create", "w", "--level", "raid1", "a.img", "b.img"]).fails(REFUSED, &parts);
}
