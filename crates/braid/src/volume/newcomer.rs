//! A device that is to become a member of an array at work: whether it may, as what, and what has to
//! lie on it before it is counted on.
//!
//! ```text
//!   control thread                           shard
//!   probe, lock, read what it carries ──▶    came it back? ──▶ its superblock, or a new one
//!   room for the log ──▶ allocated           older superblocks away, empty bad-block log ──▶ flush
//!                                            ──▶ the engine takes it in and writes its superblock
//! ```
//!
//! Invariants
//! * A superblock names nothing that was not written before: the log of bad blocks above all.
//! * A member that went on alone is not taken in: what it has alone would be lost.

use std::path::{Path, PathBuf};

use braid_block::{Flags, Io};
use braid_device::File;
use braid_engine::Dev;
use braid_engine::redundant::{MemberState, NewMember, Redundant, Status};
use braid_md::assembly::{Reason, came_back};
use braid_md::superblock::SUPERBLOCK_BYTES;
use braid_md::{Features, Role, Superblock, Version};
use braid_mem::Pool;
use braid_probe::{Policy, check_member};
use braid_uring::Handle;

use super::md::MdArray;
use super::media::{Leaf, Medium, open_file};
use super::options::OpenOptions;
use super::shard::Local;
use super::write_hole::LogPlace;
use crate::control::OrderAnswer;
use crate::failure::shell_word;
use crate::metadata::{Image, Metadata, allocate, empty_log, random_uuid};

/// A device that is to become a member.
pub(super) struct Newcomer {
    file: File,
    pub(super) path: PathBuf,
    /// What it carries of this array already.
    known: Option<Metadata>,
    /// Where superblocks of any version lie on it.
    superblocks: Vec<u64>,
    size: u64,
}

/// What the engine is given, and what has to be done before.
pub(super) struct Admitted {
    pub(super) new: NewMember,
    /// Why it does not come back as the member that it was, if it was one.
    pub(super) why_anew: Option<String>,
    prepared: Prepared,
}

/// Bytes that have to lie on a member before its superblock says that it is one.
struct Prepared {
    dev: Dev,
    pool: Pool,
    patches: Vec<(u64, Vec<u8>)>,
}

impl Newcomer {
    pub(super) fn open(array: &MdArray, path: &Path, force: bool) -> Result<Newcomer, OrderAnswer> {
        // Nobody lets go of it while it is waited for.
        if array.leaves().iter().any(|leaf| leaf.label == path.display().to_string()) {
            return Err(OrderAnswer::refused(format!(
                "{} is in use: it is a member already\n  next: `braid member remove` lets go of one \
                 that failed",
                path.display()
            )));
        }
        let known = Metadata::read(path)
            .ok()
            .filter(|known| known.superblock.array_uuid == array.superblock.array_uuid);
        let forced = [path.to_owned()];
        let policy = Policy {
            force: if force || known.is_some() { &forced } else { &[] },
            read_only: false,
            min_bytes: 4096,
        };
        let facts = check_member(path, &policy)
            .map_err(|refusal| OrderAnswer::refused(refusal.to_string()))?;
        let options = OpenOptions::default();
        let file = open_file(path, &options, 0, None).map_err(|error| {
            let path = path.display();
            match error.kind() {
                std::io::ErrorKind::WouldBlock => OrderAnswer::refused(format!(
                    "{path} is in use: it is a member already, or another program has it locked\n  \
                     next: `braid member remove` lets go of one that failed"
                )),
                _ => OrderAnswer::failed(format!("cannot open {path}: {error}")),
            }
        })?;
        let found = Image::open(path).map(|image| image.found);
        let superblocks = found.map_err(|failure| OrderAnswer::failed(failure.text()))?;
        let newcomer = Newcomer {
            file,
            path: path.to_owned(),
            known,
            superblocks: superblocks.iter().map(|found| found.offset).collect(),
            size: facts.size,
        };
        newcomer.make_room(array)?;
        Ok(newcomer)
    }

    /// A log that is written while the array is used must not be the first to find its file system
    /// full.
    fn make_room(&self, array: &MdArray) -> Result<(), OrderAnswer> {
        let refused =
            |why| OrderAnswer::refused(format!("{} is not taken: {why}", self.path.display()));
        let superblock = superblock_for(&array.superblock, self.size, 0).map_err(refused)?;
        let areas = array.log.areas(&superblock);
        allocate(&self.path, &areas).map_err(|failure| OrderAnswer::failed(failure.text()))
    }

