//! btrfs on one device.
//!
//! ```text
//!   superblock ──▶ chunk tree ──▶ places of logical addresses
//!        └──▶ tree of roots ──▶ each subvolume: inodes, names, extents        number of an inode here:
//!                     └──▶ extent tree: what is used                          subvolume (24 bits) │ inode (40 bits)
//! ```
//!
//! Subvolumes are directories. Read-only snapshots are named and not entered: their files are those of other subvolumes.
//!
//! Deliberately absent: several devices, the content of compressed files, the log tree, which has what was made durable
//! since the last commit.
//!
//! Source: Linux 6.12, `include/uapi/linux/btrfs_tree.h` and `fs/btrfs/`.

mod inode;
mod superblock;
mod tree;
mod walk;

use std::collections::BTreeMap;
use std::ops::Range;

pub(crate) use superblock::recognise;

use crate::bytes::{byte, le16, le64, slice};
use crate::claims::{Claims, Owner};
use crate::error::{Tried, Trouble, check};
use crate::names::Directories;
use crate::notes::Notes;
use crate::source::Reader;
use crate::walk::Walked;
use crate::{FileSystem, Replayed};
use inode::{Content, ROOT_INODE};
use superblock::{Key, Root, Superblock};

const INODE_BITS: u32 = 40;
const TOP: u64 = 5;
const FIRST_SUBVOLUME: u64 = 256;
const EXTENT_TREE: u64 = 2;
/// Types of items.
const ROOT_ITEM: u8 = 132;
const ROOT_BACKREF: u8 = 144;
const ROOT_REF: u8 = 156;
const EXTENT_ITEM: u8 = 168;
const METADATA_ITEM: u8 = 169;
const CHUNK_ITEM: u8 = 228;
/// Subvolumes whose roots are kept.
const KEPT: usize = 4096;
/// Nodes that a question may read beyond those of all trees: more than the way down a tree.
const WAY: u64 = 64;

/// A subvolume.
#[derive(Clone, Copy, Debug)]
struct Subvolume {
    root: Root,
    is_snapshot: bool,
}

pub(crate) struct Btrfs<'a> {
    reader: Reader<'a>,
    superblock: Superblock,
    notes: Notes,
    /// Nodes that may still be read. Snapshots share nodes, so that a node is read several times.
    nodes_left: u64,
    subvolumes: BTreeMap<u64, Subvolume>,
}

/// The number of an inode of a subvolume.
fn number(subvolume: u64, inode: u64) -> Tried<u64> {
    let fits = inode >> INODE_BITS == 0 && subvolume >> (64 - INODE_BITS) == 0;
    check(fits, "the number of an inode or subvolume is too large")?;
    Ok(subvolume << INODE_BITS | inode)
}

/// The subvolume and the inode in it.
fn parts(number: u64) -> (u64, u64) {
    (number >> INODE_BITS, number & ((1 << INODE_BITS) - 1))
}

