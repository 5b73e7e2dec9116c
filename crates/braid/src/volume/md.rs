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

use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use braid_array::GeometryError;
use braid_array::geometry::{Linear, ParityLevel, Raid0, Raid0Layout, Raid1, Raid10, Raid10Layout};
use braid_block::Limits;
use braid_engine::redundant::{Layout, MemberState, NewMember, STRIPE_CACHE, Setup, Speed};
use braid_engine::{Clock, Dev};
use braid_md::assembly::{
    Assembly, LeftOut, Member, Options, Reason as LeftOutReason, Slot, Start, group,
};
use braid_md::{BadBlocks, Bitmap, Level as MdLevel, Resync, Role, Superblock};
use braid_stack::Stack;

use super::admission;
use super::level::{Level, parity};
use super::media::{Leaf, Medium, open_file};
use super::options::{OpenOptions, Unusable};
use super::write_hole::{self, LogPlace};
use crate::control::LeftOutStatus;
use crate::metadata::{Metadata, MetadataError, empty_log};

/// Why members do not make an array.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MdError {
    #[error("{0}")]
    Metadata(#[from] MetadataError),
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
    #[error("{path} is in use: another program has it locked{by}, and did not let go of it")]
    Locked { path: PathBuf, by: String },
}

/// Of an array that is only read, after a crash, with members missing.
const NOT_MADE_GOOD: &str = "it was being written when it was left, and its log makes that good \
                             only when it is brought up for writing: until then, what is worked \
                             out in place of a missing member may be wrong there";

fn list(next: &[String]) -> String {
    next.iter().map(|next| format!("\n  next: {next}")).collect()
}

/// An array that was assembled.
pub(crate) struct MdArray {
    pub(crate) level: Level,
    /// What people call it.
    pub(crate) name: String,
    pub(crate) warnings: Vec<String>,
    /// Members of old that are there, and take no part.
    pub(crate) left_out: Vec<LeftOutStatus>,
    /// The freshest superblock.
    pub(crate) superblock: Superblock,
    members: Vec<MdMember>,
    /// The open members, those first that it was assembled of: a member that is let go of is
    /// closed, so that others may have it.
    open: Mutex<Vec<Arc<Leaf>>>,
    bitmap: Option<Bitmap>,
    resync: Resync,
    /// What closes the write hole.
    pub(super) log: LogPlace,
    read_only: bool,
    /// The superblocks count on a member that does not take part.
    pub(crate) is_changed: bool,
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
    match level {
        MdLevel::Linear
        | MdLevel::Raid0
        | MdLevel::Raid1
        | MdLevel::Raid10
        | MdLevel::Raid4
        | MdLevel::Raid5
        | MdLevel::Raid6 => true,
    }
}

impl MdArray {
    /// Reads the members' superblocks, decides who takes part, and opens those. A member that
    /// cannot be opened is one that is missing.
    pub(crate) fn open(members: &[Stack], options: &OpenOptions) -> Result<MdArray, MdError> {
        let mut options = options.clone();
        loop {
            match MdArray::open_usable(members, &options) {
                Err(MdError::Open { path, source })
                    if options.unusable.iter().all(|one| one.path != path) =>
                {
                    let why = format!("it cannot be opened: {source}");
                    options.unusable.push(Unusable { path, why });
                }
                result => return result,
            }
        }
    }

