//! Sets of numbers that lie together, such as inodes and blocks: a bit each, in pieces that are there only where
//! a number is.

use std::collections::BTreeMap;
use std::ops::Range;

/// Bits of a word.
const WORD: u64 = 64;
/// Bits of a piece: 512 bytes of memory.
const PIECE: u64 = 64 * WORD;

/// A set of numbers.
#[derive(Debug, Default)]
pub(crate) struct Bits {
    pieces: BTreeMap<u64, Box<[u64; 64]>>,
}

impl Bits {
    /// Adds `numbers`, and returns those that were there before, as ranges.
    pub(crate) fn insert(&mut self, numbers: Range<u64>) -> Vec<Range<u64>> {
        let mut before: Vec<Range<u64>> = Vec::new();
        let mut at = numbers.start;
        while at < numbers.end {
            let end = numbers.end.min((at / WORD + 1) * WORD);
            let piece = self.pieces.entry(at / PIECE).or_insert_with(|| Box::new([0; 64]));
            let word = &mut piece[(at % PIECE / WORD) as usize];
            let mask = u64::MAX >> (WORD - (end - at)) << (at % WORD);
            let mut twice = *word & mask;
            *word |= mask;
            while twice != 0 {
                let number = at / WORD * WORD + u64::from(twice.trailing_zeros());
                match before.last_mut() {
                    Some(last) if last.end == number => last.end += 1,
                    _ => before.push(number..number + 1),
                }
                twice &= twice - 1;
            }
            at = end;
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_were_there_are_told() {
        let mut bits = Bits::default();
        assert_eq!(bits.insert(60..70), []);
        assert_eq!(bits.insert(5000..5001), []);
        assert_eq!(bits.insert(0..5002), [60..70, 5000..5001]);
        assert_eq!(bits.insert(1 << 50..(1 << 50) + 64), []);
        assert_eq!(bits.insert(4999..5003).first(), Some(&(4999..5002)));
    }
}
