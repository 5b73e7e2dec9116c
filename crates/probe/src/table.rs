//! The partitions in a partition table. Pure over [`ReadAt`].
//!
//! ```text
//!  sector 0   MBR   four entries at 446; one of them extended: a chain of EBRs, partitions 5, 6, …
//!  sector 1   GPT   header (CRC) ──▶ entries (CRC); a backup of both at the end
//! ```
//!
//! Source: UEFI specification 2.10, chapter 5; for extended partitions, the kernel's
//! `block/partitions/msdos.c`.
//!
//! An MBR counts in sectors and does not store their size: it is 512 bytes, unless the partitions contain known
//! formats only if they begin by sectors of 4096.
//!
//! Invariant: no number of a table is used before it was checked; entries are `Raw` until then. A table with a
//! wrong checksum is ignored. Whether a partition ends before its disk does is checked when it is opened
//! ([`crate::Place`]): an image may have been cut off.

use std::io;

use crate::signature::{Part, ReadAt, Window, scan_signatures};

/// A partition, in bytes of its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partition {
    /// Its number, from 1 on: 5 and more are logical ones of an MBR.
    pub number: u32,
    /// The start of the partition.
    pub start: u64,
    /// Its length; not zero.
    pub length: u64,
}

impl Partition {
    /// The end of the partition.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start + self.length
    }
}

/// Why a table is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The MBR says that there is a GPT.
    #[error("its GPT is damaged, and so is the backup")]
    Damaged,
    /// Two partitions share bytes.
    #[error("its partitions {0} and {1} overlap")]
    Overlap(u32, u32),
    /// A partition is empty, or lies behind any disk.
    #[error("its partition {0} is empty or lies behind all disks")]
    Nowhere(u32),
    /// A chain of extended partitions does not end where it should.
    #[error("its chain of logical partitions is damaged")]
    Chain,
}

/// An entry as it was read, in sectors.
#[derive(Clone, Copy)]
struct Raw {
    number: u32,
    first: u64,
    count: u64,
}

/// The most entries of a GPT, and links of a chain, that are read.
const MOST: u32 = 1024;

/// The partitions that a disk's table says it has, by number; `None` without a table.
///
/// # Errors
/// The error of the medium; inside, the reason for which the table is not used.
pub fn read_table(bytes: &dyn ReadAt) -> io::Result<Option<Result<Vec<Partition>, TableError>>> {
    let window = Window::new(bytes);
    for unit in [512, 4096] {
        let last = window.size().checked_sub(unit).map(|end| end / unit);
        for at in [Some(1), last].into_iter().flatten() {
            if let Some(raw) = read_gpt(&window, unit, at)? {
                return Ok(Some(check(&raw, unit)));
            }
        }
    }
    read_mbr(bytes, &window)
}

/// A GPT whose header is in this sector.
fn read_gpt(window: &Window<'_>, unit: u64, at: u64) -> io::Result<Option<Vec<Raw>>> {
    let Some(header) = window.read::<512>(at.saturating_mul(unit))? else { return Ok(None) };
    let length = header.le32(12) as usize;
    if !header.has(0, b"EFI PART") || !(92..=512).contains(&length) || header.le64(24) != at {
        return Ok(None);
    }
    let mut covered = header.bytes(0, length).to_vec();
    covered[16..20].fill(0);
    let (count, size) = (header.le32(80), u64::from(header.le32(84)));
    let is_plausible = (1..=MOST).contains(&count) && (128..=4096).contains(&size);
    if crc32(&covered) != header.le32(16) || !is_plausible || !size.is_multiple_of(8) {
        return Ok(None);
    }
    let mut entries = vec![0; (u64::from(count) * size) as usize];
    let start = header.le64(72).saturating_mul(unit);
    if !window.fill(start, &mut entries)? || crc32(&entries) != header.le32(88) {
        return Ok(None);
    }
    let number = |entry: &[u8], at: usize| {
        entry[at..at + 8].iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
    };
    let used = (1..).zip(entries.chunks_exact(size as usize));
    let used = used.filter(|(_, entry)| entry[..16].iter().any(|byte| *byte != 0));
    let raw = used.map(|(index, entry)| {
        let (first, last) = (number(entry, 32), number(entry, 40));
        // One that ends before it begins has no sectors.
        Raw { number: index, first, count: last.wrapping_sub(first).wrapping_add(1) }
    });
    Ok(Some(raw.collect()))
}

