//! A block device or a file of the user. A file is opened directly if every tool of the campaign can, else
//! through a loop device, so that all numbers of a campaign use one path.
//!
//! No server refuses a path that is mounted or in use, so this is checked here, and again before each trial
//! that writes.

use std::path::Path;

use super::loops;
use super::site::{Base, Site};
use crate::error::Obstacle;
use crate::source::Form;
use crate::world::PathKind;

/// Makes the path ready; `as_file` is true if a file is enough.
pub(super) fn bring_up(
    site: &mut Site<'_>,
    path: &str,
    as_file: bool,
    form: Form,
) -> Result<Base, Obstacle> {
    if !form.read_only {
        site.world.check_unused(Path::new(path))?;
    }
    let reason = match site.world.path_kind(Path::new(path))? {
        Some(PathKind::File) if !as_file => {
            let device = loops::attach(site, path)?;
            return site.device(device);
        }
        Some(PathKind::File | PathKind::Block) => return site.device(path.to_owned()),
        None => "it does not exist; make it, or correct the campaign",
        Some(PathKind::Folder) => "it is a folder; write `directory = ...`",
        Some(PathKind::Other) => "it is neither a file nor a block device",
    };
    Err(site.down(reason, path, ""))
}
