//! The contents of a member and their places: superblocks of md, also displaced ones, and other formats.
//!
//! ```text
//!   whole member     │ its places of the four versions
//!   each partition   │ its places of the four versions           a magic number at any 4 KiB of the ends:
//!   the ends         │ every 4 KiB of the first and last 128 MiB ◀── a partition whose table is gone
//! ```
//!
//! Invariants
//! * The time is bounded: 256 MiB of a member are read, and a few KiB for each partition.
//! * A superblock of version 1 says where it lies in its member; from that follows where the member begins.
//!
//! Deliberately absent: which of the superblocks count ([`crate::assemble`]), and their words for people.

use std::collections::BTreeMap;
use std::ops::Range;

use braid_holes::MAX_SIZE;
use braid_md::detect;
use braid_md::superblock::{MAGIC, SUPERBLOCK_BYTES};
use braid_md::{Rejection, Superblock, Version};
use braid_probe::{Class, Part, Signature, TableError, read_table, scan_signatures};
use serde::{Deserialize, Serialize};

use crate::patient::Patient;

/// Bytes at each end of a member in which displaced superblocks are searched.
const ENDS: u64 = 128 << 20;
/// Bytes of one read of the search.
const WINDOW: u64 = 4 << 20;
/// Superblocks lie at multiples of this.
const GRID: u64 = 4096;
/// The most displaced superblocks of a member that are reported.
const MOST_DISPLACED: usize = 64;

/// Why a part of a file or device is taken for a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// It is all of it.
    Whole,
    /// It is the partition with this number.
    Partition(u32),
    /// A superblock lies where none belongs, unless the member begins here.
    Displaced,
}

/// A part of a file or device that is, or may be, a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The start in bytes.
    pub start: u64,
    /// The length in bytes.
    pub length: u64,
    /// Why it is one.
    pub how: How,
}

/// A block with md's magic number.
#[derive(Clone, Debug)]
pub struct FoundSuperblock {
    /// The member that it lies on, or would lie on.
    pub place: Place,
    /// Bytes from the start of the file or device.
    pub at: u64,
    /// The version of the place.
    pub version: Version,
    /// The superblock, or why it is none.
    pub result: Result<Superblock, Rejection>,
}

impl FoundSuperblock {
    /// True if the superblock is sound.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.result.is_ok()
    }
}

/// Another format, and the place on which it was recognised.
#[derive(Clone, Debug)]
pub struct FoundContent {
    /// The place.
    pub place: Place,
    /// The format. Its offset counts from the start of the place.
    pub signature: Signature,
}

/// Contents of one member.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Superblocks by their offset.
    pub superblocks: Vec<FoundSuperblock>,
    /// Other formats.
    pub contents: Vec<FoundContent>,
    /// Why the partition table is not used.
    pub table: Option<TableError>,
    /// Ranges that could not be read during the scan.
    pub unreadable: Vec<Range<u64>>,
}

/// Looks at a member: its partitions, superblocks and formats; with `deep` also at every 4 KiB of its ends.
#[must_use]
pub fn scan(patient: &Patient, deep: bool) -> Findings {
    let mut findings = Findings::default();
    let whole = Place { start: 0, length: patient.size(), how: How::Whole };
    let mut places = vec![whole];
    match read_table(patient) {
        Ok(Some(Ok(table))) => places.extend(table.iter().filter_map(|partition| {
            let left = patient.size().checked_sub(partition.start)?;
            let length = partition.length.min(left);
            let how = How::Partition(partition.number);
            (length > 0).then_some(Place { start: partition.start, length, how })
        })),
        Ok(Some(Err(error))) => findings.table = Some(error),
        // Bytes that cannot be read are zeros to it.
        Ok(None) | Err(_) => {}
    }
    // A superblock at the end of a disk is that of the last partition if it ends there.
    let mut found: BTreeMap<u64, FoundSuperblock> = BTreeMap::new();
    for place in places {
        for one in at_place(patient, place, &mut findings.unreadable) {
            let is_better = found.get(&one.at).is_none_or(|known| {
                let is_part = matches!(one.place.how, How::Partition(_));
                one.result.is_ok() && (known.result.is_err() || is_part)
            });
            if is_better {
                found.insert(one.at, one);
            }
        }
        let part = Part::new(patient, place.start, place.length);
        let signatures = scan_signatures(&part).unwrap_or_default();
        let others = signatures.into_iter().filter(|one| !is_md(one));
        findings.contents.extend(others.map(|signature| FoundContent { place, signature }));
    }
    if deep {
        displaced(patient, &mut found, &mut findings.unreadable);
    }
    findings.superblocks = found.into_values().collect();
    findings.unreadable.sort_by_key(|range| range.start);
    findings.unreadable.dedup();
    findings
}

/// True if superblocks of md are what the signature stands for: they are reported in full.
fn is_md(signature: &Signature) -> bool {
    signature.class == Class::Raid && signature.name.starts_with("md ")
}

