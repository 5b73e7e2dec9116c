//! All that a member says, as values with names: `braid examine --json`.
//!
//! Invariants: names are snake_case with the unit last, sizes and offsets are in bytes, times in
//! seconds since 1970; what a version does not have is `null`, never 0. A name that is here stays
//! (the caller adds `output_version` for what cannot). The superblock may be one that
//! braid rejects: then `rejected` says why, and nothing else should be believed.

use serde::Serialize;

use super::bitmap::Header;
use super::fields::FEATURES;
use super::rules::refusals;
use super::written::{IN_SYNC, Written, old, role, v1};
use super::{Surroundings, space, text, text_old, words};
use braid_md::bitmap::BITMAP_MAGIC;
use braid_md::{Features, SECTOR, Uuid};

/// The facts about one member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Facts {
    /// `1.2`, `1.1`, `1.0` or `0.90`.
    pub metadata_version: String,
    /// True if it starts with the number of a superblock.
    pub magic_is_right: bool,
    /// The reason why braid does not trust it, if there is one.
    pub rejected: Option<String>,
    /// The programs that would refuse it.
    pub refused_by: Vec<RefusalFacts>,
    /// The member's size.
    pub device_bytes: u64,
    /// The place of the superblock according to itself (version 1).
    pub super_offset_bytes: Option<u64>,
    /// The recorded sum.
    pub checksum: String,
    /// The computed sum of the bytes.
    pub checksum_expected: String,
    /// The array's identifier.
    pub array_uuid: String,
    /// The array's name (version 1).
    pub name: Option<String>,
    /// When the array was made.
    pub created_s: u64,
    /// When the superblock was last written.
    pub updated_s: u64,
    /// The number of changes of the array's state.
    pub events: u64,
    /// mdadm's name of the level; `null` if it has none.
    pub level: Option<&'static str>,
    /// md's number of the level.
    pub level_number: i32,
    /// mdadm's name of the layout.
    pub layout: Option<String>,
    /// md's number of the layout.
    pub layout_number: u32,
    /// The chunk (linear's rounding).
    pub chunk_bytes: u64,
    /// Members that take part.
    pub raid_disks: u32,
    /// Used of each member, for levels that use the same of all.
    pub component_bytes: Option<u64>,
    /// The bytes of data in the array, as mdadm counts them; `null` for raid0 and linear.
    pub array_bytes: Option<u64>,
    /// True if the copies agree.
    pub clean: bool,
    /// The end of the part in which they agree, if it is not the whole array.
    pub resync_offset_bytes: Option<u64>,
    /// The feature bits (version 1).
    pub feature_map: Option<u32>,
    /// Their names.
    pub features: Vec<&'static str>,
    /// Those without a name.
    pub unknown_feature_bits: u32,
    /// The start of the data.
    pub data_offset_bytes: u64,
    /// The bytes of the member that can hold data (version 1).
    pub data_bytes: Option<u64>,
    /// Unused before the data (version 1).
    pub unused_before_bytes: Option<u64>,
    /// Unused behind the data (version 1).
    pub unused_after_bytes: Option<u64>,
    /// By how much the member is too short for its data.
    pub missing_bytes: Option<u64>,
    /// The member's identifier (version 1).
    pub device_uuid: Option<String>,
    /// The member's number in the list of devices.
    pub device_number: u32,
    /// `active`, `replacement`, `spare`, `faulty` or `journal`.
    pub role: &'static str,
    /// Which member, for the first two.
    pub role_number: Option<u32>,
    /// For each member's role, the number of devices that have it (version 1).
    pub members_present: Vec<u32>,
    /// Reads avoid it.
    pub write_mostly: bool,
    /// Errors on it are not retried.
    pub fail_fast: bool,
    /// Read errors that were corrected (version 1).
    pub corrected_reads: Option<u32>,
    /// Up to where it was rebuilt, if that goes on.
    pub recovery_offset_bytes: Option<u64>,
    /// The logical block size that is recorded (version 1, since Linux 6.19).
    pub logical_block_bytes: Option<u32>,
    /// The write-intent bitmap.
    pub bitmap: Option<BitmapFacts>,
    /// The partial parity log.
    pub ppl: Option<PplFacts>,
    /// The bad-block log.
    pub bad_block_log: Option<BadBlockLogFacts>,
    /// A change of shape.
    pub reshape: Option<ReshapeFacts>,
    /// The preferred number of the md device (0.90).
    pub preferred_minor: Option<u32>,
    /// The table of disks (0.90).
    pub disks: Vec<DiskFacts>,
}

