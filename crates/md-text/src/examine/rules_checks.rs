//! The checks behind the rules: each gives a sentence with the values if its rule is broken.

use super::bitmap::Header;
use super::written::{Written, old, role, v1};
use super::{Surroundings, words};
use braid_md::bitmap::BITMAP_MAGIC;
use braid_md::superblock::MAGIC;
use braid_md::{Features, SECTOR, Version};

/// The finding of a check.
type Found = Option<String>;

/// The least chunk of the levels that work by pages.
const PAGE: u64 = 4096;

pub(super) fn magic(sb: &Written<'_>, _: &Surroundings<'_>) -> Found {
    let found = sb.u32(0);
    (found != MAGIC)
        .then(|| format!("it starts with {found:08x}, and every superblock with {MAGIC:08x}"))
}

pub(super) fn byte_order(sb: &Written<'_>, _: &Surroundings<'_>) -> Found {
    sb.is_big_endian().then(|| {
        "a big-endian machine wrote it, and version 0.90 is read in the machine's own order \
         (mdadm --assemble --update=byteorder turns it round)"
            .to_owned()
    })
}

pub(super) fn major_version(sb: &Written<'_>, _: &Surroundings<'_>) -> Found {
    let (found, right) = (sb.u32(v1::MAJOR), u32::from(sb.version() != Version::V0_90));
    (found != right).then(|| format!("the major version is {found}, and here it must be {right}"))
}

pub(super) fn minor_version(sb: &Written<'_>, _: &Surroundings<'_>) -> Found {
    let found = sb.word(old::MINOR);
    (!matches!(found, 90 | 91))
        .then(|| format!("the version is 0.{found}: there are 0.90 and 0.91"))
}

pub(super) fn max_dev(sb: &Written<'_>, _: &Surroundings<'_>) -> Found {
    let found = sb.u32(v1::MAX_DEV);
    (found > 1920)
        .then(|| format!("{found} roles do not fit into 4096 bytes: there is room for 1920"))
}

pub(super) fn super_offset(sb: &Written<'_>, around: &Surroundings<'_>) -> Found {
    let place = sb.version().superblock_offset(around.device_size)? / SECTOR;
    let found = sb.u64(v1::SUPER_OFFSET);
    (found != place).then(|| {
        format!(
            "it says that it lies at sector {found}, and its place on this member is sector \
             {place}: it was copied, or the member's size changed"
        )
    })
}

pub(super) fn checksum(sb: &Written<'_>, _: &Surroundings<'_>) -> Found {
    let (found, right) = (sb.checksum(), sb.expected_checksum());
    (found != right)
        .then(|| format!("the checksum is {found:08x}, and the bytes add up to {right:08x}"))
}

pub(super) fn unknown_features(sb: &Written<'_>, _: &Surroundings<'_>) -> Found {
    let unknown = sb.features().unknown().0;
    (unknown != 0).then(|| {
        format!("feature bits {unknown:#x} are unknown up to Linux 6.18; braid reads it and will not write it")
    })
}

pub(super) fn padding(sb: &Written<'_>, offset: usize, length: usize) -> Found {
    let used = sb.slice(offset, length).iter().filter(|byte| **byte != 0).count();
    (used != 0).then(|| {
        format!("{used} of {length} reserved bytes hold something: a later feature, or damage")
    })
}

pub(super) fn logical_block_size(sb: &Written<'_>, _: &Surroundings<'_>) -> Found {
    let size = sb.u32(v1::LOGICAL_BLOCK_SIZE);
    (size != 0).then(|| {
        format!(
            "a logical block size of {size} bytes is recorded at byte 224, which was padding and \
             had to be zero"
        )
    })
}

pub(super) fn data_size(sb: &Written<'_>, _: &Surroundings<'_>) -> Found {
    let sectors = sb.u64(v1::DATA_SIZE);
    (sectors < 10).then(|| format!("{sectors} sectors for data are too few: there must be 10"))
}

