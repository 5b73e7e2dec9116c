//! Bitmaps of groups: their descriptor has the checksums, and the numbers of blocks and inodes that are free.

use std::collections::BTreeMap;

use super::super::bytes::{le16, le32};
use super::super::crc::advance;

/// Neighbouring bytes that differ, at least: groups of which little is used have bitmaps that are alike.
const CHANGES: usize = 8;
/// The descriptor's fields of blocks, and of inodes: flag of a bitmap that was never written; bitmap, number of free ones,
/// checksum. The upper half of each is 32 bytes behind the lower one.
const FIELDS: [(u16, usize, usize, usize); 2] = [(2, 0, 0x0c, 0x18), (1, 4, 0x0e, 0x1a)];

/// A bitmap as a descriptor has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bitmap {
    block: u64,
    bytes: usize,
    free: u32,
}

/// The bitmaps of a file system, by their checksums; `None` if several have the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Bitmaps(BTreeMap<u32, Option<Bitmap>>);

impl Bitmaps {
    /// Enters the bitmaps of a descriptor of 64 bytes or more. They have `bytes` for blocks, and for inodes.
    pub(super) fn enter(&mut self, descriptor: &[u8], bytes: [usize; 2]) -> Option<()> {
        let flags = le16(descriptor, 0x12)?;
        let halves = |at: usize| {
            let (low, high) = (le16(descriptor, at)?, le16(descriptor, at + 0x20)?);
            Some(u32::from(low) | u32::from(high) << 16)
        };
        for ((flag, block, free, sum), bytes) in FIELDS.into_iter().zip(bytes) {
            let high = u64::from(le32(descriptor, block + 0x20)?);
            let block = u64::from(le32(descriptor, block)?) | high << 32;
            let bitmap = Some(Bitmap { block, bytes, free: halves(free)? });
            if flags & flag == 0 {
                let held = self.0.entry(halves(sum)?).or_insert(bitmap);
                // An older descriptor of the same bitmap, in a copy, has another checksum.
                if *held != bitmap {
                    *held = None;
                }
            }
        }
        Some(())
    }

    /// Finds the bitmap at the start of `block`: its block in the file system, and its bytes.
    pub(super) fn find(&self, seed: u32, block: &[u8], bytes: [usize; 2]) -> Option<(u64, usize)> {
        let of = |bytes: usize| {
            let bits = block.get(..bytes)?;
            let bitmap = (*self.0.get(&advance(seed, bits))?)?;
            let free: u32 = bits.iter().map(|byte| byte.count_zeros()).sum();
            let changes = bits.windows(2).filter(|pair| pair[0] != pair[1]).count();
            let is_bitmap = bitmap.bytes == bytes && bitmap.free == free && changes >= CHANGES;
            is_bitmap.then_some((bitmap.block, bytes))
        };
        bytes.into_iter().filter(|_| !self.0.is_empty()).find_map(of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bitmap_is_known_by_its_checksum_and_its_free_blocks() {
        let bytes = [1024, 512];
        let bits: Vec<u8> = (0..1024_u32).map(|at| if at % 5 == 0 { 0x0f } else { 0xff }).collect();
        let free = bits.iter().map(|byte| byte.count_zeros()).sum::<u32>().to_le_bytes();
        let sum = advance(7, &bits).to_le_bytes();
        let mut descriptor = [0; 64];
        descriptor[..2].copy_from_slice(&[0x34, 0x12]);
        descriptor[0x0c..0x0e].copy_from_slice(&free[..2]);
        descriptor[0x18..0x1a].copy_from_slice(&sum[..2]);
        descriptor[0x38..0x3a].copy_from_slice(&sum[2..]);
        let known = |descriptor: &[u8; 64]| {
            let mut bitmaps = Bitmaps::default();
            bitmaps.enter(descriptor, bytes);
            bitmaps
        };
        assert_eq!(known(&descriptor).find(7, &bits, bytes), Some((0x1234, 1024)));
        assert_eq!(known(&descriptor).find(8, &bits, bytes), None);
        // Another group whose bitmap is the same.
        let mut both = known(&descriptor);
        let mut other = descriptor;
        other[0] = 0x35;
        both.enter(&other, bytes);
        assert_eq!(both.find(7, &bits, bytes), None);
        // A number of free blocks that is another, and a bitmap that was never written.
        descriptor[0x0c] ^= 1;
        assert_eq!(known(&descriptor).find(7, &bits, bytes), None);
        descriptor[0x0c] ^= 1;
        descriptor[0x12] = 2;
        assert_eq!(known(&descriptor).find(7, &bits, bytes), None);
    }
}
