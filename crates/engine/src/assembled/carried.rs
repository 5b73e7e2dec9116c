//! Contents of one member: its superblock, and the metadata that the superblock points to.

use std::io;

use braid_md::assembly::{BitmapFacts, Candidate};
use braid_md::detect::{self, Found};
use braid_md::{BadBlocks, Bitmap, BitmapHeader, Features, Superblock, bitmap};

use super::logs::{self, Logs};
use super::source::Source;

/// Largest number of bytes of a bitmap that are read: all that is kept up to date, in whole pages with the
/// header.
const MOST_BITMAP: u64 = bitmap::MOST_CHUNKS / 8 + bitmap::PAGE_BYTES as u64;

/// Reasons why the contents of a member are unknown.
#[derive(Debug)]
pub enum CarriedError {
    /// The member cannot be read.
    Unreadable(io::Error),
    /// No block has md's magic number, or the block that has it is not valid.
    NoSuperblock(Vec<Found>),
    /// Several superblocks of different versions are valid: their number, and a list of them. The times at
    /// which the arrays were made do not tell which of them counts.
    Several(usize, String),
    /// The bad-block log is in use and cannot be parsed.
    BadBlocks(String),
}

impl From<io::Error> for CarriedError {
    fn from(error: io::Error) -> CarriedError {
        CarriedError::Unreadable(error)
    }
}

/// The checked contents of a member.
pub struct Carried {
    /// Size of the member in bytes.
    pub size: u64,
    /// The valid superblock.
    pub superblock: Superblock,
    /// The member's copy of the array's bitmap.
    pub bitmap: Option<Bitmap>,
    /// Why there is no bitmap that can be written, although the superblock points to one.
    pub bitmap_trouble: Option<String>,
    /// The bad-block log, if it is in use.
    pub bad_blocks: Option<BadBlocks>,
    /// The member's part of a log.
    pub logs: Logs,
}

impl Carried {
    /// Reads the valid superblock, and the metadata that it points to.
    ///
    /// # Errors
    /// The member cannot be read, or has no valid superblock.
    pub fn read(source: &mut Source<'_>) -> Result<Carried, CarriedError> {
        let found = detect::find(source.size, source.read)?;
        Carried::of(found, source)
    }

    /// Reads the metadata that the superblocks `found` on the member point to.
    ///
    /// # Errors
    /// As [`Carried::read`].
    pub fn of(found: Vec<Found>, source: &mut Source<'_>) -> Result<Carried, CarriedError> {
        let Some(choice) = detect::choose(&found) else {
            return Err(CarriedError::NoSuperblock(found));
        };
        if !choice.others.is_empty() {
            return Err(CarriedError::Several(choice.others.len() + 1, several(&choice)));
        }
        let superblock = choice.superblock.clone();
        let (bitmap, bitmap_trouble) = match bitmap_bytes(source, &superblock)? {
            _ if superblock.bitmap_offset.is_none() => (None, None),
            None => (None, Some("it lies outside the device".to_owned())),
            Some(bytes) => match Bitmap::of(&superblock, &bytes) {
                Ok(bitmap) => (Some(bitmap), None),
                Err(why) => (None, Some(why)),
            },
        };
        let bad_blocks = bad_blocks_of(source, &superblock)?;
        let logs = logs::read(source, &superblock)?;
        let size = source.size;
        Ok(Carried { size, superblock, bitmap, bitmap_trouble, bad_blocks, logs })
    }

    /// Returns the facts that assembly needs. `label` is the name of the member in messages.
    #[must_use]
    pub fn candidate(&self, label: String) -> Candidate {
        let fresh = |bitmap: &&Bitmap| {
            bitmap.header.events >= self.superblock.events && !bitmap.header.stale
        };
        let facts = |bitmap: &Bitmap| BitmapFacts {
            events_cleared: bitmap.header.events_cleared,
            chunk: bitmap.header.chunk_size,
            dirty: bitmap.count_set(),
        };
        Candidate {
            label,
            size: self.size,
            superblock: self.superblock.clone(),
            bitmap: self.bitmap.as_ref().filter(fresh).map(facts),
            bitmap_trouble: self.bitmap_trouble.clone(),
            log_head: self.logs.head.clone(),
            log_trouble: self.logs.trouble.clone(),
        }
    }
}

/// Returns the list `version 0.90 at byte … (array …), version 1.2 …`.
fn several(choice: &detect::Choice<'_>) -> String {
    let mut all: Vec<&Superblock> = std::iter::once(choice.superblock).collect();
    all.extend(&choice.others);
    all.sort_by_key(|one| one.version);
    let one = |one: &&Superblock| {
        let (version, offset, uuid) = (one.version, one.super_offset, one.array_uuid);
        format!("version {version} at byte {offset} (array {uuid})")
    };
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Returns an empty bad-block log of the size that the superblock gives.
pub(super) fn empty_log(superblock: &Superblock) -> BadBlocks {
    let log = superblock.bad_block_log.and_then(|log| BadBlocks::new(log.size, log.shift).ok());
    log.unwrap_or_else(BadBlocks::none)
}

/// Reads the bitmap that a superblock names, up to the size in its header or the end of the member, but at
/// least a header if the member has it. Returns `None` if there is none, or none within the member.
///
/// # Errors
/// The bitmap cannot be read.
pub fn bitmap_bytes(
    source: &mut Source<'_>,
    superblock: &Superblock,
) -> io::Result<Option<Vec<u8>>> {
    let place = superblock
        .bitmap_offset
        .and_then(|offset| superblock.super_offset.checked_add_signed(offset));
    let Some(start) = place.filter(|start| *start < source.size) else { return Ok(None) };
    let page = bitmap::PAGE_BYTES as u64;
    let first = source.read(start, page)?;
    let len = BitmapHeader::parse(&first).map_or(page, |header| header.byte_len());
    source.read(start, len.clamp(page, MOST_BITMAP)).map(Some)
}

/// Reads the bad-block log, if it is in use.
fn bad_blocks_of(
    source: &mut Source<'_>,
    superblock: &Superblock,
) -> Result<Option<BadBlocks>, CarriedError> {
    let Some(log) = superblock.bad_block_log else { return Ok(None) };
    if !superblock.features.contains(Features::BAD_BLOCKS) {
        return Ok(None);
    }
    let Some(start) = superblock.super_offset.checked_add_signed(log.offset) else {
        return Ok(None);
    };
    let bytes = source.read(start, log.size)?;
    let parsed = BadBlocks::parse(&bytes, log.shift, source.size);
    parsed.map(Some).map_err(|why| CarriedError::BadBlocks(why.to_string()))
}
