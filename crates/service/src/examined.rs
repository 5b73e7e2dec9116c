//! Members as commands examine them before they write: files and devices by `probe`, remote members by their server.
//!
//! Invariant: a connection that examined a remote member is closed before another one is made, because some servers
//! take one client only.
//!
//! Deliberately absent: locks on exports of NBD servers, which NBD does not have.

use std::path::{Path, PathBuf};

use braid_device::Access;
use braid_member::Named;
use braid_probe::{MemberFacts, Policy};
use braid_stack::Stack;

use crate::failure::Failure;
use crate::metadata::{Held, refuse_contents};
use crate::record::{Known, Seen};
use crate::refusal::refused;
use crate::volume::{check_patiently, member_failure};

/// A member that was examined and may be written.
#[derive(Debug)]
pub enum Examined {
    /// A file or block device.
    Local(MemberFacts),
    /// An export of an NBD server, or an image of a Ceph cluster.
    Remote {
        /// Its name: the text of the expression.
        path: PathBuf,
        /// The expression.
        stack: Stack,
        /// Size in bytes.
        size: u64,
    },
}

impl Examined {
    /// Examines members before they are written. They must be unused, as far as that can be told, and distinct, and
    /// carry no data except `accepted` ones. In the order of `paths`.
    ///
    /// # Errors
    /// The refusal of the first member that may not be written.
    pub fn judge(paths: &[PathBuf], accepted: &[PathBuf]) -> Result<Vec<Examined>, Failure> {
        let policy = Policy { force: accepted, ..Policy::default() };
        let is_local = |path: &&PathBuf| Stack::remote_called(path).is_none();
        let local: Vec<PathBuf> = paths.iter().filter(is_local).cloned().collect();
        let local = check_patiently(&local, &policy).map_err(|refusal| refused(&refusal))?;
        let mut local = local.into_iter();
        let judged = |path: &PathBuf| match Stack::remote_called(path) {
            Some(stack) => Examined::remote(path, stack, accepted.contains(path)),
            None => Ok(Examined::Local(local.next().expect("facts of each local member"))),
        };
        paths.iter().map(judged).collect()
    }

    fn remote(path: &Path, stack: Stack, is_accepted: bool) -> Result<Examined, Failure> {
        let remote =
            Named::open(path, Access::Exclusive).map_err(|error| member_failure(&error))?;
        if !is_accepted {
            refuse_contents(path, remote.remote_signatures())?;
        }
        Ok(Examined::Remote { path: path.to_owned(), stack, size: remote.kind().size() })
    }

    /// Returns the name of the member: a path, or the text of a remote member.
    pub fn path(&self) -> &Path {
        match self {
            Examined::Local(facts) => &facts.path,
            Examined::Remote { path, .. } => path,
        }
    }

    /// Returns the size of the member in bytes.
    pub fn size(&self) -> u64 {
        match self {
            Examined::Local(facts) => facts.size,
            Examined::Remote { size, .. } => *size,
        }
    }

    /// Returns the object that the name leads to.
    pub fn seen(&self) -> Seen {
        match self {
            Examined::Local(facts) => Seen::of(facts),
            Examined::Remote { path, stack, size } => Seen::remote(path, stack, *size),
        }
    }

    /// Returns the member as it is to be known from now on.
    pub fn known(&self) -> Known {
        Known::from(self.seen())
    }

    /// Opens the member for writing: files and devices exclusively.
    ///
    /// # Errors
    /// It is in use, may not be written, or is no longer what was examined.
    pub fn hold(&self) -> Result<Held, Failure> {
        match self {
            Examined::Local(facts) => Held::open(facts),
            Examined::Remote { path, size, .. } => Held::remote(path, *size),
        }
    }

    /// Returns true for a member on another machine.
    pub fn is_remote(&self) -> bool {
        matches!(self, Examined::Remote { .. })
    }
}
