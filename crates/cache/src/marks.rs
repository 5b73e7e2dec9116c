//! One bit for each 512-byte sector of each slot.

use std::ops::Range;

use crate::slot::{Slot, SlotMove};

/// Bytes per sector.
pub(crate) const SECTOR: u64 = 512;

/// Masks of the lowest bits of a byte, by their number.
const LOWEST: [u8; 9] = [0x00, 0x01, 0x03, 0x07, 0x0f, 0x1f, 0x3f, 0x7f, 0xff];

/// Bits of all sectors of all slots.
pub(crate) struct Marks {
    /// Bits per slot: the sectors of a block.
    sectors: usize,
    bits: Vec<u8>,
}

impl Marks {
    /// Creates cleared marks; `sectors`, the number per block, is a multiple of 8.
    pub(crate) fn new(slots: u32, sectors: usize) -> Marks {
        assert!(sectors > 0 && sectors.is_multiple_of(8), "{sectors} sectors of a block");
        Marks { sectors, bits: vec![0; slots as usize * sectors / 8] }
    }

    /// Returns its memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bits.len()
    }

    /// Returns marks for `slots` slots, into which the marks of `places` are moved.
    pub(crate) fn rearranged(&self, slots: u32, places: impl Iterator<Item = SlotMove>) -> Marks {
        let mut marks = Marks::new(slots, self.sectors);
        let bytes = self.sectors / 8;
        for SlotMove { from, to } in places {
            let (from, to) = (from.index() * bytes, to.index() * bytes);
            marks.bits[to..to + bytes].copy_from_slice(&self.bits[from..from + bytes]);
        }
        marks
    }

    /// Returns the bytes with the bits of `sectors` of `slot`, each with a mask of these bits.
    fn bits_of(
        &self,
        slot: Slot,
        sectors: &Range<usize>,
    ) -> impl Iterator<Item = (usize, u8)> + use<> {
        debug_assert!(sectors.end <= self.sectors, "{sectors:?} of {}", self.sectors);
        let first = slot.index() * self.sectors;
        let (start, end) = (first + sectors.start, first + sectors.end);
        (start / 8..end.div_ceil(8)).map(move |byte| {
            let from = start.saturating_sub(byte * 8).min(8);
            let to = (end - byte * 8).min(8);
            (byte, LOWEST[to] & !LOWEST[from])
        })
    }

    /// Returns whether all `sectors` are marked.
    #[inline]
    pub(crate) fn has_all(&self, slot: Slot, sectors: Range<usize>) -> bool {
        self.bits_of(slot, &sectors).all(|(byte, mask)| self.bits[byte] & mask == mask)
    }

    /// Returns whether any sector of `slot` is marked.
    pub(crate) fn has_any(&self, slot: Slot) -> bool {
        self.bits_of(slot, &(0..self.sectors)).any(|(byte, mask)| self.bits[byte] & mask != 0)
    }

    pub(crate) fn set(&mut self, slot: Slot, sectors: Range<usize>) {
        for (byte, mask) in self.bits_of(slot, &sectors) {
            self.bits[byte] |= mask;
        }
    }

    pub(crate) fn clear(&mut self, slot: Slot, sectors: Range<usize>) {
        for (byte, mask) in self.bits_of(slot, &sectors) {
            self.bits[byte] &= !mask;
        }
    }

    /// Returns the bits of `slot`; the lowest bit is the first sector.
    pub(crate) fn of(&self, slot: Slot) -> &[u8] {
        let bytes = self.sectors / 8;
        &self.bits[slot.index() * bytes..][..bytes]
    }

    /// Returns the bits of `slot` for modification.
    pub(crate) fn of_mut(&mut self, slot: Slot) -> &mut [u8] {
        let bytes = self.sectors / 8;
        &mut self.bits[slot.index() * bytes..][..bytes]
    }

    pub(crate) fn clear_all(&mut self, slot: Slot) {
        self.clear(slot, 0..self.sectors);
    }
}

/// Returns the runs of set bits, as sector numbers.
pub(crate) fn runs(bits: impl Iterator<Item = u8>) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (index, byte) in bits.enumerate() {
        for sector in (0..8).filter(|bit| byte >> bit & 1 == 1).map(|bit| index * 8 + bit) {
            match runs.last_mut() {
                Some(last) if last.end == sector => last.end += 1,
                _ => runs.push(sector..sector + 1),
            }
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every range of every slot of a small world, against a set of numbers.
    #[test]
    fn a_mark_is_of_one_sector() {
        for sectors in [8, 16] {
            for (start, end) in (0..sectors).flat_map(|at| (at..=sectors).map(move |end| (at, end)))
            {
                let mut marks = Marks::new(3, sectors);
                let slot = Slot::new(1);
                marks.set(slot, start..end);
                for sector in 0..sectors {
                    let is_in = (start..end).contains(&sector);
                    assert_eq!(marks.has_all(slot, sector..sector + 1), is_in, "{start}..{end}");
                }
                assert_eq!(marks.has_any(slot), start < end);
                assert!(!marks.has_any(Slot::new(0)) && !marks.has_any(Slot::new(2)));
                marks.clear(slot, start..end);
                assert!(!marks.has_any(slot));
            }
        }
    }
}
