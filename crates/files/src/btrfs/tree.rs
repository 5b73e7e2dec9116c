//! Trees of btrfs: items in the order of their keys.
//!
//! ```text
//!   node   header(101: checksum, identifier, own address, .., owner, items, level) │ key, address, generation │ ..
//!   leaf   header                                                                  │ key, offset, size │ .. data
//! ```
//!
//! A node's keys ascend, and lie between its own key in the node above and the next one there.

use super::Btrfs;
use super::superblock::{Key, Root};
use crate::bytes::{byte, le32, le64, slice};
use crate::error::{Tried, Trouble, check};

const HEADER: usize = 101;
const DEEPEST: u8 = 7;

/// Takes an item; false ends the walk.
pub(super) type Visit<'v, 'a> = &'v mut dyn FnMut(&mut Btrfs<'a>, Key, &[u8]) -> bool;

fn key(bytes: &[u8], at: usize) -> Tried<Key> {
    Ok((le64(bytes, at)?, byte(bytes, at + 8)?, le64(bytes, at + 9)?))
}

impl<'a> Btrfs<'a> {
    /// Calls `visit` for the items of a tree from the key `from` on. Returns false if `visit` ended it.
    pub(super) fn items(&mut self, root: Root, from: Key, visit: Visit<'_, 'a>) -> Tried<bool> {
        self.below(root, (from, (0, 0, 0), None), visit)
    }

    /// The same below a node, whose keys lie from the second one on and before the third.
    fn below(
        &mut self,
        (address, level): Root,
        (from, first, end): (Key, Key, Option<Key>),
        visit: Visit<'_, 'a>,
    ) -> Tried<bool> {
        check(level <= DEEPEST, "a tree is too deep")?;
        let node = self.node(address, level)?;
        let each = if level == 0 { 25 } else { 33 };
        let count = le32(&node, 0x60)? as usize;
        check(count <= (node.len() - HEADER) / each, "a node has more items than room")?;
        let keys: Tried<Vec<Key>> =
            (0..count).map(|item| key(&node, HEADER + item * each)).collect();
        let keys = keys?;
        let is_within = keys.first().is_none_or(|one| *one >= first)
            && keys.last().is_none_or(|one| end.is_none_or(|end| *one < end));
        check(is_within && keys.is_sorted_by(|one, next| one < next), "keys are in no order")?;
        if level == 0 {
            for (index, key) in keys.iter().enumerate().filter(|(_, key)| **key >= from) {
                let at = HEADER + index * each;
                let (offset, size) =
                    (le32(&node, at + 17)? as usize, le32(&node, at + 21)? as usize);
                let place =
                    HEADER.checked_add(offset).ok_or(Trouble::Damaged("an item is outside"))?;
                if !visit(self, *key, slice(&node, place, size)?) {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        let skipped = keys.partition_point(|key| *key <= from).saturating_sub(1);
        let mut trouble = None;
        for index in skipped..count {
            let child = le64(&node, HEADER + index * each + 17)?;
            let end = keys.get(index + 1).copied().or(end);
            match self.below((child, level - 1), (from, keys[index], end), visit) {
                Ok(true) => {}
                Ok(false) => return trouble.map_or(Ok(false), Err),
                // What is damaged hides its own items only.
                Err(why) => trouble = Some(why),
            }
        }
        trouble.map_or(Ok(true), Err)
    }

    /// A node, from the first copy that is right.
    fn node(&mut self, address: u64, level: u8) -> Tried<Vec<u8>> {
        self.nodes_left =
            self.nodes_left.checked_sub(1).ok_or(Trouble::Damaged("trees have too many nodes"))?;
        let size = self.superblock.node;
        let mut trouble = Trouble::Damaged("a node lies nowhere");
        for place in self.superblock.places(address, size)? {
            let read = self.reader.read(place.start, size as usize);
            match read.and_then(|bytes| self.is_node(&bytes, address, level).map(|()| bytes)) {
                Ok(bytes) => return Ok(bytes),
                Err(why) => trouble = why,
            }
        }
        Err(trouble)
    }

    fn is_node(&self, bytes: &[u8], address: u64, level: u8) -> Tried<()> {
        let one = &self.superblock;
        let is_own =
            le64(bytes, 0x30)? == address && slice(bytes, 0x20, 16)? == one.uuid.as_slice();
        check(is_own && byte(bytes, 0x64)? == level, "a node is that of another place")?;
        let is_right = !one.has_crc || le32(bytes, 0)? == crc32c::crc32c(&bytes[32..]);
        check(is_right, "a node has another checksum")
    }

    /// The first item with a number and a type, at this offset or behind it.
    pub(super) fn item(&mut self, root: Root, from: Key) -> Tried<Option<(u64, Vec<u8>)>> {
        let mut found = None;
        let walked = self.items(root, from, &mut |_, key, item| {
            if (key.0, key.1) == (from.0, from.1) {
                found = Some((key.2, item.to_vec()));
            }
            false
        });
        match found {
            Some(found) => Ok(Some(found)),
            None => walked.map(|_| None),
        }
    }
}
