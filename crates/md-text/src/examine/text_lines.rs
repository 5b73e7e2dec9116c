//! The lines of `mdadm --examine` that are the same for superblocks of version 1 and 0.90.
//!
//! Source: mdadm 4.2 `super1.c` and `super0.c`, which print them alike.

use std::fmt::{Result, Write as _};

use super::words;
use super::written::Written;

pub(super) fn write_delta(out: &mut String, delta: i32, disks: u32) -> Result {
    if delta == 0 {
        return Ok(());
    }
    let after = disks.cast_signed();
    writeln!(out, "  Delta Devices : {delta} ({}->{after})", after.wrapping_sub(delta))
}

pub(super) fn write_new_level(out: &mut String, level: i32, new_level: i32) -> Result {
    if new_level == level {
        return Ok(());
    }
    writeln!(out, "      New Level : {}", words::level_name(new_level).unwrap_or("-unknown-"))
}

/// For raid5 and raid6, whose layouts have names.
pub(super) fn write_new_layout(
    out: &mut String,
    level: i32,
    layout: u32,
    new_layout: u32,
) -> Result {
    if new_layout == layout || !matches!(level, 5 | 6) {
        return Ok(());
    }
    let name = words::layout_name(level, new_layout).unwrap_or("-unknown-");
    writeln!(out, "     New Layout : {name}")
}

pub(super) fn write_checksum(out: &mut String, sb: &Written<'_>) -> Result {
    let (found, expected) = (sb.checksum(), sb.expected_checksum());
    if found == expected {
        writeln!(out, "       Checksum : {found:x} - correct")
    } else {
        writeln!(out, "       Checksum : {found:x} - expected {expected:x}")
    }
}

/// The layout of raid5, raid6 and raid10.
pub(super) fn write_parity_layout(out: &mut String, sb: &Written<'_>) -> Result {
    match sb.level() {
        level @ (5 | 6) => {
            let name = words::layout_name(level, sb.layout()).unwrap_or("-unknown-");
            writeln!(out, "         Layout : {name}")
        }
        10 => writeln!(out, "         Layout :{}", words::raid10_layout(sb.layout())),
        _ => Ok(()),
    }
}
