//! A walk over the names of ext2, ext3 and ext4.

use super::{Ext, map};
use crate::error::{Tried, check};
use crate::source::Doubts;
use crate::walk::{BATCH, Extent, Node, Walked};

/// Nodes on the way to an extent: more than a tree is deep.
const WAY: u64 = 8;

impl Walked for Ext<'_> {
    fn node(&mut self, inode: u64) -> Tried<Node> {
        check(self.special(inode).is_none(), "it is an inode of the file system itself")?;
        self.inode(inode)?.node()
    }

    fn entries_from(
        &mut self,
        directory: u64,
        from: u64,
        entry: &mut dyn FnMut(&[u8], u64),
    ) -> (Option<u64>, Tried<()>) {
        match self.inode(directory) {
            Ok(inode) => {
                let is_within = from == 0 || from < inode.size.div_ceil(self.superblock.block);
                if is_within { self.directory_block(&inode, from, entry) } else { (None, Ok(())) }
            }
            Err(why) => (None, Err(why)),
        }
    }

    fn extents_from(&mut self, inode: u64, from: u64) -> (Vec<Extent>, Tried<()>) {
        let mut extents: Vec<Extent> = Vec::new();
        let inode = match self.inode(inode) {
            Ok(inode) => inode,
            Err(why) => return (extents, Err(why)),
        };
        let (superblock, block) = (self.superblock.clone(), self.superblock.block);
        self.nodes_left += WAY;
        let walked = map::walk(self, &inode, from / block, &mut |mapped| {
            if let Some(at) = mapped.at {
                extents.push(Extent {
                    offset: at.saturating_mul(block),
                    range: superblock.bytes(mapped.block, mapped.count),
                    unwritten: mapped.unwritten,
                });
            }
            extents.len() < BATCH
        });
        cut(&mut extents, from);
        (extents, walked)
    }

    fn inline(&mut self, inode: u64) -> Tried<Option<Vec<u8>>> {
        let inode = self.inode(inode)?;
        let contents = inode.contents();
        if contents.is_some() || !inode.is_link() {
            return Ok(contents);
        }
        check(inode.size < self.superblock.block, "the target of the symbolic link is too long")?;
        let (extents, read) = self.extents_from(inode.number, 0);
        read?;
        let Some(first) = extents.first().filter(|first| first.offset == 0) else {
            return Ok(None);
        };
        self.reader.read(first.range.start, inode.size as usize).map(Some)
    }

    fn shares_nothing(&self) -> bool {
        true
    }

    fn doubts(&mut self) -> &mut Doubts {
        &mut self.reader.doubts
    }
}

/// Cuts what lies before byte `from` of the file.
fn cut(extents: &mut [Extent], from: u64) {
    for extent in extents.iter_mut().filter(|extent| extent.offset < from) {
        extent.range.start += from - extent.offset;
        extent.offset = from;
    }
}
