//! An NBD server that somebody else runs.

use super::site::{Base, Obstacle, Site};
use crate::command::Target;

pub(super) fn bring_up(site: &mut Site<'_>, uri: &str) -> Result<Base, Obstacle> {
    let size = site
        .world
        .nbd_size(uri)
        .map_err(|error| site.down(error.to_string(), uri.to_owned(), String::new()))?;
    Ok(Base::new(Target::Nbd(uri.to_owned()), size))
}
