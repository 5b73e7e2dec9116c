//! Partition tables.
//!
//! ```text
//!  LBA 0   MBR: four entries at 446, 0x55AA at 510. FAT and NTFS boot sectors end in 0x55AA too
//!  LBA 1   GPT header (512-byte or 4096-byte blocks), with a backup in the last block
//! ```
//!
//! Source: UEFI specification 2.10, chapter 5.

use std::io;

use super::filesystem::{is_bitlocker, is_exfat, is_fat, is_ntfs};
use super::window::Block;
use super::{Class, Signature, Window};

const SECTOR_SIZES: [u64; 2] = [512, 4096];

/// A GPT by its primary header, or when that is gone by its backup.
pub(super) fn detect_gpt(window: &Window<'_>) -> io::Result<Option<Signature>> {
    for sector in SECTOR_SIZES {
        if let Some(block) = window.read::<92>(sector)?
            && is_gpt_header(&block)
        {
            return Ok(Some(describe_gpt("GPT", sector, sector, &block)));
        }
    }
    for sector in SECTOR_SIZES {
        if let Some((offset, block)) = window.read_from_end::<92>(sector)?
            && is_gpt_header(&block)
        {
            return Ok(Some(describe_gpt("GPT (backup only)", offset, sector, &block)));
        }
    }
    Ok(None)
}

fn is_gpt_header(block: &Block<92>) -> bool {
    block.has(0, b"EFI PART")
}

/// The disk ends behind the later one of the two headers.
fn describe_gpt(name: &'static str, offset: u64, sector: u64, block: &Block<92>) -> Signature {
    let last = block.le64(24).max(block.le64(32));
    Signature::new(name, Class::PartitionTable, offset)
        .identified(block.guid(56))
        .sized(last.saturating_add(1), sector)
}

/// An MBR that is neither a boot sector of a file system nor the protective one of a GPT.
pub(super) fn detect_mbr(window: &Window<'_>) -> io::Result<Option<Signature>> {
    let Some(sector) = window.read::<512>(0)? else { return Ok(None) };
    if !sector.has(510, b"\x55\xaa") || is_boot_sector(&sector) {
        return Ok(None);
    }
    let entries: Vec<Entry> = (0..4).map(|index| Entry::read(&sector, 446 + 16 * index)).collect();
    if !entries.iter().all(Entry::is_plausible) {
        return Ok(None);
    }
    let is_protective = entries.iter().any(|entry| entry.kind == TYPE_PROTECTIVE);
    if is_protective && detect_gpt(window)?.is_some() {
        return Ok(None);
    }
    let end = entries.iter().map(Entry::end).max().unwrap_or(0);
    let signature = Signature::new("MBR", Class::PartitionTable, 510)
        .identified(format!("{:08x}", sector.le32(440)));
    Ok(Some(if end > 0 { signature.sized(end, 512) } else { signature }))
}

fn is_boot_sector(sector: &Block<512>) -> bool {
    is_fat(sector) || is_ntfs(sector) || is_exfat(sector) || is_bitlocker(sector)
}

/// Stands for a GPT that old tools must not touch.
const TYPE_PROTECTIVE: u8 = 0xee;

/// One of the four entries; sizes in sectors.
struct Entry {
    status: u8,
    kind: u8,
    start: u32,
    count: u32,
}

impl Entry {
    fn read(sector: &Block<512>, at: usize) -> Self {
        Self {
            status: sector.u8(at),
            kind: sector.u8(at + 4),
            start: sector.le32(at + 8),
            count: sector.le32(at + 12),
        }
    }

    /// Boot code in place of entries would have other status bytes than 0x00 and 0x80.
    fn is_plausible(&self) -> bool {
        let is_status = self.status & 0x7f == 0;
        is_status && (self.kind == 0 || (self.start > 0 && self.count > 0))
    }

    fn end(&self) -> u64 {
        if self.kind == 0 { 0 } else { u64::from(self.start) + u64::from(self.count) }
    }
}
