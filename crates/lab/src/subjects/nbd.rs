//! An NBD server that the user runs.

use super::site::{Base, Site};
use crate::command::Target;
use crate::error::Obstacle;

pub(super) fn bring_up(site: &mut Site<'_>, uri: &str) -> Result<Base, Obstacle> {
    let size = site.world.nbd_size(uri);
    let size = size.map_err(|error| site.down(error.to_string(), uri, ""))?;
    Ok(Base::new(Target::Nbd(uri.to_owned()), size))
}
