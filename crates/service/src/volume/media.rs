//! A stack, opened once for all shards: its leaves, and how they are joined.

use std::sync::Arc;

use braid_array::GeometryError;
use braid_block::Limits;
use braid_cache::Config;
use braid_device::{Buses, Ram};
use braid_export_nbd::Overlaps;
use braid_stack::{ByteSize, Cache, Node, Stack};

use super::cache_log::{self, WriteBack};
use super::leaf::{Leaf, LeafError, Medium, open_leaf};
use super::level::{self, Level};
use super::md::{MdArray, MdError};
use super::options::OpenOptions;
use super::promises::{self, TooMuchMemory};
use super::warm::{Warm, WarmError};
use super::warnings::Warning;
use crate::control::ErrorCode;
use crate::failure::Failure;

/// Why a stack that reads well cannot be brought up.
#[derive(Debug, thiserror::Error)]
pub enum MediaError {
    #[error("{0}")]
    TooMuchMemory(#[from] TooMuchMemory),
    #[error("{level}: {source}")]
    Geometry { level: String, source: GeometryError },
    #[error("{0}")]
    Leaf(#[from] LeafError),
    #[error("{0}")]
    Md(#[source] MdError),
    #[error("{log} cannot be the log of {cache}: {why}")]
    Log { log: String, cache: String, why: String },
    #[error("a cache cannot be kept there: {0}")]
    Warm(#[from] WarmError),
}

impl MediaError {
    /// The failure that says so.
    pub fn failure(&self) -> Failure {
        match self {
            MediaError::TooMuchMemory(error) => error.failure(),
            MediaError::Geometry { .. } => {
                Failure::failed(self).next("another chunk, or the stack without that member")
            }
            MediaError::Leaf(error) => error.failure(),
            MediaError::Md(error) => error.failure(),
            MediaError::Log { .. } => Failure::refused(self)
                .next("another file or device as log=")
                .code(ErrorCode::LogUnfit),
            MediaError::Warm(_) => {
                Failure::refused(self).next("another file as warm=").code(ErrorCode::WarmUnfit)
            }
        }
    }

    /// What a member answered when it was opened, if that is why.
    pub(super) fn of_leaf(&self) -> Option<&LeafError> {
        match self {
            MediaError::Leaf(error) | MediaError::Md(MdError::Member(error)) => Some(error),
            _ => None,
        }
    }
}

/// A stack, opened: its leaves, and how they are joined.
pub struct Media {
    pub(super) root: Part,
    /// Of the writes of NBD clients, over all shards.
    pub(super) overlaps: Overlaps,
}

/// Leaves that are members of one array, each with what the array calls it.
pub(super) struct Siblings {
    /// What people call the array.
    pub(super) array: String,
    pub(super) members: Vec<(String, Arc<Leaf>)>,
}

/// A part of a stack.
pub(super) enum Part {
    Leaf(Arc<Leaf>),
    /// A member that is not there.
    Missing,
    Joined {
        level: Level,
        members: Vec<Part>,
    },
    /// Members that describe their array themselves.
    Md(Box<MdArray>),
    /// Memory in front of a part.
    Cached {
        config: Config,
        /// As it is written, for people.
        text: String,
        origin: Box<Part>,
        write_back: Option<WriteBack>,
        log: Option<Box<Part>>,
        warm: Option<Arc<Warm>>,
    },
}

impl Media {
    /// Opens every leaf of `stack` and checks that its arrays can be made of them.
    pub fn open(stack: &Stack, options: &OpenOptions) -> Result<Media, MediaError> {
        // Memory is taken when it is written: what can never fit is refused before.
        promises::check_stack(stack, options.promised)?;
        // Only a RAM disk that is all of a stack can grow: the others are parts of something.
        let most_ram = if matches!(stack.node, Node::Ram(_)) { options.most_ram } else { 0 };
        let mut opener = Opener { options, buses: Buses::default(), most_ram, survives: false };
        let root = opener.part(stack)?;
        root.limits()?;
        Ok(Media { root, overlaps: Overlaps::default() })
    }

    /// The RAM disk, if the stack is one and nothing else.
    pub fn ram(&self) -> Option<&Ram> {
        self.ram_leaf().and_then(|leaf| leaf.ram())
    }

    /// The leaf, if the stack is a RAM disk and nothing else.
    pub(super) fn ram_leaf(&self) -> Option<&Arc<Leaf>> {
        match &self.root {
            Part::Leaf(leaf) if leaf.ram().is_some() => Some(leaf),
            _ => None,
        }
    }

    /// What holds for all of it; none if it is not there.
    pub(super) fn limits(&self) -> Result<Option<Limits>, MediaError> {
        self.root.limits()
    }

    /// All leaves, from left to right.
    pub fn leaves(&self) -> Vec<Arc<Leaf>> {
        let mut leaves = Vec::new();
        self.root.collect_leaves(&mut leaves);
        leaves
    }

    /// The arrays that members describe themselves.
    pub fn md_arrays(&self) -> Vec<&MdArray> {
        let mut arrays = Vec::new();
        self.root.collect_md(&mut arrays);
        arrays
    }

    /// The arrays whose members are leaves.
    pub(super) fn siblings(&self) -> Vec<Siblings> {
        let mut all = Vec::new();
        self.root.collect_siblings(&mut all);
        all
    }

    /// Whether the stack has arrays that survive losses, or caches, which takes one shard for all of it:
    /// what they know of requests under way is on that shard alone.
    pub fn has_state(&self) -> bool {
        self.root.has_state()
    }

    /// What is not as it should be, though it works.
    pub fn warnings(&self) -> Vec<Warning> {
        let buffered = self.leaves().into_iter().filter_map(|leaf| match &leaf.medium {
            Medium::File(file) if !file.is_direct() => Some(Warning::lasting(format!(
                "{} is used through the page cache, because its file system refuses direct I/O",
                file.path().display()
            ))),
            _ => None,
        });
        let arrays = self.md_arrays().into_iter().flat_map(|array| array.warnings.clone());
        let mut warnings: Vec<Warning> = buffered.chain(arrays).collect();
        self.root.warn_of_parity(&mut warnings);
        warnings
    }
}

struct Opener<'a> {
    options: &'a OpenOptions,
    buses: Buses,
    most_ram: u64,
    /// Whether an array above goes on without what is opened.
    survives: bool,
}

impl Opener<'_> {
    fn part(&mut self, stack: &Stack) -> Result<Part, MediaError> {
        if let Node::Md(md) = &stack.node {
            return MdArray::open(&md.members, md.layout, self.options)
                .map(Box::new)
                .map(Part::Md)
                .map_err(MediaError::Md);
        }
        if stack.is_missing() {
            return Ok(Part::Missing);
        }
        if let Node::Cache(cache) = &stack.node {
            let (config, text) = (config_of(cache), stack.to_string());
            let of_origin = cache_log::identity(cache.origin());
            let origin = Box::new(self.part(cache.origin())?);
            let log = cache.log().map(|log| self.part(log)).transpose()?.map(Box::new);
            if let Some(log) = &log {
                let (of_log, behind) = (log.limits()?, origin.limits()?);
                if let Some(why) = cache_log::unfit(of_log, behind, cache.block.bytes()) {
                    let log = cache.log().map(ToString::to_string).unwrap_or_default();
                    return Err(MediaError::Log { log, cache: text, why });
                }
            }
            let write_back = WriteBack::new(cache, &of_origin, self.options);
            let warm = Warm::open(cache)?.map(Arc::new);
            return Ok(Part::Cached { config, text, origin, write_back, log, warm });
        }
        if stack.members().is_empty() {
            let medium = open_leaf(&stack.node, self.options, self.most_ram, &mut self.buses)?;
            let is_direct = matches!(&medium, Medium::File(file) if file.is_direct());
            let deadline = self.options.deadline.of(self.survives, is_direct);
            return Ok(Part::Leaf(Arc::new(Leaf::new(stack, medium, deadline))));
        }
        let above = self.survives;
        self.survives |= stack.shape().is_some_and(|shape| shape.level.is_redundant());
        let members: Result<Vec<Part>, MediaError> =
            stack.members().iter().map(|member| self.part(member)).collect();
        self.survives = above;
        let members = members?;
        let mut limits = Vec::new();
        for member in &members {
            limits.push(member.limits()?);
        }
        let level = level::of_stack(stack, &limits).map_err(|source| {
            let level = stack.node.name().to_owned();
            MediaError::Geometry { level, source }
        })?;
        Ok(Part::Joined { level, members })
    }
}

impl Part {
    /// The path of a whole file or device, as an operator names it.
    fn path(&self) -> Option<String> {
        match self {
            Part::Leaf(leaf) => leaf.path(),
            _ => None,
        }
    }

    /// What an array without superblocks calls it as the member of `role`.
    pub(super) fn called(&self, role: usize) -> String {
        self.path().unwrap_or_else(|| format!("member {role}"))
    }

    /// What holds for the part; none for a member that is not there.
    fn limits(&self) -> Result<Option<Limits>, MediaError> {
        Ok(match self {
            Part::Leaf(leaf) => Some(leaf.limits()),
            Part::Missing => None,
            Part::Md(array) => Some(array.limits()),
            Part::Cached { origin, .. } => {
                origin.limits()?.map(|limits| Limits { immediate: false, ..limits })
            }
            Part::Joined { level, members } => {
                let mut limits = Vec::new();
                for member in members {
                    limits.extend(member.limits()?);
                }
                Some(Limits { size: level.size(), ..Limits::combine(limits) })
            }
        })
    }

    fn collect_leaves(&self, leaves: &mut Vec<Arc<Leaf>>) {
        match self {
            Part::Leaf(leaf) => leaves.push(Arc::clone(leaf)),
            Part::Missing => {}
            Part::Md(array) => leaves.extend(array.leaves()),
            Part::Cached { origin, log, .. } => {
                origin.collect_leaves(leaves);
                log.iter().for_each(|log| log.collect_leaves(leaves));
            }
            Part::Joined { members, .. } => {
                members.iter().for_each(|member| member.collect_leaves(leaves));
            }
        }
    }

    fn collect_md<'a>(&'a self, arrays: &mut Vec<&'a MdArray>) {
        match self {
            Part::Md(array) => arrays.push(array),
            Part::Cached { origin, log, .. } => {
                origin.collect_md(arrays);
                log.iter().for_each(|log| log.collect_md(arrays));
            }
            Part::Joined { members, .. } => {
                members.iter().for_each(|member| member.collect_md(arrays));
            }
            Part::Leaf(_) | Part::Missing => {}
        }
    }

    fn collect_siblings(&self, all: &mut Vec<Siblings>) {
        match self {
            Part::Leaf(_) | Part::Missing => {}
            Part::Md(array) => {
                let leaves = array.leaves().into_iter();
                let members = leaves.map(|leaf| (leaf.label.clone(), leaf)).collect();
                all.push(Siblings { array: array.name.clone(), members });
            }
            Part::Cached { origin, log, .. } => {
                origin.collect_siblings(all);
                log.iter().for_each(|log| log.collect_siblings(all));
            }
            Part::Joined { level, members } => {
                let leaf = |(role, part): (usize, &Part)| match part {
                    Part::Leaf(leaf) => Some((part.called(role), Arc::clone(leaf))),
                    _ => None,
                };
                let siblings = members.iter().enumerate().filter_map(leaf).collect();
                all.push(Siblings { array: level.name().to_owned(), members: siblings });
                members.iter().for_each(|member| member.collect_siblings(all));
            }
        }
    }

    fn has_state(&self) -> bool {
        match self {
            Part::Leaf(_) | Part::Missing => false,
            Part::Cached { .. } => true,
            Part::Md(array) => array.level.is_redundant(),
            Part::Joined { level, members } => {
                level.is_redundant() || members.iter().any(Part::has_state)
            }
        }
    }
}

impl Part {
    /// Of parity that nobody vouches for: what a missing member had is worked out from it.
    fn warn_of_parity(&self, warnings: &mut Vec<Warning>) {
        let (level, members) = match self {
            Part::Joined { level, members } => (level, members),
            Part::Cached { origin, .. } => return origin.warn_of_parity(warnings),
            Part::Leaf(_) | Part::Missing | Part::Md(_) => return,
        };
        members.iter().for_each(|member| member.warn_of_parity(warnings));
        let is_missing = members.iter().any(|member| matches!(member, Part::Missing));
        let is_volatile = self.limits().ok().flatten().is_none_or(|limits| limits.volatile);
        if is_missing && !is_volatile && matches!(level, Level::Parity(_)) {
            warnings.push(Warning::lasting(format!(
                "{}: what the missing member had is worked out from parity; whether that was up \
                 to date is recorded nowhere, because this array has no superblocks",
                level.name()
            )));
        }
    }
}

pub(super) fn config_of(cache: &Cache) -> Config {
    Config {
        size: cache.size.bytes(),
        block: cache.block.bytes(),
        mode: cache.mode,
        policy: cache.policy,
        sequential_cutoff: cache.cutoff.map(ByteSize::bytes),
    }
}