pub(super) fn device_too_small(sb: &Written<'_>, around: &Surroundings<'_>) -> Found {
    let (offset, size) = (sb.u64(v1::DATA_OFFSET), sb.u64(v1::DATA_SIZE));
    let device = around.device_size / SECTOR;
    let (room, until) = match sb.version() {
        Version::V1_0 => (sb.u64(v1::SUPER_OFFSET), "before the superblock"),
        _ => (device.saturating_sub(offset), "behind the data's offset"),
    };
    (size > room).then(|| {
        format!(
            "{size} sectors of data are recorded, and {until} the member has {room}: it was cut off"
        )
    })
}

pub(super) fn data_offset(sb: &Written<'_>, _: &Surroundings<'_>) -> Found {
    if sb.version() == Version::V1_0 {
        return None;
    }
    let bytes = v1::ROLES as u64 + 2 * u64::from(sb.u32(v1::MAX_DEV));
    let end = sb.u64(v1::SUPER_OFFSET).saturating_add(bytes.div_ceil(SECTOR));
    let found = sb.u64(v1::DATA_OFFSET);
    (found < end).then(|| {
        format!(
            "the data start at sector {found}, inside the superblock, which ends at sector {end}"
        )
    })
}

pub(super) fn data_alignment(sb: &Written<'_>, _: &Surroundings<'_>) -> Found {
    let found = sb.u64(v1::DATA_OFFSET);
    (!found.is_multiple_of(8)).then(|| {
        format!("the data start at sector {found}, which a disk with sectors of 4096 bytes cannot address")
    })
}

pub(super) fn level(sb: &Written<'_>, _: &Surroundings<'_>) -> Found {
    let found = sb.level();
    let name = words::level_name(found).unwrap_or("unknown");
    braid_md::Level::from_number(found).is_none().then(|| {
        format!("the level is {found} ({name}): braid and today's kernels have linear, 0, 1, 4, 5, 6, 10")
    })
}

pub(super) fn linear(sb: &Written<'_>, _: &Surroundings<'_>) -> Found {
    (sb.level() == -1).then(|| "linear was taken out in 6.8, and came back in 6.14".to_owned())
}

pub(super) fn raid0_layout(sb: &Written<'_>, _: &Surroundings<'_>) -> Found {
    let recorded = sb.features().contains(Features::RAID0_LAYOUT) && matches!(sb.layout(), 1 | 2);
    (sb.level() == 0 && !recorded).then(|| {
        "the layout is not recorded: if the members' sizes differ, the kernel wants to be told by \
         raid0.default_layout=1 (made before Linux 3.14) or 2"
            .to_owned()
    })
}

pub(super) fn raid0_layout_bit(sb: &Written<'_>, _: &Surroundings<'_>) -> Found {
    (sb.features().contains(Features::RAID0_LAYOUT) && sb.level() != 0)
        .then(|| format!("feature bit 0x1000 is raid0's, and the level is {}", sb.level()))
}

pub(super) fn layout(sb: &Written<'_>, _: &Surroundings<'_>) -> Found {
    let (level, layout, disks) = (sb.level(), sb.layout(), sb.raid_disks());
    let right = match level {
        5 | 6 => words::layout_name(level, layout).is_some(),
        10 => {
            let copies = (layout & 255) * (layout >> 8 & 255);
            layout >> 19 == 0 && copies >= 2 && copies <= disks
        }
        _ => true,
    };
    (!right).then(|| format!("raid{level} of {disks} members has no layout {layout:#x}"))
}

pub(super) fn chunk(sb: &Written<'_>, _: &Surroundings<'_>) -> Found {
    let (level, chunk) = (sb.level(), sb.chunk());
    let wrong = match level {
        0 => chunk == 0,
        4 | 5 | 6 | 10 => chunk < PAGE || !chunk.is_power_of_two(),
        _ => false,
    };
    wrong.then(|| format!("raid{level} cannot have a chunk of {chunk} bytes"))
}

pub(super) fn raid_disks(sb: &Written<'_>, _: &Surroundings<'_>) -> Found {
    let disks = sb.raid_disks();
    let least = if sb.level() == 6 { 4 } else { 1 };
    let most = if sb.version() == Version::V0_90 { old::DISK_COUNT as u32 } else { 1920 };
    (!(least..=most).contains(&disks))
        .then(|| format!("the array has {disks} members: there must be {least} to {most}"))
}

