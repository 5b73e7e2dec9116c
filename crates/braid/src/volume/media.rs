//! The leaves of a stack, opened once, and the devices that each shard makes of them.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use braid_array::{GeometryError, Role};
use braid_block::Limits;
use braid_device::{Buses, File, Modelled, Ram};
use braid_engine::redundant::{MemberState, NewMember, Redundant, STRIPE_CACHE, Setup, Speed};
use braid_engine::{Array, Dev};
use braid_md::{BadBlocks, Resync};
use braid_mem::Pool;
use braid_stack::{Node, Stack};
use braid_uring::{ExecutorClock, Handle};

use super::admission::locked_by;
use super::level::{self, Level};
use super::md::{MdArray, MdError};
use super::options::OpenOptions;

/// Why a stack that reads well cannot be brought up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MediaError {
    #[error("cannot open {path}: {source}")]
    Open { path: PathBuf, source: io::Error },
    #[error("{path} is in use: another program has it locked{by}, and did not let go of it")]
    Locked { path: PathBuf, by: String },
    #[error("no memory for {what}: {source}")]
    Memory { what: String, source: io::Error },
    #[error("{what} is more than the {total:#} of memory that this machine has")]
    TooMuchMemory { what: String, total: braid_stack::ByteSize },
    #[error("{level}: {source}")]
    Geometry { level: String, source: GeometryError },
    #[error("there is no model called {name:?}; there are: {known}")]
    UnknownModel { name: String, known: String },
    #[error("{0}")]
    Md(#[source] MdError),
}

/// One leaf.
pub(crate) struct Leaf {
    /// Its path, if it is a whole file or device; else as the stack spells it.
    pub(crate) label: String,
    pub(crate) medium: Medium,
}

pub(crate) enum Medium {
    Ram(Ram),
    File(File),
    Modelled(Modelled),
}

impl Leaf {
    fn new(stack: &Stack, medium: Medium) -> Leaf {
        match &stack.node {
            Node::File(file) if file.offset.bytes() == 0 && file.length.is_none() => {
                Leaf { label: file.path().display().to_string(), medium }
            }
            _ => Leaf { label: stack.to_string(), medium },
        }
    }

    /// Its path, if it is a whole file or device, by which an operator names it.
    fn path(&self) -> Option<String> {
        match &self.medium {
            Medium::File(file) => {
                let path = file.path().display().to_string();
                (path == self.label).then_some(path)
            }
            Medium::Ram(_) | Medium::Modelled(_) => None,
        }
    }

    /// Why nobody will find its file again once it is closed.
    pub(crate) fn gone(&self) -> Option<String> {
        let Medium::File(file) = &self.medium else { return None };
        // What cannot be found out is not said.
        let (identity, links) = file.identity().ok()?;
        if links == 0 {
            return Some("its file was deleted while the volume is up".to_owned());
        }
        let there = braid_probe::leads_to(file.path(), identity).ok()?;
        (there == Some(false)).then(|| "another file, or none, lies at its path now".to_owned())
    }

    pub(crate) fn limits(&self) -> Limits {
        match &self.medium {
            Medium::Ram(ram) => braid_engine::Device::limits(&ram.device()),
            Medium::File(file) => file.limits(),
            Medium::Modelled(modelled) => modelled.limits(),
        }
    }

    /// A device on it for the shard of `handle`.
    pub(crate) fn device(&self, handle: &Handle, pool: &Pool) -> io::Result<Dev> {
        Ok(match &self.medium {
            Medium::Ram(ram) => Dev::new(ram.device()),
            Medium::File(file) => Dev::new(file.device(handle, pool)?),
            Medium::Modelled(modelled) => Dev::new(modelled.device(handle)),
        })
    }
}

/// A stack, opened: its leaves, and how they are joined.
pub(crate) struct Media {
    root: Part,
}

enum Part {
    Leaf(Arc<Leaf>),
    /// A member that is not there.
    Missing,
    Joined {
        level: Level,
        members: Vec<Part>,
    },
    /// Members that describe their array themselves.
    Md(Box<MdArray>),
}

