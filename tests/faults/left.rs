//! The remains of a volume's process that is killed with a file system on its device: the first `up` removes
//! them, and starts.

use crate::common::{MIB, Mounted, Scratch, Tool, UpVolume, skip_unless_root, skip_without};

fn mkfs_and_mount(scratch: &Scratch, volume: &UpVolume) -> Mounted {
    Tool::new("mkfs.ext4").arg("-q").arg(volume.device()).run().ok();
    Mounted::device(volume.device(), &scratch.join("m"))
}

#[test]
fn the_first_up_after_a_kill_with_a_mounted_file_system_starts() {
    skip_unless_root!();
    skip_without!("mkfs.ext4");
    let scratch = Scratch::new();
    let members = ["a.img", "b.img", "c.img"];
    members.iter().for_each(|name| drop(scratch.sparse(name, 64 * MIB)));
    let create = scratch.braid().args(["create", "v", "--level", "raid5"]).args(members);
    create.arg("--assume-clean").run().ok();
    let volume = scratch.up("v", &[]);
    if volume.device.is_none() {
        println!("skipped: volumes cannot be attached here");
        return;
    }
    let mounted = mkfs_and_mount(&scratch, &volume);
    std::fs::write(scratch.join("m/f"), "hello").unwrap();
    Tool::new("sync").arg("-f").arg(scratch.join("m/f")).run().ok();
    // A process whose folder is in it, before and after the kill.
    let inside = std::fs::File::open(scratch.join("m")).unwrap();
    volume.kill();
    let again = scratch.run(&["up", "v"]).ok();
    let device = again.out.lines().next().expect("a device").to_owned();
    let point = scratch.join("m").display().to_string();
    assert!(again.err.contains("was killed had left") && again.err.contains(&point), "{again}");
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&point), "the dead file system is gone");
    drop(mounted);
    drop(inside);
    let mounted = Mounted::device(device.as_ref(), &scratch.join("m"));
    assert_eq!(std::fs::read_to_string(scratch.join("m/f")).unwrap(), "hello");
    mounted.unmount();
    scratch.run(&["down", "v"]).ok();
    drop(volume);
}

#[test]
fn an_up_right_after_a_kill_waits_for_the_members() {
    let scratch = Scratch::new();
    scratch.sparse("a.img", 64 * MIB);
    scratch.sparse("b.img", 64 * MIB);
    let stack = "raid0(chunk=64K, ./a.img, ./b.img)";
    for _ in 0..8 {
        let volume = scratch.up(stack, &["--name", "v", "--attach", "none"]);
        let mut client = volume.client();
        for index in 0..32 {
            let length = 1 << 20;
            let command =
                braid_nbd::protocol::Command::Write { offset: index << 20, length, fua: true };
            client.send(command, &vec![7; length as usize]).unwrap();
        }
        crate::common::send_signal(volume.pid, rustix::process::Signal::KILL);
        scratch.run(&["up", "v"]).ok();
        scratch.run(&["down", "v"]).ok();
    }
}
