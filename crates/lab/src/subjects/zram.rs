//! A compressed RAM disk of the kernel's. A new one is asked for and removed afterwards: one that
//! is there, even unused, is somebody's.

use std::path::{Path, PathBuf};

use braid_stack::ByteSize;

use super::hand::Hand;
use super::journal::Thing;
use super::site::{Base, Obstacle, Site};
use crate::command::{CommandLine, Target};
use crate::error::LabError;

/// A control file of zram's.
fn control(name: &str) -> PathBuf {
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

/// Has the kernel remove it.
pub(super) fn release(hand: &mut Hand<'_>, number: u32) -> Result<(), LabError> {
    let remove = control("hot_remove");
    hand.retry(|hand| hand.world.write_text(&remove, &number.to_string()))
}
