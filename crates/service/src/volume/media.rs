//! A stack, opened once for all shards: its leaves, and how they are joined.

use std::path::Path;
use std::sync::Arc;

use braid_array::GeometryError;
use braid_block::{HasLimits, Limits};
use braid_cache::Config;
use braid_device::{Buses, Ram};
use braid_engine::assembled::Level;
use braid_member::{Member, MemberError, Opening, open, open_store};
use braid_stack::{ByteSize, Cache, Cow, Node, Stack};
use braid_wiring::Decoration;

use super::cache_log::{self, WriteBack};
use super::decorated::{self, DecoratorError};
use super::md::{MdArray, MdError};
use super::options::OpenOptions;
use super::promises::{self, TooMuchMemory};
use super::spec::Spec;
use super::unopened::member_failure;
use super::warm::{Warm, WarmError};
use super::warnings::Warning;
use crate::control::ErrorCode;
use crate::failure::Failure;

/// The reason for which a valid stack cannot be brought up.
#[derive(Debug, thiserror::Error)]
pub enum MediaError {
    #[error("{0}")]
    TooMuchMemory(#[from] TooMuchMemory),
    #[error("{level}: {source}")]
    Geometry { level: String, source: GeometryError },
    #[error("{0}")]
    Leaf(#[from] MemberError),
    #[error("{0}")]
    Md(#[source] MdError),
    #[error("{log} cannot be the log of {cache}: {why}")]
    Log { log: String, cache: String, why: String },
    #[error("a cache cannot be kept there: {0}")]
    Warm(#[from] WarmError),
    #[error("{0}")]
    Decorator(#[from] DecoratorError),
}

impl MediaError {
    /// The failure that says so.
    pub fn failure(&self) -> Failure {
        match self {
            MediaError::TooMuchMemory(error) => error.failure(),
            MediaError::Geometry { .. } => {
                Failure::failed(self).next("another chunk, or the stack without that member")
            }
            MediaError::Leaf(error) => member_failure(error),
            MediaError::Md(error) => error.failure(),
            MediaError::Log { .. } => Failure::refused(self)
                .next("another file or device as log=")
                .code(ErrorCode::LogUnfit),
            MediaError::Warm(_) => {
                Failure::refused(self).next("another file as warm=").code(ErrorCode::WarmUnfit)
            }
            MediaError::Decorator(error) => error.failure(),
        }
    }

    /// The error of opening a member, if that is the reason.
    pub(super) fn of_leaf(&self) -> Option<&MemberError> {
        match self {
            MediaError::Leaf(error) | MediaError::Md(MdError::Member(error)) => Some(error),
            _ => None,
        }
    }
}

/// A stack, opened: its leaves, and how they are joined.
pub struct Media {
    pub(super) root: Part,
}

/// Leaves that are members of one array, each with what the array calls it.
pub(super) struct Siblings {
    /// The name of the array in messages.
    pub(super) array: String,
    pub(super) members: Vec<(String, Arc<Member>)>,
}

/// A part of a stack.
pub(super) type Part = braid_wiring::Part<Arc<Member>, Box<MdArray>, OfCache>;

/// The service's data of a cache in a stack.
pub(super) struct OfCache {
    /// As it is written, for people.
    pub(super) text: String,
    pub(super) write_back: Option<WriteBack>,
    pub(super) warm: Option<Arc<Warm>>,
}

impl Media {
    /// Opens every leaf of `stack` and checks that its arrays can be made of them.
    pub fn open(stack: &Stack, options: &OpenOptions) -> Result<Media, MediaError> {
        // RAM is allocated when it is written, so a size that can never fit is refused here.
        promises::check_stack(stack, options.promised)?;
        if !options.read_only {
            decorated::check_writable(stack)?;
        }
        // Only a RAM disk that is all of a stack can grow: the others are parts of something.
        let most_ram = if matches!(stack.node, Node::Ram(_)) { options.most_ram } else { 0 };
        let mut opener = Opener { options, buses: Buses::default(), most_ram, survives: false };
        let root = opener.part(stack)?;
        Ok(Media { root })
    }

    /// The RAM disk, if the stack is one and nothing else.
    pub fn ram(&self) -> Option<&Ram> {
        self.ram_leaf().and_then(|leaf| leaf.ram())
    }

    /// The leaf, if the stack is a RAM disk and nothing else.
    pub(super) fn ram_leaf(&self) -> Option<&Arc<Member>> {
        match &self.root {
            Part::Leaf(leaf) if leaf.ram().is_some() => Some(leaf),
            _ => None,
        }
    }

    /// Returns the limits of the volume; `None` if it is not there.
    pub(super) fn limits(&self) -> Option<Limits> {
        self.root.limits()
    }

    /// All leaves, from left to right.
    pub fn leaves(&self) -> Vec<Arc<Member>> {
        let mut leaves = Vec::new();
        self.root.walk(&mut |part| match part {
            Part::Leaf(leaf) => leaves.push(Arc::clone(leaf)),
            Part::Md(array) => leaves.extend(array.leaves()),
            _ => {}
        });
        leaves
    }

    /// The arrays that members describe themselves.
    pub fn md_arrays(&self) -> Vec<&MdArray> {
        md_arrays(&self.root)
    }

    /// See [`cache_log::identity`].
    pub(super) fn identity_of(&self, stack: &Stack) -> String {
        cache_log::identity(stack, &self.md_arrays())
    }

    /// The arrays whose members are leaves.
    pub(super) fn siblings(&self) -> Vec<Siblings> {
        let mut all = Vec::new();
        self.root.walk(&mut |part| match part {
            Part::Md(array) => {
                let leaves = array.leaves().into_iter();
                let members = leaves.map(|leaf| (leaf.label.clone(), leaf)).collect();
                all.push(Siblings { array: array.name.clone(), members });
            }
            Part::Joined { level, members } => {
                let leaf = |(role, part): (usize, &Part)| match part {
                    Part::Leaf(leaf) => Some((called(leaf, role), Arc::clone(leaf))),
                    _ => None,
                };
                let siblings = members.iter().enumerate().filter_map(leaf).collect();
                all.push(Siblings { array: level.name().to_owned(), members: siblings });
            }
            _ => {}
        });
        all
    }

    /// Returns true if the stack has arrays that survive losses, caches, devices whose changes go to a store, or remote
    /// members.
    pub fn has_state(&self) -> bool {
        self.has_arrays() || self.needs_one_shard()
    }

    /// Returns true if the stack has arrays that survive losses. They live on the first shard; other shards serve
    /// their members by themselves while they are whole.
    pub(super) fn has_arrays(&self) -> bool {
        self.has(&|part| match part {
            Part::Md(array) => array.level.is_redundant(),
            Part::Joined { level, .. } => level.is_redundant(),
            _ => false,
        })
    }

    /// Returns true if the stack has caches, devices whose changes go to a store, or remote members. One shard serves all
    /// of it then: their knowledge of requests under way is on that shard alone.
    pub(super) fn needs_one_shard(&self) -> bool {
        self.has(&|part| match part {
            // Each request depends on the requests in flight.
            Part::Leaf(leaf) => leaf.is_on_one_shard(),
            Part::Decorated { by, store, .. } => {
                store.is_some() || matches!(by, Decoration::Cache { .. })
            }
            _ => false,
        })
    }

    /// Returns the number of shards of a volume of `spec` over these members. Arrays that survive losses live on one; others
    /// are of use to NBD clients alone.
    pub(super) fn shard_count(&self, spec: &Spec) -> usize {
        let is_one = self.needs_one_shard() || self.has_arrays() && spec.nbd.is_empty();
        if is_one { 1 } else { spec.shard_count() }
    }

    fn has(&self, is_it: &dyn Fn(&Part) -> bool) -> bool {
        let mut has_it = false;
        self.root.walk(&mut |part| has_it |= is_it(part));
        has_it
    }

    /// Returns the warnings about faults that do not prevent a start.
    pub fn warnings(&self) -> Vec<Warning> {
        let leaves = self.leaves().into_iter().filter(|leaf| leaf.is_direct() == Some(false));
        let buffered = leaves.map(|leaf| {
            Warning::lasting(format!(
                "{} is used through the page cache, because its file system refuses direct I/O",
                leaf.label
            ))
        });
        let arrays = self.md_arrays().into_iter().flat_map(|array| array.warnings.clone());
        let mut warnings: Vec<Warning> = buffered.chain(arrays).collect();
        self.root.walk(&mut |part| warnings.extend(parity_in_doubt(part)));
        warnings
    }
}

fn md_arrays(root: &Part) -> Vec<&MdArray> {
    let mut arrays: Vec<&MdArray> = Vec::new();
    root.walk(&mut |part| {
        if let Part::Md(array) = part {
            arrays.push(array);
        }
    });
    arrays
}

struct Opener<'a> {
    options: &'a OpenOptions,
    buses: Buses,
    most_ram: u64,
    /// An array above continues without the part that is opened.
    survives: bool,
}

impl Opener<'_> {
    fn part(&mut self, stack: &Stack) -> Result<Part, MediaError> {
        match &stack.node {
            Node::Md(md) => MdArray::open(&md.members, md.layout, self.options)
                .map(Box::new)
                .map(Part::Md)
                .map_err(MediaError::Md),
            Node::Missing(_) => Ok(Part::Missing),
            Node::Cache(cache) => self.cached(cache, stack.to_string()),
            Node::Slice(slice) => {
                self.decorated(&slice.origin, |origin| decorated::slice(slice, origin))
            }
            Node::Holes(holes) => {
                self.decorated(&holes.origin, |origin| decorated::holes(holes, origin))
            }
            Node::Cow(cow) => self.cow(cow),
            _ => self.leaf_or_joined(stack),
        }
    }

    fn cached(&mut self, cache: &Cache, text: String) -> Result<Part, MediaError> {
        let config = config_of(cache);
        let origin = Box::new(self.part(cache.origin())?);
        let identity = cache_log::identity(cache.origin(), &md_arrays(&origin));
        let log = cache.log().map(|log| self.part(log)).transpose()?.map(Box::new);
        if let Some(log) = &log {
            let (of_log, behind) = (log.limits(), origin.limits());
            if let Some(why) = cache_log::unfit(of_log, behind, cache.block.bytes()) {
                let log = cache.log().map(ToString::to_string).unwrap_or_default();
                return Err(MediaError::Log { log, cache: text, why });
            }
        }
        let write_back = WriteBack::new(cache, &identity, self.options);
        let warm = Warm::open(cache, &identity)?.map(Arc::new);
        let by = Decoration::Cache { config, of: OfCache { text, write_back, warm } };
        Ok(Part::Decorated { by, origin, store: log })
    }

    /// Opens the device that `decoration` makes of `origin`.
    fn decorated(
        &mut self,
        origin: &Stack,
        decoration: impl FnOnce(Limits) -> Result<Decoration<OfCache>, DecoratorError>,
    ) -> Result<Part, MediaError> {
        let origin = Box::new(self.part(origin)?);
        let limits = origin.limits().expect("only a member of a level can be missing");
        Ok(Part::Decorated { by: decoration(limits)?, origin, store: None })
    }

    /// Opens a device whose changes go to a store. The origin is opened for reading only.
    fn cow(&mut self, cow: &Cow) -> Result<Part, MediaError> {
        let access = self.options.access();
        let options = OpenOptions { read_only: true, ..self.options.clone() };
        let buses = std::mem::take(&mut self.buses);
        let survives = self.survives;
        let mut below = Opener { options: &options, buses, most_ram: 0, survives };
        let origin = Box::new(below.part(&cow.origin)?);
        self.buses = below.buses;
        let limits = origin.limits().expect("only a member of a level can be missing");
        let file = open_store(Path::new(&cow.store), access, limits.size)?;
        decorated::check_store(cow, limits, file.limits())?;
        let deadline = self.options.deadline.of(survives, file.is_direct());
        let store = Member::new(cow.store.clone(), Box::new(file), deadline);
        let store = Some(Box::new(Part::Leaf(Arc::new(store))));
        Ok(Part::Decorated { by: Decoration::Cow, origin, store })
    }

    fn leaf_or_joined(&mut self, stack: &Stack) -> Result<Part, MediaError> {
        let (access, most_ram, buses) = (self.options.access(), self.most_ram, &mut self.buses);
        if let Some(kind) = open(&stack.node, &mut Opening { access, most_ram, buses })? {
            let is_direct = kind.is_direct() == Some(true);
            let deadline = self.options.deadline.of(self.survives, is_direct);
            let label = match &stack.node {
                Node::File(file) => file.name().display().to_string(),
                _ => stack.to_string(),
            };
            return Ok(Part::Leaf(Arc::new(Member::new(label, kind, deadline))));
        }
        let above = self.survives;
        self.survives |= stack.shape().is_some_and(|shape| shape.level.is_redundant());
        let members: Result<Vec<Part>, MediaError> =
            stack.members().iter().map(|member| self.part(member)).collect();
        self.survives = above;
        let members = members?;
        let limits: Vec<Option<Limits>> = members.iter().map(Part::limits).collect();
        let shape = stack.shape().expect("members are joined by a level");
        let level = Level::over(shape, &limits).map_err(|source| {
            let level = stack.node.name().to_owned();
            MediaError::Geometry { level, source }
        })?;
        Ok(Part::Joined { level, members })
    }
}

impl HasLimits for MdArray {
    fn limits(&self) -> Limits {
        MdArray::limits(self)
    }
}

/// Returns the name that an array without superblocks gives its member of `role`.
pub(super) fn called(member: &Member, role: usize) -> String {
    member.path().unwrap_or_else(|| braid_wiring::unnamed(role))
}

/// Warns of parity of which no record says that it was up to date, if bytes are reconstructed from it.
fn parity_in_doubt(part: &Part) -> Option<Warning> {
    let Part::Joined { level: level @ Level::Parity(_), members } = part else { return None };
    let is_volatile = part.limits().is_none_or(|limits| limits.volatile);
    let unread = if members.iter().any(|member| matches!(member, Part::Missing)) {
        "the content of the missing member"
    } else if members.iter().any(has_holes) {
        "the content of unreadable ranges"
    } else {
        return None;
    };
    (!is_volatile).then(|| {
        Warning::lasting(format!(
            "{}: {unread} is worked out from parity; whether that was up to date is recorded nowhere, \
             because this array has no superblocks",
            level.name()
        ))
    })
}

/// Returns true if `part` has unreadable ranges, directly or through devices in front of it.
fn has_holes(part: &Part) -> bool {
    match part {
        Part::Decorated { by: Decoration::Holes(_), .. } => true,
        Part::Decorated { origin, .. } => has_holes(origin),
        _ => false,
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