pub(super) fn ppl_alone(sb: &Written<'_>, _: &Surroundings<'_>) -> Found {
    let features = sb.features();
    if !words::has_ppl(features) {
        return None;
    }
    let both = Features::PPL.union(Features::MULTIPLE_PPLS);
    let other = if features.contains(Features::BITMAP) {
        "a bitmap"
    } else if features.contains(Features::JOURNAL) {
        "a journal"
    } else if features.contains(both) {
        "both kinds of it"
    } else {
        return None;
    };
    Some(format!("there cannot be a partial parity log and {other}"))
}

pub(super) fn journal_role(sb: &Written<'_>, _: &Surroundings<'_>) -> Found {
    (sb.role() == role::JOURNAL && !sb.features().contains(Features::JOURNAL))
        .then(|| "this is a journal, and the array has none by its feature map".to_owned())
}

pub(super) fn bad_block_log(sb: &Written<'_>, _: &Surroundings<'_>) -> Found {
    let (size, offset) = (sb.u16(v1::BAD_SIZE), sb.i32(v1::BAD_OFFSET));
    (sb.features().contains(Features::BAD_BLOCKS) && (size > 8 || offset == 0)).then(|| {
        format!("bad blocks are recorded {offset} sectors from here in {size}: at most 8 are read")
    })
}

/// The header at the bitmap's place, if there has to be one.
fn bitmap_header<'a>(sb: &Written<'_>, around: &Surroundings<'a>) -> Option<Header<'a>> {
    let there = sb.features().contains(Features::BITMAP);
    around.bitmap.filter(|_| there).map(Header::new)
}

pub(super) fn bitmap(sb: &Written<'_>, around: &Surroundings<'_>) -> Found {
    let header = bitmap_header(sb, around)?;
    let (magic, version, chunk) = (header.magic(), header.version(), header.chunk());
    if magic != BITMAP_MAGIC {
        return Some(format!(
            "there is no bitmap at its place: {magic:08x} instead of {BITMAP_MAGIC:08x}"
        ));
    }
    if !(3..=6).contains(&version) {
        return Some(format!("the bitmap's version is {version}: known are 3 to 6"));
    }
    (chunk < 512 || !chunk.is_power_of_two())
        .then(|| format!("a bit of the bitmap cannot stand for {chunk} bytes"))
}

pub(super) fn clustered(sb: &Written<'_>, around: &Surroundings<'_>) -> Found {
    let header = bitmap_header(sb, around)?;
    (header.magic() == BITMAP_MAGIC && header.version() == 5).then(|| {
        "the bitmap is a cluster's (version 5): only a kernel with md-cluster on a node of the \
         cluster starts the array"
            .to_owned()
    })
}

pub(super) fn lockless(sb: &Written<'_>, around: &Surroundings<'_>) -> Found {
    let header = bitmap_header(sb, around)?;
    (header.magic() == BITMAP_MAGIC && header.version() == 6)
        .then(|| "the bitmap is a lockless one (version 6)".to_owned())
}

/// The bytes that a member of version 0.90 can hold on this device.
fn room_old(around: &Surroundings<'_>) -> u64 {
    Version::V0_90.superblock_offset(around.device_size).unwrap_or(0)
}

pub(super) fn device_too_small_old(sb: &Written<'_>, around: &Surroundings<'_>) -> Found {
    let (size, room) = (u64::from(sb.word(old::SIZE)) * 1024, room_old(around));
    (sb.level() >= 1 && size > room).then(|| {
        format!("{size} bytes of each member are used, and this one has {room}: it was cut off")
    })
}

pub(super) fn above_2_tib(sb: &Written<'_>, _: &Surroundings<'_>) -> Found {
    let size = u64::from(sb.word(old::SIZE)) * 1024;
    (sb.level() >= 1 && size > 2 << 40).then(|| {
        format!("{size} bytes of each member are used, and only 2 TiB were before 4 TiB became the limit")
    })
}
