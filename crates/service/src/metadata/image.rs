//! A member opened for reading: what of md's is on it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use braid_engine::assembled::{Source, bitmap_bytes};
use braid_md::detect::{self, Found};
use braid_md::{BadBlocks, Features, Superblock, Version};
use braid_probe::Place;
use rustix::fs::OFlags;

use crate::failure::{Context, Failure};

/// A member, opened for reading.
pub struct Image {
    /// The member's path.
    pub path: PathBuf,
    /// In bytes.
    pub size: u64,
    /// Whatever has md's magic number in the place of a superblock.
    pub found: Vec<Found>,
    file: File,
    /// Where the member begins in it, in bytes.
    start: u64,
}

impl Image {
    /// Opens a regular file or block device and looks for superblocks.
    ///
    /// # Errors
    /// It cannot be opened or read, or is neither.
    pub fn open(path: &Path) -> Result<Image, Failure> {
        crate::log::note_path(path);
        let place = Place::of(path).map_err(Failure::failed)?;
        // A named pipe would wait for somebody to write.
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(&place.path)
            .context(format_args!("cannot open {}", path.display()))?;
        let cannot_read = format!("cannot read {}", path.display());
        let size = size_of(&file).and_then(|size| place.size_in(size)).context(&cannot_read)?;
        let mut image =
            Image { path: path.to_owned(), size, found: Vec::new(), file, start: place.start };
        image.found = detect::find(size, &mut |offset, bytes| image.read(offset, bytes))
            .context(&cannot_read)?;
        Ok(image)
    }

    /// The superblock that holds, and what is damaged if there is none.
    pub fn best(&self) -> Option<&Found> {
        let chosen = detect::choose(&self.found).map(|choice| choice.superblock.version);
        match chosen {
            Some(version) => self.found.iter().find(|found| found.version == version),
            None => self.found.first(),
        }
    }

    /// The partition at whose end the superblock of version 0.90 lies: at the end of a disk it is found
    /// as if it were the disk's.
    pub fn partition_of_superblock(&self) -> Option<u32> {
        let old = self.found.iter().find(|found| found.version == Version::V0_90)?;
        if self.start > 0 {
            return None;
        }
        let table = braid_probe::partitions(&self.path).ok()??.ok()?;
        let ends_there = |one: &&braid_probe::Partition| {
            let offset = Version::V0_90.superblock_offset(one.length);
            offset.is_some_and(|offset| one.start + offset == old.offset)
        };
        table.iter().find(ends_there).map(|one| one.number)
    }

    /// The bytes of the bitmap that a superblock names, as far as its header says and the member
    /// goes; at least a header's, if the member has them.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn bitmap(&self, superblock: &Superblock) -> Result<Option<Vec<u8>>, Failure> {
        self.with_source(|source| bitmap_bytes(source, superblock)).context(self.cannot_read())
    }

    /// The bad-block log that a superblock names, if its entries count.
    ///
    /// # Errors
    /// It cannot be read, or no md would have written it.
    pub fn bad_blocks(&self, superblock: &Superblock) -> Result<Option<BadBlocks>, Failure> {
        let counts = superblock.features.contains(Features::BAD_BLOCKS);
        let Some(log) = superblock.bad_block_log.filter(|_| counts) else { return Ok(None) };
        let Some(start) = superblock.super_offset.checked_add_signed(log.offset) else {
            return Ok(None);
        };
        let mut bytes = vec![0; usize::try_from(log.size).context(self.cannot_read())?];
        self.read(start, &mut bytes).context(self.cannot_read())?;
        BadBlocks::parse(&bytes, log.shift, self.size).map(Some).context(self.path.display())
    }

    /// Whether anything but zeroes lies in the 4 KiB from `offset` on; false of what cannot be read.
    pub fn has_content_at(&self, offset: u64) -> bool {
        let mut bytes = [0; 4096];
        self.read(offset, &mut bytes).is_ok() && bytes != [0; 4096]
    }

    /// Reads bytes of the member, none of what lies behind it.
    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(bytes.len() as u64).filter(|end| *end <= self.size);
        end.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.file.read_exact_at(bytes, self.start + offset)
    }

    /// Has `f` read the member's bytes.
    pub(super) fn with_source<T>(&self, f: impl FnOnce(&mut Source<'_>) -> T) -> T {
        let mut read = |offset, bytes: &mut [u8]| self.read(offset, bytes);
        f(&mut Source { size: self.size, read: &mut read })
    }

    /// What is said when it cannot be read.
    pub(super) fn cannot_read(&self) -> String {
        format!("cannot read {}", self.path.display())
    }

    /// Where superblocks were looked for, in words.
    pub fn places(&self) -> String {
        let place = |version: &Version| {
            let offset = version.superblock_offset(self.size)?;
            Some(format!("{offset} ({version})"))
        };
        let places: Vec<String> = Version::ALL.iter().filter_map(place).collect();
        match places.is_empty() {
            true => format!("its {} bytes have room for none", self.size),
            false => format!("no a92b4efc at byte {}", places.join(", ")),
        }
    }
}

/// The size of a regular file or a block device in bytes.
///
/// # Errors
/// It is neither.
fn size_of(file: &File) -> io::Result<u64> {
    let metadata = file.metadata()?;
    if metadata.file_type().is_block_device() {
        return braid_sys::block::size(file);
    }
    if !metadata.is_file() {
        return Err(io::Error::other("it is neither a regular file nor a block device"));
    }
    Ok(metadata.len())
}
