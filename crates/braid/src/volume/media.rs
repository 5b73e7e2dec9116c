//! The leaves of a stack, opened once, and the devices that each shard makes of them.

use std::io;
use std::path::PathBuf;

use braid_array::geometry::{Linear, Raid0, Raid0Layout};
use braid_array::{Geometry, GeometryError};
use braid_block::Limits;
use braid_device::{Access, Buses, File, Modelled, Ram};
use braid_engine::{Array, Dev};
use braid_mem::Pool;
use braid_stack::{Node, Stack};
use braid_uring::Handle;

/// Why a stack that reads well cannot be brought up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MediaError {
    #[error("cannot open {path}: {source}")]
    Open { path: PathBuf, source: io::Error },
    #[error("{path} is in use: another program has it locked")]
    Locked { path: PathBuf },
    #[error("no memory for {what}: {source}")]
    Memory { what: String, source: io::Error },
    #[error("{what} is more than the {total:#} of memory that this machine has")]
    TooMuchMemory { what: String, total: braid_stack::ByteSize },
    #[error("{level}: {source}")]
    Geometry { level: String, source: GeometryError },
    #[error("{level} is not served yet")]
    NotServed { level: &'static str },
    #[error("there is no model called {name:?}; there are: {known}")]
    UnknownModel { name: String, known: String },
}

/// One leaf.
pub(crate) struct Leaf {
    /// As the stack spells it.
    pub(crate) label: String,
    pub(crate) medium: Medium,
}

pub(crate) enum Medium {
    Ram(Ram),
    File(File),
    Modelled(Modelled),
}

impl Leaf {
    pub(crate) fn limits(&self) -> Limits {
        match &self.medium {
            Medium::Ram(ram) => braid_engine::Device::limits(&ram.device()),
            Medium::File(file) => file.limits(),
            Medium::Modelled(modelled) => modelled.limits(),
        }
    }
}

/// All leaves of a stack, from left to right.
pub(crate) struct Media {
    pub(crate) leaves: Vec<Leaf>,
}

impl Media {
    /// Opens every leaf of `stack` and checks that its arrays can be made of them.
    pub(crate) fn open(stack: &Stack, read_only: bool) -> Result<Media, MediaError> {
        check_served(stack)?;
        check_memory(stack)?;
        let access = if read_only { Access::ReadOnly } else { Access::Exclusive };
        let mut buses = Buses::default();
        let mut leaves = Vec::new();
        for leaf in stack.leaves() {
            let medium = open_leaf(&leaf.node, access, &mut buses)?;
            leaves.push(Leaf { label: leaf.to_string(), medium });
        }
        let media = Media { leaves };
        media.check_geometry(stack)?;
        Ok(media)
    }

    /// What is not as it should be, though it works.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let buffered = self.leaves.iter().filter_map(|leaf| match &leaf.medium {
            Medium::File(file) if !file.is_direct() => Some(format!(
                "{} is used through the page cache, because its file system refuses direct I/O",
                file.path().display()
            )),
            _ => None,
        });
        buffered.collect()
    }

    /// The device that `stack` is, for the shard of `handle`.
    ///
    /// # Errors
    /// `EMFILE`, when a file cannot be opened once more.
    pub(crate) fn build(&self, stack: &Stack, handle: &Handle, pool: &Pool) -> io::Result<Dev> {
        let mut leaves = self.leaves.iter();
        build_node(stack, &mut |_| {
            let leaf = leaves.next().expect("one leaf for each of the stack's");
            Ok(match &leaf.medium {
                Medium::Ram(ram) => Dev::new(ram.device()),
                Medium::File(file) => Dev::new(file.device(handle, pool)?),
                Medium::Modelled(modelled) => Dev::new(modelled.device(handle)),
            })
        })
    }

    fn check_geometry(&self, stack: &Stack) -> Result<Limits, MediaError> {
        let mut limits = self.leaves.iter().map(Leaf::limits);
        check_node(stack, &mut limits)
    }
}

/// What each level that has members is made of.
enum Level {
    Linear(Linear),
    Raid0(Raid0),
}

fn level_of(stack: &Stack, members: &[Limits]) -> Result<Option<Level>, MediaError> {
    let sizes: Vec<u64> = members.iter().map(|member| member.size).collect();
    let block = members.iter().map(|member| member.logical_block).max().unwrap_or(512);
    let level = match &stack.node {
        Node::Linear(_) => Linear::new(&sizes, block).map(Level::Linear),
        Node::Raid0(raid0) => {
            let layout = match raid0.layout {
                braid_stack::Raid0Layout::Original => Raid0Layout::Original,
                braid_stack::Raid0Layout::Alternate => Raid0Layout::Alternate,
            };
            Raid0::new(&sizes, raid0.chunk.bytes(), layout, block).map(Level::Raid0)
        }
        _ => return Ok(None),
    };
    level
        .map(Some)
        .map_err(|source| MediaError::Geometry { level: stack.node.name().to_owned(), source })
}

fn check_node(
    stack: &Stack,
    leaves: &mut impl Iterator<Item = Limits>,
) -> Result<Limits, MediaError> {
    if stack.members().is_empty() {
        return Ok(leaves.next().expect("one leaf for each of the stack's"));
    }
    let mut members = Vec::new();
    for member in stack.members() {
        members.push(check_node(member, leaves)?);
    }
    let size = match level_of(stack, &members)? {
        Some(Level::Linear(linear)) => linear.size(),
        Some(Level::Raid0(raid0)) => raid0.size(),
        None => unreachable!("a leaf has no members"),
    };
    Ok(Limits { size, ..Limits::combine(members) })
}

fn build_node(stack: &Stack, leaf: &mut impl FnMut(&Stack) -> io::Result<Dev>) -> io::Result<Dev> {
    if stack.members().is_empty() {
        return leaf(stack);
    }
    let mut members = Vec::new();
    for member in stack.members() {
        members.push(build_node(member, leaf)?);
    }
    let limits: Vec<Limits> = members.iter().map(|member| *member.limits()).collect();
    Ok(match level_of(stack, &limits).expect("checked when the media were opened") {
        Some(Level::Linear(linear)) => Dev::new(Array::new(linear, members)),
        Some(Level::Raid0(raid0)) => Dev::new(Array::new(raid0, members)),
        None => unreachable!("a leaf has no members"),
    })
}

fn open_leaf(node: &Node, access: Access, buses: &mut Buses) -> Result<Medium, MediaError> {
    match node {
        Node::Ram(ram) => Ram::new(ram.size.bytes())
            .map(Medium::Ram)
            .map_err(|source| MediaError::Memory { what: ram.to_string(), source }),
        Node::File(file) => {
            let path = file.path();
            let length = file.length.map(|length| length.bytes());
            File::open(path, access, file.offset.bytes(), length).map(Medium::File).map_err(
                |source| match source.kind() {
                    io::ErrorKind::WouldBlock => MediaError::Locked { path: path.to_owned() },
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

/// The language has levels that the engine does not have yet.
fn check_served(stack: &Stack) -> Result<(), MediaError> {
    match &stack.node {
        Node::Raid1(_) | Node::Raid10(_) | Node::Md(_) => {
            Err(MediaError::NotServed { level: stack.node.name() })
        }
        _ => stack.members().iter().try_for_each(check_served),
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
