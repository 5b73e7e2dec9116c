//! Members by their names: a path, the text of a part, or the text of a remote member.

use std::io;
use std::path::Path;

use braid_device::{Access, File};
use braid_stack::Nbd;

use crate::file::open_file;
use crate::kind::{Kind, MemberError};
use crate::remote::Remote;

/// A member that may carry metadata; clones are the same member.
#[derive(Clone)]
pub enum Named {
    /// A file or block device.
    File(File),
    /// An export of an NBD server.
    Remote(Remote),
}

impl Named {
    /// Opens the member called `name`.
    ///
    /// # Errors
    /// Those of [`open_file`] and [`Remote::open`].
    pub fn open(name: &Path, access: Access) -> Result<Named, MemberError> {
        match Nbd::called(name) {
            Some(nbd) => Remote::open(&nbd, access).map(Named::Remote),
            None => open_file(name, access, 0, None).map(Named::File),
        }
    }

    /// Returns the member as its kind.
    #[must_use]
    pub fn kind(&self) -> Box<dyn Kind> {
        match self {
            Named::File(file) => Box::new(file.clone()),
            Named::Remote(remote) => Box::new(remote.clone()),
        }
    }

    /// Returns `length` bytes from `offset` on (all that follow, if `None`).
    ///
    /// # Errors
    /// `InvalidInput` if the part is empty, unaligned or past the end; `EMFILE`.
    pub fn part(&self, offset: u64, length: Option<u64>) -> io::Result<Box<dyn Kind>> {
        Ok(match self {
            Named::File(file) => Box::new(file.part(offset, length)?),
            Named::Remote(remote) => Box::new(remote.part(offset, length)?),
        })
    }
}
