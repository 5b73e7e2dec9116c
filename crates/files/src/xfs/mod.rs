//! xfs.
//!
//! ```text
//!   superblock ──▶ each allocation group: headers ──▶ inode tree ──▶ inodes ──▶ extents ──▶ claims, directories
//!                                            └──▶ free-space tree ──▶ free space
//! ```

mod directory;
mod inode;
mod log;
mod superblock;
mod tree;
mod walk;

use std::ops::Range;

pub use superblock::Superblock;
pub(crate) use superblock::recognise;

use crate::bytes::{be16, be32, be64};
use crate::claims::{Claims, Owner};
use crate::error::{Tried, check};
use crate::notes::Notes;
use crate::source::Reader;
use crate::{FileSystem, Replayed};
use inode::Inode;
use tree::{Step, Tree};

/// Inodes that a record of the inode tree is about.
const CHUNK: u64 = 64;

pub(crate) struct Xfs<'a> {
    reader: Reader<'a>,
    superblock: Superblock,
    notes: Notes,
    /// Nodes of trees that may still be read: each block is a node of one tree at most.
    nodes_left: u64,
    /// Blocks of directories that may still be read.
    directory_blocks_left: u64,
    /// Inodes that may still be read in this pass.
    inodes_left: u64,
}

impl<'a> Xfs<'a> {
    pub(crate) fn new(reader: Reader<'a>, superblock: Superblock) -> Xfs<'a> {
        let there = superblock.blocks.min(reader.size() / superblock.block);
        let mut notes = Notes::default();
        superblock.notes.iter().for_each(|note| notes.add(*note));
        let directory_blocks_left = 4 * there + 10_000;
        Xfs { reader, superblock, notes, nodes_left: there, directory_blocks_left, inodes_left: 0 }
    }

    fn blocks_there(&self) -> u64 {
        self.superblock.blocks.min(self.reader.size() / self.superblock.block)
    }

    /// The groups that the volume has something of.
    fn groups(&self) -> Range<u64> {
        0..self.superblock.groups.min(self.blocks_there().div_ceil(self.superblock.group_blocks))
    }

    /// A sector of a group's headers.
    fn header(&mut self, group: u64, index: u64, magic: &[u8; 4]) -> Tried<Vec<u8>> {
        let start = self.superblock.in_group(group, 0, 1)?.start;
        let sector = self.superblock.sector;
        let bytes = self.reader.read(start + index * sector, sector as usize)?;
        check(bytes.starts_with(magic), "it has another magic number")?;
        Ok(bytes)
    }

    /// The headers of free space and of inodes; a note if one cannot be believed.
    fn noted_header(&mut self, group: u64, index: u64, magic: &[u8; 4]) -> Option<Vec<u8>> {
        let header = self.header(group, index, magic);
        let name = String::from_utf8_lossy(magic).into_owned();
        let about = || format!("header {name} of allocation group {group} is not used");
        self.notes.incomplete(about, header)
    }

    /// Goes through the tree whose root and levels stand at these places of a header; none if there is no tree.
    fn noted_tree(
        &mut self,
        (group, header): (u64, &[u8]),
        (root, levels): (usize, usize),
        tree: &Tree,
        visit: &mut dyn FnMut(&mut Self, Step<'_>),
    ) {
        let found = (be32(header, root), be32(header, levels));
        let (Ok(root), Ok(levels @ 1..)) = found else { return };
        let level = u16::try_from(levels - 1).unwrap_or(u16::MAX);
        let walked = self.tree(group, (root, level), tree, visit);
        let name = String::from_utf8_lossy(tree.magic[1]).into_owned();
        let about = || format!("tree {name} of allocation group {group} is not told completely");
        self.notes.incomplete(about, walked);
    }

    /// Enters a group's headers and the blocks of its trees.
    fn claim_group(&mut self, group: u64, claims: &mut Claims) {
        let sectors = (4 * self.superblock.sector).div_ceil(self.superblock.block);
        if let Ok(range) = self.superblock.in_group(group, 0, sectors) {
            claims.claim(range, Owner::Metadata("headers of an allocation group"));
        }
        if let Some(free) = self.noted_header(group, 1, b"XAGF") {
            let trees = [
                ((16, 28), &tree::FREE, "free-space tree"),
                ((20, 32), &tree::FREE_BY_SIZE, "free-space tree"),
                ((24, 36), &tree::REVERSE, "reverse-map tree"),
                ((88, 92), &tree::REFERENCES, "reference tree"),
            ];
            // Version 4 has two of them.
            for (at, tree, what) in
                trees.into_iter().take(if self.superblock.is_v5 { 4 } else { 2 })
            {
                self.noted_tree((group, &free), at, tree, &mut |xfs, step| match step {
                    Step::Node(range) => claims.claim(range, Owner::Metadata(what)),
                    Step::Record(record) => xfs.claim_staging(group, record, claims),
                });
            }
            let list = self.claim_free_list(group, &free, claims);
            self.notes.incomplete(|| format!("the free list of group {group} is not told"), list);
        }
        if let Some(inodes) = self.noted_header(group, 2, b"XAGI") {
            let mut visit = |_: &mut Self, step: Step<'_>| {
                if let Step::Node(range) = step {
                    claims.claim(range, Owner::Metadata("inode tree"));
                }
            };
            self.noted_tree((group, &inodes), (20, 24), &tree::INODES, &mut visit);
            if self.superblock.is_v5 {
                self.noted_tree((group, &inodes), (328, 332), &tree::FREE_INODES, &mut visit);
            }
        }
    }

    /// Records of references, of 12 bytes, also hold what is reserved for copy on write.
    fn claim_staging(&self, group: u64, record: &[u8], claims: &mut Claims) {
        let (Ok(first), Ok(count), Ok(_)) = (be32(record, 0), be32(record, 4), be32(record, 8))
        else {
            return;
        };
        if record.len() == 12
            && first >> 31 == 1
            && let Ok(range) =
                self.superblock.in_group(group, (first & !(1 << 31)).into(), count.into())
        {
            claims.claim(range, Owner::Metadata("reserved for copy on write"));
        }
    }

    /// The blocks that are kept for the trees of a group.
    fn claim_free_list(&mut self, group: u64, free: &[u8], claims: &mut Claims) -> Tried<()> {
        let start = self.superblock.in_group(group, 0, 1)?.start + 3 * self.superblock.sector;
        let list = self.reader.read(start, self.superblock.sector as usize)?;
        let header = if self.superblock.is_v5 { 36 } else { 0 };
        let most = (list.len() - header) / 4;
        let (first, count) = (be32(free, 40)? as usize, be32(free, 48)? as usize);
        check(first < most && count <= most, "it is longer than its sector")?;
        for index in 0..count {
            let block = be32(&list, header + (first + index) % most * 4)?;
            let range = self.superblock.in_group(group, block.into(), 1)?;
            claims.claim(range, Owner::Metadata("free list"));
        }
        Ok(())
    }

    fn inode(&mut self, number: u64) -> Tried<Inode> {
        let offset = self.superblock.inode_offset(number)?;
        Inode::parse(number, self.reader.read(offset, self.superblock.inode_size as usize)?)
    }

    /// Calls `visit` for the inodes in use.
    fn every_inode(&mut self, visit: &mut dyn FnMut(&mut Self, Inode)) {
        self.inodes_left = self.blocks_there() << self.superblock.inode_bits;
        for group in self.groups() {
            self.each_chunk(group, &mut |xfs, first, holes, free| {
                for index in (0..CHUNK).filter(|index| (holes | free) >> index & 1 == 0) {
                    let inode = xfs.inode(first + index);
                    let about = || format!("inode {} is not told", first + index);
                    if let Some(inode) = xfs.notes.incomplete(about, inode) {
                        visit(xfs, inode);
                    }
                }
            });
        }
    }

    /// Calls `visit` with the first inode of each chunk of a group, which ones have no place, and which are free.
    fn each_chunk(&mut self, group: u64, visit: &mut dyn FnMut(&mut Self, u64, u64, u64)) {
        let Some(header) = self.noted_header(group, 2, b"XAGI") else { return };
        let bits = self.superblock.block_bits + self.superblock.inode_bits;
        self.noted_tree((group, &header), (20, 24), &tree::INODES, &mut |xfs, step| {
            let Step::Record(record) = step else { return };
            let holes = if xfs.superblock.has_sparse_inodes { be16(record, 4) } else { Ok(0) };
            if let (Ok(first), Ok(holes), Ok(free)) = (be32(record, 0), holes, be64(record, 8)) {
                // Each bit of the holes stands for four inodes.
                let holes = (0..CHUNK).filter(|index| holes >> (index / 4) & 1 == 1);
                let holes: u64 = holes.fold(0, |mask, index| mask | 1 << index);
                let left = xfs.inodes_left.checked_sub(holes.count_zeros().into());
                let Some(left) = left else {
                    return xfs.notes.add("there are more inodes than fit: some are not told");
                };
                xfs.inodes_left = left;
                visit(xfs, group << bits | u64::from(first), holes, free);
            }
        });
    }

    fn claim_inode(&mut self, inode: &Inode, claims: &mut Claims) {
        let (number, block) = (inode.number, self.superblock.block);
        let special = self.superblock.special.iter().find(|(special, _)| *special == number);
        let special = special.map(|(_, what)| *what);
        for fork in [inode.data(), inode.attributes()] {
            let walked = self.walk(inode, fork, 0, &mut |mapped| {
                let owner = match (special, mapped.at) {
                    (Some(what), _) => Owner::Metadata(what),
                    _ if fork.is_attributes => {
                        Owner::OfFile { inode: number, what: "extended attributes" }
                    }
                    (None, None) => Owner::OfFile { inode: number, what: "extent tree" },
                    (None, Some(at)) if inode.is_directory() && at >= directory::INDEX / block => {
                        Owner::OfFile { inode: number, what: "index of the directory" }
                    }
                    (None, Some(at)) => Owner::File {
                        inode: number,
                        offset: at.saturating_mul(block),
                        unwritten: mapped.unwritten,
                    },
                };
                claims.claim(mapped.range, owner);
                true
            });
            self.notes.incomplete(|| format!("blocks of inode {number} are not told"), walked);
        }
    }
}

impl FileSystem for Xfs<'_> {
    fn kind(&self) -> &'static str {
        "xfs"
    }

    fn size(&self) -> u64 {
        self.superblock.blocks * self.superblock.block
    }

    fn made(&mut self) -> Tried<Option<i64>> {
        Ok(self.inode(self.superblock.root)?.made())
    }

    fn claim_owned(&mut self, claims: &mut Claims) {
        if let Some((first, count)) = self.superblock.log
            && let Ok(range) = self.superblock.bytes(first, count)
        {
            claims.claim(range, Owner::Metadata("log"));
        }
        let size = self.superblock.inode_size;
        self.inodes_left = self.blocks_there() << self.superblock.inode_bits;
        for group in self.groups() {
            self.claim_group(group, claims);
            self.each_chunk(group, &mut |xfs, first, holes, _| {
                for index in (0..CHUNK).filter(|index| holes >> index & 1 == 0) {
                    if let Ok(offset) = xfs.superblock.inode_offset(first + index) {
                        claims.claim(offset..offset + size, Owner::Metadata("inodes"));
                    }
                }
            });
        }
        // Each pass reads the trees again.
        self.nodes_left = self.blocks_there();
        self.every_inode(&mut |xfs, inode| xfs.claim_inode(&inode, claims));
    }

    fn claim_free(&mut self, gaps: &[Range<u64>], claims: &mut Claims) {
        self.nodes_left = self.blocks_there();
        let bytes = self.superblock.group_blocks * self.superblock.block;
        for group in self.groups() {
            let (start, end) = (group * bytes, (group + 1) * bytes);
            if !gaps.iter().any(|gap| gap.start < end && gap.end > start) {
                continue;
            }
            let Some(header) = self.noted_header(group, 1, b"XAGF") else { continue };
            self.noted_tree((group, &header), (16, 28), &tree::FREE, &mut |xfs, step| {
                if let Step::Record(record) = step
                    && let (Ok(first), Ok(count)) = (be32(record, 0), be32(record, 4))
                    && let Ok(range) = xfs.superblock.in_group(group, first.into(), count.into())
                {
                    claims.claim(range, Owner::Free);
                }
            });
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

    fn has_long_log(&self) -> bool {
        true
    }
}
