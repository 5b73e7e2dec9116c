//! A walk over all names of a file system, in the order of its directories, each entry with its attributes and
//! the places of its contents.
//!
//! Invariants
//! * The walk ends: a directory is entered once, so that one which contains itself, or has several names, is a
//!   [`Event::Trouble`] there; a directory has no more blocks than the file system.
//! * A name that is passed on can be that of a file: not empty, neither `.` nor `..`, no `/` and no zero byte.
//! * Memory: for each directory on the way from the root, one of its blocks; a bit for each directory; no list of
//!   entries or extents is longer than a block or [`BATCH`].

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

use crate::FileSystem;
use crate::bits::Bits;
use crate::error::{Tried, Trouble, check};
use crate::source::Doubts;

/// Extents that are given at once.
pub(crate) const BATCH: usize = 1024;
/// Directories on the way to a file.
const DEPTH: usize = 512;

/// The kind of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file with contents.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A device, a pipe or a socket, in words.
    Special(&'static str),
}

impl Kind {
    /// The kind by the high bits of a mode.
    pub(crate) fn of_mode(mode: u16) -> Tried<Kind> {
        Ok(match mode >> 12 {
            1 => Kind::Special("named pipe"),
            2 => Kind::Special("character device"),
            4 => Kind::Directory,
            6 => Kind::Special("block device"),
            8 => Kind::File,
            10 => Kind::Link,
            12 => Kind::Special("socket"),
            _ => return Err(Trouble::Damaged("the inode is of no kind that there is")),
        })
    }
}

/// Seconds since 1970, and nanoseconds.
pub type Time = (i64, u32);

/// The attributes of an inode.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its number.
    pub inode: u64,
    /// Its kind.
    pub kind: Kind,
    /// The kind in the highest four bits, then the permissions.
    pub mode: u16,
    /// Number of names.
    pub links: u32,
    /// Owner and group.
    pub owner: (u32, u32),
    /// Bytes of its contents.
    pub size: u64,
    /// The time of the last read.
    pub accessed: Time,
    /// The time of the last write.
    pub modified: Time,
    /// True if another name of it was told before.
    pub is_again: bool,
    /// The reason why contents cannot be read, if the metadata say so.
    pub sealed: Option<&'static str>,
}

/// Contents of a file that lie together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Bytes from the beginning of the file.
    pub offset: u64,
    /// Bytes of the volume.
    pub range: Range<u64>,
    /// Reserved, and read as zeros.
    pub unwritten: bool,
}

/// A step of a walk.
#[derive(Debug)]
pub enum Event {
    /// A directory; its entries follow, up to [`Event::Leave`]. The root has an empty name.
    Enter(Vec<u8>, Node),
    /// All entries of the innermost directory were told.
    Leave,
    /// A file, a symbolic link or a special file in the innermost directory.
    Entry(Vec<u8>, Node),
    /// An entry of the innermost directory that is not told, or a part of the directory itself.
    Trouble {
        /// The name of the entry, also one that no file can have; none for the directory itself.
        name: Option<Vec<u8>>,
        /// The reason.
        why: String,
        /// The device's error, if bytes could not be read.
        unread: Option<io::ErrorKind>,
    },
}

/// The questions of a walk to a file system.
pub(crate) trait Walked {
    /// The attributes of an inode.
    fn node(&mut self, inode: u64) -> Tried<Node>;

    /// Calls `entry` for the entries in the first block of a directory at or behind block `from`. Returns where the
    /// next call begins; none at the end.
    fn entries_from(
        &mut self,
        directory: u64,
        from: u64,
        entry: &mut dyn FnMut(&[u8], u64),
    ) -> (Option<u64>, Tried<()>);

    /// The first extents of a file that end behind byte `from`, in order, at most [`BATCH`].
    fn extents_from(&mut self, inode: u64, from: u64) -> (Vec<Extent>, Tried<()>);

    /// The contents of an inode that lie beside its attributes, or are those of a symbolic link.
    fn inline(&mut self, inode: u64) -> Tried<Option<Vec<u8>>>;

    /// True if no block can belong to several files.
    fn shares_nothing(&self) -> bool;

    /// The bytes of the volume that are in doubt, which notice when metadata there are read.
    fn doubts(&mut self) -> &mut Doubts;
}

/// A directory on the way.
struct Frame {
    name: Vec<u8>,
    inode: u64,
    /// The block that is read next.
    next: Option<u64>,
    pending: VecDeque<(Vec<u8>, u64)>,
}