impl<'a> Btrfs<'a> {
    pub(crate) fn new(reader: Reader<'a>, superblock: Superblock) -> Btrfs<'a> {
        let nodes_left = superblock.size / superblock.node * 16 + 10_000;
        let mut btrfs = Btrfs {
            reader,
            superblock,
            notes: Notes::default(),
            nodes_left,
            subvolumes: BTreeMap::new(),
        };
        let read = btrfs.read_chunks();
        btrfs.notes.incomplete(|| "chunks are not known completely".to_owned(), read);
        btrfs
    }

    fn read_chunks(&mut self) -> Tried<bool> {
        let mut damaged = Ok(());
        let walked = self.items(self.superblock.chunk_root, (0, 0, 0), &mut |btrfs, key, item| {
            if key.1 == CHUNK_ITEM
                && let Err(why) = btrfs.superblock.add_chunk(key.2, item)
            {
                damaged = Err(why);
            }
            true
        });
        damaged.and(walked)
    }

    /// Says if the log tree has changes that are not shown.
    fn read_journal(&self) -> Replayed {
        let text = "the log of btrfs was not replayed: files that were made durable after the last commit are older ones";
        let unreplayed = (self.superblock.log_root != 0).then(|| text.to_owned());
        Replayed { unreplayed, ..Replayed::default() }
    }

    /// The newest root of a tree.
    fn subvolume(&mut self, tree: u64) -> Tried<Subvolume> {
        if let Some(found) = self.subvolumes.get(&tree) {
            return Ok(*found);
        }
        let item = self.item(self.superblock.roots, (tree, ROOT_ITEM, 0))?;
        let (_, item) = item.ok_or(Trouble::Damaged("the subvolume has no root"))?;
        let is_read_only = le64(&item, 208)? & 1 != 0;
        let parent = item.get(263..279).unwrap_or_default();
        let found = Subvolume {
            root: (le64(&item, 176)?, byte(&item, 238)?),
            is_snapshot: is_read_only && parent.iter().any(|byte| *byte != 0),
        };
        if self.subvolumes.len() < KEPT {
            self.subvolumes.insert(tree, found);
        }
        Ok(found)
    }

    /// The directory that has a subvolume.
    fn parent_of_subvolume(&mut self, tree: u64) -> Tried<u64> {
        let item = self.item(self.superblock.roots, (tree, ROOT_BACKREF, 0))?;
        let (parent, item) = item.ok_or(Trouble::Damaged("the subvolume has no name"))?;
        number(parent, le64(&item, 0)?)
    }

    /// True if a directory has a subvolume: a snapshot also has the names of subvolumes that are not in it.
    fn has_subvolume(&mut self, directory: u64, tree: u64) -> Tried<bool> {
        let (parent, inode) = parts(directory);
        let item = self.item(self.superblock.roots, (parent, ROOT_REF, tree))?;
        let is_there = item.filter(|(offset, _)| *offset == tree);
        is_there.map_or(Ok(false), |(_, item)| Ok(le64(&item, 0)? == inode))
    }

    /// All trees with files.
    fn all_subvolumes(&mut self) -> Vec<u64> {
        let mut found = Vec::new();
        let walked = self.items(self.superblock.roots, (TOP, 0, 0), &mut |_, key, _| {
            let is_subvolume = key.0 == TOP || key.0 >= FIRST_SUBVOLUME && key.0 >> 24 == 0;
            if is_subvolume && key.1 == ROOT_ITEM && found.last() != Some(&key.0) {
                found.push(key.0);
            }
            key.0 >> 24 == 0
        });
        self.notes.incomplete(|| "subvolumes are not told completely".to_owned(), walked);
        found
    }

    /// Calls `visit` with logical address, length, and whether it is a node, of all that is used.
    fn each_used(&mut self, visit: &mut dyn FnMut(&mut Self, u64, u64, bool)) {
        let walked = self.subvolume(EXTENT_TREE).and_then(|tree| {
            self.items(tree.root, (0, 0, 0), &mut |btrfs, key, item| {
                let is_node = key.1 == METADATA_ITEM || le64(item, 16).unwrap_or(0) & 2 != 0;
                match key.1 {
                    EXTENT_ITEM => visit(btrfs, key.0, key.2, is_node),
                    METADATA_ITEM => visit(btrfs, key.0, btrfs.superblock.node, true),
                    _ => {}
                }
                true
            })
        });
        self.notes.incomplete(|| "the extent tree is not told completely".to_owned(), walked);
    }

    fn claim_file(&mut self, tree: u64, key: Key, item: &[u8], claims: &mut Claims) -> Tried<()> {
        let inode = number(tree, key.0)?;
        let (address, length, offset, unwritten) = match Content::parse(item)? {
            Content::Inline(_) | Content::Hole => return Ok(()),
            Content::Packed { address, length } => (address, length, None, false),
            Content::Extent { address, length, unwritten } => {
                (address, length, Some(key.2), unwritten)
            }
        };
        for range in self.superblock.places(address, length)? {
            let owner = match offset {
                Some(offset) => Owner::File { inode, offset, unwritten },
                None => Owner::OfFile { inode, what: "compressed content" },
            };
            claims.claim(range, owner);
        }
        Ok(())
    }
}

impl FileSystem for Btrfs<'_> {
    fn kind(&self) -> &'static str {
        "btrfs"
    }

    fn size(&self) -> u64 {
        self.superblock.size
    }

    fn made(&mut self) -> Tried<Option<i64>> {
        self.nodes_left += WAY;
        let root = self.subvolume(TOP)?.root;
        let Some((_, item)) = self.item(root, (ROOT_INODE, inode::INODE_ITEM, 0))? else {
            return Err(Trouble::Damaged("its root has no inode"));
        };
        Ok(Some(inode::made(&item)?).filter(|made| *made > 0))
    }

    fn claim_owned(&mut self, claims: &mut Claims) {
        claims.claim(0..1 << 20, Owner::Metadata("boot area and superblock"));
        for place in [64 << 20, 256 << 30] {
            if place + 4096 <= self.superblock.size {
                claims.claim(place..place + 4096, Owner::Metadata("superblock"));
            }
        }
        self.each_used(&mut |btrfs, address, length, is_node| {
            let places = btrfs.superblock.places(address, length).unwrap_or_default();
            places.into_iter().filter(|_| is_node).for_each(|place| {
                claims.claim(place, Owner::Metadata("node of a tree"));
            });
        });
        for tree in self.all_subvolumes() {
            let mut damaged = Ok(());
            let walked = self.subvolume(tree).and_then(|found| {
                self.items(found.root, (0, 0, 0), &mut |btrfs, key, item| {
                    if key.1 == inode::EXTENT_DATA
                        && let Err(why) = btrfs.claim_file(tree, key, item, claims)
                    {
                        damaged = Err(why);
                    }
                    true
                })
            });
            let about = || format!("files of subvolume {tree} are not told completely");
            self.notes.incomplete(about, damaged.and(walked));
        }
    }

    fn claim_free(&mut self, _gaps: &[Range<u64>], claims: &mut Claims) {
        let mut used: Vec<(u64, u64)> = Vec::new();
        self.each_used(&mut |_, address, length, _| {
            let end = address.saturating_add(length);
            match used.last_mut() {
                Some(last) if last.1 >= address => last.1 = last.1.max(end),
                _ => used.push((address, end)),
            }
        });
        let mut on_device: Vec<Range<u64>> = Vec::new();
        let mut used = used.into_iter().peekable();
        for (start, chunk) in &self.superblock.chunks {
            let end = start + chunk.length;
            let mut at = *start;
            let mut free = |from: u64, to: u64| {
                for place in &chunk.places {
                    claims.claim(place + (from - start)..place + (to - start), Owner::Free);
                }
            };
            while let Some(one) = used.next_if(|one| one.0 < end) {
                if one.0 > at {
                    free(at, one.0);
                }
                at = at.max(one.1.min(end));
            }
            if at < end {
                free(at, end);
            }
            on_device.extend(chunk.places.iter().map(|place| *place..place + chunk.length));
        }
        let mut at = 1 << 20;
        for range in crate::merged(&on_device) {
            claims.claim(at..range.start.max(at), Owner::Free);
            at = at.max(range.end);
        }
        claims.claim(at..self.superblock.size.max(at), Owner::Free);
    }

    fn notes(&mut self) -> &mut Notes {
        &mut self.notes
    }

    fn block(&self) -> u64 {
        self.superblock.sector
    }

    fn replayed(&mut self) -> Replayed {
        self.read_journal()
    }
}

