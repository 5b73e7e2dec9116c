//! Format of the file that keeps the contents of a cache between two runs: block numbers and, if requested, data.
//!
//! ```text
//!   | magic, checksum | block size, count, data flag | origin | table | … | data of the blocks |
//!   0                 12                             28       │       └ at a multiple of 4 KiB
//!                                                             └ per block: number, checksum of its data,
//!                                                               cached sectors
//! ```
//!
//! Numbers are little-endian. Blocks are in the order of eviction.
//!
//! The caller compares `origin`, whose text must change whenever the origin is written. Bytes are
//! untrusted until [`Head::parse`] accepts them, data until their checksum is verified.

use std::fmt;

/// The first bytes, which include the version of the format.
const MAGIC: [u8; 8] = *b"braidwm1";
/// Offset where the checksummed part starts.
const CHECKED: usize = 12;
/// Bytes of a head before the text of the origin.
pub const FIXED: usize = 28;
/// Bytes of a table entry before its marks.
const ENTRY: usize = 12;
/// Alignment of the data in bytes.
const ALIGN: usize = 4096;

/// Maximum number of blocks in a file: that of a cache of 8 TiB with blocks of 64 KiB.
const MOST_BLOCKS: u32 = 1 << 27;
/// Maximum length of the text of the origin in bytes.
const MOST_ORIGIN: u32 = 1 << 20;

/// A cached block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedBlock {
    /// Number of the block on the origin.
    pub block: u64,
    /// CRC-32C of the data, with zeroes for sectors that were not cached; 0 without data.
    pub checksum: u32,
    /// Cached sectors of 512 bytes; the lowest bit is the first sector.
    pub marks: Vec<u8>,
}

/// Everything before the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Identity of the origin, and of its state.
    pub origin: String,
    /// Block size in bytes: a power of two from 4 KiB to 64 KiB.
    pub block: u32,
    /// Data follow the table.
    pub has_data: bool,
    /// The blocks in the order of eviction.
    pub kept: Vec<SavedBlock>,
}

/// Reason to reject a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Not a file of this format.
    Foreign,
    /// Truncated or changed.
    Damaged,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Wrong::Foreign => "it is not what a cache left",
            Wrong::Damaged => "it is damaged",
        })
    }
}

impl std::error::Error for Wrong {}

impl Head {
    /// Encodes the head; its length is [`Head::data_offset`].
    ///
    /// # Panics
    /// If there are more blocks than a cache can have.
    pub fn to_bytes(&self) -> Vec<u8> {
        let small =
            |count: usize| u32::try_from(count).expect("no more than a cache has").to_le_bytes();
        let mut bytes = Vec::with_capacity(self.len());
        bytes.extend(MAGIC);
        bytes.extend([0; CHECKED - MAGIC.len()]);
        bytes.extend(self.block.to_le_bytes());
        bytes.extend(small(self.kept.len()));
        bytes.extend(u32::from(self.has_data).to_le_bytes());
        bytes.extend(small(self.origin.len()));
        bytes.extend(self.origin.as_bytes());
        for one in &self.kept {
            bytes.extend(one.block.to_le_bytes());
            bytes.extend(one.checksum.to_le_bytes());
            bytes.extend(&one.marks);
        }
        let checksum = crc32c::crc32c(&bytes[CHECKED..]);
        bytes[MAGIC.len()..][..4].copy_from_slice(&checksum.to_le_bytes());
        bytes.resize(self.data_offset(), 0);
        bytes
    }

    /// Returns the offset of the data in bytes.
    pub fn data_offset(&self) -> usize {
        self.len().next_multiple_of(ALIGN)
    }

    fn len(&self) -> usize {
        FIXED + self.origin.len() + self.kept.len() * (ENTRY + marks_of(self.block))
    }

