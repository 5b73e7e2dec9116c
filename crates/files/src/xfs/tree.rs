//! Trees of an allocation group, and those that map a file's blocks.
//!
//! ```text
//!   group's node  magic level count siblings(2x4) [v5: 40 more]   keys.. pointers(4)..   or records..
//!   file's node   magic level count siblings(2x8) [v5: 48 more]   keys(8).. pointers(8).. or extents..
//!   root in an inode    level count                               keys(8).. pointers(8)..
//! ```

use std::ops::Range;

use super::Xfs;
use super::inode::Inode;
use crate::bytes::{be16, be32, be64, slice};
use crate::error::{Tried, Trouble, check};

/// A kind of tree in an allocation group.
pub(super) struct Tree {
    /// Its magic in versions 4 and 5.
    pub(super) magic: [&'static [u8; 4]; 2],
    /// Bytes of the keys of an entry.
    pub(super) keys: usize,
    pub(super) record: usize,
}

pub(super) const FREE: Tree = Tree { magic: [b"ABTB", b"AB3B"], keys: 8, record: 8 };
pub(super) const FREE_BY_SIZE: Tree = Tree { magic: [b"ABTC", b"AB3C"], keys: 8, record: 8 };
pub(super) const INODES: Tree = Tree { magic: [b"IABT", b"IAB3"], keys: 4, record: 16 };
pub(super) const FREE_INODES: Tree = Tree { magic: [b"FIBT", b"FIB3"], keys: 4, record: 16 };
pub(super) const REVERSE: Tree = Tree { magic: [b"RMB3", b"RMB3"], keys: 40, record: 24 };
pub(super) const REFERENCES: Tree = Tree { magic: [b"R3FC", b"R3FC"], keys: 4, record: 12 };
const FILE: [&[u8; 4]; 2] = [b"BMAP", b"BMA3"];

/// More than any tree has.
const DEEPEST: u16 = 12;

/// A step on the way through a tree.
pub(super) enum Step<'s> {
    /// The bytes of a node.
    Node(Range<u64>),
    Record(&'s [u8]),
}

/// Blocks of a file in a row, in bytes of the volume.
#[derive(Clone, Debug)]
pub(super) struct Mapped {
    /// The first block's place in the file; none for a node of the tree.
    pub(super) at: Option<u64>,
    pub(super) range: Range<u64>,
    pub(super) unwritten: bool,
}

impl Xfs<'_> {
    /// Reads a node, if it is one of these; more nodes than there are blocks end the walk.
    fn node(&mut self, range: &Range<u64>, magic: [&[u8; 4]; 2], level: u16) -> Tried<Vec<u8>> {
        let left = self.nodes_left.checked_sub(1);
        self.nodes_left =
            left.ok_or(Trouble::Damaged("trees have more nodes than there are blocks"))?;
        let bytes = self.reader.read(range.start, self.superblock.block as usize)?;
        let magic = magic[usize::from(self.superblock.is_v5)];
        check(bytes.starts_with(magic), "a node of a tree is none")?;
        check(be16(&bytes, 4)? == level, "a node of a tree has another level")?;
        Ok(bytes)
    }

