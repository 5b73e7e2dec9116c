//! The files that own given bytes: a reverse map of a file system, by its own metadata.
//!
//! ```text
//!   wanted ranges ──▶ Claims ◀── fixed places, inodes' extents ◀── one pass over the inodes     ext, xfs, btrfs
//!                       │   ◀── free space, for what was not claimed
//!                       ▼
//!   inodes that own wanted bytes ──▶ names ◀── one pass over the directories, then up to the root
//! ```
//!
//! Invariants
//! * All bytes are untrusted. A number is compared with the size of the file system before it is used; an
//!   inconsistent file system leads to an error, a note, or [`Owner::Unknown`], never to a panic.
//! * Every loop ends: a tree has a depth, its keys ascend, and all trees together have no more nodes than the
//!   file system has blocks. The time is that of a few passes over the metadata.
//! * Memory is bounded by [`Limits`], not by the file system: only pieces of the wanted ranges, the names of
//!   their files, and these files' parent directories are held.
//! * Nothing is written. The journal of ext3 and ext4 is replayed into memory; those of xfs and btrfs are not.
//!
//! Deliberately absent: I/O (a [`ReadAt`] is given), repair, checksums of metadata but those of the journal, of btrfs and,
//! for its age, of ext's superblock.
//!
//! Superblocks alone are read for the search of lost arrays, too.

mod bits;
mod btrfs;
mod bytes;
mod claims;
mod error;
mod ext;
pub mod fuzz;
mod names;
mod notes;
mod overlay;
mod source;
pub mod sparse;
mod walk;
mod xfs;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

pub use claims::{Owner, Piece, merged, parts_in};
pub use error::{FilesError, Trouble};
pub use ext::Superblock as ExtSuperblock;
pub use names::Names;
pub use source::ReadAt;
pub use walk::{Event, Extent, Kind, Node, Time, Walk};
pub use xfs::Superblock as XfsSuperblock;

use claims::Claims;
use error::Tried;
use names::Directories;
use notes::Notes;
use overlay::Overlay;
use source::Reader;
use walk::Walked;

/// The memory that an answer may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Pieces of the wanted ranges; each takes some 50 bytes.
    pub pieces: usize,
    /// Bytes of names, directories on the way to the root included.
    pub name_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { pieces: 100_000, name_bytes: 32 << 20 }
    }
}

/// The owners of the wanted bytes.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The file system: `ext4`, `xfs`, `btrfs`.
    pub kind: &'static str,
    /// Bytes of the file system, as its superblock says.
    pub size: u64,
    /// All wanted bytes, in order. Bytes with several owners are in several pieces.
    pub pieces: Vec<Piece>,
    /// The names of the inodes in `pieces`.
    pub files: BTreeMap<u64, Names>,
    /// Sentences about what could not be read or was not believed, and what the names depend on.
    pub notes: Vec<String>,
}

/// The questions that all kinds of file systems answer.
trait FileSystem: Directories + Walked {
    fn kind(&self) -> &'static str;
    fn size(&self) -> u64;
    /// Enters metadata and files.
    fn claim_owned(&mut self, claims: &mut Claims);
    /// Enters what of `gaps` is free.
    fn claim_free(&mut self, gaps: &[Range<u64>], claims: &mut Claims);
    fn notes(&mut self) -> &mut Notes;
    /// When it was made, in seconds since 1970; none if it does not say.
    fn made(&mut self) -> Tried<Option<i64>>;
    /// Bytes of a block: the unit of the journal's copies.
    fn block(&self) -> u64;
    /// Reads the journal.
    fn replayed(&mut self) -> Replayed;
    /// True if the journal has to be read whole, and is not replayed.
    fn has_long_log(&self) -> bool {
        false
    }
}

/// The file system on a volume, as it is on disk.
fn known<'s>(source: &'s dyn ReadAt) -> Result<Box<dyn FileSystem + 's>, FilesError> {
    let mut reader = Reader::new(source);
    if let Some(superblock) = ext::recognise(&mut reader)? {
        return Ok(Box::new(ext::Ext::new(reader, superblock)));
    }
    if let Some(superblock) = xfs::recognise(&mut reader)? {
        return Ok(Box::new(xfs::Xfs::new(reader, superblock)));
    }
    let superblock = btrfs::recognise(&mut reader)?.ok_or(FilesError::NotKnown)?;
    Ok(Box::new(btrfs::Btrfs::new(reader, superblock)))
}

