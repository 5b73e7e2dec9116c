//! RAID members: Linux md in all four places, DRBD.
//!
//! ```text
//!  md 1.1   0                                                     md 1.0   size − 8K, down to 4K
//!  md 1.2   4K                                                    md 0.90  size down to 64K, − 64K
//! ```
//!
//! Source: the kernel's `include/uapi/linux/raid/md_p.h`, and `drivers/md/md.c` (`super_90_load`,
//! `super_1_load`) for the places.

use std::io;

use super::window::Block;
use super::{Class, Signature, Window};

/// `MD_SB_MAGIC`.
const MD_MAGIC: u32 = 0xa92b_4efc;

pub(super) fn detect_md_v1_1(window: &Window<'_>) -> io::Result<Option<Signature>> {
    detect_md_v1(window, "md 1.1", 0)
}

pub(super) fn detect_md_v1_2(window: &Window<'_>) -> io::Result<Option<Signature>> {
    detect_md_v1(window, "md 1.2", 4096)
}

pub(super) fn detect_md_v1_0(window: &Window<'_>) -> io::Result<Option<Signature>> {
    match window.size().checked_sub(8192) {
        Some(offset) => detect_md_v1(window, "md 1.0", offset / 4096 * 4096),
        None => Ok(None),
    }
}

/// Fields of `mdp_superblock_1`, little-endian: magic 0, major_version 4, set_uuid 16, set_name 32,
/// data_size 136 and super_offset 144 in sectors. The last tells a superblock from a stray copy.
fn detect_md_v1(
    window: &Window<'_>,
    name: &'static str,
    offset: u64,
) -> io::Result<Option<Signature>> {
    let Some(block) = window.read::<256>(offset)? else { return Ok(None) };
    let is_superblock =
        block.le32(0) == MD_MAGIC && block.le32(4) == 1 && block.le64(144) == offset / 512;
    Ok(is_superblock.then(|| {
        Signature::new(name, Class::Raid, offset)
            .labelled(block.text(32, 32))
            .identified(block.md_uuid(16))
            .sized(block.le64(136), 512)
    }))
}

/// Fields of `mdp_superblock_s` are 32-bit words in the byte order of the host that made it: magic
/// 0, major_version 1, set_uuid0 5, size 8 (KiB of each member), set_uuid1..3 13.
pub(super) fn detect_md_v0(window: &Window<'_>) -> io::Result<Option<Signature>> {
    const RESERVED: u64 = 65536;
    let Some(offset) = (window.size() / RESERVED * RESERVED).checked_sub(RESERVED) else {
        return Ok(None);
    };
    let Some(block) = window.read::<64>(offset)? else { return Ok(None) };
    let word: fn(&Block<64>, usize) -> u32 = if block.le32(0) == MD_MAGIC {
        |block, index| block.le32(4 * index)
    } else if block.be32(0) == MD_MAGIC {
        |block, index| block.be32(4 * index)
    } else {
        return Ok(None);
    };
    if word(&block, 1) != 0 {
        return Ok(None);
    }
    let uuid = [5, 13, 14, 15].map(|index| format!("{:08x}", word(&block, index))).join(":");
    let size = word(&block, 8);
    Ok(Some(
        Signature::new("md 0.90", Class::Raid, offset)
            .identified(uuid)
            .sized(u64::from(size), 1024),
    ))
}

/// DRBD's internal meta data of version 8: `md_on_disk_08` in the last 4 KiB, big-endian, with
/// la_sect at 0 and the magic at 60 (drbd-utils, `drbdmeta.c`).
pub(super) fn detect_drbd(window: &Window<'_>) -> io::Result<Option<Signature>> {
    let Some(offset) = (window.size() / 4096 * 4096).checked_sub(4096) else { return Ok(None) };
    let Some(block) = window.read::<64>(offset)? else { return Ok(None) };
    let is_drbd = matches!(block.be32(60), 0x8374_026b | 0x8374_026c);
    Ok(is_drbd.then(|| Signature::new("DRBD", Class::Raid, offset + 60).sized(block.be64(0), 512)))
}
