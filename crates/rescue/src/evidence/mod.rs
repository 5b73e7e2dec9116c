//! Finds blocks that describe themselves: first the structures, then blocks that say where in one they belong.
//!
//! ```text
//!   windows of a member ──anchors──▶ gather ──▶ Known ◀──learn── windows again     tables, chunks, run lists
//!                                                │
//!   windows again ──────────clues────────────────┴──▶ Found: at, place
//! ```
//!
//! Invariants
//! * A clue is proved by a checksum that covers its address, or by an address beside several other fields that fit.
//!   Blocks that may be copies of others (a mirror of a table) give no clue, those of a journal only if there are few others.
//! * Numbers from a block are compared with the size of their structure before they are used.
//! * Time is linear in the window: each sector is compared with magic numbers before anything is computed.
//!
//! Deliberately absent: reading, and everything that needs two members.

mod btrfs;
pub(crate) mod bytes;
pub(crate) mod crc;
mod ext;
pub mod fuzz;
mod gpt;
mod luks;
pub(crate) mod lvm2;
mod ntfs;
mod settle;
mod xfs;

pub use btrfs::Btrfs;
pub use ext::Ext;
pub use gpt::{Gpt, Partition};
pub use luks::Luks;
pub use lvm2::{Logical, Lvm2, Physical, Segment, VolumeGroup};
pub use ntfs::Ntfs;
pub use settle::{choose, settle};
pub use xfs::Xfs;

use std::ops::Range;

use crate::clue::Anchor;

/// Blocks may begin at any multiple of it from the start of a member.
const SECTOR: usize = 512;
/// The smallest chunk of md: neighbours within it lie together on any member.
const UNIT: usize = 4096;

/// Most ranges that a structure names by its size alone.
const MOST_LANDMARKS: u64 = 1 << 16;

/// A structure that was found, with the facts that its parser needs to find clues.
#[derive(Clone, Debug)]
pub enum Known {
    /// ext2, ext3 or ext4.
    Ext(Box<Ext>),
    /// xfs.
    Xfs(Xfs),
    /// btrfs.
    Btrfs(Btrfs),
    /// NTFS.
    Ntfs(Ntfs),
    /// A GUID partition table.
    Gpt(Gpt),
    /// A physical volume of LVM2.
    Lvm2(Lvm2),
    /// LUKS.
    Luks(Luks),
}

/// A block that says where it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// Index of its structure in the list that [`clues`] was given.
    pub anchor: usize,
    /// Bytes from the start of the member.
    pub at: u64,
    /// Bytes from the start of the structure.
    pub place: u64,
    /// Number of bytes that are certain: 512 at least, and within 4 KiB of the member.
    pub length: u32,
    /// The place of a second copy: the block belongs at `place` or here. [`settle()`] decides.
    pub other: Option<u64>,
    /// True if it lies where a journal may have copies of blocks. [`choose`] decides.
    pub is_doubtful: bool,
}

impl Known {
    /// Returns the description of the structure.
    pub fn anchor(&self) -> Anchor {
        match self {
            Known::Ext(ext) => ext.anchor(),
            Known::Xfs(xfs) => xfs.anchor(),
            Known::Btrfs(btrfs) => btrfs.anchor(),
            Known::Ntfs(ntfs) => ntfs.anchor(),
            Known::Gpt(gpt) => gpt.anchor(),
            Known::Lvm2(lvm2) => lvm2.anchor(),
            Known::Luks(luks) => luks.anchor(),
        }
    }

    /// Returns ranges of the structure in which blocks say where they belong, as far as is known; none if nothing is.
    pub fn landmarks(&self) -> Vec<Range<u64>> {
        match self {
            Known::Ext(ext) => ext.landmarks(),
            Known::Xfs(xfs) => xfs.landmarks(),
            Known::Btrfs(btrfs) => btrfs.landmarks(),
            Known::Ntfs(_) | Known::Gpt(_) | Known::Lvm2(_) | Known::Luks(_) => Vec::new(),
        }
    }