/// Returns when the file system on `source` was made, in seconds since 1970; `None` without a known file system, or if it
/// does not say. Of xfs version 4, which does not, it is the last change of the root directory's attributes or entries.
///
/// # Errors
/// The superblock of a known file system (of xfs and btrfs its root directory, too) cannot be read or believed: what lies
/// there may be something else.
pub fn made(source: &dyn ReadAt) -> Result<Option<i64>, FilesError> {
    match known(source) {
        Ok(mut found) => {
            let kind = found.kind();
            found.made().map_err(|trouble| FilesError::Superblock { kind, trouble })
        }
        Err(FilesError::NotKnown | FilesError::Features { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A volume whose journal is replayed into memory: its bytes are as they would be after a mount.
pub struct Volume<'a> {
    overlay: Overlay<'a>,
    unreplayed: Option<String>,
    in_flight: Vec<Range<u64>>,
}

impl<'a> Volume<'a> {
    /// Reads the journal of the file system on `source`.
    ///
    /// # Errors
    /// No known file system, one with unknown features, or one whose superblock cannot be read or is invalid.
    pub fn open(source: &'a dyn ReadAt) -> Result<Volume<'a>, FilesError> {
        Volume::opened(source, true)
    }

    /// Opens a volume as [`Volume::open`], but does not read the log of xfs, which takes a pass over all of it. Files and
    /// names may be those of the last checkpoint, and [`Volume::unreplayed`] does not say so. This is for comparing
    /// many readings of the same members by their files; nothing is copied out of such a volume.
    ///
    /// # Errors
    /// Those of [`Volume::open`].
    pub fn open_for_comparison(source: &'a dyn ReadAt) -> Result<Volume<'a>, FilesError> {
        Volume::opened(source, false)
    }

    fn opened(source: &'a dyn ReadAt, reads_log: bool) -> Result<Volume<'a>, FilesError> {
        let mut system = known(source)?;
        let replayed = match reads_log || !system.has_long_log() {
            true => system.replayed(),
            false => Replayed::default(),
        };
        let Replayed { copies, unreplayed, in_flight } = replayed;
        let overlay = Overlay::new(source, system.block(), copies);
        Ok(Volume { overlay, unreplayed, in_flight })
    }

    /// The changes that are in the journal alone and are not shown, in a sentence: files and names may be older ones.
    pub fn unreplayed(&self) -> Option<&str> {
        self.unreplayed.as_deref()
    }

    fn file_system(&self) -> Result<Box<dyn FileSystem + '_>, FilesError> {
        let mut system = known(&self.overlay)?;
        if let Some(text) = &self.unreplayed {
            system.notes().add(text);
        }
        Ok(system)
    }

    /// Begins a walk over the names.
    ///
    /// # Errors
    /// Those of [`Volume::open`]: a journal may hold a superblock, too.
    pub fn walk(&self) -> Result<Walk<'_>, FilesError> {
        self.file_system().map(|system| Walk::new(system, self.in_flight.clone()))
    }
}

impl ReadAt for Volume<'_> {
    fn size(&self) -> u64 {
        self.overlay.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> std::io::Result<()> {
        self.overlay.read_at(offset, buf)
    }
}

/// The newest copies of blocks in a journal, and what is not shown of it, in a sentence.
#[derive(Default)]
struct Replayed {
    copies: BTreeMap<u64, overlay::Copy>,
    unreplayed: Option<String>,
    /// Bytes of the volume of which the journal has newer ones that are not shown.
    in_flight: Vec<Range<u64>>,
}

/// Finds the owners of the bytes `wanted` of the file system on `source`. Ranges may overlap and may go beyond
/// the file system.
///
/// # Errors
/// No known file system, one with unknown features, or one whose superblock cannot be read or is invalid.
/// Damage elsewhere is in the notes.
pub fn owners(
    source: &dyn ReadAt,
    wanted: &[Range<u64>],
    limits: &Limits,
) -> Result<Report, FilesError> {
    let volume = Volume::open(source)?;
    let mut system = volume.file_system()?;
    let mut claims = Claims::new(wanted, limits.pieces);
    let size = system.size();
    claims.claim(size..u64::MAX, Owner::Outside);
    system.claim_owned(&mut claims);
    let gaps = claims.gaps();
    system.claim_free(&gaps, &mut claims);
    claims.gaps().into_iter().for_each(|gap| claims.claim(gap, Owner::Unknown));
    let inodes: BTreeSet<u64> = claims.inodes();
    let files = names::of(&mut *system, &inodes, limits.name_bytes);
    if let Some(note) = claims.note() {
        system.notes().add(note);
    }
    let notes = system.notes().take();
    Ok(Report { kind: system.kind(), size, pieces: claims.finish(), files, notes })
}
