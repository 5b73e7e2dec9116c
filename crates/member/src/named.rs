//! Members by their names: a path, the text of a part, or the text of a remote member.

use std::io;
use std::path::Path;

use braid_device::{Access, File};
use braid_probe::Signature;
use braid_stack::{Node, Stack};

use crate::file::open_file;
use crate::kind::{Kind, MemberError};
use crate::rbd::Ceph;
use crate::remote::Remote;

/// A member that may carry metadata; clones are the same member.
#[derive(Clone)]
pub enum Named {
    /// A file or block device.
    File(File),
    /// An export of an NBD server.
    Remote(Remote),
    /// An image of a Ceph cluster.
    Ceph(Ceph),
}

impl Named {
    /// Opens the member called `name`.
    ///
    /// # Errors
    /// Those of [`open_file`], [`Remote::open`] and [`Ceph::open`].
    pub fn open(name: &Path, access: Access) -> Result<Named, MemberError> {
        match Stack::remote_called(name).map(|stack| stack.node) {
            Some(Node::Nbd(nbd)) => Remote::open(&nbd, access).map(Named::Remote),
            Some(Node::Rbd(rbd)) => Ceph::open(&rbd, access).map(Named::Ceph),
            _ => open_file(name, access, 0, None).map(Named::File),
        }
    }

    /// Returns the signatures on a remote member, which has no path to be examined by.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn remote_signatures(&self) -> io::Result<Vec<Signature>> {
        match self {
            Named::File(_) => Ok(Vec::new()),
            Named::Remote(remote) => remote.signatures(),
            Named::Ceph(ceph) => ceph.signatures(),
        }
    }

    /// Returns the member as its kind.
    #[must_use]
    pub fn kind(&self) -> Box<dyn Kind> {
        match self {
            Named::File(file) => Box::new(file.clone()),
            Named::Remote(remote) => Box::new(remote.clone()),
            Named::Ceph(ceph) => Box::new(ceph.clone()),
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
            Named::Ceph(ceph) => Box::new(ceph.part(offset, length)?),
        })
    }
}