    pub(super) fn leaf(&self) -> Leaf {
        Leaf { label: self.path.display().to_string(), medium: Medium::File(self.file.clone()) }
    }

    /// As the engine takes it in: `anew` whatever it was before. `array` is its superblock, `log`
    /// the log that it needs room for.
    pub(super) fn admit(
        &self,
        array: &Superblock,
        log: LogPlace,
        anew: bool,
        engine: &Redundant,
        handle: &Handle,
        local: &Local,
    ) -> Result<Admitted, String> {
        let leaf = self.leaf();
        let dev = leaf.device(handle, &local.pool).map_err(|error| error.to_string())?;
        let again = match &self.known {
            Some(known) => self.come_back(known, array, engine)?,
            None => Err("it was no member of this array".to_owned()),
        };
        let again = if anew { Err("it starts anew".to_owned()) } else { again };
        let (superblock, role, why_anew) = match again {
            Ok((superblock, role)) => (superblock, Some(role), None),
            Err(why) => (superblock_for(array, self.size, engine.free_number())?, None, Some(why)),
        };
        log.check_room(&superblock)?;
        let known = self.known.as_ref().filter(|_| role.is_some());
        let bad_blocks = match known.and_then(|known| known.bad_blocks.clone()) {
            Some(known) => known,
            None => empty_log(&superblock),
        };
        let mut patches = Vec::new();
        if role.is_none() {
            let own = superblock.super_offset;
            let older = self.superblocks.iter().filter(|offset| **offset != own);
            patches.extend(older.map(|offset| (*offset, vec![0; SUPERBLOCK_BYTES])));
            patches.extend(area_of_log(&superblock).map(|at| (at, bad_blocks.encode())));
        }
        let prepared = Prepared { dev: dev.clone(), pool: local.pool.clone(), patches };
        let new = NewMember {
            label: leaf.label,
            dev,
            data_offset: superblock.data_offset,
            number: superblock.device_number,
            role,
            replacement: false,
            state: role.map_or(MemberState::Spare, |_| MemberState::Recovering(0)),
            by_bitmap: role.is_some(),
            write_mostly: superblock.write_mostly,
            superblock: Some(superblock),
            bad_blocks,
        };
        Ok(Admitted { new, why_anew, prepared })
    }

    /// The role that it had, if it lacks nothing but what the array's bitmap says; else why it has
    /// to be filled as a whole.
    ///
    /// # Errors
    /// It went on alone.
    #[allow(clippy::type_complexity, reason = "either it comes back, or it says why not")]
    fn come_back(
        &self,
        known: &Metadata,
        array: &Superblock,
        engine: &Redundant,
    ) -> Result<Result<(Superblock, u16), String>, String> {
        let superblock = &known.superblock;
        let status = engine.status();
        match came_back(&at_work(array, &status), superblock) {
            Ok(()) => {}
            Err(Reason::Diverged { events, .. }) => return Err(self.went_on_alone(events, &status)),
            Err(shape) => return Ok(Err(format!("{shape}: the array has changed since"))),
        }
        let Role::Active(role) = superblock.role() else {
            return Ok(Err("it had no role".to_owned()));
        };
        let number = superblock.device_number;
        let has_it = |one: &&braid_engine::redundant::MemberStatus| {
            one.role == Some(role) && one.state != MemberState::Faulty && !one.replacement
        };
        if let Some(holder) = status.members.iter().find(has_it) {
            return Ok(Err(format!("its role {role} is taken by {}", holder.label)));
        }
        if let Some(holder) = status.members.iter().find(|one| one.number == number) {
            return Ok(Err(format!("its device number {number} is that of {}", holder.label)));
        }
        if usize::from(role) >= status.raid_disks {
            return Ok(Err(format!("the array has no role {role} any more")));
        }
        if superblock.recovery_offset.is_some() || superblock.is_replacement() {
            return Ok(Err("it was being filled when it left".to_owned()));
        }
        Ok(match engine.events_cleared() {
            None => Err("the array has no write-intent bitmap, so that nothing says what was \
                         written meanwhile"
                .to_owned()),
            Some(cleared) if superblock.events < cleared => Err(format!(
                "the bitmap knows what was written since event {cleared}, and it left at {}",
                superblock.events
            )),
            Some(_) => Ok((superblock.clone(), role)),
        })
    }

