//! What kinds of members differ in, and why one is not to be had.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use braid_block::Limits;
use braid_device::{Access, Buses, Deadline, Ram, RamError, Tally};
use braid_engine::Dev;
use braid_mem::Pool;
use braid_stack::Node;
use braid_uring::{Failures, Handle};

use crate::profile::ModelError;
use crate::{file, modelled, ram};

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
    #[error("{error}\n  next: {}", error.next())]
    Model {
        #[from]
        error: ModelError,
    },
}

/// What the leaves of a stack are opened with.
pub struct Opening<'a> {
    /// What may be done with files and devices.
    pub access: Access,
    /// Bytes that a RAM disk can be resized to; 0 for its size.
    pub most_ram: u64,
    /// The buses of modelled devices, which those of one name share.
    pub buses: &'a mut Buses,
}

/// Opens, or makes, what a leaf of a stack is.
///
/// # Errors
/// [`MemberError::Locked`] only for a file that stays locked.
///
/// # Panics
/// If `node` has members.
pub fn open(node: &Node, opening: &mut Opening<'_>) -> Result<Box<dyn Kind>, MemberError> {
    Ok(match node {
        Node::Ram(ram) => Box::new(ram::open(ram, opening.most_ram)?),
        Node::File(file) => Box::new(file::open_file(&file.name(), opening.access, 0, None)?),
        Node::Model(model) => Box::new(modelled::open(model, opening.buses)?),
        _ => unreachable!("a level with members is no leaf"),
    })
}

/// A shard, and what a device on it is metered with.
pub struct OnShard<'a> {
    /// The shard.
    pub handle: &'a Handle,
    /// Memory for what a device writes by itself.
    pub pool: &'a Pool,
    /// What people call the member.
    pub label: &'a str,
    /// What requests are counted in.
    pub tally: &'a Tally,
    /// How long a request may take.
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

    /// The path by which an operator names a member called `label`, if it is a whole file or device.
    fn path(&self, label: &str) -> Option<String> {
        let _ = label;
        None
    }

    /// Whether `path` leads to the member.
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

    /// Whether requests go past the page cache; `None` where there is none.
    fn is_direct(&self) -> Option<bool> {
        None
    }

    /// Whether room for what is written is allocated by a file system, which may run out of it.
    fn is_writable_image(&self) -> bool {
        false
    }

    /// Failed requests, where they are counted.
    fn failures(&self) -> Option<&Arc<Failures>> {
        None
    }
}