/// An array that survives the loss of members, on its shard, with what people call it.
pub(crate) struct AtWork {
    /// What people call it; no other of the stack is called so.
    pub(crate) name: String,
    /// Its identifier, if it has superblocks.
    pub(crate) uuid: Option<String>,
    pub(crate) level: Level,
    pub(crate) array: Redundant,
    /// Who takes part is to be recorded at once.
    pub(crate) is_changed: bool,
}

/// What a shard makes of the media.
pub(crate) struct Built {
    pub(crate) dev: Dev,
    pub(crate) arrays: Vec<AtWork>,
}

/// What the parts of a stack are made with on a shard.
struct Builder<'a> {
    handle: &'a Handle,
    pool: &'a Pool,
    read_only: bool,
    arrays: Vec<AtWork>,
}

impl Media {
    /// Opens every leaf of `stack` and checks that its arrays can be made of them.
    pub(crate) fn open(stack: &Stack, options: &OpenOptions) -> Result<Media, MediaError> {
        check_memory(stack)?;
        let root = Opener { options, buses: Buses::default() }.part(stack)?;
        root.limits()?;
        Ok(Media { root })
    }

    /// All leaves, from left to right.
    pub(crate) fn leaves(&self) -> Vec<Arc<Leaf>> {
        let mut leaves = Vec::new();
        self.root.collect_leaves(&mut leaves);
        leaves
    }

    /// The arrays that members describe themselves.
    pub(crate) fn md_arrays(&self) -> Vec<&MdArray> {
        let mut arrays = Vec::new();
        self.root.collect_md(&mut arrays);
        arrays
    }

    /// Whether the stack has arrays that survive losses, which takes one shard for all of it.
    pub(crate) fn is_redundant(&self) -> bool {
        self.root.is_redundant()
    }

    /// What is not as it should be, though it works.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let buffered = self.leaves().into_iter().filter_map(|leaf| match &leaf.medium {
            Medium::File(file) if !file.is_direct() => Some(format!(
                "{} is used through the page cache, because its file system refuses direct I/O",
                file.path().display()
            )),
            _ => None,
        });
        let arrays = self.md_arrays().into_iter().flat_map(|array| array.warnings.clone());
        let mut warnings: Vec<String> = buffered.chain(arrays).collect();
        self.root.warn_of_parity(&mut warnings);
        warnings
    }

    /// The device that the stack is, for the shard of `handle`.
    ///
    /// # Errors
    /// `EMFILE`, when a file cannot be opened once more; no memory.
    pub(crate) fn build(&self, handle: &Handle, pool: &Pool, read_only: bool) -> io::Result<Built> {
        let mut builder = Builder { handle, pool, read_only, arrays: Vec::new() };
        let dev = builder.part(&self.root)?.expect("the whole of a stack is there");
        Ok(Built { dev, arrays: builder.arrays })
    }
}

struct Opener<'a> {
    options: &'a OpenOptions,
    buses: Buses,
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
        if stack.members().is_empty() {
            let medium = open_leaf(&stack.node, self.options, &mut self.buses)?;
            return Ok(Part::Leaf(Arc::new(Leaf::new(stack, medium))));
        }
        let members: Vec<Part> =
            stack.members().iter().map(|member| self.part(member)).collect::<Result<_, _>>()?;
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

    /// What holds for the part; none for a member that is not there.
    fn limits(&self) -> Result<Option<Limits>, MediaError> {
        Ok(match self {
            Part::Leaf(leaf) => Some(leaf.limits()),
            Part::Missing => None,
            Part::Md(array) => Some(array.limits()),
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
            Part::Joined { members, .. } => {
                members.iter().for_each(|member| member.collect_leaves(leaves));
            }
        }
    }

    fn collect_md<'a>(&'a self, arrays: &mut Vec<&'a MdArray>) {
        match self {
            Part::Md(array) => arrays.push(array),
            Part::Joined { members, .. } => {
                members.iter().for_each(|member| member.collect_md(arrays));
            }
            Part::Leaf(_) | Part::Missing => {}
        }
    }

    fn is_redundant(&self) -> bool {
        match self {
            Part::Leaf(_) | Part::Missing => false,
            Part::Md(array) => array.level.is_redundant(),
            Part::Joined { level, members } => {
                level.is_redundant() || members.iter().any(Part::is_redundant)
            }
        }
    }
}