    /// Goes through a tree of `group` whose root is at `block`, of `level` 0 if it is a leaf. Recursion ends
    /// because `level` falls.
    pub(super) fn tree(
        &mut self,
        group: u64,
        (block, level): (u32, u16),
        tree: &Tree,
        visit: &mut dyn FnMut(&mut Self, Step<'_>),
    ) -> Tried<()> {
        check(level < DEEPEST, "a tree is too deep")?;
        let range = self.superblock.in_group(group, block.into(), 1)?;
        let node = self.node(&range, tree.magic, level)?;
        visit(self, Step::Node(range));
        let header = if self.superblock.is_v5 { 56 } else { 16 };
        let count = usize::from(be16(&node, 6)?);
        if level == 0 {
            let records = slice(&node, header, count * tree.record)?;
            records.chunks(tree.record).for_each(|record| visit(self, Step::Record(record)));
            return Ok(());
        }
        let most = (node.len() - header) / (tree.keys + 4);
        check(count <= most, "a node of a tree has too many entries")?;
        let mut result = Ok(());
        for index in 0..count {
            let child = be32(&node, header + most * tree.keys + index * 4)?;
            // Damage in one branch leaves the others.
            result = result.and(self.tree(group, (child, level - 1), tree, visit));
            if self.nodes_left == 0 {
                break;
            }
        }
        result
    }

    /// Calls `visit` for the blocks of a fork that lie at or behind block `from` of the file, nodes of its tree
    /// included, until it returns false. Damage in one branch leaves the others.
    pub(super) fn walk(
        &mut self,
        inode: &Inode,
        fork: super::inode::Fork<'_>,
        from: u64,
        visit: &mut dyn FnMut(Mapped) -> bool,
    ) -> Tried<()> {
        let is_elsewhere = inode.is_realtime && !fork.is_attributes;
        let mut visits = Visits { is_elsewhere, from, next: 0, visit };
        match fork.format {
            2 => {
                let len =
                    usize::try_from(fork.extents).ok().and_then(|count| count.checked_mul(16));
                let len = len.ok_or(Trouble::Damaged("a fork has too many extents"))?;
                self.extents(slice(fork.bytes, 0, len)?, &mut visits).map(drop)
            }
            3 => {
                let level = be16(fork.bytes, 0)?;
                check((1..DEEPEST).contains(&level), "the tree of a fork is too deep")?;
                let most = fork.bytes.len().saturating_sub(4) / 16;
                self.children(fork.bytes, (4, most), level, &mut visits).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// The children of a node at `level`, whose header takes `start` bytes and which has room for `most`. False if
    /// the walk has ended.
    fn children(
        &mut self,
        node: &[u8],
        (start, most): (usize, usize),
        level: u16,
        visits: &mut Visits<'_>,
    ) -> Tried<bool> {
        // The root in an inode has no magic before its level.
        let count = usize::from(be16(node, if start == 4 { 2 } else { 6 })?);
        check(count <= most, "a node of a tree has too many entries")?;
        let mut result = Ok(true);
        for index in 0..count {
            let behind =
                if index + 1 < count { be64(node, start + index * 8 + 8)? } else { u64::MAX };
            if behind <= visits.from {
                continue;
            }
            let child = be64(node, start + most * 8 + index * 8)?;
            match self.child(child, level, visits) {
                Ok(false) => return result.and(Ok(false)),
                below => result = result.and(below),
            }
        }
        result
    }

    fn child(&mut self, block: u64, level: u16, visits: &mut Visits<'_>) -> Tried<bool> {
        let header = if self.superblock.is_v5 { 72 } else { 24 };
        let range = self.superblock.bytes(block, 1)?;
        let child = self.node(&range, FILE, level - 1)?;
        (visits.visit)(Mapped { at: None, range, unwritten: false });
        if level == 1 {
            let count = usize::from(be16(&child, 6)?);
            self.extents(slice(&child, header, count * 16)?, visits)
        } else {
            let most = (child.len() - header) / 16;
            self.children(&child, (header, most), level - 1, visits)
        }
    }

    /// Extents: a flag, 54 bits of the place in the file, 52 of the place on the volume, 21 of the length.
    fn extents(&self, bytes: &[u8], visits: &mut Visits<'_>) -> Tried<bool> {
        if visits.is_elsewhere {
            return Ok(true);
        }
        for extent in bytes.chunks_exact(16) {
            let (high, low) = (be64(extent, 0)?, be64(extent, 8)?);
            let block = (high & 0x1ff) << 43 | low >> 21;
            let count = low & 0x1f_ffff;
            check(count > 0, "an extent has no blocks")?;
            let range = self.superblock.bytes(block, count)?;
            let at = high << 1 >> 10;
            check(at >= visits.next, "extents are not in order")?;
            visits.next = at + count;
            let unwritten = high >> 63 == 1;
            if visits.next > visits.from
                && !(visits.visit)(Mapped { at: Some(at), range, unwritten })
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A walk over the blocks of a fork.
struct Visits<'v> {
    /// The contents lie on the realtime device.
    is_elsewhere: bool,
    from: u64,
    /// The block of the file at which the next extent may begin.
    next: u64,
    visit: &'v mut dyn FnMut(Mapped) -> bool,
}
