//! A walk over the names of xfs.

use super::Xfs;
use super::directory::WAY;
use super::inode::Inode;
use crate::bytes::{be32, slice};
use crate::error::{Tried, check};
use crate::source::Doubts;
use crate::walk::{BATCH, Extent, Node, Walked};

/// More than the target of a symbolic link has.
const LONGEST_LINK: u64 = 1024;

impl Walked for Xfs<'_> {
    fn node(&mut self, inode: u64) -> Tried<Node> {
        let is_special = self.superblock.special.iter().any(|(special, _)| *special == inode);
        check(!is_special, "it is an inode of the file system itself")?;
        self.inode(inode)?.node()
    }

    fn entries_from(
        &mut self,
        directory: u64,
        from: u64,
        entry: &mut dyn FnMut(&[u8], u64),
    ) -> (Option<u64>, Tried<()>) {
        match self.inode(directory) {
            Ok(inode) => self.directory_block(&inode, from, entry),
            Err(why) => (None, Err(why)),
        }
    }

    fn extents_from(&mut self, inode: u64, from: u64) -> (Vec<Extent>, Tried<()>) {
        match self.inode(inode) {
            Ok(inode) => self.extents_of(&inode, from),
            Err(why) => (Vec::new(), Err(why)),
        }
    }

    fn inline(&mut self, inode: u64) -> Tried<Option<Vec<u8>>> {
        let inode = self.inode(inode)?;
        if !inode.is_link() {
            return Ok(None);
        }
        let size = inode.size()?;
        check(size <= LONGEST_LINK, "the target of the symbolic link is too long")?;
        let size = size as usize;
        if inode.data().format == 1 {
            return slice(inode.data().bytes, 0, size).map(|target| Some(target.to_vec()));
        }
        let (extents, read) = self.extents_of(&inode, 0);
        read?;
        let mut target = Vec::new();
        for Extent { range, .. } in extents {
            let len = (range.end - range.start).min(2 * LONGEST_LINK) as usize;
            let bytes = self.reader.read(range.start, len)?;
            if self.superblock.is_v5 {
                check(bytes.starts_with(b"XSLM"), "a block of a symbolic link is none")?;
                check(be32(&bytes, 4)? as usize == target.len(), "a symbolic link is torn")?;
                target.extend_from_slice(slice(&bytes, 56, be32(&bytes, 8)? as usize)?);
            } else {
                target.extend_from_slice(&bytes);
            }
        }
        slice(&target, 0, size).map(|target| Some(target.to_vec()))
    }

    fn shares_nothing(&self) -> bool {
        !self.superblock.has_shared
    }

    fn doubts(&mut self) -> &mut Doubts {
        &mut self.reader.doubts
    }
}

impl Xfs<'_> {
    fn extents_of(&mut self, inode: &Inode, from: u64) -> (Vec<Extent>, Tried<()>) {
        let block = self.superblock.block;
        let mut extents: Vec<Extent> = Vec::new();
        self.nodes_left += WAY;
        let walked = self.walk(inode, inode.data(), from / block, &mut |mapped| {
            if let Some(at) = mapped.at {
                let (offset, mut range) = (at.saturating_mul(block), mapped.range);
                let cut = from.saturating_sub(offset);
                range.start = (range.start + cut).min(range.end);
                extents.push(Extent { offset: offset + cut, range, unwritten: mapped.unwritten });
            }
            extents.len() < BATCH
        });
        (extents, walked)
    }
}
