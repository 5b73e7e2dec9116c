//! An array whose members describe it themselves: from their superblocks to what the engine is
//! given.
//!
//! ```text
//!   paths ──read──▶ superblocks ──assess──▶ who takes part ──open──▶ members at work
//!                                   │
//!                                   └──▶ or why not, and the next command
//! ```
//!
//! Invariant: nothing is written here; and what is found on the members is only believed after
//! `braid_md` has checked it.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use braid_array::GeometryError;
use braid_array::geometry::{Linear, Raid0, Raid0Layout, Raid1, Raid10, Raid10Layout};
use braid_block::Limits;
use braid_device::File;
use braid_engine::mirror::{MemberState, NewMember, Setup, Speed};
use braid_engine::{Clock, Dev};
use braid_md::assembly::{Assembly, BitmapFacts, Candidate, Options, Slot, Start, group};
use braid_md::{BadBlocks, Bitmap, Features, Level as MdLevel, Resync, Superblock, detect};
use braid_probe::{Policy, Reason, check_member};
use braid_stack::{Node, Stack};

use super::media::{Leaf, Level, Medium, OpenOptions};

/// Why members do not make an array.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MdError {
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error(
        "{path} carries no md superblock\n  next: `braid examine {path}` says what was looked for"
    )]
    NoSuperblock { path: PathBuf },
    #[error(
        "{path}: its superblock cannot be used: {why}\n  next: `braid examine --explain {path}`"
    )]
    Damaged { path: PathBuf, why: String },
    #[error("{path} belongs to another array than {first}: {uuid} and {other}")]
    SeveralArrays { path: PathBuf, first: PathBuf, uuid: String, other: String },
    #[error("{what}: {state}{}", list(next))]
    Refused { what: String, state: String, next: Vec<String> },
    #[error(
        "{what}: the write-intent bitmap of {path} cannot be kept up to date: {why}\n  next: \
         --read-only"
    )]
    Bitmap { what: String, path: PathBuf, why: String },
    #[error("{what}: {source}")]
    Geometry { what: String, source: GeometryError },
    #[error("cannot open {path}: {source}")]
    Open { path: PathBuf, source: io::Error },
    #[error("{path} is in use: another program has it locked")]
    Locked { path: PathBuf },
}

fn list(next: &[String]) -> String {
    next.iter().map(|next| format!("\n  next: {next}")).collect()
}

/// A member's metadata.
pub(crate) struct Metadata {
    pub(crate) path: PathBuf,
    pub(crate) size: u64,
    pub(crate) superblock: Superblock,
    pub(crate) bitmap: Option<Bitmap>,
    /// Why there is none that can be written, though the superblock points to one.
    pub(crate) bitmap_trouble: Option<String>,
    pub(crate) bad_blocks: Option<BadBlocks>,
}

/// An array that was assembled.
pub(crate) struct MdArray {
    pub(crate) level: Level,
    /// What people call it.
    pub(crate) name: String,
    pub(crate) warnings: Vec<String>,
    /// The freshest superblock.
    pub(crate) superblock: Superblock,
    members: Vec<MdMember>,
    /// The open members, those first that it was assembled of: a member that is let go of is
    /// closed, so that others may have it.
    open: Mutex<Vec<Arc<Leaf>>>,
    bitmap: Option<Bitmap>,
    resync: Resync,
    read_only: bool,
}

struct MdMember {
    label: String,
    limits: Limits,
    superblock: Superblock,
    bad_blocks: BadBlocks,
    role: Option<u16>,
    state: MemberState,
    replacement: bool,
    by_bitmap: bool,
}

/// Which levels are served.
pub(crate) fn is_served(level: MdLevel) -> bool {
    matches!(level, MdLevel::Linear | MdLevel::Raid0 | MdLevel::Raid1 | MdLevel::Raid10)
}