impl Directories for Btrfs<'_> {
    fn root(&self) -> u64 {
        TOP << INODE_BITS | ROOT_INODE
    }

    fn all_entries(&mut self, entry: &mut dyn FnMut(u64, &[u8], u64)) {
        for tree in self.all_subvolumes() {
            let walked = self.subvolume(tree).and_then(|found| {
                self.items(found.root, (0, 0, 0), &mut |btrfs, key, item| {
                    if key.1 == inode::DIR_INDEX
                        && let Ok(directory) = number(tree, key.0)
                        && let Ok(Some((name, child))) = btrfs.entry(directory, item)
                    {
                        entry(directory, name, child);
                    }
                    true
                })
            });
            let about = || format!("names of subvolume {tree} are not told completely");
            self.notes.incomplete(about, walked);
        }
    }

    fn entries(&mut self, directory: u64, entry: &mut dyn FnMut(&[u8], u64)) {
        if let Ok(parent) = self.parent(directory) {
            entry(b"..", parent);
        }
        let mut next = Some(0);
        while let Some(from) = next {
            let (behind, read) = self.entries_from(directory, from, entry);
            next = behind.filter(|behind| *behind > from);
            self.notes.incomplete(|| format!("directory {directory} is not told completely"), read);
        }
    }

    fn what(&mut self, _inode: u64) -> Option<&'static str> {
        None
    }

    fn note(&mut self, note: String) {
        self.notes.add(note);
    }
}

impl Btrfs<'_> {
    /// The name in an item of a directory, and the inode; none if the directory does not have it.
    fn entry<'i>(&mut self, directory: u64, item: &'i [u8]) -> Tried<Option<(&'i [u8], u64)>> {
        let (location, kind) = (le64(item, 0)?, byte(item, 8)?);
        let name = slice(item, 30, usize::from(le16(item, 27)?))?;
        let child = match kind {
            ROOT_ITEM if !self.has_subvolume(directory, location)? => return Ok(None),
            ROOT_ITEM => number(location, ROOT_INODE)?,
            inode::INODE_ITEM => number(parts(directory).0, location)?,
            _ => return Err(Trouble::Damaged("an entry leads to nothing that can be")),
        };
        Ok(Some((name, child)))
    }

    fn parent(&mut self, directory: u64) -> Tried<u64> {
        let (tree, inode) = parts(directory);
        if inode == ROOT_INODE && tree != TOP {
            return self.parent_of_subvolume(tree);
        }
        let root = self.subvolume(tree)?.root;
        let item = self.item(root, (inode, inode::INODE_REF, 0))?;
        let (parent, _) = item.ok_or(Trouble::Damaged("the directory has no name"))?;
        number(tree, parent)
    }
}
