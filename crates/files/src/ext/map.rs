//! The blocks of an inode: trees of extents, and the block maps of ext2.

use std::ops::Range;

use super::Ext;
use super::inode::Inode;
use crate::bytes::{halves, le16, le32, slice};
use crate::error::{Tried, Trouble, check};

/// Blocks in a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mapped {
    /// The first block's place in the file; none for a node of the tree.
    pub(super) at: Option<u64>,
    pub(super) block: u64,
    pub(super) count: u64,
    pub(super) unwritten: bool,
}

const MAGIC: u16 = 0xf30a;
const DEEPEST: u16 = 5;
/// Blocks of a file are counted in 32 bits.
const LAST: u64 = 1 << 32;
/// An extent of more blocks is one that was not written, of so many fewer.
const WRITTEN: u16 = 1 << 15;

/// Calls `visit` for all blocks of an inode, nodes of its tree included. Those before the first number that
/// cannot be believed are visited.
pub(super) fn walk(ext: &mut Ext<'_>, inode: &Inode, visit: &mut dyn FnMut(Mapped)) -> Tried<()> {
    if !inode.has_blocks() {
        return Ok(());
    }
    match inode.has_extents() {
        true => {
            let depth = le16(&inode.map, 6)?;
            check(depth <= DEEPEST, "the tree of extents is too deep")?;
            extents(ext, &inode.map, depth, 0..LAST, visit)
        }
        false => block_map(ext, &inode.map, visit),
    }
}

/// A node whose keys lie in `keys`. Recursion ends because `depth` falls.
fn extents(
    ext: &mut Ext<'_>,
    node: &[u8],
    depth: u16,
    keys: Range<u64>,
    visit: &mut dyn FnMut(Mapped),
) -> Tried<()> {
    check(le16(node, 0)? == MAGIC, "a node of the tree of extents is none")?;
    check(le16(node, 6)? == depth, "a node of the tree of extents has another depth")?;
    let count = usize::from(le16(node, 2)?);
    let entries = slice(node, 12, count * 12)?;
    let key = |index: usize| le32(entries, index * 12).map(u64::from);
    let mut next = keys.start;
    for (index, entry) in entries.chunks(12).enumerate() {
        let first = key(index)?;
        check(first >= next && first < keys.end, "extents are not in order")?;
        let end = if index + 1 < count { key(index + 1)? } else { keys.end };
        check(first < end && end <= keys.end, "extents are not in order")?;
        if depth > 0 {
            let block = halves(le32(entry, 4)?, le16(entry, 8)?.into());
            let child = ext.node(block, visit)?;
            extents(ext, &child, depth - 1, first..end, visit)?;
            next = end;
        } else {
            let len = le16(entry, 4)?;
            let unwritten = len > WRITTEN;
            let count = u64::from(if unwritten { len - WRITTEN } else { len });
            let block = halves(le32(entry, 8)?, le16(entry, 6)?.into());
            check(count > 0 && count <= end - first, "extents overlap")?;
            ext.check_blocks(block, count)?;
            visit(Mapped { at: Some(first), block, count, unwritten });
            next = first + count;
        }
    }
    Ok(())
}

fn block_map(ext: &mut Ext<'_>, map: &[u8], visit: &mut dyn FnMut(Mapped)) -> Tried<()> {
    let mut run = None;
    let per_block = ext.superblock.block / 4;
    let mut at = 0;
    let walked = (|| {
        for index in 0..15 {
            let height = u32::saturating_sub(index, 11);
            let block = le32(map, index as usize * 4)?.into();
            below(ext, block, height, &mut at, per_block, &mut run, visit)?;
        }
        Ok(())
    })();
    run.into_iter().for_each(visit);
    walked
}

/// A block of data, or a node at a `height` above it. Recursion ends because `height`, of 3, falls.
fn below(
    ext: &mut Ext<'_>,
    block: u64,
    height: u32,
    at: &mut u64,
    per_block: u64,
    run: &mut Option<Mapped>,
    visit: &mut dyn FnMut(Mapped),
) -> Tried<()> {
    let covered = per_block.pow(height);
    if block == 0 {
        *at += covered;
        return Ok(());
    }
    if height == 0 {
        ext.check_blocks(block, 1)?;
        match run {
            Some(run)
                if run.block + run.count == block
                    && run.at.is_some_and(|first| first + run.count == *at) =>
            {
                run.count += 1;
            }
            _ => {
                let new = Mapped { at: Some(*at), block, count: 1, unwritten: false };
                run.replace(new).into_iter().for_each(visit);
            }
        }
        *at += 1;
        return Ok(());
    }
    let node = ext.node(block, visit)?;
    for index in 0..per_block {
        let block = le32(&node, index as usize * 4)?.into();
        below(ext, block, height - 1, at, per_block, run, visit)?;
    }
    Ok(())
}

impl Ext<'_> {
    fn check_blocks(&self, block: u64, count: u64) -> Tried<()> {
        let (start, end) = (self.superblock.first_block, self.superblock.blocks);
        let is_there = block > start && block < end && count <= end - block;
        check(is_there, "blocks lie outside of the file system")
    }

    /// Reads a node, which is visited.
    fn node(&mut self, block: u64, visit: &mut dyn FnMut(Mapped)) -> Tried<Vec<u8>> {
        self.check_blocks(block, 1)?;
        let left = self.nodes_left.checked_sub(1);
        self.nodes_left =
            left.ok_or(Trouble::Damaged("trees have more nodes than there are blocks"))?;
        visit(Mapped { at: None, block, count: 1, unwritten: false });
        self.read_block(block)
    }
}
