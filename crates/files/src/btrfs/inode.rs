//! Inodes of btrfs, and the contents of files.

use crate::bytes::{byte, le16, le32, le64};
use crate::error::{Tried, Trouble, check};
use crate::walk::{Kind, Node, Time};

/// Types of items.
pub(super) const INODE_ITEM: u8 = 1;
pub(super) const INODE_REF: u8 = 12;
pub(super) const DIR_INDEX: u8 = 96;
pub(super) const EXTENT_DATA: u8 = 108;
/// The directory that a subvolume begins with.
pub(super) const ROOT_INODE: u64 = 256;

/// Contents of a file that lie together.
pub(super) enum Content<'i> {
    /// They lie in the item.
    Inline(&'i [u8]),
    /// They are zeros.
    Hole,
    /// Bytes at a logical address.
    Extent { address: u64, length: u64, unwritten: bool },
    /// Compressed or encrypted bytes at a logical address; no bytes if they lie in the item.
    Packed { address: u64, length: u64 },
}

impl Content<'_> {
    pub(super) fn parse(item: &[u8]) -> Tried<Content<'_>> {
        let is_packed = byte(item, 16)? != 0 || byte(item, 17)? != 0;
        let kind = byte(item, 20)?;
        if kind == 0 {
            let bytes = item.get(21..).unwrap_or_default();
            return Ok(match is_packed {
                true => Content::Packed { address: 0, length: 0 },
                false => Content::Inline(bytes),
            });
        }
        check(kind <= 2, "an extent is of no kind that there is")?;
        let (address, stored) = (le64(item, 21)?, le64(item, 29)?);
        let (offset, length) = (le64(item, 37)?, le64(item, 45)?);
        if address == 0 {
            return Ok(Content::Hole);
        }
        if is_packed {
            return Ok(Content::Packed { address, length: stored });
        }
        let is_inside = offset.checked_add(length).is_some_and(|end| end <= stored);
        check(is_inside, "an extent is longer than what it is a part of")?;
        let address =
            address.checked_add(offset).ok_or(Trouble::Damaged("an extent is outside"))?;
        Ok(Content::Extent { address, length, unwritten: kind == 2 })
    }
}

/// When an inode was made, in seconds since 1970.
pub(super) fn made(item: &[u8]) -> Tried<i64> {
    Ok(le64(item, 148)?.cast_signed())
}

/// The attributes in the item of the inode `number`.
pub(super) fn attributes(number: u64, item: &[u8]) -> Tried<Node> {
    let time = |at: usize| -> Tried<Time> {
        Ok((le64(item, at)?.cast_signed(), le32(item, at + 8)?.min(999_999_999)))
    };
    let mode = le16(item, 52)?;
    Ok(Node {
        inode: number,
        kind: Kind::of_mode(mode)?,
        mode,
        links: le32(item, 40)?,
        owner: (le32(item, 44)?, le32(item, 48)?),
        size: le64(item, 16)?,
        accessed: time(112)?,
        modified: time(136)?,
        is_again: false,
        sealed: None,
    })
}
