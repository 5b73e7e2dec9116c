//! The bitmap of an array, as one of its members carries it.

use braid_level::size::redundant_size;

use super::Bitmap;
use crate::superblock::Contents;
use crate::{Level, Superblock};

impl Bitmap {
    /// Parses the bitmap of the array to which `superblock` belongs.
    ///
    /// # Errors
    /// Why the bitmap cannot be used.
    pub fn of(superblock: &Superblock, bytes: &[u8]) -> Result<Bitmap, String> {
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
        // As in md, the array's size counts even if the header says more: the bits beyond may be something else.
        Ok(if least > 0 { bitmap.covering(least) } else { bitmap })
    }
}

/// Returns the bytes that a bitmap must cover: the array for raid10, else the used part of each member.
fn least_sync_size(superblock: &Superblock) -> u64 {
    let Contents { level, layout, chunk, component_size, raid_disks, .. } = **superblock;
    match level {
        // An unknown layout is refused elsewhere.
        Level::Raid10 => {
            redundant_size(level, layout, chunk, raid_disks.into(), component_size).unwrap_or(0)
        }
        _ => component_size,
    }
}
