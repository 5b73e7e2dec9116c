//! ext2, ext3 and ext4.
//!
//! ```text
//!   superblock ──▶ group descriptors ──▶ inode tables ──▶ extents or block maps ──▶ claims, directories
//!                        └──▶ block bitmaps ──▶ free space
//! ```

mod directory;
mod inode;
mod journal;
mod map;
mod superblock;
mod walk;

use std::ops::Range;

pub use superblock::Superblock;
pub(crate) use superblock::recognise;

use crate::bytes::{halves, le16, le32};
use crate::claims::{Claims, Owner};
use crate::error::{Tried, check};
use crate::notes::Notes;
use crate::source::Reader;
use crate::{FileSystem, Replayed};
use inode::Inode;

pub(crate) struct Ext<'a> {
    reader: Reader<'a>,
    superblock: Superblock,
    notes: Notes,
    /// Nodes of trees that may still be read: each block is a node of one tree at most.
    nodes_left: u64,
    /// Blocks of directories that may still be read.
    directory_blocks_left: u64,
}

/// A group's descriptor; its places lie in the file system.
struct Group {
    block_bitmap: u64,
    inode_bitmap: u64,
    inode_table: u64,
    has_block_bitmap: bool,
    /// Inodes of the table that may be in use.
    inodes: u64,
}