    fn went_on_alone(&self, events: u64, status: &Status) -> String {
        let path = shell_word(&self.path);
        format!(
            "it went on without the members that are here, and they without it: it counts {events} \
             events, they {}, and neither has what the other was written\n  next: to look at what it \
             has alone: braid assemble {path} --read-only --as NAME; to lose that: braid wipe \
             {path}, then braid member add",
            status.events
        )
    }
}

impl Admitted {
    /// Writes what has to be there before, durably.
    ///
    /// # Errors
    /// The device does not take it.
    pub(super) async fn prepare(self) -> Result<(NewMember, Option<String>), String> {
        let Admitted { new, why_anew, prepared: Prepared { dev, pool, patches } } = self;
        let is_prepared = patches.is_empty();
        for (offset, bytes) in patches {
            let mut buf = pool.get_wait(bytes.len()).await;
            buf.copy_from_slice(&bytes);
            let written = dev.start(Io::write(offset, buf, Flags::NONE)).await;
            written.result.map_err(|error| {
                let error = std::io::Error::from(error);
                format!("cannot write to it at {offset}: {error}")
            })?;
        }
        if !is_prepared {
            let flushed = dev.start(Io::flush()).await.result.map_err(std::io::Error::from);
            flushed.map_err(|error| format!("cannot make durable what it needs: {error}"))?;
        }
        Ok((new, why_anew))
    }
}

/// The array's superblock as it would be written now, as far as it says who takes part.
fn at_work(array: &Superblock, status: &Status) -> Superblock {
    let numbers = status.members.iter().map(|one| one.number as usize + 1);
    let count = numbers.max().unwrap_or(0).max(array.roles.len());
    let mut roles = vec![Role::Spare; count];
    for one in status.members.iter().filter(|one| one.state == MemberState::InSync) {
        if let Some(role) = one.role {
            roles[one.number as usize] = Role::Active(role);
        }
    }
    let (events, raid_disks) = (status.events, status.raid_disks as u32);
    Superblock { events, raid_disks, roles, ..array.clone() }
}

/// Where a member's bad-block log lies, in bytes from its start.
fn area_of_log(superblock: &Superblock) -> Option<u64> {
    superblock.super_offset.checked_add_signed(superblock.bad_block_log?.offset)
}

/// A superblock for a new member of `size` bytes, laid out as those of the other members are. What
/// says something about the contents of one of them does not hold for it.
fn superblock_for(array: &Superblock, size: u64, number: u32) -> Result<Superblock, String> {
    let version = array.version;
    let too_small = || format!("{size} bytes are too few for a superblock and data");
    let super_offset = version.superblock_offset(size).ok_or_else(too_small)?;
    let end = match version {
        // What lies beside the superblock lies in front of it, or behind.
        Version::V0_90 | Version::V1_0 => {
            let areas = [
                array.bitmap_offset,
                array.ppl.map(|(offset, _)| offset),
                array.bad_block_log.map(|log| log.offset),
            ];
            let front = areas.into_iter().flatten().map(|offset| offset.min(0)).min().unwrap_or(0);
            super_offset.checked_add_signed(front).ok_or_else(too_small)?
        }
        Version::V1_1 | Version::V1_2 => size / 512 * 512,
    };
    let data_size =
        end.checked_sub(array.data_offset).filter(|room| *room > 0).ok_or_else(too_small)?;
    if data_size < array.component_size {
        return Err(format!(
            "it has room for {data_size} bytes of data, {} are needed",
            array.component_size
        ));
    }
    let device_uuid = random_uuid().map_err(|failure| failure.text())?;
    let of_one = [
        Features::BAD_BLOCKS,
        Features::RECOVERY_OFFSET,
        Features::RECOVERY_BITMAP,
        Features::REPLACEMENT,
    ];
    Ok(Superblock {
        super_offset,
        data_size,
        device_uuid,
        device_number: number,
        corrected_reads: 0,
        write_mostly: false,
        fail_fast: false,
        recovery_offset: None,
        features: of_one.into_iter().fold(array.features, Features::without),
        raw: Vec::new(),
        ..array.clone()
    })
}
