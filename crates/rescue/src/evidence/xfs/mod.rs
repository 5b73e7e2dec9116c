//! xfs.
//!
//! Version 5: nearly every block of metadata has the file system's UUID, its own address and a CRC-32C over both.
//! Parity of an odd number of such blocks has a right checksum, too: it is told by order, of names' hashes, of entries, of
//! times.
//! Version 4: only the headers of allocation groups say which group they belong to, and only the superblock beside them
//! says of which file system.

mod order;

use std::ops::Range;

use braid_files::XfsSuperblock;

use super::bytes::{array, be16, be32, be64};
use super::crc::is_right;
use super::{MOST_LANDMARKS, SECTOR, UNIT};
use crate::clue::{Anchor, Structure};

const INCOMPAT_METADATA_UUID: u32 = 4;

/// A file system of xfs.
#[derive(Clone, Debug)]
pub struct Xfs {
    superblock: XfsSuperblock,
    uuid: [u8; 16],
    /// The UUID that blocks of metadata have.
    metadata: [u8; 16],
}

/// Reads the superblock of any allocation group.
pub(super) fn recognise(bytes: &[u8]) -> Option<Xfs> {
    if !bytes.starts_with(b"XFSB") {
        return None;
    }
    let superblock = XfsSuperblock::parse(bytes.get(..512)?).ok()??;
    if superblock.is_v5 && !is_right(bytes.get(..superblock.sector as usize)?, 224) {
        return None;
    }
    let uuid = array(bytes, 32)?;
    let has_other = superblock.is_v5 && be32(bytes, 216)? & INCOMPAT_METADATA_UUID != 0;
    let metadata = if has_other { array(bytes, 248)? } else { uuid };
    Some(Xfs { superblock, uuid, metadata })
}

/// A kind of block: places of its checksum and UUID, and what its address is.
struct Form {
    crc: usize,
    uuid: usize,
    address: Address,
}

enum Address {
    /// The sector of the given number in the allocation group whose number is at the given place.
    Group { number: usize, sector: u64 },
    /// A number of 512 bytes, at the given place.
    Block(usize),
    /// The same, of a block of directories.
    Directory(usize),
    /// A number of an inode, at the given place.
    Inode(usize),
}

fn form(bytes: &[u8]) -> Option<Form> {
    use Address::{Block, Directory, Group, Inode};
    let (crc, uuid, address) = match bytes.first_chunk::<4>()? {
        b"XAGF" => (216, 64, Group { number: 8, sector: 1 }),
        b"XAGI" => (312, 296, Group { number: 8, sector: 2 }),
        b"XAFL" => (32, 8, Group { number: 4, sector: 3 }),
        b"AB3B" | b"AB3C" | b"IAB3" | b"FIB3" | b"RMB3" | b"R3FC" => (52, 32, Block(16)),
        b"BMA3" => (64, 40, Block(24)),
        b"XDB3" | b"XDD3" | b"XDF3" => (4, 24, Directory(8)),
        b"XSLM" | b"XARM" => (12, 16, Block(40)),
        [b'I', b'N', ..] => (100, 160, Inode(152)),
        _ => match be16(bytes, 8)? {
            0x3ebe | 0x3df1 | 0x3dff => (12, 32, Directory(16)),
            0x3bee => (12, 32, Block(16)),
            _ => return None,
        },
    };
    Some(Form { crc, uuid, address })
}

impl Xfs {
    pub(super) fn anchor(&self) -> Anchor {
        let size = Some(self.superblock.blocks * self.superblock.block);
        Anchor { structure: Structure::Xfs, uuid: self.uuid, size }
    }

    /// The starts of allocation groups: headers, trees of free space, and the first inodes.
    pub(super) fn landmarks(&self) -> Vec<Range<u64>> {
        const BEGINNING: u64 = 4 << 20;
        let of = &self.superblock;
        let groups = of.blocks.div_ceil(of.group_blocks);
        let step = groups.div_ceil(MOST_LANDMARKS);
        let groups =
            (0..MOST_LANDMARKS).map(|index| index * step).take_while(|group| *group < groups);
        let starts = groups.map(|group| group * of.group_blocks * of.block);
        starts.map(|start| start..start.saturating_add(BEGINNING)).collect()
    }

