//! The text of `mdadm --examine` for a superblock of version 0.90, with its table of disks.
//!
//! Source: mdadm 4.2 `super0.c` (`examine_super0`), whose lines it gives byte for byte.

use std::fmt::{Result, Write as _};

use super::text_lines::{
    write_checksum, write_delta, write_new_layout, write_new_level, write_parity_layout,
};
use super::written::{Written, old};
use super::{Surroundings, words};

pub(super) fn write_text(out: &mut String, sb: &Written<'_>, around: &Surroundings<'_>) -> Result {
    write_array(out, sb, around)?;
    let gone = if has_reshape(sb) {
        write_reshape(out, sb)?;
        sb.word(old::DELTA_DISKS).cast_signed().min(0).unsigned_abs()
    } else {
        0
    };
    write_state(out, sb, around)?;
    write_parity_layout(out, sb)?;
    let chunk = sb.word(old::CHUNK) / 1024;
    match sb.level() {
        0 | 4 | 5 | 6 | 10 => writeln!(out, "     Chunk Size : {chunk}K")?,
        -1 => writeln!(out, "       Rounding : {chunk}K")?,
        _ => {}
    }
    writeln!(out)?;
    write_disks(out, sb, around, gone)
}

/// 0.91 is 0.90 during a reshape.
pub(super) fn has_reshape(sb: &Written<'_>) -> bool {
    sb.word(old::MINOR).cast_signed() > 90 && sb.u64(old::RESHAPE_POSITION * 4) != u64::MAX
}

fn write_array(out: &mut String, sb: &Written<'_>, around: &Surroundings<'_>) -> Result {
    let number = |index| sb.word(index).cast_signed();
    writeln!(out, "          Magic : {:08x}", sb.word(old::MAGIC))?;
    let [major, minor, patch] = [old::MAJOR, old::MINOR, old::PATCH].map(number);
    writeln!(out, "        Version : {major}.{minor:02}.{patch:02}")?;
    write!(out, "           UUID : {}", uuid_text(sb))?;
    if let Some(host) = around.host.filter(|host| minor >= 90 && is_local(sb, host)) {
        write!(out, " (local to host {host})")?;
    }
    writeln!(out)?;
    if sb.word(old::NOT_PERSISTENT) != 0 {
        writeln!(out, "           Eedk : not persistent")?;
    }
    writeln!(out, "  Creation Time : {}", around.time(u64::from(sb.word(old::CREATED))))?;
    let level = words::level_name(sb.level()).unwrap_or("-unknown-");
    writeln!(out, "     Raid Level : {level}")?;
    if sb.level() > 0 {
        let size = sb.word(old::SIZE);
        let component = i64::from(size) << 10;
        let human = words::human_size(component);
        writeln!(out, "  Used Dev Size : {}{human}", size.cast_signed())?;
        let array = words::array_size(sb.level(), sb.layout(), sb.raid_disks(), component);
        if let Some(bytes) = array {
            let human = words::human_size(bytes);
            writeln!(out, "     Array Size : {}{human}", (bytes >> 10).cast_unsigned())?;
        }
    }
    writeln!(out, "   Raid Devices : {}", number(old::RAID_DISKS))?;
    writeln!(out, "  Total Devices : {}", number(old::NR_DISKS))?;
    writeln!(out, "Preferred Minor : {}", number(old::MD_MINOR))?;
    writeln!(out)
}

/// As four numbers, or one before 0.90.
pub(super) fn uuid_text(sb: &Written<'_>) -> String {
    let first = sb.word(old::UUID0);
    if sb.word(old::MINOR).cast_signed() < 90 {
        return format!("{first:08x}");
    }
    let [second, third, fourth] = std::array::from_fn(|index| sb.word(old::UUID1 + index));
    format!("{first:08x}:{second:08x}:{third:08x}:{fourth:08x}")
}

/// mdadm makes the second half of the identifier from the host's name.
fn is_local(sb: &Written<'_>, host: &str) -> bool {
    let digest = sha1_smol::Sha1::from(host).digest().bytes();
    sb.array::<8>((old::UUID1 + 1) * 4)[..] == digest[..8]
}

