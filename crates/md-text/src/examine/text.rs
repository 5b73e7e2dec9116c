//! The text of `mdadm --examine` for a superblock of version 1; for one of 0.90 it calls the other module.
//!
//! Source: mdadm 4.2 `super1.c` (`examine_super1`), whose lines this module gives byte for byte, with two
//! exceptions. A member that is too short for its data is reported as in mdadm 4.3 (4.2 prints the difference
//! as a huge number); and the feature map is the one on disk, whereas mdadm leaves out the bitmap's bit if
//! there is no bitmap.

use std::fmt::{Result, Write as _};

use super::text_lines::{
    write_checksum, write_delta, write_new_layout, write_new_level, write_parity_layout,
};
use super::written::{IN_SYNC, Written, role, v1};
use super::{Surroundings, bitmap, space, text_old, words};
use braid_md::superblock::MAGIC;
use braid_md::{Features, Uuid};

/// The text that mdadm prints for this superblock, without the line that names the member.
#[must_use]
pub fn text(sb: &Written<'_>, around: &Surroundings<'_>) -> String {
    let mut out = String::new();
    let written = if sb.is_old() {
        text_old::write_text(&mut out, sb, around)
    } else {
        write_text(&mut out, sb, around)
    };
    written.expect("a string takes everything");
    out
}

fn write_text(out: &mut String, sb: &Written<'_>, around: &Surroundings<'_>) -> Result {
    write_array(out, sb, around)?;
    write_sizes(out, sb)?;
    write_places(out, sb, around)?;
    writeln!(out, "    Device UUID : {}", Uuid(sb.array(v1::DEVICE_UUID)))?;
    writeln!(out)?;
    write_log(out, sb)?;
    let gone = if sb.features().contains(Features::RESHAPE) {
        write_reshape(out, sb)?;
        sb.i32(v1::DELTA_DISKS).min(0).unsigned_abs()
    } else {
        0
    };
    write_state(out, sb, around)?;
    write_layout(out, sb)?;
    writeln!(out, "   Device Role : {}", role_text(sb))?;
    write_array_state(out, sb, sb.raid_disks().saturating_add(gone))
}

fn write_array(out: &mut String, sb: &Written<'_>, around: &Surroundings<'_>) -> Result {
    writeln!(out, "          Magic : {:08x}", sb.u32(0))?;
    let minor = match sb.u64(v1::SUPER_OFFSET) {
        0..=4 => 1,
        5..=8 => 2,
        _ => 0,
    };
    writeln!(out, "        Version : 1.{minor}")?;
    writeln!(out, "    Feature Map : 0x{:x}", sb.features().0)?;
    writeln!(out, "     Array UUID : {}", Uuid(sb.array(v1::SET_UUID)))?;
    let name = sb.slice(v1::SET_NAME, 32);
    write!(out, "           Name : {}", words::printable(name))?;
    if let Some(host) = around.host.filter(|host| is_local(name, host)) {
        write!(out, "  (local to host {host})")?;
    }
    writeln!(out)?;
    let header = around.bitmap.map(bitmap::Header::new);
    if let Some(header) = header.filter(|header| header.nodes().cast_signed() > 0)
        && sb.features().contains(Features::BITMAP)
    {
        writeln!(out, "   Cluster Name : {:<64}", header.cluster_name())?;
    }
    let created = sb.u64(v1::CREATED) & v1::SECONDS;
    writeln!(out, "  Creation Time : {}", around.time(created))?;
    let level = words::level_name(sb.level()).unwrap_or("-unknown-");
    writeln!(out, "     Raid Level : {level}")?;
    writeln!(out, "   Raid Devices : {}", sb.raid_disks().cast_signed())?;
    writeln!(out)
}

/// True if an array's name says that it was made on `host`.
pub(super) fn is_local(name: &[u8], host: &str) -> bool {
    !host.is_empty()
        && host.len() < 32
        && name.starts_with(host.as_bytes())
        && name.get(host.len()) == Some(&b':')
}

