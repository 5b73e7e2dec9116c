//! Directories of ext2, ext3 and ext4. Those with a hash tree are read as a list: inner nodes of the tree look
//! like entries that are not in use.

use super::inode::Inode;
use super::{Ext, map};
use crate::bytes::{byte, le16, le32, slice};
use crate::error::{Tried, Trouble, check};
use crate::names::Directories;

/// Extents of a directory.
const MOST_EXTENTS: usize = 1 << 18;
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
    fn directory(&mut self, inode: &Inode, entry: &mut dyn FnMut(&[u8], u64)) -> Tried<()> {
        check(inode.is_directory(), "it is no directory")?;
        let inodes = self.superblock.inodes;
        let mut shown =
            |name: &[u8], number| match inode.is_encrypted() && name != b".." && name != b"." {
                true => entry(ENCRYPTED, number),
                false => entry(name, number),
            };
        if inode.is_inline() {
            shown(b"..", le32(&inode.map, 0)?.into());
            entries(&inode.map[4..], inodes, &mut shown)?;
            return entries(&inode.inline, inodes, &mut shown);
        }
        let mut extents = Vec::new();
        let walked = map::walk(self, inode, &mut |mapped| {
            if mapped.at.is_some() && extents.len() < MOST_EXTENTS {
                extents.push(mapped);
            }
        });
        let mut result = walked;
        for mapped in extents {
            for block in mapped.block..mapped.block + mapped.count {
                let left = self.directory_blocks_left.checked_sub(1);
                let too_many = Trouble::Damaged("directories have more blocks than there are");
                self.directory_blocks_left = left.ok_or(too_many)?;
                let read = self.read_block(block);
                let read = read.and_then(|bytes| entries(&bytes, inodes, &mut shown));
                result = result.and(read);
            }
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