impl Part {
    /// Of parity that nobody vouches for: what a missing member had is worked out from it.
    fn warn_of_parity(&self, warnings: &mut Vec<String>) {
        let Part::Joined { level, members } = self else { return };
        members.iter().for_each(|member| member.warn_of_parity(warnings));
        let is_missing = members.iter().any(|member| matches!(member, Part::Missing));
        let is_volatile = self.limits().ok().flatten().is_none_or(|limits| limits.volatile);
        if is_missing && !is_volatile && matches!(level, Level::Parity(_)) {
            warnings.push(format!(
                "{}: what the missing member had is worked out from parity; whether that was up \
                 to date is recorded nowhere, because this array has no superblocks",
                level.name()
            ));
        }
    }
}

impl Builder<'_> {
    /// The device of a part; none for a member that is not there.
    fn part(&mut self, part: &Part) -> io::Result<Option<Dev>> {
        Ok(match part {
            Part::Missing => None,
            Part::Leaf(leaf) => Some(self.leaf(leaf)?),
            Part::Md(array) => Some(self.md(array)?),
            Part::Joined { level, members } => {
                let devs: Vec<Option<Dev>> =
                    members.iter().map(|member| self.part(member)).collect::<Result<_, _>>()?;
                Some(self.join(level, devs, &members.iter().map(Part::path).collect::<Vec<_>>())?)
            }
        })
    }

    fn leaf(&self, leaf: &Leaf) -> io::Result<Dev> {
        leaf.device(self.handle, self.pool)
    }

    fn md(&mut self, array: &MdArray) -> io::Result<Dev> {
        let devs: Vec<Dev> =
            array.leaves().iter().map(|leaf| self.leaf(leaf)).collect::<Result<_, _>>()?;
        let Some(layout) = array.level.redundant() else {
            return self.join(&array.level, devs.into_iter().map(Some).collect(), &[]);
        };
        let setup = array.setup(layout, devs, Rc::new(ExecutorClock::new(self.handle)))?;
        let uuid = array.superblock.array_uuid.to_string();
        self.redundant(&array.name, Some(uuid), &array.level, setup, array.is_changed)
    }

    /// `paths` are those of members that are files or devices of their own.
    fn join(
        &mut self,
        level: &Level,
        members: Vec<Option<Dev>>,
        paths: &[Option<String>],
    ) -> io::Result<Dev> {
        let layout = match level {
            Level::Linear(linear) => {
                return Ok(Dev::new(Array::new(linear.clone(), all_of(members))));
            }
            Level::Raid0(raid0) => {
                return Ok(Dev::new(Array::new(raid0.clone(), all_of(members))));
            }
            Level::Raid1(_) | Level::Raid10(_) | Level::Parity(_) => level.redundant(),
        };
        let volatile = members.iter().flatten().all(|dev| dev.limits().volatile);
        let resync = resync_of_unrecorded(level, volatile, members.iter().any(Option::is_none));
        let members = members.into_iter().enumerate().filter_map(|(role, dev)| {
            Some(NewMember {
                label: paths[role].clone().unwrap_or_else(|| format!("member {role}")),
                dev: dev?,
                data_offset: 0,
                number: role as u32,
                role: Some(Role::nth(role)),
                replacement: false,
                state: MemberState::InSync,
                by_bitmap: false,
                write_mostly: false,
                superblock: None,
                bad_blocks: BadBlocks::none(),
            })
        });
        let setup = Setup {
            layout: layout.expect("a level that survives losses"),
            members: members.collect(),
            array: None,
            bitmap: None,
            resync,
            log: None,
            stripe_cache: STRIPE_CACHE,
            read_only: self.read_only,
            clock: Rc::new(ExecutorClock::new(self.handle)),
            speed: Speed::default(),
        };
        self.redundant(level.name(), None, level, setup, false)
    }

    fn redundant(
        &mut self,
        name: &str,
        uuid: Option<String>,
        level: &Level,
        setup: Setup,
        is_changed: bool,
    ) -> io::Result<Dev> {
        let array = Redundant::new(setup)?;
        let is_free = |name: &String| self.arrays.iter().all(|one| one.name != *name);
        let numbered = (1..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        self.arrays.push(AtWork {
            name: names.find(is_free).unwrap_or_default(),
            uuid,
            level: level.clone(),
            array: array.clone(),
            is_changed,
        });
        Ok(Dev::new(array))
    }
}