/// A rule that the member breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RefusalFacts {
    /// The rule's name.
    pub rule: &'static str,
    /// The field's name in `md_p.h`.
    pub field: &'static str,
    /// The program that refuses.
    pub who: String,
    /// The reason.
    pub why: String,
}

/// A write-intent bitmap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BitmapFacts {
    /// From the superblock; `null` for 0.90, where the place is fixed.
    pub offset_bytes: Option<i64>,
    /// Its header, where one was found.
    pub version: Option<u32>,
    /// The array's events when it was written.
    pub events: Option<u64>,
    /// The events since when its bits were kept.
    pub events_cleared: Option<u64>,
    /// The bytes that a bit stands for.
    pub chunk_bytes: Option<u32>,
    /// Bits, as far as they were read.
    pub bits: Option<u64>,
    /// Those that are set.
    pub dirty_bits: Option<u64>,
}

/// A partial parity log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PplFacts {
    /// From the superblock.
    pub offset_bytes: i64,
    /// Its size.
    pub size_bytes: u64,
}

/// A bad-block log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BadBlockLogFacts {
    /// From the superblock.
    pub offset_bytes: i64,
    /// Its size.
    pub size_bytes: u64,
    /// The number of entries that fit.
    pub entries: u32,
    /// Entries count in 512 bytes, shifted left by this.
    pub shift: u8,
    /// True if there are bad blocks.
    pub in_use: bool,
}

/// A change of shape that was not finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReshapeFacts {
    /// The position that it has reached, in the array.
    pub position_bytes: u64,
    /// Members that come (or go).
    pub delta_disks: i32,
    /// md's number of the new level.
    pub new_level_number: i32,
    /// md's number of the new layout.
    pub new_layout_number: u32,
    /// The new chunk.
    pub new_chunk_bytes: u64,
    /// By how much the data move on this member.
    pub new_offset_bytes: i64,
}

/// An entry of 0.90's table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DiskFacts {
    /// Its number.
    pub number: u32,
    /// Major number of the block device when the array last ran.
    pub major: u32,
    /// Minor number of the block device when the array last ran.
    pub minor: u32,
    /// The role of the disk.
    pub raid_disk: u32,
    /// The state of the disk.
    pub state: Vec<&'static str>,
}

/// The facts of a superblock.
#[must_use]
pub fn facts(sb: &Written<'_>, around: &Surroundings<'_>) -> Facts {
    let mut facts = common(sb, around);
    if sb.is_old() {
        add_old(&mut facts, sb, around);
    } else {
        add_new(&mut facts, sb, around);
    }
    facts
}

fn bytes(sectors: u64) -> u64 {
    sectors.saturating_mul(SECTOR)
}

fn signed_bytes(sectors: impl Into<i64>) -> i64 {
    sectors.into() * SECTOR.cast_signed()
}

/// The facts that both formats have, with the same meaning.
fn common(sb: &Written<'_>, around: &Surroundings<'_>) -> Facts {
    let (level, layout) = (sb.level(), sb.layout());
    let component = if sb.is_old() {
        i64::from(sb.word(old::SIZE)) * 1024
    } else {
        words::sectors(sb.u64(v1::SIZE))
    };
    let array = words::array_size(level, layout, sb.raid_disks(), component);
    let refused_by = refusals(sb, around).into_iter().map(|refusal| RefusalFacts {
        rule: refusal.rule,
        field: refusal.field,
        who: refusal.who.to_string(),
        why: refusal.why,
    });
    Facts {
        metadata_version: sb.version().to_string(),
        magic_is_right: text::has_magic(sb),
        rejected: sb.rejection(around).map(|rejection| rejection.to_string()),
        refused_by: refused_by.collect(),
        device_bytes: around.device_size,
        checksum: format!("{:08x}", sb.checksum()),
        checksum_expected: format!("{:08x}", sb.expected_checksum()),
        events: sb.events(),
        level: words::level_name(level),
        level_number: level,
        layout: layout_text(sb),
        layout_number: layout,
        chunk_bytes: sb.chunk(),
        raid_disks: sb.raid_disks(),
        component_bytes: (level > 0).then_some(component).and_then(|size| size.try_into().ok()),
        array_bytes: array.and_then(|size| size.try_into().ok()),
        ..Facts::default()
    }
}

