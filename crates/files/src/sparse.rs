//! Images of file systems in few bytes, for tests and fuzzers: their sectors that are not zero.
//!
//! ```text
//!   0: sectors of the image (u32)    4: sector number (u32), 512 bytes    520: the next one ..
//! ```
//!
//! The numbers are little-endian. A sector may be there twice: the later one counts.

use std::collections::BTreeMap;
use std::io;

use crate::ReadAt;

const SECTOR: usize = 512;

/// An image.
#[derive(Clone, Debug)]
pub struct Sparse {
    sectors: u32,
    held: BTreeMap<u32, [u8; SECTOR]>,
}

impl Sparse {
    /// Reads what [`Sparse::pack`] wrote. Any bytes are an image: those missing at the end are zeros.
    pub fn unpack(bytes: &[u8]) -> Sparse {
        let number =
            |bytes: &[u8]| bytes.first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let sectors = number(bytes);
        let mut held = BTreeMap::new();
        for record in bytes.get(4..).unwrap_or_default().chunks(4 + SECTOR) {
            let mut sector = [0; SECTOR];
            let data = record.get(4..).unwrap_or_default();
            sector[..data.len()].copy_from_slice(data);
            held.insert(number(record), sector);
        }
        Sparse { sectors, held }
    }

    /// Returns the offsets of the sectors that are there, in order.
    pub fn held(&self) -> impl Iterator<Item = u64> {
        self.held.keys().map(|sector| u64::from(*sector) * SECTOR as u64)
    }

    /// The sectors of an image that are not zero.
    ///
    /// # Errors
    /// The image's.
    pub fn pack(image: &dyn ReadAt) -> io::Result<Vec<u8>> {
        let too_large = |_| io::Error::other("the image is too large");
        let sectors = u32::try_from(image.size() / SECTOR as u64).map_err(too_large)?;
        let mut packed = sectors.to_le_bytes().to_vec();
        let mut bytes = [0; SECTOR];
        for sector in 0..sectors {
            let offset = u64::from(sector) * SECTOR as u64;
            image.read_at(offset, &mut bytes)?;
            if bytes.iter().any(|byte| *byte != 0) {
                packed.extend(sector.to_le_bytes());
                packed.extend(bytes);
            }
        }
        Ok(packed)
    }
}

impl ReadAt for Sparse {
    fn size(&self) -> u64 {
        u64::from(self.sectors) * SECTOR as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        buf.fill(0);
        let end = offset + buf.len() as u64;
        let sector = |bytes: u64| u32::try_from(bytes / SECTOR as u64).unwrap_or(u32::MAX);
        for (number, held) in self.held.range(sector(offset)..=sector(end)) {
            let start = u64::from(*number) * SECTOR as u64;
            let (from, to) = (start.max(offset), (start + SECTOR as u64).min(end));
            if from < to {
                let of = (from - start) as usize..(to - start) as usize;
                buf[(from - offset) as usize..(to - offset) as usize].copy_from_slice(&held[of]);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_the_same_again() {
        let mut image = vec![0_u8; 10 * SECTOR];
        image[SECTOR + 7] = 1;
        image[9 * SECTOR..].fill(2);
        let packed = Sparse::pack(&image).expect("bytes can be read");
        assert_eq!(packed.len(), 4 + 2 * (4 + SECTOR));
        let sparse = Sparse::unpack(&packed);
        let mut again = vec![9; image.len() - 3];
        sparse.read_at(3, &mut again).expect("a sparse image can be read");
        assert!(sparse.size() == image.len() as u64 && again == image[3..]);
    }
}
