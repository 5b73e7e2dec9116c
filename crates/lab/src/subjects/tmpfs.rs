//! A file on a tmpfs of its own behind a loop device: memory through the kernel's block layer. All of its
//! memory is allocated at once, so that no trial includes the first touch.

use braid_stack::ByteSize;

use super::hand::command;
use super::loops;
use super::site::{Base, Site, said};
use crate::command::Exit;
use crate::error::Obstacle;

/// Space of tmpfs beside the file's pages, in bytes.
const ROOM: u64 = 1 << 20;

pub(super) fn bring_up(site: &mut Site<'_>, size: ByteSize) -> Result<Base, Obstacle> {
    site.needs_root("mounting a tmpfs")?;
    let options = format!("size={},mode=0700", size.0.saturating_add(ROOM));
    let mount = command(&["mount", "-t", "tmpfs", "-o", &options, "tmpfs"]);
    let (folder, _, done) = site.mount(mount)?;
    if done.exit != Exit::Code(0) {
        return Err(Obstacle::Impossible(format!("no tmpfs can be mounted: {}", said(&done))));
    }
    let disk = folder.join("disk").display().to_string();
    site.must(&command(&["fallocate", "--length", &size.0.to_string(), &disk]))?;
    let device = loops::attach(site, &disk)?;
    site.device(device)
}
