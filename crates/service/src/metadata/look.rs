//! A look at what lies at a path: opened to be read, read, and closed again.
//!
//! For paths that may lead to any file. The metadata of a member that is open are read through it
//! ([`Metadata::of`]), because another file may lie at its path by now; crates/tidy lists the files that may look.

use std::path::Path;

use braid_md::Uuid;

use super::{Image, Metadata, MetadataError};

impl Metadata {
    /// Reads the superblock at `path` that holds, and what it points to.
    ///
    /// # Errors
    /// It cannot be read, or has none that can be believed.
    pub fn look(path: &Path) -> Result<Metadata, MetadataError> {
        Metadata::of(&Image::open(path).map_err(MetadataError::Unreadable)?)
    }

    /// Returns the array that the member at `path` belongs to; `None` without a superblock that can be believed.
    pub fn array_at(path: &Path) -> Option<Uuid> {
        Some(Metadata::look(path).ok()?.superblock.array_uuid)
    }
}
