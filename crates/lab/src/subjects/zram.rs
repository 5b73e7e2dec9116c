//! A compressed RAM disk of the kernel's. A new one is asked for and removed afterwards: one that
//! is there, even unused, is somebody's.

use std::path::{Path, PathBuf};

use braid_stack::ByteSize;

use super::held::Thing;
use super::site::{Base, Obstacle, Site};
use crate::tool::Target;
use crate::world::CommandLine;

/// A control file of zram's.
pub(super) fn control(name: &str) -> PathBuf {
    Path::new("/sys/class/zram-control").join(name)
}

pub(super) fn bring_up(site: &mut Site<'_>, size: ByteSize) -> Result<Base, Obstacle> {
    site.needs_root("a RAM disk of the kernel (zram)")?;
    site.load_module("zram", &control("hot_add"), "zram")?;
    // Reading it makes a device and answers its number.
    let Some(answer) = site.world.read_text(&control("hot_add"))? else {
        return Err(Obstacle::Impossible("this kernel has no zram".to_owned()));
    };
    let Ok(number) = answer.trim().parse::<u32>() else {
        return Err(Obstacle::Impossible(format!("the kernel gives no zram: {answer:?}")));
    };
    site.hold(Thing::Zram { number });
    let device = format!("/dev/zram{number}");
    let zramctl = CommandLine::new("zramctl").arg("--size").arg(size.0.to_string());
    site.must(&zramctl.arg(&device))?;
    let size = site.size_of(Path::new(&device))?;
    Ok(Base::new(Target::Device(device.into()), size))
}
