//! What one member carries: its superblock, and what that points to.

use std::io;

use braid_level::size::redundant_size;
use braid_md::assembly::{BitmapFacts, Candidate};
use braid_md::detect::{self, Found};
use braid_md::superblock::Contents;
use braid_md::{BadBlocks, Bitmap, BitmapHeader, Features, Level, Superblock, bitmap};

use super::logs::{self, Logs};
use super::source::Source;

/// As many bytes of a bitmap as are read: with its header, whole pages, all that is kept up to date.
const MOST_BITMAP: u64 = bitmap::MOST_CHUNKS / 8 + bitmap::PAGE_BYTES as u64;

/// Why nothing can be learnt from a member.
#[derive(Debug)]
pub enum CarriedError {
    /// It cannot be read.
    Unreadable(io::Error),
    /// Nothing has md's magic number, or what has it cannot be believed.
    NoSuperblock(Vec<Found>),
    /// Several superblocks of different versions are sound: how many, and which. What a member is of
    /// cannot be told by the time at which the arrays were made.
    Several(usize, String),
    /// Its bad-block log, which counts, cannot be used.
    BadBlocks(String),
}

impl From<io::Error> for CarriedError {
    fn from(error: io::Error) -> CarriedError {
        CarriedError::Unreadable(error)
    }
}

/// What a member carries, checked.
pub struct Carried {
    /// The member's, in bytes.
    pub size: u64,
    /// The one that holds.
    pub superblock: Superblock,
    /// Its copy of the array's bitmap.
    pub bitmap: Option<Bitmap>,
    /// Why there is none that can be written, though the superblock points to one.
    pub bitmap_trouble: Option<String>,
    /// Its bad-block log, if the entries count.
    pub bad_blocks: Option<BadBlocks>,
    /// What it holds of a log.
    pub logs: Logs,
}

impl Carried {
    /// Reads the superblock that holds, and what it points to.
    ///
    /// # Errors
    /// It cannot be read, or has none that can be believed.
    pub fn read(source: &mut Source<'_>) -> Result<Carried, CarriedError> {
        let found = detect::find(source.size, source.read)?;
        Carried::of(found, source)
    }

    /// The same of superblocks that were `found` there.
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
            Some(bytes) => match bitmap_of(&bytes, &superblock) {
                Ok(bitmap) => (Some(bitmap), None),
                Err(why) => (None, Some(why)),
            },
        };
        let bad_blocks = bad_blocks_of(source, &superblock)?;
        let logs = logs::read(source, &superblock)?;
        let size = source.size;
        Ok(Carried { size, superblock, bitmap, bitmap_trouble, bad_blocks, logs })
    }

    /// What assembly needs to know of it; `label` is what people call it.
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

/// `version 0.90 at byte … (array …), version 1.2 …`
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

/// The bitmap of the array that `superblock` is of.
///
/// # Errors
/// Why it cannot be kept up to date.
fn bitmap_of(bytes: &[u8], superblock: &Superblock) -> Result<Bitmap, String> {
    let bitmap = Bitmap::parse(bytes).map_err(|why| why.to_string())?;
    let header = &bitmap.header;
    if header.uuid.0 != superblock.uuid_on_disk() {
        return Err(format!("it is of array {}", header.uuid));
    }
    if !header.is_portable() {
        return Err("its bits are in the order of an unknown host".to_owned());
    }
    let (has, least) = (header.sync_size, least_sync_size(superblock));
    if has < least {
        return Err(format!("it is about {has} bytes, and the array has {least}"));
    }
    // As for md, what the array has counts, also where the header says more: that may lie over something else.
    Ok(if least > 0 { bitmap.covering(least) } else { bitmap })
}

/// What a bitmap has to be about: the array for raid10, else what is used of each member.
fn least_sync_size(superblock: &Superblock) -> u64 {
    let Contents { level, layout, chunk, component_size, raid_disks, .. } = **superblock;
    match level {
        // A layout that is not understood is refused for itself.
        Level::Raid10 => {
            redundant_size(level, layout, chunk, raid_disks.into(), component_size).unwrap_or(0)
        }
        _ => component_size,
    }
}

/// A log in which nothing is bad, with the room that the superblock says there is.
pub(super) fn empty_log(superblock: &Superblock) -> BadBlocks {
    let log = superblock.bad_block_log.and_then(|log| BadBlocks::new(log.size, log.shift).ok());
    log.unwrap_or_else(BadBlocks::none)
}

/// The bytes of the bitmap that a superblock names, as far as its header says and the member
/// goes; at least a header's, if the member has them. `None` if it names none, or one outside.
///
/// # Errors
/// They cannot be read.
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

/// The log, if its entries count.
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
