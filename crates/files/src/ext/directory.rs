//! Directories of ext2, ext3 and ext4. Those with a hash tree are read as a list: inner nodes of the tree look
//! like entries that are not in use.

use super::inode::Inode;
use super::{Ext, map};
use crate::bytes::{byte, le16, le32, slice};
use crate::error::{Tried, Trouble, check};
use crate::names::Directories;

/// Nodes on the way to a block: more than a tree is deep.
const WAY: u64 = 8;
/// The stand-in for a name that is encrypted.
const ENCRYPTED: &[u8] = b"(encrypted)";

/// Calls `entry` for the entries in use of a block, or of a part of one.
fn entries(bytes: &[u8], inodes: u64, entry: &mut dyn FnMut(&[u8], u64)) -> Tried<()> {
    let mut at = 0;
    while at + 8 <= bytes.len() {
        let inode = u64::from(le32(bytes, at)?);
        // In a block of 64 KiB its own length does not fit.
        let len = match usize::from(le16(bytes, at + 4)?) {
            0 | 0xffff if bytes.len() == 1 << 16 => bytes.len() - at,
            len => len,
        };
        let is_there = len >= 8 && len % 4 == 0 && len <= bytes.len() - at;
        check(is_there, "an entry has no length that can be")?;
        let name = usize::from(byte(bytes, at + 6)?);
        if inode != 0 {
            check(
                name <= len - 8 && inode <= inodes,
                "an entry has a name or an inode that cannot be",
            )?;
            entry(slice(bytes, at + 8, name)?, inode);
        }
        at += len;
    }
    Ok(())
}

impl Ext<'_> {
    /// Calls `entry` for the entries of the first block of a directory at or behind block `from`; returns where the
    /// next one may be.
    pub(super) fn directory_block(
        &mut self,
        inode: &Inode,
        from: u64,
        entry: &mut dyn FnMut(&[u8], u64),
    ) -> (Option<u64>, Tried<()>) {
        if !inode.is_directory() {
            return (None, Err(Trouble::Damaged("it is no directory")));
        }
        let inodes = self.superblock.inodes;
        let mut shown =
            |name: &[u8], number| match inode.is_encrypted() && name != b".." && name != b"." {
                true => entry(ENCRYPTED, number),
                false => entry(name, number),
            };
        if inode.is_inline() {
            let first = le32(&inode.map, 0).map(|parent| shown(b"..", parent.into()));
            let read = first.and_then(|()| entries(&inode.map[4..], inodes, &mut shown));
            return (None, read.and_then(|()| entries(&inode.inline, inodes, &mut shown)));
        }
        // The way down to the block is read again for each.
        self.nodes_left += WAY;
        let mut found = None;
        let walked = map::walk(self, inode, from, &mut |mapped| {
            found = mapped.at.map(|at| (at.max(from), mapped.block + from.saturating_sub(at)));
            found.is_none()
        });
        let Some((at, block)) = found else { return (None, walked) };
        let left = self.directory_blocks_left.checked_sub(1);
        let Some(left) = left else {
            return (None, Err(Trouble::Damaged("directories have more blocks than there are")));
        };
        self.directory_blocks_left = left;
        let read = self.read_block(block).and_then(|bytes| entries(&bytes, inodes, &mut shown));
        (Some(at + 1), walked.and(read))
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

impl Directories for Ext<'_> {
    fn root(&self) -> u64 {
        2
    }

    fn all_entries(&mut self, entry: &mut dyn FnMut(u64, &[u8], u64)) {
        // Trees are read once more.
        self.nodes_left = self
            .nodes_left
            .max(self.superblock.blocks.min(self.reader.size() / self.superblock.block));
        self.every_inode(&mut |ext, inode| {
            if inode.is_directory() {
                let number = inode.number;
                ext.noted_directory(&inode, &mut |name, inode| entry(number, name, inode));
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
