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

/// Called with blocks; false ends the walk.
type Visit<'v> = dyn FnMut(Mapped) -> bool + 'v;

/// Calls `visit` for the blocks of an inode that lie at or behind its block `from`, nodes of its tree included. Those
/// before the first number of a node that cannot be believed are visited, and other nodes.
pub(super) fn walk(
    ext: &mut Ext<'_>,
    inode: &Inode,
    from: u64,
    visit: &mut Visit<'_>,
) -> Tried<()> {
    if !inode.has_blocks() {
        return Ok(());
    }
    let walked = match inode.has_extents() {
        true => {
            let depth = le16(&inode.map, 6)?;
            check(depth <= DEEPEST, "the tree of extents is too deep")?;
            extents(ext, &inode.map, depth, 0..LAST, from, visit)
        }
        false => block_map(ext, &inode.map, from, visit),
    };
    walked.map(drop)
}

/// A node whose keys lie in `keys`. Recursion ends because `depth` falls. False if `visit` has ended the walk.
fn extents(
    ext: &mut Ext<'_>,
    node: &[u8],
    depth: u16,
    keys: Range<u64>,
    from: u64,
    visit: &mut Visit<'_>,
) -> Tried<bool> {
    check(le16(node, 0)? == MAGIC, "a node of the tree of extents is none")?;
    check(le16(node, 6)? == depth, "a node of the tree of extents has another depth")?;
    let count = usize::from(le16(node, 2)?);
    let entries = slice(node, 12, count * 12)?;
    let key = |index: usize| le32(entries, index * 12).map(u64::from);
    let mut next = keys.start;
    let mut result = Ok(true);
    for (index, entry) in entries.chunks(12).enumerate() {
        let first = key(index)?;
        check(first >= next && first < keys.end, "extents are not in order")?;
        let end = if index + 1 < count { key(index + 1)? } else { keys.end };
        check(first < end && end <= keys.end, "extents are not in order")?;
        if depth > 0 {
            next = end;
            if end <= from {
                continue;
            }
            let block = halves(le32(entry, 4)?, le16(entry, 8)?.into());
            let child = ext.node(block, visit);
            let below =
                child.and_then(|child| extents(ext, &child, depth - 1, first..end, from, visit));
            match below {
                Ok(false) => return result.and(Ok(false)),
                // Damage in one branch leaves the others.
                below => result = result.and(below),
            }
        } else {
            let len = le16(entry, 4)?;
            let unwritten = len > WRITTEN;
            let count = u64::from(if unwritten { len - WRITTEN } else { len });
            let block = halves(le32(entry, 8)?, le16(entry, 6)?.into());
            check(count > 0 && count <= end - first, "extents overlap")?;
            ext.check_blocks(block, count)?;
            next = first + count;
            if next > from && !visit(Mapped { at: Some(first), block, count, unwritten }) {
                return Ok(false);
            }
        }
    }
    result
}

fn block_map(ext: &mut Ext<'_>, map: &[u8], from: u64, visit: &mut Visit<'_>) -> Tried<bool> {
    let mut below = Below { per_block: ext.superblock.block / 4, from, at: 0, run: None, visit };
    let walked = (|| {
        for index in 0..15 {
            let height = u32::saturating_sub(index, 11);
            if !below.walk(ext, le32(map, index as usize * 4)?.into(), height)? {
                return Ok(false);
            }
        }
        Ok(true)
    })();
    match (below.run, walked) {
        (Some(run), Ok(true)) => Ok((below.visit)(run)),
        (Some(run), Err(why)) => {
            (below.visit)(run);
            Err(why)
        }
        (_, walked) => walked,
    }
}

/// A walk over a block map.
struct Below<'v, 'f> {
    per_block: u64,
    from: u64,
    /// The block of the file that comes next.
    at: u64,
    /// Blocks in a row that were not visited yet.
    run: Option<Mapped>,
    visit: &'v mut Visit<'f>,
}

impl Below<'_, '_> {
    /// A block of data, or a node at a `height` above it. Recursion ends because `height`, of 3, falls.
    fn walk(&mut self, ext: &mut Ext<'_>, block: u64, height: u32) -> Tried<bool> {
        let covered = self.per_block.pow(height);
        if block == 0 || self.at + covered <= self.from {
            self.at += covered;
            return Ok(true);
        }
        if height == 0 {
            let at = self.at;
            self.at += 1;
            ext.check_blocks(block, 1)?;
            return Ok(match &mut self.run {
                Some(run)
                    if run.block + run.count == block
                        && run.at.is_some_and(|first| first + run.count == at) =>
                {
                    run.count += 1;
                    true
                }
                _ => {
                    let new = Mapped { at: Some(at), block, count: 1, unwritten: false };
                    self.run.replace(new).is_none_or(&mut *self.visit)
                }
            });
        }
        let behind = self.at + covered;
        let node = match ext.node(block, self.visit) {
            Ok(node) => node,
            Err(why) => {
                self.at = behind;
                return Err(why);
            }
        };
        let mut result = Ok(true);
        for index in 0..self.per_block {
            let below = le32(&node, index as usize * 4)
                .and_then(|block| self.walk(ext, block.into(), height - 1));
            match below {
                Ok(false) => return Ok(false),
                below => result = result.and(below),
            }
        }
        result
    }
}

impl Ext<'_> {
    fn check_blocks(&self, block: u64, count: u64) -> Tried<()> {
        let (start, end) = (self.superblock.first_block, self.superblock.blocks);
        let is_there = block > start && block < end && count <= end - block;
        check(is_there, "blocks lie outside of the file system")
    }

    /// Reads a node, which is visited.
    fn node(&mut self, block: u64, visit: &mut Visit<'_>) -> Tried<Vec<u8>> {
        self.check_blocks(block, 1)?;
        let left = self.nodes_left.checked_sub(1);
        self.nodes_left =
            left.ok_or(Trouble::Damaged("trees have more nodes than there are blocks"))?;
        visit(Mapped { at: None, block, count: 1, unwritten: false });
        self.read_block(block)
    }
}
