//! A block device or a file of the user's. A file is opened as it is where every tool of the
//! campaign can, else through a loop device, so that all numbers of a campaign went the same way.
//!
//! No server stands before it that would refuse what is mounted or in use, so that is asked here and
//! again before each trial that writes.

use std::path::Path;

use super::loops;
use super::site::{Base, Obstacle, Site};
use crate::command::Target;
use crate::error::LabError;
use crate::source::Form;
use crate::world::PathKind;

/// Makes the path ready; `as_file` says that a file will do.
pub(super) fn bring_up(
    site: &mut Site<'_>,
    path: &str,
    as_file: bool,
    form: Form,
) -> Result<Base, Obstacle> {
    if !form.read_only {
        site.world.check_unused(Path::new(path))?;
    }
    let device = match site.world.path_kind(Path::new(path))? {
        Some(PathKind::File) if !as_file => loops::attach(site, path)?,
        Some(PathKind::File | PathKind::Block) => path.to_owned(),
        kind => return Err(not_a_device(site, path, kind)),
    };
    let size = site.size_of(Path::new(&device))?;
    Ok(Base::new(Target::Device(device.into()), size))
}

fn not_a_device(site: &Site<'_>, path: &str, kind: Option<PathKind>) -> Obstacle {
    let reason = match kind {
        None => "it does not exist; make it, or correct the campaign",
        Some(PathKind::Folder) => "it is a folder; write `directory = ...`",
        _ => "it is neither a file nor a block device",
    };
    Obstacle::Failed(LabError::SubjectDown {
        subject: site.subject.to_owned(),
        reason: reason.to_owned(),
        command: path.to_owned(),
        stderr: String::new(),
    })
}