fn write_sizes(out: &mut String, sb: &Written<'_>) -> Result {
    let sectors_line = |out: &mut String, title: &str, count: u64| {
        let human = words::human_size(words::sectors(count));
        writeln!(out, "{title} : {count} sectors{human}")
    };
    let data_size = sb.u64(v1::DATA_SIZE);
    sectors_line(out, " Avail Dev Size", data_size)?;
    // mdadm compares without a sign: linear (-1) has a used size, raid0 has none.
    if sb.level() == 0 {
        return Ok(());
    }
    let size = sb.u64(v1::SIZE);
    let component = words::sectors(size);
    let array = words::array_size(sb.level(), sb.layout(), sb.raid_disks(), component);
    if let Some(bytes) = array {
        let human = words::human_size(bytes);
        writeln!(out, "     Array Size : {} KiB{human}", (bytes >> 10).cast_unsigned())?;
    }
    if size != data_size {
        sectors_line(out, "  Used Dev Size", size)?;
    }
    Ok(())
}

fn write_places(out: &mut String, sb: &Written<'_>, around: &Surroundings<'_>) -> Result {
    let data_offset = sb.u64(v1::DATA_OFFSET);
    let moves = sb.features().contains(Features::NEW_OFFSET);
    if data_offset != 0 {
        writeln!(out, "    Data Offset : {data_offset} sectors")?;
    }
    let new_offset = sb.i32(v1::NEW_OFFSET);
    if moves && new_offset != 0 {
        let place = data_offset.wrapping_add_signed(i64::from(new_offset));
        writeln!(out, "     New Offset : {place} sectors")?;
    }
    writeln!(out, "   Super Offset : {} sectors", sb.u64(v1::SUPER_OFFSET))?;
    if sb.features().contains(Features::RECOVERY_OFFSET) {
        writeln!(out, "Recovery Offset : {} sectors", sb.u64(v1::RECOVERY_OFFSET))?;
    }
    let space = space::unused(sb, around);
    let missing = space.and_then(space::Space::missing);
    if let Some(space) = space.filter(|_| !moves) {
        write!(out, "   Unused Space : before={} sectors, ", space.before)?;
        match missing {
            None => writeln!(out, "after={} sectors", space.after)?,
            Some(missing) => writeln!(out, "after=-{missing} sectors DEVICE TOO SMALL")?,
        }
    }
    let state = if sb.u64(v1::RESYNC_OFFSET) == IN_SYNC { "clean" } else { "active" };
    let truncated = if missing.is_some() { " TRUNCATED DEVICE" } else { "" };
    writeln!(out, "          State : {state}{truncated}")
}

fn write_log(out: &mut String, sb: &Written<'_>) -> Result {
    if sb.features().contains(Features::BITMAP) {
        let offset = sb.i32(v1::BITMAP_OFFSET);
        writeln!(out, "Internal Bitmap : {offset} sectors from superblock")
    } else if words::has_ppl(sb.features()) {
        let (offset, size) = (sb.u16(v1::PPL_OFFSET).cast_signed(), sb.u16(v1::PPL_SIZE));
        writeln!(out, "            PPL : {size} sectors at offset {offset} sectors from superblock")
    } else {
        Ok(())
    }
}

fn write_reshape(out: &mut String, sb: &Written<'_>) -> Result {
    let position = sb.u64(v1::RESHAPE_POSITION);
    let human = words::human_size(words::sectors(position));
    writeln!(out, "  Reshape pos'n : {}{human}", position / 2)?;
    write_delta(out, sb.i32(v1::DELTA_DISKS), sb.raid_disks())?;
    let (level, new_level) = (sb.level(), sb.i32(v1::NEW_LEVEL));
    write_new_level(out, level, new_level)?;
    let (layout, new_layout) = (sb.layout(), sb.u32(v1::NEW_LAYOUT));
    if new_layout != layout && level == 10 {
        writeln!(out, "     New Layout :{}", words::raid10_layout(new_layout))?;
    }
    write_new_layout(out, level, layout, new_layout)?;
    let (chunk, new_chunk) = (sb.u32(v1::CHUNK), sb.u32(v1::NEW_CHUNK));
    if new_chunk != chunk {
        writeln!(out, "  New Chunksize : {}K", new_chunk / 2)?;
    }
    writeln!(out)
}