/// Types of entries of an MBR that are no partitions: none, extended, the guard of a GPT.
const EXTENDED: [u8; 3] = [0x05, 0x0f, 0x85];
const GUARD: u8 = 0xee;

/// An entry of an MBR or EBR: number, type, first sector, sectors.
type Entry = (u32, u8, u64, u64);

/// The entries of an MBR or EBR. `None` if it is neither.
fn entries(window: &Window<'_>, at: u64) -> io::Result<Option<Vec<Entry>>> {
    let Some(sector) = window.read::<512>(at)? else { return Ok(None) };
    let entry = |index: u32| {
        let at = 446 + 16 * index as usize;
        let (first, count) = (sector.le32(at + 8), sector.le32(at + 12));
        let is_flagged = sector.u8(at) & 0x7f != 0;
        (is_flagged, (index + 1, sector.u8(at + 4), u64::from(first), u64::from(count)))
    };
    let all: Vec<_> = (0..4).map(entry).collect();
    // Code in place of entries has other flags than 0x00 and 0x80.
    let is_one = sector.has(510, b"\x55\xaa") && all.iter().all(|(is_flagged, _)| !is_flagged);
    let used = all.into_iter().map(|(_, entry)| entry);
    Ok(is_one.then(|| {
        used.filter(|(_, kind, first, count)| *kind != 0 && *first > 0 && *count > 0).collect()
    }))
}

fn read_mbr(
    bytes: &dyn ReadAt,
    window: &Window<'_>,
) -> io::Result<Option<Result<Vec<Partition>, TableError>>> {
    let Some(primary) = entries(window, 0)?.filter(|entries| !entries.is_empty()) else {
        return Ok(None);
    };
    if primary.iter().any(|(_, kind, ..)| *kind == GUARD) {
        return Ok(Some(Err(TableError::Damaged)));
    }
    // A boot sector of a file system looks like one, too, and has the file system around it.
    let is_table = |one: &crate::Signature| one.class == crate::Class::PartitionTable;
    if !scan_signatures(bytes)?.iter().any(is_table) {
        return Ok(None);
    }
    let with = |unit| -> io::Result<Result<Vec<Partition>, TableError>> {
        Ok(match read_chains(window, &primary, unit)? {
            Ok(raw) => check(&raw, unit),
            Err(error) => Err(error),
        })
    };
    let (small, large) = (with(512)?, with(4096)?);
    let is_large = match (&small, &large) {
        (Ok(small), Ok(large)) if large.iter().all(|one| one.end() <= bytes.size()) => {
            carrying(bytes, large)? > carrying(bytes, small)?
        }
        (Err(TableError::Chain), Ok(_)) => true,
        _ => false,
    };
    Ok(Some(if is_large { large } else { small }))
}

/// The number of partitions with a known format.
fn carrying(bytes: &dyn ReadAt, partitions: &[Partition]) -> io::Result<usize> {
    let mut count = 0;
    for partition in partitions {
        let part = Part::new(bytes, partition.start, partition.length);
        count += usize::from(!scan_signatures(&part)?.is_empty());
    }
    Ok(count)
}

/// The primary partitions and those of the chain, which begin with 5.
fn read_chains(
    window: &Window<'_>,
    primary: &[Entry],
    unit: u64,
) -> io::Result<Result<Vec<Raw>, TableError>> {
    let mut raw = Vec::new();
    for (number, kind, first, count) in primary {
        if !EXTENDED.contains(kind) {
            raw.push(Raw { number: *number, first: *first, count: *count });
        }
    }
    let Some((_, _, base, count)) = primary.iter().find(|(_, kind, ..)| EXTENDED.contains(kind))
    else {
        return Ok(Ok(raw));
    };
    let (mut at, mut number) = (*base, 5);
    loop {
        let Some(link) = entries(window, at.saturating_mul(unit))? else {
            return Ok(Err(TableError::Chain));
        };
        // The first is relative to this link, the next link to the extended partition.
        if let Some((_, _, first, count)) =
            link.iter().find(|(_, kind, ..)| !EXTENDED.contains(kind))
        {
            raw.push(Raw { number, first: at + first, count: *count });
            number += 1;
        }
        let Some((_, _, next, _)) = link.iter().find(|(_, kind, ..)| EXTENDED.contains(kind))
        else {
            return Ok(Ok(raw));
        };
        // Links go up, so that no chain is a circle.
        let next = base + next;
        if next <= at || next >= base + count || number > MOST {
            return Ok(Err(TableError::Chain));
        }
        at = next;
    }
}

