//! Superblocks on a member, and the valid one.
//!
//! A member can have several: a 1.2 array made over an old 0.90 one leaves the old superblock at the end, and a
//! mirror of a disk image holds the image's. All four places are read, and every block with md's magic number
//! is reported, with the reason if it is invalid.
//!
//! Deliberately absent: reading, which is the caller's; and the decision between two valid superblocks.

use std::fmt;
use std::io;

use crate::superblock::{MAGIC, SUPERBLOCK_BYTES};
use crate::{Rejection, Superblock, Version};

/// Something with md's magic number in a superblock's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Version of the place, which for version 1 is the minor version.
    pub version: Version,
    /// In bytes from the member's start.
    pub offset: u64,
    /// The superblock, or why it is none.
    pub result: Result<Superblock, Rejection>,
    /// The bytes that were read: [`SUPERBLOCK_BYTES`].
    pub bytes: Vec<u8>,
}

/// Looks at all places in which a member of `device_size` bytes can have a superblock. `read`
/// fills its buffer from an offset in bytes; it is never asked for bytes outside the member, and
/// always for whole 4 KiB on 4 KiB.
///
/// # Errors
/// The first one of `read`.
pub fn find(
    device_size: u64,
    read: &mut dyn FnMut(u64, &mut [u8]) -> io::Result<()>,
) -> io::Result<Vec<Found>> {
    let mut found = Vec::new();
    for version in Version::ALL {
        let Some(offset) = version.superblock_offset(device_size) else { continue };
        let mut bytes = vec![0; SUPERBLOCK_BYTES];
        read(offset, &mut bytes)?;
        if bytes.starts_with(&MAGIC.to_le_bytes()) || bytes.starts_with(&MAGIC.to_be_bytes()) {
            let result = Superblock::parse(version, offset, device_size, &bytes);
            found.push(Found { version, offset, result, bytes });
        }
    }
    Ok(found)
}

/// The superblock that holds, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice<'a> {
    /// The one that was chosen.
    pub superblock: &'a Superblock,
    /// The valid ones that were not.
    pub others: Vec<&'a Superblock>,
}

/// The valid superblock whose array was created last, as mdadm has it: a newer array lies over an
/// older one, whatever was left of that. Of equal times the first of 0.90, 1.0, 1.1, 1.2.
///
/// Source: mdadm `super1.c` (`load_super1`), `util.c` (`guess_super_type`).
#[must_use]
pub fn choose(found: &[Found]) -> Option<Choice<'_>> {
    let mut valid: Vec<&Superblock> =
        found.iter().filter_map(|found| found.result.as_ref().ok()).collect();
    valid.sort_by_key(|superblock| {
        (std::cmp::Reverse(superblock.created.seconds), superblock.version)
    });
    let (superblock, others) = valid.split_first()?;
    Some(Choice { superblock, others: others.to_vec() })
}

impl fmt::Display for Choice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.others.is_empty() {
            return write!(f, "version {} is the only valid superblock", self.superblock.version);
        }
        let (version, created) = (self.superblock.version, self.superblock.created.seconds);
        write!(f, "version {version} was created last ({created} s)")?;
        for other in &self.others {
            write!(f, ", after version {} ({} s)", other.version, other.created.seconds)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every size around the places' limits: no read goes outside the member.
    #[test]
    fn nothing_outside_the_member_is_read() {
        for size in (0..300).map(|blocks| blocks * 512).chain([4095, 4097, 65_535, 131_073]) {
            let mut reads = 0;
            let found = find(size, &mut |offset, bytes| {
                reads += 1;
                assert_eq!(bytes.len(), SUPERBLOCK_BYTES);
                assert!(offset % 4096 == 0 && offset + bytes.len() as u64 <= size, "{size}");
                Ok(())
            });
            assert_eq!(found.ok(), Some(Vec::new()));
            let places = Version::ALL.iter().filter(|v| v.superblock_offset(size).is_some());
            assert_eq!(reads, places.count(), "{size}");
        }
    }

    #[test]
    fn an_error_of_reading_is_passed_on() {
        let result = find(1 << 20, &mut |_, _| Err(io::Error::other("unplugged")));
        assert_eq!(result.map_err(|error| error.to_string()), Err("unplugged".to_owned()));
    }
}