fn write_state(out: &mut String, sb: &Written<'_>, around: &Surroundings<'_>) -> Result {
    let flags = sb.u8(v1::DEV_FLAGS);
    if flags != 0 {
        let write_mostly = if flags & v1::WRITE_MOSTLY != 0 { " write-mostly" } else { "" };
        let fail_fast = if flags & v1::FAIL_FAST != 0 { " failfast" } else { "" };
        writeln!(out, "          Flags :{write_mostly}{fail_fast}")?;
    }
    let updated = sb.u64(v1::UPDATED) & v1::SECONDS;
    writeln!(out, "    Update Time : {}", around.time(updated))?;
    let (size, offset) = (sb.u16(v1::BAD_SIZE), sb.i32(v1::BAD_OFFSET));
    if size != 0 && offset != 0 {
        let entries = u32::from(size) * 512 / 8;
        write!(out, "  Bad Block Log : {entries} entries available at offset {offset} sectors")?;
        let present = sb.features().contains(Features::BAD_BLOCKS);
        writeln!(out, "{}", if present { " - bad blocks present." } else { "" })?;
    }
    write_checksum(out, sb)?;
    writeln!(out, "         Events : {}", sb.events())?;
    writeln!(out)
}

fn write_layout(out: &mut String, sb: &Written<'_>) -> Result {
    if sb.level() == 0 && sb.features().contains(Features::RAID0_LAYOUT) {
        let name = words::layout_name(0, sb.layout()).unwrap_or("-unknown-");
        writeln!(out, "         Layout : {name}")?;
    }
    write_parity_layout(out, sb)?;
    let chunk = sb.u32(v1::CHUNK) / 2;
    match sb.level() {
        0 | 4 | 5 | 6 | 10 => writeln!(out, "     Chunk Size : {chunk}K")?,
        -1 => writeln!(out, "       Rounding : {chunk}K")?,
        _ => {}
    }
    writeln!(out)
}

fn role_text(sb: &Written<'_>) -> String {
    match sb.role() {
        role::SPARE | role::FAULTY => "spare".to_owned(),
        role::JOURNAL => "Journal".to_owned(),
        number if sb.features().contains(Features::REPLACEMENT) => {
            format!("Replacement device {number}")
        }
        number => format!("Active device {number}"),
    }
}

/// One letter for each member, and all roles if their numbers are inconsistent.
fn write_array_state(out: &mut String, sb: &Written<'_>, disks: u32) -> Result {
    let mut counts = vec![0u32; 1 << 16];
    for role in sb.roles() {
        counts[usize::from(role)] += 1;
    }
    let mut inconsistent = sb.roles().any(|role| role <= role::MAX && u32::from(role) > disks);
    out.push_str("   Array State : ");
    // Roles have 16 bits: members beyond that are missing, and get no letter.
    for count in counts.iter().take(disks as usize) {
        out.push(match count {
            0 => '.',
            1 => 'A',
            2 if sb.level() != 0 => 'R',
            _ => {
                inconsistent = true;
                '?'
            }
        });
    }
    writeln!(out, " ('A' == active, '.' == missing, 'R' == replacing)")?;
    if !inconsistent {
        return Ok(());
    }
    out.push_str("WARNING Array state is inconsistent - each number should appear only once\n");
    for (number, role) in sb.roles().enumerate() {
        if role >= role::FAULTY {
            write!(out, " {number}:-")?;
        } else {
            write!(out, " {number}:{role}")?;
        }
    }
    writeln!(out)
}

/// True if the superblock starts with the number of an undamaged one.
pub(super) fn has_magic(sb: &Written<'_>) -> bool {
    sb.u32(0) == MAGIC
}
