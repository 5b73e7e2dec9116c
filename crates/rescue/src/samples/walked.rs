//! Files of a volume as witnesses: names lead to extents, and extents to contents with checksums.
//!
//! Invariants: bytes are untrusted; at most [`STEPS`] names are followed, [`FILES`] files and [`BYTES`] bytes of them are read.

use std::io;
use std::ops::Range;

use braid_files::{Event, Extent, Kind, ReadAt, Volume};

use super::{Finding, Format, HEAD};

const STEPS: usize = 5000;
const FILES: usize = 64;
/// Witnesses against a volume behind which no others are sought, if they are most.
const ENOUGH: u32 = 12;
const BYTES: u64 = 64 << 20;
/// The longest file that is read.
const LONGEST: u64 = 4 << 20;
/// Beginnings of files that are looked at.
const HEADS: usize = 1000;

/// Files that were checked.
#[derive(Clone, Debug, Default)]
pub struct Witnesses {
    /// For each file whose checksums are right, the bytes of the volume in which it lies.
    pub good: Vec<Vec<Range<u64>>>,
    /// Number of files whose checksums are wrong.
    pub bad: u32,
    /// Number of names that lead to nothing, and of directories that are damaged.
    pub lost: u32,
}

/// The error of a volume where its bytes are known to be lost: no witness is there, neither for it nor against.
pub const HOLE: io::ErrorKind = io::ErrorKind::Other;

/// Checks some files of the file system of `volume`: those that carry checksums of all their bytes, and such as are whole
/// beyond doubt without. There are none if it has no file system whose names are read.
#[must_use]
pub fn witnesses(volume: &dyn ReadAt) -> Witnesses {
    let mut found = Witnesses::default();
    let Ok(opened) = Volume::open_for_comparison(volume) else { return found };
    let Ok(mut walk) = opened.walk() else { return found };
    let (mut heads, mut left) = (0, BYTES);
    for _ in 0..STEPS {
        let wrong = found.bad + found.lost;
        if wrong >= ENOUGH && found.good.len() < wrong as usize {
            break;
        }
        let node = match walk.next() {
            None => break,
            Some(Event::Entry(_, node)) => node,
            Some(Event::Trouble { unread, .. }) => {
                found.lost += u32::from(unread != Some(HOLE));
                continue;
            }
            Some(_) => continue,
        };
        let is_file = node.kind == Kind::File && !node.is_again;
        if !is_file || !(HEAD as u64..=LONGEST.min(left)).contains(&node.size) {
            continue;
        }
        if heads == HEADS || found.good.len() + found.bad as usize == FILES {
            break;
        }
        heads += 1;
        let (extents, whole) = walk.extents(&node, 0);
        let starts = extents.first().is_some_and(|first| first.offset == 0 && !first.unwritten);
        if whole.is_err() || !starts {
            continue;
        }
        let mut head = vec![0; HEAD];
        let format = opened.read_at(extents[0].range.start, &mut head).ok();
        let Some(format) = format.and_then(|()| Format::of(&head)) else { continue };
        left -= node.size;
        let check = |bytes: Vec<u8>| match format.has_checksums() {
            true => format.check(&bytes),
            false if format.is_whole_without(&bytes) => Finding::Good,
            false => Finding::Unknown,
        };
        match content(&opened, node.size, &extents).map(check) {
            Ok(Finding::Good) => {
                found.good.push(extents.into_iter().map(|extent| extent.range).collect());
            }
            Ok(Finding::Unknown) => {}
            Err(error) if error.kind() == HOLE || !format.has_checksums() => {}
            Ok(Finding::Bad(_)) | Err(_) => found.bad += 1,
        }
    }
    found
}

/// The bytes of a file.
///
/// # Errors
/// Not all can be read, or its extents lie behind its end.
fn content(volume: &dyn ReadAt, size: u64, extents: &[Extent]) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(size).map_err(|_| io::ErrorKind::InvalidData)?];
    for extent in extents.iter().filter(|extent| !extent.unwritten) {
        let length = extent.range.end.checked_sub(extent.range.start);
        let end = length.and_then(|length| extent.offset.checked_add(length));
        let end = end.filter(|end| *end <= size).ok_or(io::ErrorKind::InvalidData)?;
        // Both lie within its bytes.
        volume.read_at(extent.range.start, &mut bytes[extent.offset as usize..end as usize])?;
    }
    Ok(bytes)
}