impl Metadata {
    /// Reads the superblock of `path` that holds, and what it points to.
    pub(crate) fn read(path: &Path) -> Result<Metadata, MdError> {
        let cannot = |source| MdError::Read { path: path.to_owned(), source };
        let file = fs::File::open(path).map_err(cannot)?;
        let size = size_of(&file).map_err(cannot)?;
        let mut read = |offset: u64, buf: &mut [u8]| file.read_exact_at(buf, offset);
        let found = detect::find(size, &mut read).map_err(cannot)?;
        let superblock = match detect::choose(&found) {
            Some(choice) => choice.superblock.clone(),
            None => {
                let rejected = found.into_iter().find_map(|one| one.result.err());
                return Err(match rejected {
                    Some(why) => MdError::Damaged { path: path.to_owned(), why: why.to_string() },
                    None => MdError::NoSuperblock { path: path.to_owned() },
                });
            }
        };
        let area = |offset: i64, len: u64| -> Option<Vec<u8>> {
            let start = superblock.super_offset.checked_add_signed(offset)?;
            let mut bytes = vec![0; usize::try_from(len.min(size.saturating_sub(start))).ok()?];
            file.read_exact_at(&mut bytes, start).ok()?;
            Some(bytes)
        };
        let read_bitmap = |offset: i64| -> Result<Bitmap, String> {
            let outside = || "it lies outside the device".to_owned();
            let first = area(offset, 4096).ok_or_else(outside)?;
            let header = braid_md::BitmapHeader::parse(&first).map_err(|why| why.to_string())?;
            let len = header.byte_len().next_multiple_of(4096);
            let bytes = area(offset, len).ok_or_else(outside)?;
            let bitmap = Bitmap::parse(&bytes).map_err(|why| why.to_string())?;
            match bitmap.header.is_portable() {
                true => Ok(bitmap),
                false => Err("its bits are in the order of an unknown host".to_owned()),
            }
        };
        let (bitmap, bitmap_trouble) = match superblock.bitmap_offset.map(read_bitmap) {
            None => (None, None),
            Some(Ok(bitmap)) => (Some(bitmap), None),
            Some(Err(why)) => (None, Some(why)),
        };
        let bad_blocks = superblock.bad_block_log.and_then(|log| {
            if !superblock.features.contains(Features::BAD_BLOCKS) {
                return None;
            }
            BadBlocks::parse(&area(log.offset, log.size)?, log.shift).ok()
        });
        let path = path.to_owned();
        Ok(Metadata { path, size, superblock, bitmap, bitmap_trouble, bad_blocks })
    }

