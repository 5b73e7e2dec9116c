//! A volume that is mounted, and is told to go, forced to go, or killed.

use rustix::process::Signal;

use crate::common::{
    Mounted, Scratch, Stopped, UpVolume, is_alive, send_signal, wait_until, with_files_open,
};
use crate::tree::Tree;
use crate::{EXT4, can_attach, is_anything_mounted, is_behind, up_new};

/// A volume with an ext4 mounted at `mnt`, and a tree on it that is durable.
fn mounted_ext4(scratch: &Scratch) -> (UpVolume<'_>, Mounted, Tree) {
    let volume = up_new(scratch, &[]);
    EXT4.make(volume.device());
    let mounted = Mounted::device(volume.device(), &scratch.join("mnt"));
    let tree = Tree::new(7, 40);
    tree.write(mounted.point(), true);
    // Folders are as durable as their files only after this.
    crate::Tool::new("sync").arg("-f").arg(mounted.point()).run().ok();
    (volume, mounted, tree)
}

/// Checks that nothing is left of a volume: no device, no mount, nothing to tell.
#[track_caller]
fn assert_all_is_gone(scratch: &Scratch, volume: &UpVolume) {
    wait_until("the end of the volume's process", || !is_alive(volume.pid));
    wait_until("the release of the loop device", || !is_behind(volume.device(), scratch));
    assert!(!is_anything_mounted(scratch.path()), "nothing is mounted");
    scratch.run(&["status", "v"]).fails(1, &["no volume called v is up"]);
}

/// Brings the volume up again and checks that what was durable is there.
#[track_caller]
fn assert_comes_back(scratch: &Scratch, tree: &Tree) {
    let volume = scratch.up("v", &[]);
    // Mounting replays the journal; the check comes behind it.
    let mounted = Mounted::device(volume.device(), &scratch.join("mnt"));
    tree.check(mounted.point());
    Tree::new(8, 10).write(mounted.point(), true);
    mounted.unmount();
    EXT4.check(volume.device());
    volume.down();
}

#[test]
fn down_refuses_while_it_is_mounted() {
    if !can_attach() || !EXT4.is_installed() {
        return;
    }
    let scratch = crate::with_members(EXT4.size);
    let (volume, mounted, tree) = mounted_ext4(&scratch);
    let at = format!("mounted at {}", mounted.point().display());
    let parts = ["v is in use:", at.as_str(), "next: unmount or close it", "braid down v --force"];
    volume.try_down(&[]).fails(3, &parts);
    // It works as before.
    tree.check(mounted.point());
    let more = Tree::new(9, 20);
    more.write(mounted.point(), true);
    assert_eq!(volume.status()["state"], "online");
    mounted.unmount();
    EXT4.check(volume.device());
    volume.try_down(&[]).ok();
    assert_all_is_gone(&scratch, &volume);
    assert_comes_back(&scratch, &tree);
}

#[test]
fn a_signal_is_refused_once_while_it_is_mounted() {
    if !can_attach() || !EXT4.is_installed() {
        return;
    }
    let scratch = crate::with_members(EXT4.size);
    let (volume, mounted, tree) = mounted_ext4(&scratch);
    // Two at once count as one request: `timeout` sends two, and the answer was not read.
    send_signal(volume.pid, Signal::TERM);
    send_signal(volume.pid, Signal::INT);
    let log = scratch.run_folder().join("v.log");
    wait_until("the volume to say no twice", || {
        std::fs::read_to_string(&log).is_ok_and(|log| log.matches("once more within").count() == 2)
    });
    assert!(is_alive(volume.pid));
    tree.check(mounted.point());
    mounted.unmount();
    send_signal(volume.pid, Signal::TERM);
    wait_until("its end", || !is_alive(volume.pid));
    assert_comes_back(&scratch, &tree);
}