/// A walk; begin with [`crate::Volume::walk`].
pub struct Walk<'a> {
    system: Box<dyn FileSystem + 'a>,
    frames: Vec<Frame>,
    has_begun: bool,
    entered: Bits,
    /// Files with several names of which one was told.
    named: Bits,
    /// Blocks of 512 bytes of files, where no two files share one.
    owned: Bits,
    /// Metadata of which a journal has newer ones: they are in doubt, too.
    in_flight: Vec<Range<u64>>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(
        mut system: Box<dyn FileSystem + 'a>,
        in_flight: Vec<Range<u64>>,
    ) -> Walk<'a> {
        system.doubts().set(in_flight.clone());
        Walk {
            in_flight,
            system,
            frames: Vec::new(),
            has_begun: false,
            entered: Bits::default(),
            named: Bits::default(),
            owned: Bits::default(),
        }
    }

    /// The file system: `ext4`, `xfs`, `btrfs`.
    pub fn kind(&self) -> &'static str {
        self.system.kind()
    }

    /// Bytes of the file system, as its superblock says.
    pub fn size(&self) -> u64 {
        self.system.size()
    }

    /// Says which bytes of the volume are in doubt.
    pub fn set_doubtful(&mut self, mut ranges: Vec<Range<u64>>) {
        ranges.extend(self.in_flight.iter().cloned());
        self.system.doubts().set(ranges);
    }

    /// Returns whether metadata in doubt were read since the last call.
    pub fn took_doubtful(&mut self) -> bool {
        self.system.doubts().took()
    }

    /// Takes the remarks about the file system as a whole.
    pub fn take_notes(&mut self) -> Vec<String> {
        self.system.notes().take()
    }

    /// The next step; none at the end.
    #[expect(clippy::should_implement_trait, reason = "contents are asked for between steps")]
    pub fn next(&mut self) -> Option<Event> {
        if !self.has_begun {
            self.has_begun = true;
            let root = self.system.root();
            return Some(self.arrive(Vec::new(), root));
        }
        loop {
            let frame = self.frames.last_mut()?;
            if let Some((name, inode)) = frame.pending.pop_front() {
                return Some(match is_name(&name) {
                    true => self.arrive(name, inode),
                    false => trouble(Some(name), "no file can have this name"),
                });
            }
            let Some(from) = frame.next else {
                self.frames.pop();
                return Some(Event::Leave);
            };
            let (directory, pending) = (frame.inode, &mut frame.pending);
            let (next, read) = self.system.entries_from(directory, from, &mut |name, inode| {
                if name != b"." && name != b".." {
                    pending.push_back((name.to_vec(), inode));
                }
            });
            frame.next = next.filter(|next| *next > from);
            if let Err(why) = read {
                return Some(failure(None, "some of its names are lost", &why));
            }
        }
    }

    fn arrive(&mut self, name: Vec<u8>, inode: u64) -> Event {
        let mut node = match self.system.node(inode) {
            Ok(node) => node,
            Err(why) => return failure(Some(name), &format!("inode {inode}"), &why),
        };
        if let Some(why) = node.sealed {
            return trouble(Some(name), why);
        }
        if node.kind != Kind::Directory && !name.is_empty() {
            node.is_again = node.links > 1 && !self.named.insert(inode..inode + 1).is_empty();
            return Event::Entry(name, node);
        }
        if node.kind != Kind::Directory {
            return trouble(None, "the root of the file system is no directory");
        }
        if self.frames.len() == DEPTH {
            return trouble(Some(name), "it lies too deep in the tree");
        }
        if !self.entered.insert(inode..inode + 1).is_empty() {
            return trouble(Some(name), "the directory has another name, or contains itself");
        }
        self.frames.push(Frame {
            name: name.clone(),
            inode,
            next: Some(0),
            pending: VecDeque::new(),
        });
        Event::Enter(name, node)
    }

    /// The path from the root of an entry of the innermost directory, or of that directory: `/a/b`.
    pub fn path(&self, entry: &[u8]) -> Vec<u8> {
        let names = self.frames.iter().skip(1).map(|frame| frame.name.as_slice());
        let mut path = Vec::new();
        for name in names.chain([entry]).filter(|name| !name.is_empty()) {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        if path.is_empty() { vec![b'/'] } else { path }
    }

    /// Leaves the innermost directory without an [`Event::Leave`]: the rest of its entries is not told.
    pub fn leave(&mut self) {
        self.frames.pop();
    }

    /// The target of a symbolic link.
    ///
    /// # Errors
    /// It cannot be read, or is damaged.
    pub fn target(&mut self, node: &Node) -> Result<Vec<u8>, Trouble> {
        let target = self.system.inline(node.inode)?;
        let target = target.ok_or(Trouble::Damaged("the symbolic link has no target"))?;
        let is_path = !target.is_empty() && !target.contains(&0);
        check(is_path, "the target of the symbolic link cannot be")?;
        Ok(target)
    }

    /// The contents of a file that lie in its inode, if they do.
    ///
    /// # Errors
    /// The inode cannot be read.
    pub fn inline(&mut self, node: &Node) -> Result<Option<Vec<u8>>, Trouble> {
        self.system.inline(node.inode)
    }

    /// The first extents of a file behind its byte `from`, cut to its size, in order: none if there are none. Bytes
    /// between them are zeros. The trouble, if there is one, may hide others.
    pub fn extents(&mut self, node: &Node, from: u64) -> (Vec<Extent>, Result<(), Trouble>) {
        let (mut extents, read) = self.system.extents_from(node.inode, from);
        extents.retain_mut(|extent| {
            let len = node.size.saturating_sub(extent.offset);
            extent.range.end = extent.range.end.min(extent.range.start.saturating_add(len));
            !extent.range.is_empty()
        });
        (extents, read)
    }

    /// Enters the owner of an extent. Returns the bytes of the volume that another file has, too: in a file system
    /// without shared blocks, contents of one of them are wrong.
    pub fn claim(&mut self, extent: &Extent) -> Vec<Range<u64>> {
        const UNIT: u64 = 512;
        if !self.system.shares_nothing() {
            return Vec::new();
        }
        let units = extent.range.start / UNIT..extent.range.end.div_ceil(UNIT);
        let shared = self.owned.insert(units);
        shared.into_iter().map(|units| units.start * UNIT..units.end * UNIT).collect()
    }
}

fn trouble(name: Option<Vec<u8>>, why: &str) -> Event {
    Event::Trouble { name, why: why.to_owned(), unread: None }
}

fn failure(name: Option<Vec<u8>>, what: &str, why: &Trouble) -> Event {
    let unread = match why {
        Trouble::Read { error, .. } => Some(error.kind()),
        Trouble::Beyond { .. } | Trouble::Damaged(_) => None,
    };
    Event::Trouble { name, why: format!("{what}: {why}"), unread }
}

/// True if a file can have this name.
fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.len() <= 255 && !name.contains(&b'/') && !name.contains(&0)
}
