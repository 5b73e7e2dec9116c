//! The lines of `mdadm --examine --export`, which udev's rules read.
//!
//! Invariant: each line is `KEY=value`; a name with a line break ends before it, as mdadm's does.
//!
//! Source: mdadm 4.2 `super1.c` (`export_examine_super1`), `super0.c` (`export_examine_super0`).

use std::fmt::{Result, Write as _};

use super::written::{Written, old, v1};
use super::{text_old, words};
use braid_md::Uuid;

/// The lines for this superblock, in mdadm's order.
#[must_use]
pub fn export(sb: &Written<'_>) -> String {
    let mut out = String::new();
    let written = if sb.is_old() { write_old(&mut out, sb) } else { write_new(&mut out, sb) };
    written.expect("a string takes everything");
    out
}

fn write_array(out: &mut String, sb: &Written<'_>) -> Result {
    writeln!(out, "MD_LEVEL={}", words::level_name(sb.level()).unwrap_or("-unknown-"))?;
    writeln!(out, "MD_DEVICES={}", sb.raid_disks().cast_signed())
}

fn write_new(out: &mut String, sb: &Written<'_>) -> Result {
    write_array(out, sb)?;
    let name = sb.slice(v1::SET_NAME, 32).split(|byte| *byte == b'\n').next().unwrap_or(&[]);
    let name = words::printable(name);
    if !name.is_empty() {
        writeln!(out, "MD_NAME={name}")?;
    }
    let component = words::sectors(sb.u64(v1::SIZE));
    let array = words::array_size(sb.level(), sb.layout(), sb.raid_disks(), component);
    if let Some(bytes) = array {
        writeln!(out, "MD_ARRAY_SIZE={}", words::human_size_brief(bytes))?;
    }
    writeln!(out, "MD_UUID={}", Uuid(sb.array(v1::SET_UUID)))?;
    writeln!(out, "MD_UPDATE_TIME={}", sb.u64(v1::UPDATED) & v1::SECONDS)?;
    writeln!(out, "MD_DEV_UUID={}", Uuid(sb.array(v1::DEVICE_UUID)))?;
    writeln!(out, "MD_EVENTS={}", sb.events())
}

fn write_old(out: &mut String, sb: &Written<'_>) -> Result {
    write_array(out, sb)?;
    writeln!(out, "MD_UUID={}", text_old::uuid_text(sb))?;
    // The time of creation: so does mdadm, and rules may rely on it.
    writeln!(out, "MD_UPDATE_TIME={}", sb.word(old::CREATED))?;
    writeln!(out, "MD_EVENTS={}", sb.events())
}
