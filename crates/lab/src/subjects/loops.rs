//! A file as a block device: a loop device, past the page cache where the file's file system lets
//! it. With both caches a read would be counted that no disk served.

use std::path::{Path, PathBuf};

use super::hand::{Hand, TRIES, TRY_EVERY};
use super::journal::Thing;
use super::site::{LIMIT, Obstacle, Site};
use crate::command::{CommandLine, Exit};
use crate::error::LabError;

/// A file of `/sys` that describes a loop device.
pub(super) fn sys_file(device: &str, name: &str) -> PathBuf {
    let device = Path::new(device).file_name().unwrap_or_default();
    Path::new("/sys/block").join(device).join("loop").join(name)
}

/// Attaches a file; answers the device.
pub(super) fn attach(site: &mut Site<'_>, file: &str) -> Result<String, Obstacle> {
    site.needs_root("a loop device")?;
    site.load_module("loop", Path::new("/dev/loop-control"), "loop devices")?;
    let losetup = |direct: &str| {
        let command = CommandLine::new("losetup").arg("--find").arg("--show");
        command.arg(format!("--direct-io={direct}")).arg(file)
    };
    let mut command = losetup("on");
    let mut done = site.run(&command, LIMIT)?;
    if done.exit != Exit::Code(0) {
        // Some file systems have no direct I/O.
        command = losetup("off");
        done = site.run(&command, LIMIT)?;
    }
    if done.exit != Exit::Code(0) {
        return Err(site.failed(&command, &done));
    }
    let device = done.stdout.trim().to_owned();
    let backing = site.world.read_text(&sys_file(&device, "backing_file"))?;
    let file_of_it = backing.unwrap_or_default().trim().to_owned();
    site.hold(Thing::Loop { device: device.clone(), file: file_of_it });
    let direct = site.world.read_text(&sys_file(&device, "dio"))?;
    if direct.as_deref().map(str::trim) != Some("1") {
        site.commands.push(format!("# {device} goes through the page cache of {file}"));
    }
    Ok(device)
}

/// Detaches a loop device, and looks whether it is free: the kernel defers it while it is in use.
pub(super) fn release(hand: &mut Hand<'_>, device: &str) -> Result<(), LabError> {
    let command = CommandLine::new("losetup").arg("--detach").arg(device);
    hand.run(command.clone())?;
    let backing = sys_file(device, "backing_file");
    for _ in 0..TRIES {
        if hand.world.read_text(&backing)?.is_none() {
            return Ok(());
        }
        hand.world.sleep(TRY_EVERY);
    }
    Err(hand.left(format!("{device} is in use"), &command))
}
