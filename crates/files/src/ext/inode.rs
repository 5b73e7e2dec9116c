//! An inode of ext2, ext3 and ext4.

use crate::bytes::{byte, halves, le16, le32, slice};
use crate::error::{Tried, check};
use crate::walk::{Kind, Node, Time};

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
    /// The part of the contents that does not fit into `map`, if it has no blocks.
    pub(super) inline: Vec<u8>,
    owner: (u32, u32),
    accessed: Time,
    modified: Time,
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
            owner: (
                u32::from(le16(bytes, 2)?) | u32::from(le16(bytes, 0x78)?) << 16,
                u32::from(le16(bytes, 0x18)?) | u32::from(le16(bytes, 0x7a)?) << 16,
            ),
            accessed: time(bytes, 8, 0x8c)?,
            modified: time(bytes, 0x10, 0x88)?,
        };
        if inode.flags & INLINE != 0 {
            inode.inline = inline_rest(bytes).unwrap_or_default().to_vec();
        }
        Ok(inode)
    }

    /// True if it is in use. An inode in the bitmap may have lost its name and still have blocks.
    pub(super) fn is_used(&self, is_in_bitmap: bool) -> bool {
        // The bad-block, resize and boot loader inodes may have no mode.
        (self.mode != 0 || self.number < 11) && (is_in_bitmap || self.links > 0)
    }

    /// The attributes.
    pub(super) fn node(&self) -> Tried<Node> {
        check(self.mode != 0 && self.links > 0, "the inode is not in use")?;
        Ok(Node {
            inode: self.number,
            kind: Kind::of_mode(self.mode)?,
            mode: self.mode,
            links: self.links.into(),
            owner: self.owner,
            size: self.size,
            accessed: self.accessed,
            modified: self.modified,
            is_again: false,
            sealed: self.is_encrypted().then_some("it is encrypted"),
        })
    }

    /// The contents, if they lie in the inode.
    pub(super) fn contents(&self) -> Option<Vec<u8>> {
        let mut contents = match self.is_inline() {
            true => [&self.map[..], &self.inline].concat(),
            false if self.is_short_link() => self.map.to_vec(),
            false => return None,
        };
        contents.truncate(usize::try_from(self.size).unwrap_or(usize::MAX));
        Some(contents)
    }

    fn kind(&self) -> u16 {
        self.mode & 0xf000
    }

    fn is_short_link(&self) -> bool {
        self.kind() == 0xa000 && self.size < 60 && !self.has_extents()
    }

    pub(super) fn is_link(&self) -> bool {
        self.kind() == 0xa000
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
        let is_special = self.number < 11;
        !self.is_inline()
            && !self.is_short_link()
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

/// A time: 32 bits of seconds at `at`; where an inode is larger than that of ext2, two more bits of seconds and
/// nanoseconds at `extra`.
fn time(bytes: &[u8], at: usize, extra: usize) -> Tried<Time> {
    let seconds = i64::from(le32(bytes, at)?.cast_signed());
    let has_extra =
        bytes.len() > OLD_SIZE && OLD_SIZE + usize::from(le16(bytes, OLD_SIZE)?) >= extra + 4;
    let more = if has_extra { le32(bytes, extra)? } else { 0 };
    Ok((seconds + (i64::from(more & 3) << 32), (more >> 2).min(999_999_999)))
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