    /// Returns the length of the head that begins with `first`, so that the caller can read it.
    ///
    /// # Errors
    /// `first` is not the start of a head.
    pub fn len_of(first: &[u8; FIXED]) -> Result<usize, Wrong> {
        let mut rest = first.strip_prefix(&MAGIC).ok_or(Wrong::Foreign)?;
        let _checksum = number(&mut rest)?;
        let (block, count) = (number(&mut rest)?, number(&mut rest)?);
        let (has_data, origin_len) = (number(&mut rest)?, number(&mut rest)?);
        let is_sound = block.is_power_of_two() && (4096..=65536).contains(&block);
        if !is_sound || has_data > 1 || count > MOST_BLOCKS || origin_len > MOST_ORIGIN {
            return Err(Wrong::Damaged);
        }
        Ok(FIXED + origin_len as usize + count as usize * (ENTRY + marks_of(block)))
    }

    /// Parses the head at the start of `bytes`.
    ///
    /// # Errors
    /// `bytes` do not begin with a valid head.
    pub fn parse(bytes: &[u8]) -> Result<Head, Wrong> {
        let mut rest = bytes.strip_prefix(&MAGIC).ok_or(Wrong::Foreign)?;
        let first = bytes.first_chunk().ok_or(Wrong::Damaged)?;
        let len = Head::len_of(first)?;
        let checksum = number(&mut rest)?;
        let (block, _count) = (number(&mut rest)?, number(&mut rest)?);
        let (has_data, origin_len) = (number(&mut rest)?, number(&mut rest)?);
        let marks = marks_of(block);
        let checked = bytes.get(CHECKED..len).ok_or(Wrong::Damaged)?;
        if crc32c::crc32c(checked) != checksum {
            return Err(Wrong::Damaged);
        }
        let (origin, table) = checked[FIXED - CHECKED..].split_at(origin_len as usize);
        let kept = table.chunks_exact(ENTRY + marks).map(|entry| {
            let (block, rest) = entry.split_first_chunk().ok_or(Wrong::Damaged)?;
            let (checksum, marks) = rest.split_first_chunk().ok_or(Wrong::Damaged)?;
            let (block, checksum) = (u64::from_le_bytes(*block), u32::from_le_bytes(*checksum));
            Ok(SavedBlock { block, checksum, marks: marks.to_vec() })
        });
        Ok(Head {
            origin: String::from_utf8(origin.to_vec()).map_err(|_| Wrong::Damaged)?,
            block,
            has_data: has_data == 1,
            kept: kept.collect::<Result<_, _>>()?,
        })
    }
}

/// Returns the bytes of the marks of a block.
fn marks_of(block: u32) -> usize {
    block as usize / 4096
}

fn number(rest: &mut &[u8]) -> Result<u32, Wrong> {
    let (first, others) = rest.split_first_chunk().ok_or(Wrong::Damaged)?;
    *rest = others;
    Ok(u32::from_le_bytes(*first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn head() -> impl Strategy<Value = Head> {
        let block = (12..=16_u32).prop_map(|bits| 1 << bits);
        (block, any::<bool>(), "[ -~]{0,40}").prop_flat_map(|(block, has_data, origin)| {
            let marks = proptest::collection::vec(any::<u8>(), marks_of(block));
            let kept = (any::<u64>(), any::<u32>(), marks)
                .prop_map(|(block, checksum, marks)| SavedBlock { block, checksum, marks });
            let kept = proptest::collection::vec(kept, 0..8);
            kept.prop_map(move |kept| Head { origin: origin.clone(), block, has_data, kept })
        })
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(head in head(), after in proptest::collection::vec(any::<u8>(), 0..9)) {
            let mut bytes = head.to_bytes();
            prop_assert_eq!(bytes.len(), head.data_offset());
            bytes.extend(after);
            prop_assert_eq!(Head::parse(&bytes), Ok(head));
        }

        /// Truncated and changed heads are rejected.
        #[test]
        fn what_is_damaged_is_refused(head in head(), at in any::<prop::sample::Index>(), flip in 1..=255_u8) {
            let bytes = head.to_bytes();
            let len = head.len();
            prop_assert!(Head::parse(&bytes[..at.index(len)]).is_err());
            let mut changed = bytes.clone();
            changed[at.index(len)] ^= flip;
            prop_assert!(Head::parse(&changed).is_err());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Head::parse(&bytes);
            let _ = Head::parse(&[&MAGIC[..], &bytes].concat());
        }
    }
}
