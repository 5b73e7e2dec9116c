//! Directories of one block: the inode says where the block lies, and the block which inode it belongs to.
//!
//! The block's checksum begins with the number and the generation of the inode, so a sum of such blocks has none that fits.

use std::collections::BTreeMap;

use super::super::bytes::{le16, le32};
use super::super::crc::advance;

const IS_FOLDER: u16 = 0x4000;
/// Flags of an inode: its blocks are in extents; its content is in the inode itself.
const HAS_EXTENTS: u32 = 0x8_0000;
const IS_INLINE: u32 = 0x1000_0000;
/// The entry for the directory itself, behind its inode's number; and the entry that has the checksum, without it.
const OWN: [u8; 3] = [12, 0, 1];
const TAIL: [u8; 8] = [0, 0, 0, 0, 12, 0, 0, 0xde];

/// A directory: the state of checksums behind its inode's number and generation, and its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Folder {
    seed: u32,
    block: u64,
}

/// The directories of a file system by the numbers of their inodes; `None` if inodes differ.
#[derive(Clone, Debug, Default)]
pub(super) struct Folders(BTreeMap<u32, Option<Folder>>);

impl Folders {
    /// Enters an inode, if it is a directory of one block of `block` bytes.
    pub(super) fn enter(&mut self, seed: u32, number: u32, inode: &[u8], block: u64) -> Option<()> {
        let (mode, flags) = (le16(inode, 0)?, le32(inode, 0x20)?);
        let is_one = u64::from(le32(inode, 4)?) == block && flags & IS_INLINE == 0;
        if mode & 0xf000 != IS_FOLDER || le16(inode, 0x1a)? == 0 || !is_one {
            return None;
        }
        let seed = advance(advance(seed, &number.to_le_bytes()), inode.get(0x64..0x68)?);
        let folder = Some(Folder { seed, block: first_block(inode, flags)? });
        let held = self.0.entry(number).or_insert(folder);
        if *held != folder {
            *held = None;
        }
        Some(())
    }

    /// Returns the block of the file system that a block of a member is; `None` if it is no directory that is known.
    pub(super) fn find(&self, bytes: &[u8]) -> Option<u64> {
        let tail = bytes.len().checked_sub(12)?;
        if bytes.get(4..7)? != OWN || bytes.get(8)? != &b'.' || bytes.get(tail..tail + 8)? != TAIL {
            return None;
        }
        let folder = (*self.0.get(&le32(bytes, 0)?)?)?;
        (advance(folder.seed, &bytes[..tail]) == le32(bytes, tail + 8)?).then_some(folder.block)
    }
}

/// The first block of an inode's content.
fn first_block(inode: &[u8], flags: u32) -> Option<u64> {
    if flags & HAS_EXTENTS == 0 {
        return Some(le32(inode, 0x28)?.into());
    }
    // One extent, in the inode itself, from the first block of the content on.
    let is_leaf = (le16(inode, 0x28)?, le16(inode, 0x2a)?, le16(inode, 0x2e)?) == (0xf30a, 1, 0);
    let is_first = is_leaf && le32(inode, 0x34)? == 0;
    is_first.then_some(u64::from(le16(inode, 0x3a)?) << 32 | u64::from(le32(inode, 0x3c)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(number: u32) -> (Vec<u8>, Vec<u8>) {
        let mut inode = vec![0; 256];
        for (at, bytes) in [
            (0, &[0xed, 0x41][..]),
            (4, &[0, 4]),
            (0x1a, &[2]),
            (0x20, &HAS_EXTENTS.to_le_bytes()),
            (0x28, &[0x0a, 0xf3, 1, 0, 4, 0, 0, 0]),
            (0x38, &[1, 0, 1, 0, 0x39, 0x30]),
            (0x64, &[1, 2, 3, 4]),
        ] {
            inode[at..at + bytes.len()].copy_from_slice(bytes);
        }
        let mut block = vec![0; 1024];
        block[..4].copy_from_slice(&number.to_le_bytes());
        block[4..9].copy_from_slice(&[12, 0, 1, 2, b'.']);
        block[1012..1020].copy_from_slice(&TAIL);
        let seed = advance(advance(7, &number.to_le_bytes()), &[1, 2, 3, 4]);
        let sum = advance(seed, &block[..1012]);
        block[1020..].copy_from_slice(&sum.to_le_bytes());
        (inode, block)
    }

    #[test]
    fn a_block_of_a_directory_is_known_by_its_inode_and_its_checksum() {
        let (inode, mut block) = folder(12);
        let mut folders = Folders::default();
        assert_eq!(folders.find(&block), None);
        folders.enter(7, 12, &inode, 1024);
        assert_eq!(folders.find(&block), Some((1 << 32) + 12345));
        assert_eq!(folders.find(&block[..8]), None);
        block[100] ^= 1;
        assert_eq!(folders.find(&block), None);
        // Another inode of the same number.
        let (mut other, block) = (inode, folder(12).1);
        other[0x3c] ^= 1;
        folders.enter(7, 12, &other, 1024);
        assert_eq!(folders.find(&block), None);
    }
}
