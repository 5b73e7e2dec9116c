//! A walk over the names of btrfs.

use super::inode::{Content, DIR_INDEX, EXTENT_DATA, INODE_ITEM, ROOT_INODE, attributes};
use super::{Btrfs, WAY, parts};
use crate::error::{Tried, Trouble};
use crate::source::Doubts;
use crate::walk::{BATCH, Extent, Kind, Node, Walked};

/// Entries of a directory that are given at once.
const ENTRIES: usize = 256;
/// The longest extent: one that begins farther before a byte does not have it.
const LONGEST: u64 = 128 << 20;
const PACKED: Trouble = Trouble::Damaged("compressed content is not read");

impl Walked for Btrfs<'_> {
    fn node(&mut self, inode: u64) -> Tried<Node> {
        self.nodes_left += WAY;
        let (tree, own) = parts(inode);
        let subvolume = self.subvolume(tree)?;
        let item = self.item(subvolume.root, (own, INODE_ITEM, 0))?;
        let (_, item) = item.ok_or(Trouble::Damaged("it is not there"))?;
        let mut node = attributes(inode, &item)?;
        if node.kind == Kind::Directory && subvolume.is_snapshot && own == ROOT_INODE {
            node.kind = Kind::Special("read-only snapshot");
        }
        Ok(node)
    }

    fn entries_from(
        &mut self,
        directory: u64,
        from: u64,
        entry: &mut dyn FnMut(&[u8], u64),
    ) -> (Option<u64>, Tried<()>) {
        self.nodes_left += WAY;
        let (tree, inode) = parts(directory);
        let root = match self.subvolume(tree) {
            Ok(subvolume) => subvolume.root,
            Err(why) => return (None, Err(why)),
        };
        let (mut found, mut next, mut damaged) = (0, None, Ok(()));
        let walked = self.items(root, (inode, DIR_INDEX, from), &mut |btrfs, key, item| {
            if (key.0, key.1) != (inode, DIR_INDEX) {
                return false;
            }
            if found == ENTRIES {
                next = Some(key.2);
                return false;
            }
            found += 1;
            match btrfs.entry(directory, item) {
                Ok(Some((name, child))) => entry(name, child),
                Ok(None) => {}
                Err(why) => damaged = Err(why),
            }
            true
        });
        (next, damaged.and(walked.map(drop)))
    }

    fn extents_from(&mut self, number: u64, from: u64) -> (Vec<Extent>, Tried<()>) {
        self.nodes_left += WAY;
        let (tree, inode) = parts(number);
        let mut extents: Vec<Extent> = Vec::new();
        let root = match self.subvolume(tree) {
            Ok(subvolume) => subvolume.root,
            Err(why) => return (extents, Err(why)),
        };
        let start = (inode, EXTENT_DATA, from.saturating_sub(LONGEST));
        let mut damaged = Ok(());
        let walked = self.items(root, start, &mut |btrfs, key, item| {
            if (key.0, key.1) != (inode, EXTENT_DATA) {
                return false;
            }
            match Content::parse(item).and_then(|content| btrfs.extent(key.2, &content)) {
                Ok(Some(extent)) => add(&mut extents, extent, from),
                Ok(None) => {}
                Err(why) => damaged = Err(why),
            }
            extents.len() < BATCH
        });
        (extents, damaged.and(walked.map(drop)))
    }

    fn inline(&mut self, number: u64) -> Tried<Option<Vec<u8>>> {
        let (tree, inode) = parts(number);
        let root = self.subvolume(tree)?.root;
        let size = self.node(number)?.size;
        let Some((0, item)) = self.item(root, (inode, EXTENT_DATA, 0))? else { return Ok(None) };
        match Content::parse(&item)? {
            Content::Inline(bytes) => {
                let mut bytes = bytes.to_vec();
                bytes.truncate(usize::try_from(size).unwrap_or(usize::MAX));
                Ok(Some(bytes))
            }
            Content::Packed { length: 0, .. } => Err(PACKED),
            _ => Ok(None),
        }
    }

    fn shares_nothing(&self) -> bool {
        false
    }

    fn doubts(&mut self) -> &mut Doubts {
        &mut self.reader.doubts
    }
}

impl Btrfs<'_> {
    /// The first copy of an extent of a file.
    fn extent(&self, offset: u64, content: &Content<'_>) -> Tried<Option<Extent>> {
        match *content {
            Content::Inline(_) | Content::Hole => Ok(None),
            Content::Packed { .. } => Err(PACKED),
            Content::Extent { address, length, unwritten } => {
                let range = self.superblock.places(address, length)?.into_iter().next();
                Ok(range.map(|range| Extent { offset, range, unwritten }))
            }
        }
    }
}

/// Adds the part of an extent from byte `from` on, behind those that are there.
fn add(extents: &mut Vec<Extent>, mut extent: Extent, from: u64) {
    let behind =
        extents.last().map_or(from, |last| last.offset + (last.range.end - last.range.start));
    let cut = behind.saturating_sub(extent.offset);
    if cut < extent.range.end - extent.range.start {
        extent.range.start += cut;
        extent.offset += cut;
        extents.push(extent);
    }
}
