//! A compressed RAM disk of the kernel. A new device is requested and removed afterwards: an existing one, even
//! unused, belongs to another user.

use std::path::Path;

use braid_stack::ByteSize;

use super::hand::command;
use super::site::{Base, Site};
use super::things::Thing;
use crate::error::Obstacle;

pub(super) fn bring_up(site: &mut Site<'_>, size: ByteSize) -> Result<Base, Obstacle> {
    let add = Path::new("/sys/class/zram-control/hot_add");
    site.needs_root("a RAM disk of the kernel (zram)")?;
    site.load_module("zram", add, "zram")?;
    // Reading it makes a device and returns its number.
    let Some(answer) = site.world.read_text(add)? else {
        return Err(Obstacle::Impossible("this kernel has no zram".to_owned()));
    };
    let Ok(number) = answer.trim().parse::<u32>() else {
        return Err(Obstacle::Impossible(format!("the kernel gives no zram: {answer:?}")));
    };
    site.hold(Thing::Zram { number });
    let device = format!("/dev/zram{number}");
    site.must(&command(&["zramctl", "--size", &size.0.to_string(), &device]))?;
    site.device(device)
}
