//! The differences between kinds of members, and reasons why a member cannot be opened.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use braid_block::Limits;
use braid_device::{Deadline, Ram, RamError, Tally};
use braid_engine::Dev;
use braid_engine::decorators::StoreError;
use braid_mem::Pool;
use braid_rbd::RbdError;
use braid_remote::Traffic;
use braid_uring::{Failures, Handle};

use crate::profile::ModelError;

/// Why a member is not to be had.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what went wrong, and with what")]
pub enum MemberError {
    #[error("cannot open {path}: {source}")]
    Open { path: PathBuf, source: io::Error },
    #[error("{path} is in use: another program has it locked{by}, and did not let go of it")]
    Locked { path: PathBuf, by: String },
    #[error("no memory for {what}: {source}")]
    Memory { what: String, source: RamError },
    #[error("the memory of {what} cannot be locked: {source}")]
    Lock { what: String, source: RamError },
    #[error(
        "no memory for {what}: the machine's pool has fewer than {pages} huge pages of 2 MiB that are \
         free ({source})"
    )]
    HugePages { what: String, pages: u64, source: RamError },
    #[error("{uri} cannot be used: {why}")]
    Remote { uri: String, why: String },
    #[error("{uri} is read-only: {why}")]
    RemoteReadOnly { uri: String, why: &'static str },
    #[error("rbd({name}) cannot be used: {error}")]
    Rbd { name: String, error: RbdError },
    #[error("{path} cannot be the store: {why}")]
    Store { path: PathBuf, why: StoreError },
    #[error("the store {path} does not exist")]
    NoStore { path: PathBuf },
    #[error("{error}")]
    Model {
        #[from]
        error: ModelError,
    },
}

/// A shard, and what a device on it is metered with.
pub struct OnShard<'a> {
    /// The shard.
    pub handle: &'a Handle,
    /// Memory for what a device writes by itself.
    pub pool: &'a Pool,
    /// The name of the member in messages.
    pub label: &'a str,
    /// Counts of requests.
    pub tally: &'a Tally,
    /// Time that a request may take; `None`: without end.
    pub deadline: Option<std::time::Duration>,
}

impl OnShard<'_> {
    /// The deadline of a medium whose `failures` are counted, if there is one.
    pub(crate) fn deadline(&self, failures: &Arc<Failures>) -> Option<Deadline> {
        self.deadline.map(|limit| Deadline { limit, failures: Arc::clone(failures) })
    }
}

/// A kind of member. What a kind has nothing to say of is as the defaults say.
pub trait Kind: Send + Sync {
    /// Size in bytes, blocks, and what requests may ask for.
    fn limits(&self) -> Limits;

    /// A metered device on the member for a shard.
    ///
    /// # Errors
    /// `EMFILE`: the process has too many open files.
    fn device(&self, shard: &OnShard<'_>) -> io::Result<Dev>;

    /// Size in bytes, of which [`Kind::limits`] has the whole blocks.
    fn size(&self) -> u64 {
        self.limits().size
    }

    /// Reads `bytes` from `offset` on, in the call: metadata, before the member is at work.
    ///
    /// # Errors
    /// `Unsupported` by a kind whose members carry no metadata.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let _ = (offset, bytes);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Writes `bytes` at `offset`, in the call: metadata, while the member is not at work.
    ///
    /// # Errors
    /// `Unsupported` by a kind that is written by a device only; `InvalidInput` behind the end; some may be written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let _ = (offset, bytes);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Makes durable what was written in the call, if the member can.
    ///
    /// # Errors
    /// The member's, and then writes from before may be lost; `Unsupported` as for [`Kind::write_at`].
    fn sync(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The path by which an operator names a member called `label`, if it is a whole file or device.
    fn path(&self, label: &str) -> Option<String> {
        let _ = label;
        None
    }

    /// Returns true if `path` leads to the member.
    fn is_at(&self, path: &Path) -> bool {
        let _ = path;
        false
    }

    /// Why the member's block device is not there any more.
    fn vanished(&self) -> Option<&'static str> {
        None
    }

    /// Why the member will not be found again once it is closed.
    fn gone(&self) -> Option<String> {
        None
    }

    /// The memory of a RAM disk.
    fn ram(&self) -> Option<&Ram> {
        None
    }

    /// Returns true if requests go past the page cache, `None` for a kind without one.
    fn is_direct(&self) -> Option<bool> {
        None
    }

    /// Returns true if a file system allocates room for writes, which may run out.
    fn is_writable_image(&self) -> bool {
        false
    }

    /// Failed requests, where they are counted.
    fn failures(&self) -> Option<&Arc<Failures>> {
        None
    }

    /// Counts of connections, of an export of another machine.
    fn traffic(&self) -> Option<&Arc<Traffic>> {
        None
    }

    /// Gives back what keeps other machines from using the member. No device on it may be in use any more.
    fn release(&self) {}

    /// Returns true if all devices of the member have to be on one shard.
    fn is_on_one_shard(&self) -> bool {
        self.traffic().is_some()
    }
}