/// Partitions of these entries: none is empty, no two share bytes, and all ends are numbers. An image
/// that was cut off may end before they do.
fn check(raw: &[Raw], unit: u64) -> Result<Vec<Partition>, TableError> {
    let mut partitions = Vec::new();
    for Raw { number, first, count } in raw {
        let end = first.checked_add(*count).and_then(|end| end.checked_mul(unit));
        if *count == 0 || *first == 0 || end.is_none() {
            return Err(TableError::Nowhere(*number));
        }
        partitions.push(Partition { number: *number, start: first * unit, length: count * unit });
    }
    let mut by_start = partitions.clone();
    by_start.sort_by_key(|partition| partition.start);
    match by_start.windows(2).find(|pair| pair[0].end() > pair[1].start) {
        Some(pair) => Err(TableError::Overlap(pair[0].number, pair[1].number)),
        None => Ok(partitions),
    }
}

/// CRC-32 of IEEE 802.3, as a GPT has it.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            crc >> 1 ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    };
    !bytes.iter().fold(!0, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 64 << 10;

    fn entry(sector: &mut [u8], index: usize, kind: u8, first: u32, count: u32) {
        let at = 446 + 16 * index;
        sector[at + 4] = kind;
        sector[at + 8..at + 12].copy_from_slice(&first.to_le_bytes());
        sector[at + 12..at + 16].copy_from_slice(&count.to_le_bytes());
        sector[510..512].copy_from_slice(b"\x55\xaa");
    }

    /// Number, first sector, sectors.
    type Told = (u32, u64, u64);

    fn told(disk: &[u8]) -> Option<Result<Vec<Told>, TableError>> {
        let table = read_table(&disk.to_vec()).expect("memory");
        let in_sectors = |one: &Partition| (one.number, one.start / 512, one.length / 512);
        table.map(|table| table.map(|table| table.iter().map(in_sectors).collect()))
    }

    /// Partition 2, and 5 and 6 in an extended one.
    fn mbr() -> Vec<u8> {
        let mut disk = vec![0; SIZE];
        entry(&mut disk, 1, 0x83, 8, 8);
        entry(&mut disk, 2, 0x05, 32, 64);
        entry(&mut disk[32 * 512..], 0, 0xfd, 2, 6);
        entry(&mut disk[32 * 512..], 1, 0x05, 16, 16);
        entry(&mut disk[48 * 512..], 0, 0xfd, 1, 7);
        disk
    }

    #[test]
    fn logical_partitions_follow_the_chain() {
        assert_eq!(told(&mbr()), Some(Ok(vec![(2, 8, 8), (5, 34, 6), (6, 49, 7)])));
        let mut circle = mbr();
        entry(&mut circle[48 * 512..], 1, 0x05, 16, 16);
        assert_eq!(told(&circle), Some(Err(TableError::Chain)));
        assert_eq!(told(&vec![0; SIZE]), None);
    }

    #[test]
    fn what_has_no_place_is_refused() {
        let mut disk = mbr();
        entry(&mut disk, 0, 0x83, 4, 5);
        assert_eq!(told(&disk), Some(Err(TableError::Overlap(1, 2))));
        let mut guard = vec![0; SIZE];
        entry(&mut guard, 0, GUARD, 1, 127);
        assert_eq!(told(&guard), Some(Err(TableError::Damaged)));
    }

    /// Whatever bytes say: nothing is read without bound, and numbers are numbers.
    #[test]
    fn no_byte_of_a_table_is_believed() {
        let mut disk = mbr();
        let tables = (440..512).chain(32 * 512 + 440..33 * 512).chain(48 * 512 + 440..49 * 512);
        for at in tables {
            for value in [0, 1, 5, 0x7f, 0x80, 0xff] {
                let before = std::mem::replace(&mut disk[at], value);
                if let Some(Ok(mut table)) = read_table(&disk).expect("memory") {
                    table.sort_by_key(|one| one.start);
                    let is_apart = |pair: &[Partition]| pair[0].end() <= pair[1].start;
                    assert!(table.windows(2).all(is_apart), "{at} {value}");
                }
                disk[at] = before;
            }
        }
    }

    #[test]
    fn the_checksum_is_that_of_a_gpt() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }
}