    fn open_usable(members: &[Stack], options: &OpenOptions) -> Result<MdArray, MdError> {
        let (metadata, unusable) = admission::read(members, options)?;
        one_array(&metadata)?;
        let sets = group(metadata.iter().map(Metadata::candidate).collect());
        let [set] = &sets[..] else { unreachable!("the members are of one array") };
        let assess = |degraded| {
            let read_only = options.read_only;
            set.assess(Options { force: false, read_only, degraded, supported: &is_served })
        };
        let assembly = assess(options.degraded);
        let needed = if options.read_only { Start::ReadOnly } else { Start::ReadWrite };
        let what = match set.short_name() {
            "" => format!("the array {}", set.uuid),
            name => format!("{name} ({})", set.uuid),
        };
        if assembly.can_start < needed {
            let mut state = assembly.state.to_string();
            for (label, why) in write_hole::log_troubles(set, &assembly) {
                state = format!("{state}; {label}: {why}");
            }
            if !unusable.is_empty() {
                state = format!("{state}; {}", admission::in_words(&unusable));
            }
            let next = match assess(true).can_start >= needed {
                true => vec![options.degraded_command()],
                false => assembly.next,
            };
            return Err(MdError::Refused { what, state, next });
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
        for (label, why) in write_hole::log_troubles(set, &assembly) {
            warnings.push(format!("{what}: {label} has a log that is not used: {why}"));
        }
        for Unusable { path, why } in &unusable {
            warnings.push(format!("{what}: {} is not used: {why}", path.display()));
        }
        let (bitmap, resync) = intent_of(freshest, &assembly);
        let log = LogPlace::of(&freshest.superblock, set, &assembly);
        if write_hole::is_closed_by_log(&assembly.state) {
            if options.read_only {
                warnings.push(format!("{what}: {NOT_MADE_GOOD}"));
            } else if log == LogPlace::None {
                let state = "it was being written when it was left, members are missing, and not \
                             every member that is being filled has room for the stripe log";
                let next = vec!["without the member that is being filled".to_owned()];
                return Err(MdError::Refused { what, state: state.to_owned(), next });
            }
        }
        let name = match set.short_name() {
            "" => set.uuid.to_string(),
            name => name.to_owned(),
        };
        Ok(MdArray {
            level,
            name,
            warnings,
            left_out: left_out_of(&assembly),
            superblock: freshest.superblock.clone(),
            members,
            open: Mutex::new(open),
            bitmap,
            resync,
            log,
            read_only: options.read_only,
            is_changed: counts_on_others(&freshest.superblock, &assembly),
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
    ///
    /// # Errors
    /// No randomness for the log.
    pub(crate) fn setup(
        &self,
        layout: Layout,
        devs: Vec<Dev>,
        clock: Rc<dyn Clock>,
    ) -> io::Result<Setup> {
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
        Ok(Setup {
            layout,
            members: members.collect(),
            array: Some(self.superblock.clone()),
            bitmap: self.bitmap.clone(),
            resync: self.resync,
            log: self.log.setup(&self.superblock)?,
            stripe_cache: STRIPE_CACHE,
            read_only: self.read_only,
            clock,
            speed: Speed::default(),
        })
    }
}

/// Members of old that missed what was written since, and can be brought up to date.
fn left_out_of(assembly: &Assembly) -> Vec<LeftOutStatus> {
    let is_late = |one: &&LeftOut| {
        matches!(one.reason, LeftOutReason::Stale { .. } | LeftOutReason::Disowned { .. })
    };
    let late = assembly.left_out.iter().filter(is_late);
    late.map(|one| LeftOutStatus { member: one.label.clone(), by_bitmap: one.re_add.is_some() })
        .collect()
}

/// Whether superblocks count on a member that does not take part.
fn counts_on_others(superblock: &Superblock, assembly: &Assembly) -> bool {
    let taken = |role: u16| {
        let slot = assembly.slots.get(usize::from(role));
        slot.is_some_and(|slot| slot.member().is_some())
    };
    superblock.roles.iter().any(|role| matches!(role, Role::Active(role) if !taken(*role)))
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
    let with_parity = |level| parity(size, count, superblock.chunk, level, superblock.layout);
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
        MdLevel::Raid10 => Raid10Layout::from_number(superblock.layout)
            .and_then(|layout| Raid10::new(size, count, superblock.chunk, layout))
            .map(Level::Raid10),
        MdLevel::Raid4 => with_parity(ParityLevel::Raid4),
        MdLevel::Raid5 => with_parity(ParityLevel::Raid5),
        MdLevel::Raid6 => with_parity(ParityLevel::Raid6),
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
    options: &OpenOptions,
) -> Result<(Vec<MdMember>, Vec<Arc<Leaf>>), MdError> {
    let (mut members, mut leaves) = (Vec::new(), Vec::new());
    let mut open = |member: &Member, role, state, replacement, by_bitmap| {
        let metadata = of(member.candidate);
        // Without copies nothing is ever recorded, so only the data is opened.
        let (offset, length) = match level.is_redundant() {
            true => (0, None),
            false => (member.data_offset, Some(member.usable)),
        };
        let path = &metadata.path;
        let file =
            open_file(path, options, offset, length).map_err(|source| match source.kind() {
                io::ErrorKind::WouldBlock => {
                    MdError::Locked { path: path.clone(), by: admission::locked_by(path) }
                }
                _ => MdError::Open { path: path.clone(), source },
            })?;
        members.push(MdMember {
            label: member.label.clone(),
            limits: file.limits(),
            superblock: metadata.superblock.clone(),
            bad_blocks: match &metadata.bad_blocks {
                Some(known) => known.clone(),
                None => empty_log(&metadata.superblock),
            },
            role,
            state,
            replacement,
            by_bitmap,
        });
        leaves.push(Arc::new(Leaf { label: member.label.clone(), medium: Medium::File(file) }));
        Ok::<(), MdError>(())
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
