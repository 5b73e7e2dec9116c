//! SplitMix64, the only source of random choices: a seed that is written down today gives the same order of
//! trials, the same simulated run and the same test for ever, independent of libraries.
//!
//! Deliberately absent: seeds from the clock, and secrets. Code that needs either asks the system.

mod commit;
mod zipf;

use std::ops::RangeInclusive;

pub use commit::{commit, first_of_commit};
pub use zipf::Zipf;

/// A generator with 64 bits of state.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The sequence of `seed`.
    pub const fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; the bias of the multiply-shift is below `bound / 2^64`.
    ///
    /// # Panics
    /// If `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "an empty range has no number");
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// An index into a list of `len`.
    ///
    /// # Panics
    /// If `len` is 0.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// Puts a list in an order of its own (Fisher-Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }

    /// A number of `range`.
    ///
    /// # Panics
    /// If `range` is empty or all of `u64`.
    pub fn within(&mut self, range: RangeInclusive<u64>) -> u64 {
        let (first, last) = range.into_inner();
        assert!(first <= last, "{first} to {last}");
        first + self.below(last - first + 1)
    }

    /// True with a probability of `percent` in a hundred.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A generator of its own, so that what one part draws does not move what another gets.
    #[must_use]
    pub fn fork(&mut self) -> Rng {
        Rng(self.next_u64())
    }
}

/// One seed from several numbers, so that repetition 1 of cell 2 and repetition 2 of cell 1 differ.
pub fn mix(parts: &[u64]) -> u64 {
    parts.iter().fold(0, |state, part| Rng::new(state ^ *part).next_u64())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference values of SplitMix64 with seed 1234567 (Vigna's C code).
    #[test]
    fn equals_the_published_sequence() {
        let mut rng = Rng::new(1_234_567);
        let first: Vec<u64> = (0..5).map(|_| rng.next_u64()).collect();
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821
            ]
        );
    }

    #[test]
    fn draws_stay_in_their_range_and_reach_its_ends() {
        let mut rng = Rng::new(1);
        let drawn: Vec<u64> = (0..1000).map(|_| rng.within(3..=7)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&3), Some(&7)));
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        Rng::new(7).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn mixing_is_ordered() {
        assert_ne!(mix(&[1, 2]), mix(&[2, 1]));
    }
}
