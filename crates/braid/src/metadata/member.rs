//! What a member's superblock says, and what it points to.

use std::path::{Path, PathBuf};

use braid_md::assembly::{BitmapFacts, Candidate, array_size};
use braid_md::{BadBlocks, Bitmap, Features, Level, Superblock, detect};

use super::Image;
use super::logs::{self, Logs};

/// Why nothing can be learnt from a member.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MetadataError {
    #[error("{0}")]
    Unreadable(String),
    #[error(
        "{path} carries no md superblock: {looked}\n  next: `braid examine {path}` shows what it is"
    )]
    NoSuperblock { path: PathBuf, looked: String },
    #[error(
        "{path}: its superblock cannot be used: {why}\n  next: `braid examine --explain {path}`"
    )]
    Damaged { path: PathBuf, why: String },
    #[error(
        "{path} carries {count} valid superblocks, and which one holds cannot be told: {found}\n  \
         next: `braid wipe --metadata VERSION {path}` removes the one that does not"
    )]
    Several { path: PathBuf, count: usize, found: String },
    #[error("{path} belongs to another array now, {uuid}: it was of {expected}")]
    OtherArray { path: PathBuf, uuid: String, expected: String },
    #[error("none of the members can be used: {why}")]
    None { why: String },
}

impl MetadataError {
    /// Why, of a member that was named before: in one line.
    pub(crate) fn brief(&self) -> String {
        match self {
            MetadataError::Unreadable(why) | MetadataError::None { why } => why.clone(),
            MetadataError::NoSuperblock { looked, .. } => {
                format!("it carries no md superblock: {looked}")
            }
            MetadataError::Damaged { why, .. } => format!("its superblock cannot be used: {why}"),
            MetadataError::Several { count, found, .. } => {
                format!("it carries {count} valid superblocks: {found}")
            }
            MetadataError::OtherArray { uuid, .. } => {
                format!("it belongs to another array now, {uuid}")
            }
        }
    }
}

/// A member's metadata, checked.
pub(crate) struct Metadata {
    pub(crate) path: PathBuf,
    /// The member's, in bytes.
    pub(crate) size: u64,
    pub(crate) superblock: Superblock,
    pub(crate) bitmap: Option<Bitmap>,
    /// Why there is none that can be written, though the superblock points to one.
    pub(crate) bitmap_trouble: Option<String>,
    pub(crate) bad_blocks: Option<BadBlocks>,
    pub(crate) logs: Logs,
}

impl Metadata {
    /// Reads the superblock of `path` that holds, and what it points to.
    ///
    /// # Errors
    /// It cannot be read, or has none that can be believed.
    pub(crate) fn read(path: &Path) -> Result<Metadata, MetadataError> {
        let unreadable =
            |failure: crate::failure::Failure| MetadataError::Unreadable(failure.text());
        let image = Image::open(path).map_err(unreadable)?;
        let path = path.to_owned();
        let superblock = match detect::choose(&image.found) {
            // The time at which an array was made does not say which of two a member is of.
            Some(choice) if !choice.others.is_empty() => {
                let (count, found) = (choice.others.len() + 1, several(&choice));
                return Err(MetadataError::Several { path, count, found });
            }
            Some(choice) => choice.superblock.clone(),
            None => {
                let looked = image.places();
                let rejected = image.found.into_iter().find_map(|one| one.result.err());
                return Err(match rejected {
                    Some(why) => MetadataError::Damaged { path, why: why.to_string() },
                    None => MetadataError::NoSuperblock { path, looked },
                });
            }
        };
        let (bitmap, bitmap_trouble) = match image.bitmap(&superblock).map_err(unreadable)? {
            _ if superblock.bitmap_offset.is_none() => (None, None),
            None => (None, Some("it lies outside the device".to_owned())),
            Some(bytes) => match Bitmap::parse(&bytes) {
                Ok(bitmap) if bitmap.header.sync_size < least_sync_size(&superblock) => {
                    let (has, least) = (bitmap.header.sync_size, least_sync_size(&superblock));
                    (None, Some(format!("it is about {has} bytes, and the array has {least}")))
                }
                Ok(bitmap) if bitmap.header.is_portable() => (Some(bitmap), None),
                Ok(_) => (None, Some("its bits are in the order of an unknown host".to_owned())),
                Err(why) => (None, Some(why.to_string())),
            },
        };
        let bad_blocks = bad_blocks_of(&image, &superblock).map_err(unreadable)?;
        let logs = logs::read(&image, &superblock).map_err(unreadable)?;
        let size = image.size;
        Ok(Metadata { path, size, superblock, bitmap, bitmap_trouble, bad_blocks, logs })
    }

    /// What assembly needs to know of it.
    pub(crate) fn candidate(&self) -> Candidate {
        let fresh = |bitmap: &&Bitmap| {
            bitmap.header.events >= self.superblock.events && !bitmap.header.stale
        };
        let facts = |bitmap: &Bitmap| BitmapFacts {
            events_cleared: bitmap.header.events_cleared,
            chunk: bitmap.header.chunk_size,
            dirty: bitmap.count_set(),
        };
        Candidate {
            label: self.path.display().to_string(),
            size: self.size,
            superblock: self.superblock.clone(),
            bitmap: self.bitmap.as_ref().filter(fresh).map(facts),
            log_head: self.logs.head.clone(),
            log_trouble: self.logs.trouble.clone(),
        }
    }
}

/// What a bitmap has to be about: the array for raid10, else what is used of each member.
fn least_sync_size(superblock: &Superblock) -> u64 {
    let Superblock { level, layout, chunk, component_size, raid_disks, .. } = *superblock;
    let all = vec![component_size; raid_disks as usize];
    match level {
        // A layout that is not understood is refused for itself.
        Level::Raid10 => array_size(level, layout, chunk, &all).unwrap_or(0),
        _ => component_size,
    }
}

/// `version 0.90 of array … at byte …, version 1.2 of …`
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

/// The log, if its entries count.
fn bad_blocks_of(
    image: &Image,
    superblock: &Superblock,
) -> Result<Option<BadBlocks>, crate::failure::Failure> {
    let Some(log) = superblock.bad_block_log else { return Ok(None) };
    if !superblock.features.contains(Features::BAD_BLOCKS) {
        return Ok(None);
    }
    let Some(start) = superblock.super_offset.checked_add_signed(log.offset) else {
        return Ok(None);
    };
    let bytes = image.read(start, log.size)?;
    BadBlocks::parse(&bytes, log.shift).map(Some).map_err(|why| {
        crate::failure::Failure::failed(format!(
            "{}: its bad-block log cannot be used: {why}",
            image.path.display()
        ))
    })
}

/// A log in which nothing is bad, with the room that the superblock says there is.
pub(crate) fn empty_log(superblock: &Superblock) -> BadBlocks {
    let log = superblock.bad_block_log.and_then(|log| BadBlocks::new(log.size, log.shift).ok());
    log.unwrap_or_else(BadBlocks::none)
}
