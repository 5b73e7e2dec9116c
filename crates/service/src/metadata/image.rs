//! An open member: what of md's is on it.

use std::path::{Path, PathBuf};

use braid_device::Access;
use braid_engine::assembled::{Source, bitmap_bytes};
use braid_md::detect::{self, Found};
use braid_md::{BadBlocks, Features, Superblock, Version};
use braid_member::{Kind, Named};
use braid_probe::Place;

use crate::failure::{Context, Failure};

/// An open member.
pub struct Image {
    /// The member's path.
    pub path: PathBuf,
    /// In bytes.
    pub size: u64,
    /// Whatever has md's magic number in the place of a superblock.
    pub found: Vec<Found>,
    member: Box<dyn Kind>,
}

impl Image {
    /// Opens a regular file, block device or remote member for reading and looks for superblocks.
    ///
    /// # Errors
    /// It cannot be opened or read, or is neither.
    pub fn open(path: &Path) -> Result<Image, Failure> {
        crate::log::note_path(path);
        let member = Named::open(path, Access::ReadOnly).map_err(Failure::failed)?;
        Image::of(path, member.kind())
    }

    /// Looks for superblocks on a member that is open. `path` is its name in messages.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of(path: &Path, member: Box<dyn Kind>) -> Result<Image, Failure> {
        let size = member.size();
        let found = detect::find(size, &mut |offset, bytes| member.read_at(offset, bytes))
            .context(format_args!("cannot read {}", path.display()))?;
        Ok(Image { path: path.to_owned(), size, found, member })
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
        if Place::of(&self.path).is_ok_and(|place| place.start > 0) {
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
        self.member.read_at(start, &mut bytes).context(self.cannot_read())?;
        BadBlocks::parse(&bytes, log.shift, self.size).map(Some).context(self.path.display())
    }

    /// Returns true if the 4 KiB from `offset` on can be read and are not all zeroes.
    pub fn has_content_at(&self, offset: u64) -> bool {
        let mut bytes = [0; 4096];
        self.member.read_at(offset, &mut bytes).is_ok() && bytes != [0; 4096]
    }

    /// Has `f` read the member's bytes.
    pub(super) fn with_source<T>(&self, f: impl FnOnce(&mut Source<'_>) -> T) -> T {
        let mut read = |offset, bytes: &mut [u8]| self.member.read_at(offset, bytes);
        f(&mut Source { size: self.size, read: &mut read })
    }

    /// Returns the message for a failed read.
    pub(super) fn cannot_read(&self) -> String {
        format!("cannot read {}", self.path.display())
    }

    /// Returns the offsets at which superblocks were looked for, in words.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Metadata;
    use braid_member::open_file;

    #[test]
    fn an_open_member_is_read_though_another_file_lies_at_its_path() {
        let folder = tempfile::tempdir().expect("a folder");
        let [path, other] = ["a.img", "b.img"].map(|name| folder.path().join(name));
        let golden = braid_golden::all();
        let array = golden
            .iter()
            .find(|one| one.metadata == "1.2" && one.members[0].present())
            .expect("an array of version 1.2");
        std::fs::write(&path, array.expand_member(0)).expect("a member");
        std::fs::write(&other, [0; 8192]).expect("a file");
        let member = open_file(&path, Access::Exclusive, 0, None).expect("a member");
        std::fs::rename(&other, &path).expect("another file");
        let read = Metadata::of(&Image::of(&path, Box::new(member)).expect("an image"));
        assert_eq!(read.expect("its superblock").superblock.version, Version::V1_2);
        assert_eq!(Metadata::array_at(&path), None);
    }
}
