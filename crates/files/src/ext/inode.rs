//! An inode of ext2, ext3 and ext4.

use crate::bytes::{byte, halves, le16, le32, slice};
use crate::error::Tried;

const EXTENTS: u32 = 0x8_0000;
const ENCRYPTED: u32 = 0x800;
const VALUE: u32 = 0x20_0000;
const INLINE: u32 = 0x1000_0000;
/// Bytes of an inode as ext2 had it.
const OLD_SIZE: usize = 128;

#[derive(Debug)]
pub(super) struct Inode {
    pub(super) number: u64,
    mode: u16,
    links: u16,
    flags: u32,
    pub(super) size: u64,
    /// The block of the extended attributes; 0 if there is none.
    pub(super) attributes: u64,
    /// The root of the tree of extents, or the first numbers of the block map, or data.
    pub(super) map: [u8; 60],
    /// The part of a directory that does not fit into `map`, if it has no blocks.
    pub(super) inline: Vec<u8>,
}

impl Inode {
    pub(super) fn parse(number: u64, bytes: &[u8]) -> Tried<Inode> {
        let mut map = [0; 60];
        map.copy_from_slice(slice(bytes, 0x28, 60)?);
        let mut inode = Inode {
            number,
            mode: le16(bytes, 0)?,
            links: le16(bytes, 0x1a)?,
            flags: le32(bytes, 0x20)?,
            size: halves(le32(bytes, 4)?, le32(bytes, 0x6c)?),
            attributes: halves(le32(bytes, 0x68)?, le16(bytes, 0x76)?.into()),
            map,
            inline: Vec::new(),
        };
        if inode.flags & INLINE != 0 && inode.is_directory() {
            inode.inline = inline_rest(bytes).unwrap_or_default().to_vec();
        }
        Ok(inode)
    }

    /// True if it is in use. An inode in the bitmap may have lost its name and still have blocks.
    pub(super) fn is_used(&self, is_in_bitmap: bool) -> bool {
        // The bad-block, resize and boot loader inodes may have no mode.
        (self.mode != 0 || self.number < 11) && (is_in_bitmap || self.links > 0)
    }

    fn kind(&self) -> u16 {
        self.mode & 0xf000
    }

    pub(super) fn is_directory(&self) -> bool {
        self.kind() == 0x4000
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.flags & ENCRYPTED != 0
    }

    pub(super) fn is_inline(&self) -> bool {
        self.flags & INLINE != 0
    }

    pub(super) fn has_extents(&self) -> bool {
        self.flags & EXTENTS != 0
    }

    /// True if `map` leads to blocks: a short symbolic link is stored in it, and a device has none.
    pub(super) fn has_blocks(&self) -> bool {
        let is_short_link = self.kind() == 0xa000 && self.size < 60 && !self.has_extents();
        let is_special = self.number < 11;
        !self.is_inline()
            && !is_short_link
            && (matches!(self.kind(), 0x4000 | 0x8000 | 0xa000) || is_special)
    }

    /// The nodes of its tree, in words.
    pub(super) fn tree(&self) -> &'static str {
        if self.has_extents() { "extent tree" } else { "block map" }
    }

    /// An inode without a name, in words.
    pub(super) fn what(&self) -> &'static str {
        match self.links {
            _ if self.flags & VALUE != 0 => "value of extended attributes",
            0 => "file that was deleted while it was open",
            _ => "file whose name was not found",
        }
    }
}

/// The value of the attribute `system.data` in an inode, where inline data go on.
fn inline_rest(bytes: &[u8]) -> Tried<&[u8]> {
    let start = OLD_SIZE + usize::from(le16(bytes, OLD_SIZE)?) + 4;
    let mut at = start;
    if le32(bytes, start - 4)? != 0xea02_0000 {
        return Ok(&[]);
    }
    // An entry takes 16 bytes and its name, and ends where four zeros follow.
    while le32(bytes, at)? != 0 {
        let (len, index) = (usize::from(byte(bytes, at)?), byte(bytes, at + 1)?);
        if index == 7 && slice(bytes, at + 16, len)? == b"data" {
            let value = start + usize::from(le16(bytes, at + 2)?);
            return slice(
                bytes,
                value,
                usize::try_from(le32(bytes, at + 8)?).unwrap_or(usize::MAX),
            );
        }
        at += (16 + len).next_multiple_of(4);
    }
    Ok(&[])
}