    /// Returns the place of the superblock that was read, if it says so; otherwise that of the first one.
    pub fn place_of_copy(&self) -> u64 {
        match self {
            Known::Ext(ext) => ext.place_of_copy(),
            Known::Btrfs(btrfs) => btrfs.place_of_copy(),
            Known::Xfs(_) | Known::Ntfs(_) | Known::Gpt(_) | Known::Lvm2(_) | Known::Luks(_) => 0,
        }
    }

    /// True if `other` is the same structure.
    pub fn is_same(&self, other: &Known) -> bool {
        self.clone().absorb(other)
    }

    /// Takes over the facts of `other` if it is the same structure, and returns whether it is.
    fn absorb(&mut self, other: &Known) -> bool {
        match (self, other) {
            (Known::Ext(ext), Known::Ext(other)) => ext.absorb(other),
            (Known::Xfs(xfs), Known::Xfs(other)) => xfs.absorb(other),
            (Known::Btrfs(btrfs), Known::Btrfs(other)) => btrfs.absorb(other),
            (Known::Ntfs(ntfs), Known::Ntfs(other)) => ntfs.absorb(other),
            (Known::Gpt(gpt), Known::Gpt(other)) => gpt.absorb(other),
            (Known::Lvm2(lvm2), Known::Lvm2(other)) => lvm2.absorb(other),
            (Known::Luks(luks), Known::Luks(other)) => luks == other,
            _ => false,
        }
    }
}

/// The sectors of a window: the offset of each, and the bytes from it on.
fn sectors(window: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    (0..window.len()).step_by(SECTOR).map(|from| (from, &window[from..]))
}

/// Finds the structures whose superblocks, headers or labels lie in `window`, which begins `at` bytes from the start of
/// a member; `at` is a multiple of 4096. Returns where each one lies in the member.
pub fn anchors(window: &[u8], at: u64) -> Vec<(u64, Known)> {
    let found = sectors(window).filter_map(|(from, bytes)| {
        let tagged = match bytes {
            [b'X', ..] => xfs::recognise(bytes).map(Known::Xfs),
            [b'E', b'F', ..] => gpt::recognise(window, from).map(|(gpt, _)| Known::Gpt(gpt)),
            [b'L', b'A', ..] => lvm2::recognise(bytes).map(|(lvm2, _)| Known::Lvm2(lvm2)),
            [b'L' | b'S', ..] => luks::recognise(bytes).map(|(luks, _)| Known::Luks(luks)),
            _ => None,
        };
        // Superblocks of ext and btrfs begin with numbers, which may look like the letters of others.
        let known = tagged
            .or_else(|| Some(Known::Ext(Box::new(ext::recognise(bytes)?.0))))
            .or_else(|| Some(Known::Btrfs(btrfs::recognise(bytes)?.0)))
            .or_else(|| Some(Known::Ntfs(ntfs::recognise(bytes)?)))?;
        Some((at + from as u64, known))
    });
    found.collect()
}

/// Adds structures to a list, in which each one stands once.
pub fn gather(known: &mut Vec<Known>, found: impl IntoIterator<Item = Known>) {
    for one in found {
        if !known.iter_mut().any(|other| other.absorb(&one)) {
            known.push(one);
        }
    }
}

/// Learns from a window the facts on which clues depend: places of inode tables, chunks of btrfs, the extents of NTFS'
/// table, logical volumes. To be called for all windows before [`clues`].
pub fn learn(window: &[u8], known: &mut [Known]) {
    let is_alone = known.iter().filter(|one| matches!(one, Known::Ext(_))).count() == 1;
    for one in known {
        match one {
            Known::Ext(ext) => ext.learn(window, is_alone),
            Known::Btrfs(btrfs) => btrfs.learn(window),
            Known::Ntfs(ntfs) => ntfs.learn(window),
            Known::Lvm2(lvm2) => lvm2.learn(window),
            Known::Xfs(_) | Known::Gpt(_) | Known::Luks(_) => {}
        }
    }
}

