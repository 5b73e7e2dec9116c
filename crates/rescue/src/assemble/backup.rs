//! mdadm's backup file: the old content of the bytes that a reshape in place was about to overwrite.
//!
//! ```text
//!   0    magic (16), UUID of the array (16), time (8)
//!   40   place in the file, start in the array, length (each 8, little-endian, in sectors), checksum (4)
//!   72   place from the first one's on, start, length of a second section, checksum: only with the second magic
//! ```
//!
//! The checksum depends on the first byte and the length alone, so that it tells nothing. The length of a section that is
//! not in use is 0.
//!
//! Source: mdadm `Grow.c` (`struct mdp_backup_super`).

use std::ops::Range;

use braid_md::{Uuid, Version};
use braid_stack::{ByteSize, File};

use crate::evidence::bytes::le64;

const MAGIC: [&[u8; 16]; 2] = [b"md_backup_data-1", b"md_backup_data-2"];
const SECTOR: u64 = 512;
/// Bytes of the head.
pub const HEAD: usize = 512;

/// Bytes of an array that a backup file has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The bytes of the array.
    pub array: Range<u64>,
    /// Their start in the file.
    pub at: u64,
}

/// Reads the head of the backup file of an array; `size` is the file's.
///
/// # Errors
/// The reason for which it is none, in words.
pub fn sections(
    head: &[u8],
    size: u64,
    array: Uuid,
    version: Version,
) -> Result<Vec<Section>, String> {
    let magic = head.get(..16).unwrap_or_default();
    let Some(kind) = MAGIC.iter().position(|known| *known == magic) else {
        return Err("it is no backup file of mdadm: its magic number is wrong".to_owned());
    };
    let uuid: [u8; 16] = head.get(16..32).and_then(|uuid| uuid.try_into().ok()).unwrap_or_default();
    // The words of 0.90 are numbers, which the file has as the machine did.
    let mut swapped = uuid;
    swapped.chunks_exact_mut(4).for_each(<[u8]>::reverse);
    let is_ours = uuid == array.0 || version == Version::V0_90 && swapped == array.0;
    if !is_ours {
        return Err(format!("it belongs to the array {}", Uuid(uuid)));
    }
    let read = |at: usize, base: u64| {
        let [place, start, length] =
            [0, 8, 16].map(|offset| le64(head, at + offset).unwrap_or(0).saturating_mul(SECTOR));
        let place = place.saturating_add(base);
        let is_inside = place.checked_add(length).is_some_and(|end| end <= size);
        let end = start.checked_add(length);
        let array = start..end.filter(|_| is_inside && length > 0)?;
        Some(Section { array, at: place })
    };
    let first = le64(head, 40).unwrap_or(0).saturating_mul(SECTOR);
    let second = if kind == 1 { read(72, first) } else { None };
    Ok([read(40, 0), second].into_iter().flatten().collect())
}

impl Section {
    /// Returns the expression that reads it from the file at `path`.
    #[must_use]
    pub(super) fn expression(&self, path: &str) -> String {
        let length = ByteSize(self.array.end - self.array.start);
        let whole = File::whole_at(path.to_owned());
        File { offset: ByteSize(self.at), length: Some(length), ..whole }.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(magic: &[u8; 16], numbers: [(usize, u64); 6]) -> Vec<u8> {
        let mut head = vec![0; HEAD];
        head[..16].copy_from_slice(magic);
        head[16..32].fill(7);
        for (at, sectors) in numbers {
            head[at..at + 8].copy_from_slice(&sectors.to_le_bytes());
        }
        head
    }

    #[test]
    fn both_sections_are_read_and_others_refused() {
        let numbers = [(40, 8), (48, 100), (56, 10), (72, 10), (80, 110), (88, 20)];
        let (uuid, version) = (Uuid([7; 16]), Version::V1_2);
        let read = |magic, size| sections(&head(magic, numbers), size, uuid, version);
        let of = |array: Range<u64>, at: u64| Section {
            array: array.start * SECTOR..array.end * SECTOR,
            at: at * SECTOR,
        };
        let (first, second) = (of(100..110, 8), of(110..130, 18));
        assert_eq!(read(MAGIC[1], 1 << 20), Ok(vec![first.clone(), second]));
        assert_eq!(read(MAGIC[0], 1 << 20), Ok(vec![first.clone()]));
        // A file that was cut off.
        assert_eq!(read(MAGIC[1], 20 * SECTOR), Ok(vec![first.clone()]));
        assert_eq!(first.expression("/b"), "file(/b, offset=4K, length=5K)");
        let other = sections(&head(MAGIC[0], numbers), 1 << 20, Uuid([8; 16]), version);
        assert!(other.is_err_and(|why| why.contains("belongs to the array")));
        assert!(sections(&[0; 100], 100, uuid, version).is_err_and(|why| why.contains("magic")));
        assert!(sections(b"md_backup_data-1", 100, uuid, version).is_err());
    }
}