/// The superblocks of a place that is known to be, or to have been, a member.
pub fn at_place(
    patient: &Patient,
    place: Place,
    unreadable: &mut Vec<Range<u64>>,
) -> Vec<FoundSuperblock> {
    let found = detect::find(place.length, &mut |offset, bytes| {
        patient.read_around(place.start.saturating_add(offset), bytes, unreadable);
        Ok(())
    });
    let found = found.expect("unreadable bytes are zeros").into_iter();
    let found = found.map(|one| {
        let (at, version, result) = (place.start + one.offset, one.version, one.result);
        FoundSuperblock { place, at, version, result }
    });
    let found: Vec<_> = found.map(|one| lengthened(patient, one)).collect();
    let size = patient.size();
    let ends = found.iter().map(|one| one.place.start + one.place.length);
    unreadable.extend(ends.filter(|end| *end > size).max().map(|end| size..end));
    found
}

/// A superblock of a copy that ended before its data did is that of the whole member, of which the end cannot be read.
fn lengthened(patient: &Patient, found: FoundSuperblock) -> FoundSuperblock {
    let Err(Rejection::DataOutside { offset, len, .. }) = found.result else { return found };
    let ends_here = found.place.start + found.place.length == patient.size();
    let Some(length) = offset.checked_add(len).filter(|_| ends_here) else { return found };
    let mut bytes = vec![0; SUPERBLOCK_BYTES];
    patient.read_around(found.at, &mut bytes, &mut Vec::new());
    match Superblock::parse(found.version, found.at - found.place.start, length, &bytes) {
        Ok(superblock) if is_place(found.place.start, length) => FoundSuperblock {
            place: Place { length, ..found.place },
            result: Ok(superblock),
            ..found
        },
        _ => found,
    }
}

/// True if a map can have the bytes of a place: a superblock may claim any number of them.
fn is_place(start: u64, length: u64) -> bool {
    start.checked_add(length).is_some_and(|end| end <= MAX_SIZE)
}

/// Searches the ends of a member for superblocks that no place accounts for.
fn displaced(
    patient: &Patient,
    found: &mut BTreeMap<u64, FoundSuperblock>,
    unreadable: &mut Vec<Range<u64>>,
) {
    let size = patient.size();
    let tail = (size.saturating_sub(ENDS) / GRID * GRID).max(ENDS.min(size) / GRID * GRID);
    let mut count = 0;
    for end in [0..ENDS.min(size), tail..size] {
        let mut at = end.start;
        while at < end.end {
            let length = WINDOW.min(end.end - at);
            let mut window = vec![0; usize::try_from(length).expect("a window is some MiB")];
            patient.read_around(at, &mut window, unreadable);
            for (block, offset) in window.chunks(GRID as usize).zip((at..).step_by(GRID as usize)) {
                let has_magic = block.starts_with(&MAGIC.to_le_bytes());
                if has_magic && found.get(&offset).is_none_or(|one| one.result.is_err()) {
                    let one = begins_before(patient, offset, block);
                    count += usize::from(one.is_some());
                    found.extend(one.map(|one| (offset, one)));
                }
            }
            if count >= MOST_DISPLACED {
                return;
            }
            at += length;
        }
    }
}

/// The superblock in `block`, at `at`, with the member that begins where the superblock says.
fn begins_before(patient: &Patient, at: u64, block: &[u8]) -> Option<FoundSuperblock> {
    let mut bytes = block.to_vec();
    bytes.resize(SUPERBLOCK_BYTES, 0);
    let (version, offset) = match u32::from_le_bytes(bytes[4..8].try_into().ok()?) {
        1 => {
            let sectors = u64::from_le_bytes(bytes[144..152].try_into().ok()?);
            let version = match sectors {
                0 => Version::V1_1,
                8 => Version::V1_2,
                _ => Version::V1_0,
            };
            (version, sectors.checked_mul(512)?)
        }
        // It lies behind the data, 64 KiB before the member's last whole 64 KiB.
        0 => {
            let component = Superblock::parse(Version::V0_90, at, patient.size(), &bytes).ok()?;
            (Version::V0_90, component.component_size.checked_next_multiple_of(64 << 10)?)
        }
        _ => return None,
    };
    let start = at.checked_sub(offset)?;
    let behind = match version {
        Version::V0_90 => 64 << 10,
        Version::V1_0 => 8 << 10,
        Version::V1_1 | Version::V1_2 => patient.size() - at,
    };
    let length = offset.checked_add(behind)?.min(patient.size() - start);
    let superblock = Superblock::parse(version, offset, length, &bytes).ok()?;
    // The end of a member whose table is lost is where its data ends.
    let data_end = superblock.data_offset.checked_add(superblock.data_size)?;
    let length = if version.is_at_end() { length } else { data_end.min(length) };
    let place = Place { start, length, how: How::Displaced };
    Some(FoundSuperblock { place, at, version, result: Ok(superblock) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_no_longer_than_a_map() {
        assert!(is_place(4096, MAX_SIZE - 4096));
        assert!(!is_place(4096, MAX_SIZE - 4095) && !is_place(4096, u64::MAX));
    }

    #[test]
    fn zeros_and_noise_hold_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.img");
        let noise: Vec<u8> =
            (0..5_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for bytes in [vec![0; 3 << 20], noise] {
            std::fs::write(&path, bytes).expect("it can be written");
            let findings = scan(&Patient::open(&path).expect("a file"), true);
            assert!(findings.superblocks.is_empty() && findings.unreadable.is_empty());
        }
    }
}
