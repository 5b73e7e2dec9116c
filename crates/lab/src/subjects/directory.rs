//! A folder on an existing file system. Each trial gets an empty folder inside; other files in it are not
//! touched.

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
