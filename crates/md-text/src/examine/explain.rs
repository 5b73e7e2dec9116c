//! `braid examine --explain`: the superblock byte by byte, and the programs that would refuse it.
//!
//! ```text
//!   216    4  8a 3d 79 4a              sb_csum = 4a793d8a
//!             Sum over the superblock up to the last role.
//!         !! everyone: the checksum is 4a793d8a, and the bytes add up to 4a793d8b
//! ```
//!
//! Invariants: no byte of the 4096 is left out (runs of equal roles and of zeroes are one line); each broken
//! rule stands at its field and again in the list at the end: `!!` marks an error, `--` a value that is only
//! too new or too old for some program.

use std::fmt::{Result, Write as _};

use super::explain_values::{old_disk, role_name, value};
use super::fields::{FIELDS_0_90, FIELDS_1, Field, Kind};
use super::rules::{Refusal, refusals};
use super::written::{Written, old, v1};
use super::{Surroundings, words};

/// The annotated superblock.
#[must_use]
pub fn explain(sb: &Written<'_>, around: &Surroundings<'_>) -> String {
    let mut out = String::new();
    write_all(&mut out, sb, around).expect("a string takes everything");
    out
}

fn write_all(out: &mut String, sb: &Written<'_>, around: &Surroundings<'_>) -> Result {
    let refusals = refusals(sb, around);
    write_head(out, sb, around)?;
    let fields = if sb.is_old() { FIELDS_0_90 } else { FIELDS_1 };
    for field in fields {
        write_field(out, sb, around, field)?;
        write_marks(out, &refusals, field.name)?;
    }
    let end = if sb.is_old() { write_disks(out, sb)? } else { write_roles(out, sb)? };
    write_marks(out, &refusals, "dev_roles")?;
    write_rest(out, sb, end)?;
    write_refusals(out, &refusals)
}

fn write_head(out: &mut String, sb: &Written<'_>, around: &Surroundings<'_>) -> Result {
    let size = around.device_size;
    let place = sb.version().superblock_offset(size);
    let place = place.map_or("nowhere".to_owned(), |place| format!("at byte {place}"));
    let human = words::human_size(size.cast_signed());
    let order = if sb.is_big_endian() { ", big-endian" } else { "" };
    writeln!(
        out,
        "Superblock of version {}{order}, {place} of a member of {size} bytes{human}",
        sb.version()
    )?;
    writeln!(out)?;
    writeln!(out, "offset length  bytes                    field = value")
}

/// The first bytes in groups of one, and how many are not shown.
fn hex(bytes: &[u8]) -> String {
    let shown: Vec<String> = bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let dots = if bytes.len() > 8 { "…" } else { "" };
    shown.join(" ") + dots
}

fn write_line(out: &mut String, offset: usize, bytes: &[u8], text: &str) -> Result {
    writeln!(out, "{offset:6} {:6}  {:24} {text}", bytes.len(), hex(bytes))
}

fn write_field(
    out: &mut String,
    sb: &Written<'_>,
    around: &Surroundings<'_>,
    field: &Field,
) -> Result {
    let bytes = sb.slice(field.offset, field.length);
    let text = format!("{} = {}", field.name, value(sb, around, field));
    write_line(out, field.offset, bytes, &text)?;
    if field.kind != Kind::Reserved {
        writeln!(out, "               {}", field.meaning)?;
    } else if bytes.iter().any(|byte| *byte != 0) {
        write_used_bytes(out, field.offset, bytes)?;
    }
    Ok(())
}

/// Reserved bytes that are not zero, in rows of 16.
fn write_used_bytes(out: &mut String, offset: usize, bytes: &[u8]) -> Result {
    for (row, bytes) in bytes.chunks(16).enumerate().filter(|(_, row)| row.iter().any(|b| *b != 0))
    {
        let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(out, "            !! {}: {}", offset + 16 * row, hex.join(" "))?;
    }
    Ok(())
}

fn write_marks(out: &mut String, refusals: &[Refusal], field: &str) -> Result {
    for Refusal { who, why, .. } in refusals.iter().filter(|refusal| refusal.field == field) {
        let mark = if who.is_every_release() { "!!" } else { "--" };
        writeln!(out, "            {mark} {who}: {why}")?;
    }
    Ok(())
}

/// The roles, equal ones in one line. Where they end.
fn write_roles(out: &mut String, sb: &Written<'_>) -> std::result::Result<usize, std::fmt::Error> {
    let roles: Vec<u16> = sb.roles().collect();
    let mut number = 0;
    for run in roles.chunk_by(|left, right| left == right) {
        let offset = v1::ROLES + 2 * number;
        let last = number + run.len() - 1;
        let span = if run.len() == 1 { number.to_string() } else { format!("{number} to {last}") };
        let text = format!("dev_roles[{span}] = {}", role_name(run[0]));
        write_line(out, offset, sb.slice(offset, 2 * run.len()), &text)?;
        number += run.len();
    }
    writeln!(out, "               What each device is for, by its number.")?;
    Ok(v1::ROLES + 2 * roles.len())
}

/// The table of disks of 0.90, without empty entries at its end. Where it ends.
fn write_disks(out: &mut String, sb: &Written<'_>) -> std::result::Result<usize, std::fmt::Error> {
    let is_used = |index: &usize| {
        sb.slice(old::disk(*index) * 4, old::DISK_WORDS * 4).iter().any(|byte| *byte != 0)
    };
    for index in (0..old::DISK_COUNT).filter(is_used) {
        write_disk(out, sb, &format!("disks[{index}]"), old::disk(index))?;
    }
    write_disk(out, sb, "this_disk", old::THIS_DISK)?;
    writeln!(out, "               The devices when the array last ran; those left out are zero.")?;
    Ok(4096)
}

fn write_disk(out: &mut String, sb: &Written<'_>, name: &str, at: usize) -> Result {
    let offset = at * 4;
    let text = format!("{name} = {}", old_disk(sb, at));
    write_line(out, offset, sb.slice(offset, 20), &text)?;
    write_used_bytes(out, offset + 20, sb.slice(offset + 20, old::DISK_WORDS * 4 - 20))
}

/// The bytes after the last field: usually zeroes.
fn write_rest(out: &mut String, sb: &Written<'_>, from: usize) -> Result {
    let bytes = sb.slice(from, 4096);
    if bytes.is_empty() {
        return Ok(());
    }
    let used = bytes.iter().filter(|byte| **byte != 0).count();
    let text = match used {
        0 => "unused, and zero".to_owned(),
        used => format!("unused, but not zero in {used} of them; outside of the checksum"),
    };
    write_line(out, from, bytes, &text)?;
    write_used_bytes(out, from, bytes)
}

fn write_refusals(out: &mut String, refusals: &[Refusal]) -> Result {
    writeln!(out)?;
    if refusals.is_empty() {
        return writeln!(out, "No program is known to refuse this superblock.");
    }
    writeln!(out, "Programs that would refuse this superblock, and why:")?;
    for refusal in refusals {
        writeln!(out, "  {}: {} [{}]", refusal.who, refusal.why, refusal.rule)?;
    }
    Ok(())
}