/// Whether copies, or data and parity, of an array without superblocks are taken to agree. It is
/// recorded nowhere; new memory is all zeroes, whose parity is zero. Where a member of a level with
/// parity is missing, its data is what the parity says: to make that anew would change the data.
fn resync_of_unrecorded(level: &Level, volatile: bool, is_missing: bool) -> Resync {
    let is_defined = is_missing && matches!(level, Level::Parity(_));
    if volatile || is_defined { Resync::Clean } else { Resync::From(0) }
}

/// How long a member that is locked is waited for: a process that was killed lets go of its members
/// as one of the last things that it does.
const DYING: Duration = Duration::from_secs(2);
/// How often it is tried.
const RETRY: Duration = Duration::from_millis(20);

/// Opens a member; the one place where that is done.
///
/// # Errors
/// As [`File::open`]; `WouldBlock` only for one that stays locked.
pub(super) fn open_file(
    path: &Path,
    options: &OpenOptions,
    offset: u64,
    length: Option<u64>,
) -> io::Result<File> {
    let deadline = Instant::now() + DYING;
    loop {
        match File::open(path, options.access(), offset, length) {
            Err(error)
                if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < deadline =>
            {
                std::thread::sleep(RETRY);
            }
            result => return result,
        }
    }
}

/// The members of a level of which none may be missing.
fn all_of(members: Vec<Option<Dev>>) -> Vec<Dev> {
    members.into_iter().map(|member| member.expect("checked when the stack was read")).collect()
}

fn open_leaf(node: &Node, options: &OpenOptions, buses: &mut Buses) -> Result<Medium, MediaError> {
    match node {
        Node::Ram(ram) => Ram::new(ram.size.bytes())
            .map(Medium::Ram)
            .map_err(|source| MediaError::Memory { what: ram.to_string(), source }),
        Node::File(file) => {
            let path = file.path();
            let length = file.length.map(|length| length.bytes());
            open_file(path, options, file.offset.bytes(), length).map(Medium::File).map_err(
                |source| match source.kind() {
                    io::ErrorKind::WouldBlock => {
                        MediaError::Locked { path: path.to_owned(), by: locked_by(path) }
                    }
                    _ => MediaError::Open { path: path.to_owned(), source },
                },
            )
        }
        Node::Model(model) => {
            let unknown = || MediaError::UnknownModel {
                name: model.profile.clone(),
                known: braid_model::profile_names().collect::<Vec<_>>().join(", "),
            };
            let mut profile = braid_model::profile(&model.profile).ok_or_else(unknown)?;
            let overrides = &model.overrides;
            let rate = |rate: Option<braid_stack::Rate>| rate.map(|rate| rate.bytes_per_second());
            profile.read_rate = rate(overrides.read).unwrap_or(profile.read_rate);
            profile.write_rate = rate(overrides.write).unwrap_or(profile.write_rate);
            profile.bus_rate = rate(overrides.bus_rate).unwrap_or(profile.bus_rate);
            profile.latency_ns =
                overrides.latency.map_or(profile.latency_ns, |latency| latency.nanoseconds());
            Modelled::new(model.size.bytes(), profile, model.bus.as_deref(), buses)
                .map(Medium::Modelled)
                .map_err(|source| MediaError::Memory { what: model.to_string(), source })
        }
        _ => unreachable!("a level with members is no leaf"),
    }
}

/// Memory is taken when it is written: what can never fit is refused before.
fn check_memory(stack: &Stack) -> Result<(), MediaError> {
    let total = rustix::system::sysinfo();
    let total = u64::from(total.mem_unit) * total.totalram;
    let mut wanted = 0u64;
    let mut largest = String::new();
    for leaf in stack.leaves() {
        let size = match &leaf.node {
            Node::Ram(ram) => ram.size,
            Node::Model(model) => model.size,
            _ => continue,
        };
        wanted = wanted.saturating_add(size.bytes());
        largest = leaf.to_string();
    }
    if wanted > total {
        let what =
            if stack.leaves().len() == 1 { largest } else { "the memory of this stack".to_owned() };
        return Err(MediaError::TooMuchMemory { what, total: braid_stack::ByteSize(total) });
    }
    Ok(())
}
