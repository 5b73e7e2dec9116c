//! A file on a tmpfs of its own behind a loop device: memory through the kernel's block layer.
//! All of its memory is taken at once, so that no trial pays for the first touch.

use std::path::Path;

use braid_stack::ByteSize;

use super::journal::Thing;
use super::loops;
use super::site::{Base, Obstacle, Site, said};
use crate::command::{CommandLine, Exit, Target};

/// What tmpfs needs beside the file's pages.
const ROOM: u64 = 1 << 20;

pub(super) fn bring_up(site: &mut Site<'_>, size: ByteSize) -> Result<Base, Obstacle> {
    site.needs_root("mounting a tmpfs")?;
    let folder = site.world.make_folder(&std::env::temp_dir())?;
    site.hold(Thing::Folder { path: folder.clone(), with_content: false });
    let options = format!("size={},mode=0700", size.0.saturating_add(ROOM));
    let mount = CommandLine::new("mount").arg("-t").arg("tmpfs").arg("-o").arg(options);
    let mount = mount.arg("tmpfs").arg(folder.display().to_string());
    let done = site.make(Thing::Mount { folder: folder.clone() }, &mount)?;
    if done.exit != Exit::Code(0) {
        return Err(Obstacle::Impossible(format!("no tmpfs can be mounted: {}", said(&done))));
    }
    let disk = folder.join("disk").display().to_string();
    let allocate = CommandLine::new("fallocate").arg("--length").arg(size.0.to_string()).arg(&disk);
    site.must(&allocate)?;
    let device = loops::attach(site, &disk)?;
    let size = site.size_of(Path::new(&device))?;
    Ok(Base::new(Target::Device(device.into()), size))
}