impl<'a> Ext<'a> {
    pub(crate) fn new(reader: Reader<'a>, superblock: Superblock) -> Ext<'a> {
        let there = superblock.blocks.min(reader.size() / superblock.block);
        let mut notes = Notes::default();
        superblock.notes.iter().for_each(|note| notes.add(*note));
        let directory_blocks_left = 4 * there + 10_000;
        Ext { reader, superblock, notes, nodes_left: there, directory_blocks_left }
    }

    /// The groups that the volume has something of.
    fn groups(&self) -> Range<u64> {
        let there = self.reader.size() / self.superblock.block;
        0..self.superblock.groups.min(there.div_ceil(self.superblock.blocks_per_group))
    }

    fn read_block(&mut self, block: u64) -> Tried<Vec<u8>> {
        check(block < self.superblock.blocks, "a block lies behind the end of the file system")?;
        self.reader.read(block * self.superblock.block, self.superblock.block as usize)
    }

    /// The descriptor of a group, or a copy of it if that cannot be right: a superblock of md over block 1, for instance.
    fn group(&mut self, number: u64) -> Tried<Group> {
        let group = self.descriptor(self.superblock.descriptor_offset(number), true);
        if group.is_err() {
            for at in self.superblock.descriptor_copies(number) {
                if let Ok(group) = self.descriptor(at, false) {
                    self.notes.add("group descriptors are damaged: their copies are used");
                    return Ok(group);
                }
            }
        }
        group
    }

    /// Reads a descriptor. A copy is as old as the file system: how much of its tables is in use it does not tell.
    fn descriptor(&mut self, at: u64, is_current: bool) -> Tried<Group> {
        let superblock = &self.superblock;
        let bytes = self.reader.read(at, superblock.descriptor as usize)?;
        let has_counts = superblock.has_group_checksums && is_current;
        let is_wide = superblock.descriptor >= 64;
        let place = |at: usize| -> Tried<u64> {
            let high = if is_wide { le32(&bytes, at + 0x20)? } else { 0 };
            Ok(halves(le32(&bytes, at)?, high))
        };
        let unused_high = if is_wide { le16(&bytes, 0x32)? } else { 0 };
        let unused = u64::from(le16(&bytes, 0x1c)?) | u64::from(unused_high) << 16;
        let flags = if has_counts { le16(&bytes, 0x12)? } else { 0 };
        let inodes = match (has_counts, flags & 1 != 0) {
            (true, true) => 0,
            (true, false) => superblock.inodes_per_group.saturating_sub(unused),
            (false, _) => superblock.inodes_per_group,
        };
        let group = Group {
            block_bitmap: place(0)?,
            inode_bitmap: place(4)?,
            inode_table: place(8)?,
            has_block_bitmap: flags & 2 == 0,
            inodes,
        };
        let end = superblock.blocks;
        let table = self.inode_table_blocks();
        let is_there = |first: u64, len| first > 0 && first < end && len <= end - first;
        check(
            is_there(group.block_bitmap, 1)
                && is_there(group.inode_bitmap, 1)
                && is_there(group.inode_table, table),
            "bitmaps and inodes lie outside of the file system",
        )?;
        Ok(group)
    }

    fn inode_table_blocks(&self) -> u64 {
        let superblock = &self.superblock;
        (superblock.inodes_per_group * superblock.inode_size).div_ceil(superblock.block)
    }

    /// The descriptor of a group; a note if it cannot be believed.
    fn noted_group(&mut self, number: u64) -> Option<Group> {
        let group = self.group(number);
        self.notes.incomplete(|| format!("the descriptor of group {number} is not used"), group)
    }

    /// Enters what is at fixed places, and what descriptors name.
    fn claim_group(&mut self, number: u64, group: Option<&Group>, claims: &mut Claims) {
        let superblock = &self.superblock;
        let mut at = superblock.group_start(number);
        let mut claim = |first: u64, count: u64, what| {
            claims.claim(superblock.bytes(first, count), Owner::Metadata(what));
        };
        if superblock.copies.contain(number) {
            let len = superblock.superblock_blocks(number);
            claim(at, len, if number == 0 { "superblock" } else { "copy of the superblock" });
            at += len;
            let plain = superblock.plain_descriptor_blocks();
            claim(at, plain, "group descriptors");
            claim(at + plain, superblock.reserved_descriptors, "reserved group descriptors");
        }
        let index = number / superblock.descriptors_per_block();
        if index >= superblock.first_meta_group
            && superblock.meta_groups(index).any(|group| group == number)
        {
            claim(at, 1, "group descriptors");
        }
        if let Some(group) = group {
            claim(group.block_bitmap, 1, "block bitmap");
            claim(group.inode_bitmap, 1, "inode bitmap");
            claim(group.inode_table, self.inode_table_blocks(), "inode table");
        }
    }

    /// Calls `visit` for each inode in use of a group.
    fn each_inode(&mut self, number: u64, group: &Group, visit: &mut dyn FnMut(&mut Self, Inode)) {
        if group.inodes == 0 {
            return;
        }
        let bitmap = self.read_block(group.inode_bitmap);
        let about = || format!("the inode bitmap of group {number} is not used");
        let bitmap = self.notes.incomplete(about, bitmap);
        let size = self.superblock.inode_size;
        let per_block = self.superblock.block / size;
        for block in 0..group.inodes.div_ceil(per_block) {
            let first = block * per_block;
            let count = per_block.min(group.inodes - first);
            let is_set = |index: u64| {
                let byte = bitmap.as_ref().and_then(|bits| bits.get((index / 8) as usize));
                byte.is_none_or(|byte| byte >> (index % 8) & 1 == 1)
            };
            if !(first..first + count).any(is_set) {
                continue;
            }
            let bytes = self.read_block(group.inode_table + block);
            let first_inode = number * self.superblock.inodes_per_group + first + 1;
            let about = || format!("the inodes from {first_inode} on are not told");
            let Some(bytes) = self.notes.incomplete(about, bytes) else { continue };
            for (index, bytes) in bytes.chunks(size as usize).take(count as usize).enumerate() {
                let index = index as u64;
                if !is_set(first + index) {
                    continue;
                }
                if let Ok(inode) = Inode::parse(first_inode + index, bytes)
                    && inode.is_used(bitmap.is_some())
                {
                    visit(self, inode);
                }
            }
        }
    }

    fn every_inode(&mut self, visit: &mut dyn FnMut(&mut Self, Inode)) {
        for number in self.groups() {
            if let Some(group) = self.noted_group(number) {
                self.each_inode(number, &group, visit);
            }
        }
    }

    fn inode(&mut self, number: u64) -> Tried<Inode> {
        let superblock = &self.superblock;
        let is_there = (1..=superblock.inodes).contains(&number);
        check(is_there, "there are fewer inodes")?;
        let (size, index) = (superblock.inode_size, (number - 1) % superblock.inodes_per_group);
        let group = self.group((number - 1) / self.superblock.inodes_per_group)?;
        check(index < group.inodes, "the inode was never used")?;
        let offset = group.inode_table * self.superblock.block + index * size;
        Inode::parse(number, &self.reader.read(offset, size as usize)?)
    }

    /// An inode of the file system itself, in words.
    fn special(&self, inode: u64) -> Option<&'static str> {
        let special = self.superblock.special.iter().find(|(number, _)| *number == inode);
        let is_reserved = inode < self.superblock.first_inode && inode != 2;
        special.map(|(_, what)| *what).or(is_reserved.then_some("reserved inode"))
    }