/// Finds the blocks in `window` that say where they belong in one of the structures `known`. The window begins `at`
/// bytes from the start of a member, a multiple of 4096. Neighbours are one clue within 4 KiB of the member.
pub fn clues(window: &[u8], at: u64, known: &[Known]) -> Vec<Found> {
    let mut found = Vec::new();
    let count = |of: fn(&Known) -> bool| known.iter().filter(|one| of(one)).count();
    for (anchor, one) in known.iter().enumerate() {
        let size = one.anchor().size.unwrap_or(u64::MAX);
        let mut give_any = |from: usize, places: &[u64], length: usize, is_doubtful: bool| {
            let is_inside =
                |place: &u64| place.checked_add(length as u64).is_some_and(|end| end <= size);
            if !places.iter().all(is_inside) {
                return;
            }
            // Behind it another chunk may begin. If its bytes are like those of the block, the checksum is right.
            let length = length.min(UNIT - from % UNIT);
            let length = u32::try_from(length).expect("a unit is small");
            let (place, other) = match *places {
                [place] => (place, None),
                [place, other] => (place, Some(other)),
                _ => return,
            };
            let at = at + from as u64;
            found.push(Found { anchor, at, place, length, other, is_doubtful });
        };
        if let Known::Ext(ext) = one {
            ext.clues(window, |from, place, length, is_near| {
                give_any(from, &[place], length, is_near);
            });
            continue;
        }
        let mut give_either =
            |from: usize, places: &[u64], length: usize| give_any(from, places, length, false);
        let give = |from: usize, place: u64, length: usize| give_either(from, &[place], length);
        match one {
            Known::Ext(_) => {}
            Known::Xfs(xfs) => xfs.clues(window, give),
            // Nodes do not say to which device of their file system they belong, records not to which file system.
            Known::Btrfs(btrfs) => {
                let is_like =
                    |one: &&Known| matches!(one, Known::Btrfs(other) if btrfs.has_nodes_of(other));
                let is_alone = known.iter().filter(is_like).count() == 1;
                btrfs.clues(window, is_alone, give_either);
            }
            Known::Ntfs(ntfs) if count(|one| matches!(one, Known::Ntfs(_))) == 1 => {
                ntfs.clues(window, give);
            }
            Known::Ntfs(_) => {}
            Known::Gpt(gpt) => gpt.clues(window, give),
            Known::Lvm2(lvm2) => {
                let is_alone = count(|one| matches!(one, Known::Lvm2(_))) == 1;
                lvm2.clues(window, is_alone, give);
            }
            Known::Luks(luks) => luks.clues(window, give),
        }
    }
    found.sort_unstable();
    found.dedup_by(|next, last| {
        let is_next = last.anchor == next.anchor
            && (last.other, next.other) == (None, None)
            && last.is_doubtful == next.is_doubtful
            && last.at / UNIT as u64 == next.at / UNIT as u64
            && last.at + u64::from(last.length) == next.at
            && last.place + u64::from(last.length) == next.place;
        if is_next {
            last.length += next.length;
        }
        is_next
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_superblock_whose_first_number_looks_like_letters_is_found() {
        // The low bytes of the number of inodes are X; those of xfs' superblock are XFSB.
        for inodes in [0x58_u32, 0x60] {
            let mut window = vec![0; 8192];
            let numbers = [
                (0x00, inodes),
                (0x04, 1024),
                (0x14, 1),
                (0x20, 8192),
                (0x28, inodes),
                (0x38, 0xef53),
                (0x4c, 1),
                (0x58, 256),
                (0x68, 7),
            ];
            for (at, number) in numbers {
                window[1024 + at..][..4].copy_from_slice(&u32::to_le_bytes(number));
            }
            let found = anchors(&window, 0);
            assert!(matches!(found[..], [(1024, Known::Ext(_))]), "{inodes}: {found:?}");
        }
    }
}
