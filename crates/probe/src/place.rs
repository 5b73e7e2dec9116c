//! The place of a member: a whole file or device, or a part of it, found by the member's name.
//!
//! A member that is a part is named by its text in a stack, `part(/srv/disk.img, 3)`. Code that opens one gets
//! the path, the start and the length here.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::ProbeError;
use crate::facts::open_member;
use crate::identity::{FileKind, identify};
use crate::signature::FileImage;
use crate::table::{Partition, TableError, read_table};

/// The place of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file or device.
    pub path: PathBuf,
    /// The start of the member in it, in bytes.
    pub start: u64,
    /// The length of the member; `None` reaches to the end.
    pub length: Option<u64>,
    /// The number of the partition, if the member is named by it.
    pub partition: Option<u32>,
}

impl Place {
    /// The place that `name` means. Nothing is read, unless it is a partition.
    ///
    /// # Errors
    /// There is no such partition, or the table cannot be read.
    pub fn of(name: &Path) -> Result<Place, ProbeError> {
        let called = name.to_str().map(braid_stack::File::called);
        let Some(file) = called.filter(|file| !file.is_whole()) else {
            return Ok(Place { path: name.to_owned(), start: 0, length: None, partition: None });
        };
        let path = file.path().to_owned();
        let Some(number) = file.partition else {
            let length = file.length.map(|length| length.bytes());
            return Ok(Place { path, start: file.offset.bytes(), length, partition: None });
        };
        let none = |why: String| ProbeError::NoPartition { path: path.clone(), why };
        let table =
            partitions(&path)?.ok_or_else(|| none("it has no partition table".to_owned()))?;
        let table = table.map_err(|why| none(why.to_string()))?;
        let found = table.into_iter().find(|one| one.number == number);
        let found = found.ok_or_else(|| none(format!("it has no partition {number}")))?;
        let (start, length) = (found.start, Some(found.length));
        Ok(Place { path, start, length, partition: Some(number) })
    }

    /// The size of the place, in a file or device of `size` bytes.
    ///
    /// # Errors
    /// It goes beyond the end.
    pub fn size_in(&self, size: u64) -> io::Result<u64> {
        let left = size.checked_sub(self.start);
        let fits = left.filter(|left| self.length.is_none_or(|length| length <= *left));
        match fits {
            Some(left) => Ok(self.length.unwrap_or(left)),
            None => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!(
                    "it goes beyond the {size} bytes of {}: is that all of it?",
                    self.path.display()
                ),
            )),
        }
    }
}

/// The partitions of the file or device at `path`; `None` without a table.
///
/// # Errors
/// It is neither, or cannot be read; inside, why the table is not used.
pub fn partitions(path: &Path) -> Result<Option<Result<Vec<Partition>, TableError>>, ProbeError> {
    let (kind, identity) = identify(path)?;
    if !matches!(kind, FileKind::Regular | FileKind::Block) {
        return Ok(None);
    }
    let mut file: File = open_member(path, identity)?;
    let size = file.seek(SeekFrom::End(0)).map_err(ProbeError::io("find the end of", path))?;
    read_table(&FileImage { file: &file, start: 0, size }).map_err(ProbeError::io("read", path))
}
