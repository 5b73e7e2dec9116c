//! What a cache leaves behind for when it comes up again: which blocks it held, and their data if asked.
//!
//! ```text
//!   | magic, checksum | block, count, whether there is data | origin | table | … | data of the blocks |
//!   0                 12                                    28       │       └ at a multiple of 4 KiB
//!                                                                    └ of each block: number, checksum of
//!                                                                      its data, which sectors are held
//! ```
//!
//! All numbers are little-endian. Blocks stand in the order in which they would have left.
//!
//! What `origin` says is compared as it is, by whoever made it: it has to change whenever the origin was
//! written. Bytes are untrusted until [`Head::parse`] has seen them; data until its checksum was.

use std::fmt;

/// The first bytes, with the version of the format.
const MAGIC: [u8; 8] = *b"braidwm1";
/// Where what is checked by the checksum starts.
const CHECKED: usize = 12;
/// Bytes of a head before what is said of the origin.
pub const FIXED: usize = 28;
/// Of a block in the table, before its marks.
const ENTRY: usize = 12;
/// What data starts at a multiple of.
const ALIGN: usize = 4096;

/// The most blocks that are read from a file: as many as a cache of 8 TiB has of 64 KiB.
const MOST_BLOCKS: u32 = 1 << 27;
/// The most bytes of what is said of an origin.
const MOST_ORIGIN: u32 = 1 << 20;

/// A block that was held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its number on the origin, in blocks.
    pub block: u64,
    /// CRC-32C of its data, with zeroes where nothing was held; 0 where there is no data.
    pub checksum: u32,
    /// Which of its sectors of 512 bytes were held, the first in the lowest bit.
    pub marks: Vec<u8>,
}

/// What is before the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Which origin it was, and what tells whether it was written since.
    pub origin: String,
    /// Bytes of a block: a power of two from 4 KiB to 64 KiB.
    pub block: u32,
    /// Whether data follows.
    pub has_data: bool,
    /// Whoever would have left first comes first.
    pub kept: Vec<Kept>,
}

/// Why bytes are no head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// They are something else.
    Foreign,
    /// They end too early, or are not what was written.
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
    /// The head as bytes, as long as [`Head::data_offset`] says.
    ///
    /// # Panics
    /// If there are more blocks than a cache has.
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

    /// Where data starts, in bytes.
    pub fn data_offset(&self) -> usize {
        self.len().next_multiple_of(ALIGN)
    }

    fn len(&self) -> usize {
        FIXED + self.origin.len() + self.kept.len() * (ENTRY + marks_of(self.block))
    }

    /// How many bytes a head has that begins with `first`, if it is one: so many are to be read.
    ///
    /// # Errors
    /// It is none.
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

    /// The head that `bytes`, which may go on after it, begin with.
    ///
    /// # Errors
    /// They do not begin with one.
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
            Ok(Kept { block, checksum, marks: marks.to_vec() })
        });
        Ok(Head {
            origin: String::from_utf8(origin.to_vec()).map_err(|_| Wrong::Damaged)?,
            block,
            has_data: has_data == 1,
            kept: kept.collect::<Result<_, _>>()?,
        })
    }
}

/// Bytes of the marks of a block.
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
                .prop_map(|(block, checksum, marks)| Kept { block, checksum, marks });
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

        /// Of what is cut or changed nothing is believed.
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
