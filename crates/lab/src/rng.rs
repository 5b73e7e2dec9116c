//! SplitMix64: the one random generator here (shuffle, offsets), so that a seed recorded today
//! gives the same order in ten years, whatever a library does.

/// A generator with 64 bits of state.
#[derive(Debug, Clone)]
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..bound`; the bias of the multiply-shift is below 2^-32 for the bounds used
    /// here (list lengths).
    ///
    /// # Panics
    ///
    /// When `bound` is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "an empty range has no number");
        let wide = u128::from(self.next_u64()) * bound as u128;
        (wide >> 64) as usize
    }

    /// Fisher-Yates.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// One seed from several numbers, so that repetition 1 of cell 2 and repetition 2 of cell 1 differ.
pub(crate) fn mix(parts: &[u64]) -> u64 {
    parts.iter().fold(0, |state, part| SplitMix64::new(state ^ *part).next_u64())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference values of SplitMix64 with seed 1234567 (Vigna's C code).
    #[test]
    fn equals_the_published_sequence() {
        let mut rng = SplitMix64::new(1_234_567);
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
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        SplitMix64::new(7).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn mixing_is_ordered() {
        assert_ne!(mix(&[1, 2]), mix(&[2, 1]));
    }
}
