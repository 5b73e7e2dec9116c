//! An array whose members describe it themselves: from their superblocks to what the engine is
//! given.
//!
//! ```text
//!   paths ──read──▶ superblocks ──assess──▶ who takes part ──open──▶ members at work
//!                                   │
//!                                   └──▶ or why not, and the next command
//! ```
//!
//! Who takes part, and as what, is decided by [`braid_engine::assembled`]; here members are opened.
//!
//! Invariant: nothing is written here; and what is found on the members is only believed after
//! `braid_md` has checked it.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use braid_block::Limits;
use braid_device::File;
use braid_engine::assembled::{self, Assembled, LogPlace, Refusal, assemble};
use braid_engine::redundant::{Layout, Setup};
use braid_engine::{Clock, Dev};
use braid_md::Superblock;
use braid_probe::{Policy, Reason, check_member};
use braid_stack::{Node, Stack};

use super::level::Level;
use super::media::{Leaf, Medium, OpenOptions};
use crate::metadata::{Metadata, MetadataError, random_number};

pub(crate) use braid_engine::assembled::is_served;

/// Why members do not make an array.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MdError {
    #[error("{0}")]
    Metadata(#[from] MetadataError),
    #[error("{0}")]
    Refused(#[from] Refusal),
    #[error("cannot open {path}: {source}")]
    Open { path: PathBuf, source: io::Error },
    #[error("{path} is in use: another program has it locked")]
    Locked { path: PathBuf },
}

/// An array that was assembled.
pub(crate) struct MdArray {
    pub(crate) level: Level,
    /// What people call it.
    pub(crate) name: String,
    pub(crate) warnings: Vec<String>,
    /// The freshest superblock.
    pub(crate) superblock: Superblock,
    /// What closes the write hole.
    pub(super) log: LogPlace,
    /// The superblocks count on a member that does not take part.
    pub(crate) is_changed: bool,
    assembled: Assembled,
    limits: Limits,
    /// The open members, those first that it was assembled of: a member that is let go of is
    /// closed, so that others may have it.
    open: Mutex<Vec<Arc<Leaf>>>,
}

/// The members of `md(…)` levels that carry nothing but what is the array's: its superblock, and
/// what lies in its data. Something else in front of the data says that the disk has been given
/// to another use since.
pub(crate) fn own_members(stack: &Stack) -> Vec<PathBuf> {
    let mut own = Vec::new();
    if let Node::Md(md) = &stack.node {
        own.extend(md.members.iter().filter_map(|member| match &member.node {
            Node::File(file) => Some(file.path().to_owned()).filter(|path| is_own(path)),
            _ => None,
        }));
    }
    own.extend(stack.members().iter().flat_map(own_members));
    own
}

fn is_own(path: &Path) -> bool {
    let metadata = match Metadata::read(path) {
        Ok(metadata) => metadata,
        // Whoever opens it says what is wrong with its superblock, and changes nothing.
        Err(MetadataError::Damaged { .. }) => return true,
        Err(_) => return false,
    };
    let Superblock { data_offset, data_size, .. } = metadata.superblock;
    let policy = Policy { force: &[], read_only: false, min_bytes: 0 };
    match check_member(path, &policy) {
        Ok(_) => true,
        Err(refusal) => match &refusal.reason {
            Reason::Contents { signatures } => signatures.iter().all(|one| {
                one.name.starts_with("md ")
                    || (data_offset..data_offset.saturating_add(data_size)).contains(&one.offset)
            }),
            // What stands in the way is not its contents: whoever checks the members says so.
            _ => true,
        },
    }
}

impl MdArray {
    /// Reads the members' superblocks, decides who takes part, and opens those.
    pub(crate) fn open(members: &[Stack], options: OpenOptions) -> Result<MdArray, MdError> {
        let metadata: Vec<Metadata> = members
            .iter()
            .filter_map(|member| match &member.node {
                Node::File(file) => Some(file.path()),
                _ => None,
            })
            .map(Metadata::read)
            .collect::<Result<_, MetadataError>>()?;
        let found: Vec<_> = metadata.iter().map(|one| (one.label(), &one.carried)).collect();
        let OpenOptions { read_only, degraded } = options;
        let assembled = assemble(&found, assembled::Options { read_only, degraded })?;
        let open = open_members(&assembled, &metadata, options)?;
        let combined = Limits::combine(open.iter().map(|leaf| leaf.limits()));
        Ok(MdArray {
            level: assembled.level.clone(),
            name: assembled.name.clone(),
            warnings: assembled.warnings.clone(),
            superblock: assembled.superblock.clone(),
            log: assembled.log,
            is_changed: assembled.is_changed,
            limits: Limits { size: assembled.level.size(), ..combined },
            assembled,
            open: Mutex::new(open),
        })
    }

    /// The members that take part, in the order in which the level has them.
    pub(crate) fn leaves(&self) -> Vec<Arc<Leaf>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps a member that came.
    pub(crate) fn adopt(&self, leaf: Leaf) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::new(leaf));
    }

    /// Lets go of a member.
    pub(crate) fn forget(&self, label: &str) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|leaf| leaf.label != label);
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// What the engine is given: `devs` are on the [`MdArray::leaves`].
    ///
    /// # Errors
    /// No randomness for the log.
    pub(crate) fn setup(
        &self,
        layout: Layout,
        devs: Vec<Dev>,
        clock: Rc<dyn Clock>,
    ) -> io::Result<Setup> {
        self.assembled.setup(layout, devs, clock, random_number)
    }
}

fn open_members(
    assembled: &Assembled,
    metadata: &[Metadata],
    options: OpenOptions,
) -> Result<Vec<Arc<Leaf>>, MdError> {
    let open = |member: &assembled::TakesPart| {
        let of = metadata.iter().find(|one| one.label() == member.label);
        let path = &of.expect("who takes part is one of the members").path;
        // Without copies nothing is ever recorded, so only the data is opened.
        let (offset, length) = match assembled.level.is_redundant() {
            true => (0, None),
            false => (member.superblock.data_offset, Some(member.usable)),
        };
        let file =
            File::open(path, options.access(), offset, length).map_err(|source| {
                match source.kind() {
                    io::ErrorKind::WouldBlock => MdError::Locked { path: path.clone() },
                    _ => MdError::Open { path: path.clone(), source },
                }
            })?;
        Ok(Arc::new(Leaf { label: member.label.clone(), medium: Medium::File(file) }))
    };
    assembled.members.iter().map(open).collect()
}
