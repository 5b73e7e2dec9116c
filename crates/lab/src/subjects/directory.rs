//! A folder on a file system that is there. Each trial gets an empty folder of its own inside;
//! nothing else in it is touched.

use std::path::Path;

use super::site::{Base, Site};
use crate::command::Target;
use crate::error::Obstacle;
use crate::world::PathKind;

pub(super) fn bring_up(site: &mut Site<'_>, folder: &str) -> Result<Base, Obstacle> {
    let path = Path::new(folder);
    if site.world.path_kind(path)? != Some(PathKind::Folder) {
        return Err(site.down("it is no folder; make it, or correct the campaign", folder, ""));
    }
    let free = site.world.free_bytes(path)?;
    Ok(Base::new(Target::Folder(path.to_path_buf()), free))
}
