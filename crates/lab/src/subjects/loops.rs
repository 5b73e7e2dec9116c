//! A file as a block device: a loop device, with direct I/O if the file's file system supports it. With both
//! page caches a read would be counted that no disk served.

use std::path::Path;

use super::devices::sys_file;
use super::hand::command;
use super::site::{LIMIT, Site};
use super::things::Thing;
use crate::command::Exit;
use crate::error::Obstacle;

/// Attaches a file; returns the device.
pub(super) fn attach(site: &mut Site<'_>, file: &str) -> Result<String, Obstacle> {
    site.needs_root("a loop device")?;
    site.load_module("loop", Path::new("/dev/loop-control"), "loop devices")?;
    let losetup = |direct| command(&["losetup", "--find", "--show", direct, file]);
    let mut attached = site.run(&losetup("--direct-io=on"), LIMIT)?;
    if attached.exit != Exit::Code(0) {
        // Some file systems have no direct I/O.
        attached = site.must(&losetup("--direct-io=off"))?;
    }
    let device = attached.stdout.trim().to_owned();
    let backing = site.world.read_text(&sys_file(&device, "backing_file"))?;
    let file_of_it = backing.unwrap_or_default().trim().to_owned();
    site.hold(Thing::Loop { device: device.clone(), file: file_of_it });
    let direct = site.world.read_text(&sys_file(&device, "dio"))?;
    if direct.as_deref().map(str::trim) != Some("1") {
        site.commands.push(format!("# {device} goes through the page cache of {file}"));
    }
    Ok(device)
}
