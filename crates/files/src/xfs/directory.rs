//! Directories of xfs: in the inode, in one block, or in data blocks with an index behind 32 GiB.

use super::Xfs;
use super::inode::{Fork, Inode};
use crate::bytes::{be16, be32, be64, byte, slice};
use crate::error::{Tried, Trouble, check};
use crate::names::Directories;

/// The start of the index, in the file.
pub(super) const INDEX: u64 = 32 << 30;
/// Nodes on the way to a block: more than a tree is deep.
pub(super) const WAY: u64 = 16;

impl Xfs<'_> {
    /// Calls `entry` for the entries of the first directory block at or behind block `from` of the file system;
    /// returns where the next one may be.
    pub(super) fn directory_block(
        &mut self,
        inode: &Inode,
        from: u64,
        entry: &mut dyn FnMut(&[u8], u64),
    ) -> (Option<u64>, Tried<()>) {
        if !inode.is_directory() {
            return (None, Err(Trouble::Damaged("it is no directory")));
        }
        let fork = inode.data();
        if fork.format == 1 {
            return (None, short(fork, self.superblock.has_types, entry));
        }
        // The way down to the block is read again for each.
        self.nodes_left += WAY;
        let (block, per_block) = (self.superblock.block, self.superblock.directory_blocks);
        // A directory block may lie in several places.
        let mut places = Vec::new();
        let (mut first, mut end) = (u64::MAX, u64::MAX);
        let walked = self.walk(inode, fork, from, &mut |mapped| {
            let Some(at) = mapped.at else { return true };
            if places.is_empty() {
                if at >= INDEX / block {
                    return false;
                }
                first = at.max(from) / per_block * per_block;
                end = first + per_block;
            }
            let len = (mapped.range.end - mapped.range.start) / block;
            for index in at.max(first)..(at + len).min(end) {
                places.push(mapped.range.start + (index - at) * block);
            }
            at + len < end
        });
        if places.is_empty() {
            return (None, walked);
        }
        let left = self.directory_blocks_left.checked_sub(per_block);
        let Some(left) = left else {
            return (None, Err(Trouble::Damaged("directories have more blocks than there are")));
        };
        self.directory_blocks_left = left;
        let read = self.read_directory(&places, entry);
        (Some(end), walked.and(read))
    }

    fn read_directory(&mut self, places: &[u64], entry: &mut dyn FnMut(&[u8], u64)) -> Tried<()> {
        let (block, per_block) = (self.superblock.block, self.superblock.directory_blocks);
        check(places.len() as u64 == per_block, "a part of a directory block is missing")?;
        let mut bytes = Vec::new();
        for place in places {
            bytes.append(&mut self.reader.read(*place, block as usize)?);
        }
        entries(&bytes, self.superblock.has_types, entry)
    }

    fn directory(&mut self, inode: &Inode, entry: &mut dyn FnMut(&[u8], u64)) -> Tried<()> {
        let (mut next, mut result) = (Some(0), Ok(()));
        while let Some(from) = next {
            let read;
            (next, read) = self.directory_block(inode, from, entry);
            result = result.and(read);
        }
        result
    }

    fn noted_directory(&mut self, inode: &Inode, entry: &mut dyn FnMut(&[u8], u64)) {
        let read = self.directory(inode, entry);
        let number = inode.number;
        self.notes.incomplete(|| format!("names in directory {number} are not told"), read);
    }
}

/// A directory in its inode.
fn short(fork: Fork<'_>, has_types: bool, entry: &mut dyn FnMut(&[u8], u64)) -> Tried<()> {
    let bytes = fork.bytes;
    let width = if byte(bytes, 1)? > 0 { 8 } else { 4 };
    let number = |at: usize| match width {
        8 => be64(bytes, at),
        _ => be32(bytes, at).map(u64::from),
    };
    let count = byte(bytes, 0)?.max(byte(bytes, 1)?);
    entry(b"..", number(2)?);
    let mut at = 2 + width;
    for _ in 0..count {
        let len = usize::from(byte(bytes, at)?);
        let name = slice(bytes, at + 3, len)?;
        at += 3 + len + usize::from(has_types);
        entry(name, number(at)?);
        at += width;
    }
    Ok(())
}

/// The entries of a directory block.
fn entries(bytes: &[u8], has_types: bool, entry: &mut dyn FnMut(&[u8], u64)) -> Tried<()> {
    let (header, has_tail) = match slice(bytes, 0, 4)? {
        b"XD2B" => (16, true),
        b"XD2D" => (16, false),
        b"XDB3" => (64, true),
        b"XDD3" => (64, false),
        _ => return Err(Trouble::Damaged("a block of a directory is none")),
    };
    let mut end = bytes.len();
    if has_tail {
        let index = usize::try_from(be32(bytes, end - 8)?).unwrap_or(usize::MAX).saturating_mul(8);
        end = (end - 8)
            .checked_sub(index)
            .ok_or(Trouble::Damaged("a directory has too many entries"))?;
    }
    let mut at = header;
    while at + 8 <= end {
        if be16(bytes, at)? == 0xffff {
            let len = usize::from(be16(bytes, at + 2)?);
            check(len >= 8 && len % 8 == 0, "a gap in a directory has no length that can be")?;
            at += len;
            continue;
        }
        let len = usize::from(byte(bytes, at + 8)?);
        check(len > 0, "an entry has no name")?;
        let name = slice(bytes, at + 9, len)?;
        entry(name, be64(bytes, at)?);
        at += (8 + 1 + len + usize::from(has_types) + 2).next_multiple_of(8);
    }
    Ok(())
}

impl Directories for Xfs<'_> {
    fn root(&self) -> u64 {
        self.superblock.root
    }

    fn all_entries(&mut self, entry: &mut dyn FnMut(u64, &[u8], u64)) {
        // Trees are read once more.
        self.nodes_left = self.blocks_there();
        self.every_inode(&mut |xfs, inode| {
            if inode.is_directory() {
                let number = inode.number;
                xfs.noted_directory(&inode, &mut |name, inode| entry(number, name, inode));
            }
        });
    }

    fn entries(&mut self, directory: u64, entry: &mut dyn FnMut(&[u8], u64)) {
        let inode = self.inode(directory);
        let about = || format!("names in directory {directory} are not told");
        if let Some(inode) = self.notes.incomplete(about, inode) {
            self.noted_directory(&inode, entry);
        }
    }

    fn what(&mut self, inode: u64) -> Option<&'static str> {
        self.inode(inode).ok().map(|inode| inode.what())
    }

    fn note(&mut self, note: String) {
        self.notes.add(note);
    }
}