    /// What assembly needs to know of it.
    pub(crate) fn candidate(&self) -> Candidate {
        let fresh = |bitmap: &&Bitmap| {
            bitmap.header.events >= self.superblock.events && !bitmap.header.stale
        };
        let facts = |bitmap: &Bitmap| BitmapFacts {
            events_cleared: bitmap.header.events_cleared,
            chunk: bitmap.header.chunk_size,
            dirty: bitmap.count_set(),
        };
        Candidate {
            label: self.path.display().to_string(),
            size: self.size,
            superblock: self.superblock.clone(),
            bitmap: self.bitmap.as_ref().filter(fresh).map(facts),
        }
    }
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
    let Ok(metadata) = Metadata::read(path) else { return false };
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

fn size_of(file: &fs::File) -> io::Result<u64> {
    use std::os::unix::fs::FileTypeExt;
    let metadata = file.metadata()?;
    match metadata.file_type().is_block_device() {
        true => braid_sys::block::size(file),
        false => Ok(metadata.len()),
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
            .collect::<Result<_, _>>()?;
        one_array(&metadata)?;
        let sets = group(metadata.iter().map(Metadata::candidate).collect());
        let [set] = &sets[..] else { unreachable!("the members are of one array") };
        let assembly = set.assess(Options {
            force: false,
            read_only: options.read_only,
            degraded: options.degraded,
            supported: &is_served,
        });
        let needed = if options.read_only { Start::ReadOnly } else { Start::ReadWrite };
        let what = match set.short_name() {
            "" => format!("the array {}", set.uuid),
            name => format!("{name} ({})", set.uuid),
        };
        if assembly.can_start < needed {
            let state = assembly.state.to_string();
            return Err(MdError::Refused { what, state, next: assembly.next });
        }
        // The set has its candidates in an order of its own.
        let of = |candidate: usize| -> &Metadata {
            let label = &set.candidates()[candidate].label;
            metadata
                .iter()
                .find(|one| one.path.display().to_string() == *label)
                .expect("a candidate is one of the members")
        };
        let freshest = of(assembly.freshest);
        // What is written must be in the bitmap, or the next who believes it loses data.
        if let (Some(why), false) = (&freshest.bitmap_trouble, options.read_only) {
            let (path, why) = (freshest.path.clone(), why.clone());
            return Err(MdError::Bitmap { what, path, why });
        }
        let level = level_of(&freshest.superblock, &assembly)
            .map_err(|source| MdError::Geometry { what: what.clone(), source })?;
        let (members, open) = open_members(&assembly, &level, &of, options)?;
        let mut warnings: Vec<String> =
            assembly.risks.iter().map(|risk| format!("{what}: {risk}")).collect();
        for left_out in &assembly.left_out {
            warnings.push(format!("{what}: {} takes no part: {}", left_out.label, left_out.reason));
        }
        let (bitmap, resync) = intent_of(freshest, &assembly);
        let name = match set.short_name() {
            "" => set.uuid.to_string(),
            name => name.to_owned(),
        };
        Ok(MdArray {
            level,
            name,
            warnings,
            superblock: freshest.superblock.clone(),
            members,
            open: Mutex::new(open),
            bitmap,
            resync,
            read_only: options.read_only,
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
        let combined = Limits::combine(self.members.iter().map(|member| member.limits));
        Limits { size: self.level.size(), ..combined }
    }

    /// What the engine is given: `devs` are on the [`MdArray::leaves`].
    pub(crate) fn setup(
        &self,
        geometry: Rc<dyn braid_array::Mirrored>,
        devs: Vec<Dev>,
        clock: Rc<dyn Clock>,
    ) -> Setup {
        let members = self.members.iter().zip(devs).map(|(member, dev)| NewMember {
            label: member.label.clone(),
            dev,
            data_offset: member.superblock.data_offset,
            number: member.superblock.device_number,
            role: member.role,
            replacement: member.replacement,
            state: member.state,
            by_bitmap: member.by_bitmap,
            write_mostly: member.superblock.write_mostly,
            superblock: Some(member.superblock.clone()),
            bad_blocks: member.bad_blocks.clone(),
        });
        Setup {
            geometry,
            members: members.collect(),
            array: Some(self.superblock.clone()),
            bitmap: self.bitmap.clone(),
            resync: self.resync,
            read_only: self.read_only,
            clock,
            speed: Speed::default(),
        }
    }
}

fn one_array(metadata: &[Metadata]) -> Result<(), MdError> {
    let first = &metadata[0];
    match metadata.iter().find(|one| one.superblock.array_uuid != first.superblock.array_uuid) {
        None => Ok(()),
        Some(other) => Err(MdError::SeveralArrays {
            path: other.path.clone(),
            first: first.path.clone(),
            uuid: other.superblock.array_uuid.to_string(),
            other: first.superblock.array_uuid.to_string(),
        }),
    }
}

fn level_of(superblock: &Superblock, assembly: &Assembly) -> Result<Level, GeometryError> {
    let count = superblock.raid_disks as usize;
    let sizes: Vec<u64> =
        assembly.slots.iter().filter_map(|slot| Some(slot.member()?.usable)).collect();
    let size = superblock.component_size;
    match superblock.level {
        MdLevel::Linear => Linear::new(&sizes, 512).map(Level::Linear),
        MdLevel::Raid0 => {
            let layout = match superblock.layout {
                1 => Raid0Layout::Original,
                // Without a record the members are equal, or assembly has refused.
                _ => Raid0Layout::Alternate,
            };
            Raid0::new(&sizes, superblock.chunk, layout, 512).map(Level::Raid0)
        }
        MdLevel::Raid1 => Raid1::new(size, count).map(Level::Raid1),
        _ => Raid10Layout::from_number(superblock.layout)
            .and_then(|layout| Raid10::new(size, count, superblock.chunk, layout))
            .map(Level::Raid10),
    }
}

/// The bitmap that says where copies may differ, and from where on they may.
fn intent_of(freshest: &Metadata, assembly: &Assembly) -> (Option<Bitmap>, Resync) {
    let superblock = &freshest.superblock;
    let resync = superblock.resync;
    let Some(bitmap) = &freshest.bitmap else { return (None, resync) };
    let mut bitmap = bitmap.clone();
    // A bitmap that is older than the superblock does not know what was written since.
    let known = bitmap.header.events >= superblock.events && !bitmap.header.stale;
    let degraded = assembly.slots.iter().any(|slot| !slot.is_in_sync());
    if !known && (resync != Resync::Clean || degraded) {
        bitmap.set_all();
    }
    bitmap.header.stale = false;
    (Some(bitmap), resync)
}

fn open_members<'a>(
    assembly: &Assembly,
    level: &Level,
    of: &impl Fn(usize) -> &'a Metadata,
    options: OpenOptions,
) -> Result<(Vec<MdMember>, Vec<Arc<Leaf>>), MdError> {
    let (mut members, mut leaves) = (Vec::new(), Vec::new());
    let mut open = |member: &braid_md::assembly::Member, role, state, replacement, by_bitmap| {
        let metadata = of(member.candidate);
        // Without copies nothing is ever recorded, so only the data is opened.
        let (offset, length) = match level.is_mirrored() {
            true => (0, None),
            false => (member.data_offset, Some(member.usable)),
        };
        let path = &metadata.path;
        let file =
            File::open(path, options.access(), offset, length).map_err(|source| {
                match source.kind() {
                    io::ErrorKind::WouldBlock => MdError::Locked { path: path.clone() },
                    _ => MdError::Open { path: path.clone(), source },
                }
            })?;
        members.push(MdMember {
            label: member.label.clone(),
            limits: file.limits(),
            superblock: metadata.superblock.clone(),
            bad_blocks: metadata.bad_blocks.clone().unwrap_or_else(BadBlocks::none),
            role,
            state,
            replacement,
            by_bitmap,
        });
        leaves.push(Arc::new(Leaf { label: member.label.clone(), medium: Medium::File(file) }));
        Ok(())
    };
    for (role, slot) in (0..).zip(&assembly.slots) {
        match slot {
            Slot::InSync(member) => open(member, Some(role), MemberState::InSync, false, false)?,
            Slot::Recovering { member, from, by_bitmap } => {
                let state = MemberState::Recovering(*from);
                open(member, Some(role), state, false, *by_bitmap)?;
            }
            Slot::Missing => {}
        }
    }
    for (role, member, from) in &assembly.replacements {
        open(member, Some(*role), MemberState::Recovering(*from), true, false)?;
    }
    for member in &assembly.spares {
        open(member, None, MemberState::Spare, false, false)?;
    }
    Ok((members, leaves))
}