    fn claim_inode(&mut self, inode: &Inode, claims: &mut Claims) {
        let number = inode.number;
        let special = self.special(number);
        let of_file = |what| match special {
            Some(what) => Owner::Metadata(what),
            None => Owner::OfFile { inode: number, what },
        };
        if inode.attributes > 0 && inode.attributes < self.superblock.blocks {
            claims
                .claim(self.superblock.bytes(inode.attributes, 1), of_file("extended attributes"));
        }
        if number == 7 {
            // Its map leads to the reserved descriptors, which are claimed by their groups.
            if let Ok(block) = le32(&inode.map, 13 * 4) {
                claims
                    .claim(self.superblock.bytes(block.into(), u64::from(block > 0)), of_file(""));
            }
            return;
        }
        let superblock = self.superblock.clone();
        let walked = map::walk(self, inode, 0, &mut |mapped| {
            let range = superblock.bytes(mapped.block, mapped.count);
            let owner = match (mapped.at, special) {
                (_, Some(what)) => Owner::Metadata(what),
                (Some(at), _) => Owner::File {
                    inode: number,
                    offset: at.saturating_mul(superblock.block),
                    unwritten: mapped.unwritten,
                },
                (None, _) => Owner::OfFile { inode: number, what: inode.tree() },
            };
            claims.claim(range, owner);
            true
        });
        self.notes.incomplete(|| format!("blocks of inode {number} are not told"), walked);
    }
}

impl FileSystem for Ext<'_> {
    fn kind(&self) -> &'static str {
        self.superblock.kind
    }

    fn size(&self) -> u64 {
        self.superblock.blocks * self.superblock.block
    }

    fn made(&mut self) -> Tried<Option<i64>> {
        check(self.superblock.is_whole, "its checksum is that of other bytes")?;
        Ok(i64::try_from(self.superblock.made).ok().filter(|made| *made > 0))
    }

    fn claim_owned(&mut self, claims: &mut Claims) {
        let start = self.superblock.first_block * self.superblock.block;
        claims.claim(0..start, Owner::Metadata("boot area"));
        if let Some(block) = self.superblock.multi_mount {
            let range = self.superblock.bytes(block, 1);
            claims.claim(range, Owner::Metadata("multiple mount protection"));
        }
        for number in self.groups() {
            let group = self.noted_group(number);
            self.claim_group(number, group.as_ref(), claims);
            if let Some(group) = group {
                self.each_inode(number, &group, &mut |ext, inode| ext.claim_inode(&inode, claims));
            }
        }
    }

    fn claim_free(&mut self, gaps: &[Range<u64>], claims: &mut Claims) {
        let (block, start) = (self.superblock.block, self.superblock.first_block);
        for gap in gaps {
            let blocks =
                (gap.start / block).max(start)..gap.end.div_ceil(block).min(self.superblock.blocks);
            let per_group = self.superblock.blocks_per_group;
            if blocks.is_empty() {
                continue;
            }
            for number in (blocks.start - start) / per_group..=(blocks.end - 1 - start) / per_group
            {
                let Some(group) = self.noted_group(number) else { continue };
                let first = self.superblock.group_start(number);
                let last = first + self.superblock.group_len(number);
                let wanted = blocks.start.max(first) - first..blocks.end.min(last) - first;
                self.claim_free_of(number, &group, wanted, claims);
            }
        }
    }

    fn notes(&mut self) -> &mut Notes {
        &mut self.notes
    }

    fn block(&self) -> u64 {
        self.superblock.block
    }

    fn replayed(&mut self) -> Replayed {
        self.read_journal()
    }
}

impl Ext<'_> {
    /// Enters the free ones of a group's blocks `wanted`.
    fn claim_free_of(
        &mut self,
        number: u64,
        group: &Group,
        wanted: Range<u64>,
        claims: &mut Claims,
    ) {
        let start = self.superblock.group_start(number);
        let bitmap = match group.has_block_bitmap {
            true => self.read_block(group.block_bitmap),
            false => Ok(vec![0; self.superblock.block as usize]),
        };
        let about = || format!("the block bitmap of group {number} is not used");
        let Some(bitmap) = self.notes.incomplete(about, bitmap) else { return };
        let is_free = |block: u64| {
            let bit = block / self.superblock.blocks_per_cluster;
            bitmap.get((bit / 8) as usize).is_some_and(|byte| byte >> (bit % 8) & 1 == 0)
        };
        let mut at = wanted.start;
        while at < wanted.end {
            let len = (at..wanted.end).take_while(|block| is_free(*block)).count() as u64;
            claims.claim(self.superblock.bytes(start + at, len), Owner::Free);
            at += len + 1;
        }
    }
}