    pub(super) fn absorb(&mut self, other: &Xfs) -> bool {
        let shape = |of: &XfsSuperblock| {
            (of.is_v5, of.block, of.sector, of.group_blocks, of.inode_size, of.directory_blocks)
        };
        let is_same = (self.uuid, self.metadata) == (other.uuid, other.metadata)
            && shape(&self.superblock) == shape(&other.superblock);
        if is_same && other.superblock.blocks > self.superblock.blocks {
            self.superblock = other.superblock.clone();
        }
        is_same
    }

    pub(super) fn clues(&self, window: &[u8], mut give: impl FnMut(usize, u64, usize)) {
        // Inodes of one unit are believed together.
        for (index, unit) in window.chunks(UNIT).enumerate() {
            let (mut inodes, mut is_odd) = (Vec::new(), false);
            for from in (index * UNIT..index * UNIT + unit.len()).step_by(SECTOR) {
                let bytes = &window[from..];
                let proved = match self.superblock.is_v5 {
                    true => self.addressed(bytes),
                    false => self.headers(bytes),
                };
                let Some((place, length)) = proved else { continue };
                if bytes.starts_with(b"IN") {
                    is_odd |= order::has_odd_times(&bytes[..length]);
                    inodes.push((from, place, length));
                } else {
                    give(from, place, length);
                }
            }
            if !is_odd {
                inodes.into_iter().for_each(|(from, place, length)| give(from, place, length));
            }
        }
    }

    /// The place of a block of version 5, and its length.
    fn addressed(&self, bytes: &[u8]) -> Option<(u64, usize)> {
        let of = &self.superblock;
        let Form { crc, uuid, address } = form(bytes)?;
        if array(bytes, uuid)? != self.metadata {
            return None;
        }
        let (place, length) = match address {
            Address::Group { number, sector } => {
                (self.group(be32(bytes, number)?)? + sector * of.sector, of.sector)
            }
            Address::Block(at) => (be64(bytes, at)?.checked_mul(512)?, of.block),
            Address::Directory(at) => {
                let place = be64(bytes, at)?.checked_mul(512)?;
                let length = of.block * of.directory_blocks;
                let is_whole = bytes.get(..length as usize).is_some_and(|all| is_right(all, crc));
                // A node of attributes has the length of any other block.
                (place, if is_whole { length } else { of.block })
            }
            Address::Inode(at) => (of.inode_offset(be64(bytes, at)?).ok()?, of.inode_size),
        };
        let all = bytes.get(..length as usize)?;
        // An inode that was never used looks like the sum of others.
        let is_used = !bytes.starts_with(b"IN\0\0");
        (is_used && is_right(all, crc) && order::is_ordered(all)).then_some((place, all.len()))
    }

    /// The place of the first three sectors of an allocation group of version 4.
    fn headers(&self, bytes: &[u8]) -> Option<(u64, usize)> {
        let first = recognise(bytes)?;
        if !self.clone().absorb(&first) {
            return None;
        }
        let of = &first.superblock;
        let sector = of.sector as usize;
        let number = |index: usize, magic: &[u8]| {
            let header = bytes.get(index * sector..)?;
            let number = be32(header, 8)?;
            let is_group = header.starts_with(magic)
                && be32(header, 4)? == 1
                && u64::from(number) < of.groups
                && u64::from(be32(header, 12)?) == of.group_len(number.into());
            is_group.then_some(number)
        };
        let group = number(1, b"XAGF").filter(|group| number(2, b"XAGI") == Some(*group))?;
        let whole = bytes.get(..3 * sector)?;
        Some((self.group(group)?, whole.len()))
    }

    /// The place of an allocation group.
    fn group(&self, number: u32) -> Option<u64> {
        let of = &self.superblock;
        let number = u64::from(number);
        (number < of.groups).then(|| number * of.group_blocks * of.block)
    }
}