/// The layout in words, where the level has one and it is recorded.
pub(super) fn layout_text(sb: &Written<'_>) -> Option<String> {
    match sb.level() {
        0 if !sb.features().contains(Features::RAID0_LAYOUT) => None,
        10 => Some(words::raid10_layout(sb.layout()).trim_start().to_owned()),
        level => words::layout_name(level, sb.layout()).map(str::to_owned),
    }
}

fn add_new(facts: &mut Facts, sb: &Written<'_>, around: &Surroundings<'_>) {
    let features = sb.features();
    let space = space::unused(sb, around);
    let missing = space.and_then(space::Space::missing);
    let resync = sb.u64(v1::RESYNC_OFFSET);
    let flags = sb.u8(v1::DEV_FLAGS);
    let named = FEATURES.iter().filter(|feature| features.contains(feature.bit));
    facts.super_offset_bytes = Some(bytes(sb.u64(v1::SUPER_OFFSET)));
    facts.array_uuid = Uuid(sb.array(v1::SET_UUID)).to_string();
    facts.name = Some(words::printable(sb.slice(v1::SET_NAME, 32)));
    facts.created_s = sb.u64(v1::CREATED) & v1::SECONDS;
    facts.updated_s = sb.u64(v1::UPDATED) & v1::SECONDS;
    facts.clean = resync == IN_SYNC;
    facts.resync_offset_bytes = (resync != IN_SYNC).then(|| bytes(resync));
    facts.feature_map = Some(features.0);
    facts.features = named.map(|feature| feature.name).collect();
    facts.unknown_feature_bits = features.unknown().0;
    facts.data_offset_bytes = bytes(sb.u64(v1::DATA_OFFSET));
    facts.data_bytes = Some(bytes(sb.u64(v1::DATA_SIZE)));
    facts.unused_before_bytes = space.map(|space| bytes(space.before));
    facts.unused_after_bytes = space.filter(|_| missing.is_none()).map(|space| bytes(space.after));
    // mdadm says one sector less.
    facts.missing_bytes = missing.map(|sectors| bytes(sectors + 1));
    facts.device_uuid = Some(Uuid(sb.array(v1::DEVICE_UUID)).to_string());
    facts.device_number = sb.u32(v1::DEV_NUMBER);
    (facts.role, facts.role_number) = role_facts(sb);
    facts.members_present = members_present(sb);
    facts.write_mostly = flags & v1::WRITE_MOSTLY != 0;
    facts.fail_fast = flags & v1::FAIL_FAST != 0;
    facts.corrected_reads = Some(sb.u32(v1::CORRECTED_READS));
    facts.recovery_offset_bytes =
        features.contains(Features::RECOVERY_OFFSET).then(|| bytes(sb.u64(v1::RECOVERY_OFFSET)));
    facts.logical_block_bytes = Some(sb.u32(v1::LOGICAL_BLOCK_SIZE)).filter(|size| *size != 0);
    if features.contains(Features::BITMAP) {
        let offset = signed_bytes(sb.i32(v1::BITMAP_OFFSET));
        facts.bitmap = Some(bitmap_facts(Some(offset), around));
    } else if words::has_ppl(features) {
        facts.ppl = Some(PplFacts {
            offset_bytes: signed_bytes(sb.u16(v1::PPL_OFFSET).cast_signed()),
            size_bytes: bytes(sb.u16(v1::PPL_SIZE).into()),
        });
    }
    facts.bad_block_log = bad_block_log(sb);
    facts.reshape = features.contains(Features::RESHAPE).then(|| ReshapeFacts {
        position_bytes: bytes(sb.u64(v1::RESHAPE_POSITION)),
        delta_disks: sb.i32(v1::DELTA_DISKS),
        new_level_number: sb.i32(v1::NEW_LEVEL),
        new_layout_number: sb.u32(v1::NEW_LAYOUT),
        new_chunk_bytes: bytes(sb.u32(v1::NEW_CHUNK).into()),
        new_offset_bytes: signed_bytes(sb.i32(v1::NEW_OFFSET)),
    });
}