fn write_reshape(out: &mut String, sb: &Written<'_>) -> Result {
    let position = sb.u64(old::RESHAPE_POSITION * 4);
    let human = words::human_size(words::sectors(position));
    writeln!(out, "  Reshape pos'n : {}{human}", position / 2)?;
    write_delta(out, sb.word(old::DELTA_DISKS).cast_signed(), sb.raid_disks())?;
    let level = sb.level();
    write_new_level(out, level, sb.word(old::NEW_LEVEL).cast_signed())?;
    let (layout, new_layout) = (sb.layout(), sb.word(old::NEW_LAYOUT));
    write_new_layout(out, level, layout, new_layout)?;
    if new_layout != layout && level == 10 {
        let kind = if new_layout & 0x10000 == 0 { "far" } else { "offset" };
        let (near, far) = (new_layout & 255, new_layout >> 8 & 255);
        writeln!(out, "     New Layout : near={near}, {kind}={far}")?;
    }
    let new_chunk = sb.word(old::NEW_CHUNK);
    if new_chunk != sb.word(old::CHUNK) {
        writeln!(out, "  New Chunksize : {}", new_chunk.cast_signed())?;
    }
    writeln!(out)
}

fn write_state(out: &mut String, sb: &Written<'_>, around: &Surroundings<'_>) -> Result {
    let number = |index| sb.word(index).cast_signed();
    writeln!(out, "    Update Time : {}", around.time(u64::from(sb.word(old::UPDATED))))?;
    let state = sb.word(old::STATE);
    let clean = if state & old::CLEAN == 0 { "active" } else { "clean" };
    writeln!(out, "          State : {clean}")?;
    if state & old::BITMAP_PRESENT != 0 {
        writeln!(out, "Internal Bitmap : present")?;
    }
    writeln!(out, " Active Devices : {}", number(old::ACTIVE))?;
    writeln!(out, "Working Devices : {}", number(old::WORKING))?;
    writeln!(out, " Failed Devices : {}", number(old::FAILED))?;
    writeln!(out, "  Spare Devices : {}", number(old::SPARE))?;
    write_checksum(out, sb)?;
    writeln!(out, "         Events : {}", sb.events())?;
    writeln!(out)
}

/// This disk, then all that the counts speak of, at most those that the format has room for.
fn write_disks(out: &mut String, sb: &Written<'_>, around: &Surroundings<'_>, gone: u32) -> Result {
    writeln!(out, "      Number   Major   Minor   RaidDevice State")?;
    write_disk(out, sb, around, "this", old::THIS_DISK)?;
    writeln!(out)?;
    let count = sb.raid_disks().wrapping_add(gone).wrapping_add(sb.word(old::SPARE)).cast_signed();
    for index in 0..usize::try_from(count).unwrap_or(0).min(old::DISK_COUNT) {
        let title = format!("{index:4}");
        write_disk(out, sb, around, &title, old::disk(index))?;
    }
    Ok(())
}

fn write_disk(
    out: &mut String,
    sb: &Written<'_>,
    around: &Surroundings<'_>,
    title: &str,
    at: usize,
) -> Result {
    let [number, major, minor, raid_disk] =
        std::array::from_fn(|index| sb.word(at + index).cast_signed());
    write!(out, "{title} {number:5}   {major:5}    {minor:5}    {raid_disk:5}     ")?;
    for word in disk_words(sb.word(at + 4)) {
        write!(out, " {word}")?;
    }
    let name = (around.device_name)(sb.word(at + 1), sb.word(at + 2));
    writeln!(out, "{}", name.map_or(String::new(), |name| format!("   {name}")))
}

/// The words for a disk's state.
pub(super) fn disk_words(state: u32) -> Vec<&'static str> {
    let names = [
        (old::DISK_FAULTY, "faulty"),
        (old::DISK_ACTIVE, "active"),
        (old::DISK_SYNC, "sync"),
        (old::DISK_REMOVED, "removed"),
        (old::DISK_WRITE_MOSTLY, "write-mostly"),
        (old::DISK_FAIL_FAST, "failfast"),
    ];
    let mut words: Vec<_> =
        names.into_iter().filter(|(bit, _)| state & bit != 0).map(|(_, name)| name).collect();
    if state & !(old::DISK_WRITE_MOSTLY | old::DISK_FAIL_FAST) == 0 {
        words.push("spare");
    }
    words
}