#[test]
fn down_by_force_while_it_is_mounted() {
    if !can_attach() || !EXT4.is_installed() {
        return;
    }
    let _turn = crate::may_kill_a_server();
    let scratch = crate::with_members(EXT4.size);
    let (volume, mounted, tree) = mounted_ext4(&scratch);
    // Not durable yet: it is written out before the device goes.
    let late = Tree::new(9, 20);
    late.write(mounted.point(), false);
    volume.try_down(&["--force"]).ok();
    assert_all_is_gone(&scratch, &volume);
    drop(mounted);
    let again = scratch.up("v", &[]);
    let mounted = Mounted::device(again.device(), &scratch.join("mnt"));
    late.check(mounted.point());
    mounted.unmount();
    again.down();
    assert_comes_back(&scratch, &tree);
}

#[test]
fn killed_while_it_is_mounted() {
    if !can_attach() || !EXT4.is_installed() {
        return;
    }
    let _turn = crate::may_kill_a_server();
    let scratch = crate::with_members(EXT4.size);
    let (volume, mounted, tree) = mounted_ext4(&scratch);
    // Something is under way when it dies.
    Tree::new(9, 50).write(mounted.point(), false);
    volume.kill();
    // Its files cannot be reached any more, but no program waits for ever.
    let _ = with_files_open(|| std::fs::write(mounted.point().join("after"), "too late"));
    scratch.run(&["status", "v"]).fails(1, &["v: its process is gone", "next: `braid down v`"]);
    let down = volume.try_down(&[]).ok();
    assert!(down.err.contains("what it left was removed"), "{down}");
    assert_all_is_gone(&scratch, &volume);
    drop(mounted);
    assert_comes_back(&scratch, &tree);
}

#[test]
fn killed_while_nothing_is_mounted_it_comes_up_without_down() {
    if !can_attach() || !EXT4.is_installed() {
        return;
    }
    let _turn = crate::may_kill_a_server();
    let scratch = crate::with_members(EXT4.size);
    let (volume, mounted, tree) = mounted_ext4(&scratch);
    mounted.unmount();
    volume.kill();
    assert_comes_back(&scratch, &tree);
}

#[test]
fn down_by_force_of_a_process_that_hangs() {
    if !can_attach() || !EXT4.is_installed() {
        return;
    }
    let scratch = crate::with_members(EXT4.size);
    let (volume, mounted, tree) = mounted_ext4(&scratch);
    // Pages that only the process could take, and it takes nothing any more.
    Tree::new(9, 50).write(mounted.point(), false);
    let _stopped = Stopped::stop(volume.pid);
    volume.try_down(&["--force"]).ok();
    assert_all_is_gone(&scratch, &volume);
    drop(mounted);
    assert_comes_back(&scratch, &tree);
}

#[test]
fn down_refuses_while_somebody_has_the_device_open() {
    if !can_attach() {
        return;
    }
    let scratch = crate::with_members(crate::EXT4.size);
    let volume = up_new(&scratch, &[]);
    let file = std::fs::File::open(volume.device()).expect("root opens devices");
    let reader = format!("(pid {})", std::process::id());
    volume
        .try_down(&[])
        .fails(3, &["v is in use:", "open by", &reader, "next: unmount or close it"]);
    drop(file);
    volume.try_down(&[]).ok();
    assert_all_is_gone(&scratch, &volume);
}

#[test]
fn a_volume_on_a_volume_goes_first() {
    if !can_attach() || !EXT4.is_installed() {
        return;
    }
    let scratch = crate::with_members(EXT4.size);
    let lower = up_new(&scratch, &[]);
    let stack = format!("linear({}, ram(1M))", lower.device().display());
    let upper = scratch.up(&stack, &["--name", "upper", "--attach", "fuse"]);
    EXT4.make(upper.device());
    lower.try_down(&[]).fails(3, &["v is in use:"]);
    EXT4.check(upper.device());
    upper.down();
    lower.try_down(&[]).ok();
    assert_all_is_gone(&scratch, &lower);
}