fn role_facts(sb: &Written<'_>) -> (&'static str, Option<u32>) {
    match sb.role() {
        role::SPARE => ("spare", None),
        role::FAULTY => ("faulty", None),
        role::JOURNAL => ("journal", None),
        number if sb.features().contains(Features::REPLACEMENT) => {
            ("replacement", Some(number.into()))
        }
        number => ("active", Some(number.into())),
    }
}

/// A count for each member, as far as numbers of roles go.
fn members_present(sb: &Written<'_>) -> Vec<u32> {
    let members = sb.raid_disks().min(u32::from(role::MAX)) as usize;
    let mut counts = vec![0; members];
    for role in sb.roles() {
        if let Some(count) = counts.get_mut(usize::from(role)) {
            *count += 1;
        }
    }
    counts
}

fn bad_block_log(sb: &Written<'_>) -> Option<BadBlockLogFacts> {
    let (size, offset) = (sb.u16(v1::BAD_SIZE), sb.i32(v1::BAD_OFFSET));
    (size != 0 && offset != 0).then(|| BadBlockLogFacts {
        offset_bytes: signed_bytes(offset),
        size_bytes: bytes(size.into()),
        entries: u32::from(size) * 64,
        shift: sb.u8(v1::BAD_SHIFT),
        in_use: sb.features().contains(Features::BAD_BLOCKS),
    })
}

fn bitmap_facts(offset_bytes: Option<i64>, around: &Surroundings<'_>) -> BitmapFacts {
    let header = around.bitmap.map(Header::new).filter(|header| header.magic() == BITMAP_MAGIC);
    let count = header.map(Header::count);
    BitmapFacts {
        offset_bytes,
        version: header.map(Header::version),
        events: header.map(Header::events),
        events_cleared: header.map(Header::events_cleared),
        chunk_bytes: header.map(Header::chunk),
        bits: count.map(|(bits, _)| bits),
        dirty_bits: count.map(|(_, set)| set),
    }
}

fn add_old(facts: &mut Facts, sb: &Written<'_>, around: &Surroundings<'_>) {
    let state = sb.word(old::STATE);
    let own = old::THIS_DISK;
    let own_state = sb.word(own + 4);
    facts.array_uuid = text_old::uuid_text(sb);
    facts.created_s = sb.word(old::CREATED).into();
    facts.updated_s = sb.word(old::UPDATED).into();
    facts.clean = state & old::CLEAN != 0;
    facts.resync_offset_bytes =
        (!facts.clean).then(|| bytes(sb.word(old::RECOVERY_CHECKPOINT).into()));
    facts.device_number = sb.word(own);
    let active = own_state & old::DISK_ACTIVE != 0;
    facts.role = match own_state {
        state if state & old::DISK_FAULTY != 0 => "faulty",
        _ if active => "active",
        _ => "spare",
    };
    facts.role_number = (facts.role == "active").then(|| sb.word(own + 3));
    facts.write_mostly = own_state & old::DISK_WRITE_MOSTLY != 0;
    facts.fail_fast = own_state & old::DISK_FAIL_FAST != 0;
    if state & old::BITMAP_PRESENT != 0 {
        facts.bitmap = Some(bitmap_facts(None, around));
    }
    facts.reshape = text_old::has_reshape(sb).then(|| ReshapeFacts {
        position_bytes: bytes(sb.u64(old::RESHAPE_POSITION * 4)),
        delta_disks: sb.word(old::DELTA_DISKS).cast_signed(),
        new_level_number: sb.word(old::NEW_LEVEL).cast_signed(),
        new_layout_number: sb.word(old::NEW_LAYOUT),
        new_chunk_bytes: sb.word(old::NEW_CHUNK).into(),
        new_offset_bytes: 0,
    });
    facts.preferred_minor = Some(sb.word(old::MD_MINOR));
    let count = (sb.word(old::NR_DISKS) as usize).min(old::DISK_COUNT);
    facts.disks = (0..count).map(|index| disk_facts(sb, old::disk(index))).collect();
}

fn disk_facts(sb: &Written<'_>, at: usize) -> DiskFacts {
    DiskFacts {
        number: sb.word(at),
        major: sb.word(at + 1),
        minor: sb.word(at + 2),
        raid_disk: sb.word(at + 3),
        state: text_old::disk_words(sb.word(at + 4)),
    }
}
