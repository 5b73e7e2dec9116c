//! A folder on a file system that is there. Each trial gets an empty folder of its own inside;
//! nothing else in it is touched.

use std::path::Path;

use super::site::{Base, Obstacle, Site};
use crate::command::Target;
use crate::world::PathKind;

pub(super) fn bring_up(site: &mut Site<'_>, folder: &str) -> Result<Base, Obstacle> {
    let path = Path::new(folder);
    if site.world.path_kind(path)? != Some(PathKind::Folder) {
        let reason = "it is no folder; make it, or correct the campaign".to_owned();
        return Err(site.down(reason, folder.to_owned(), String::new()));
    }
    let free = site.world.free_bytes(path)?;
    Ok(Base::new(Target::Folder(path.to_path_buf()), free))
}
