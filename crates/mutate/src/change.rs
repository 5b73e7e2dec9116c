//! An input made from those of a corpus, by a seed.
//!
//! Numbers are put where numbers may be, in both byte orders; pieces are moved, doubled, removed, and
//! taken from other inputs, so that a message that was sound comes at another time.

use braid_seed::Rng;

/// Values at which checks tend to be wrong.
const EDGES: [u64; 14] = [
    0,
    1,
    7,
    8,
    255,
    511,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    (1 << 54) - 1,
    1 << 54,
    i64::MAX as u64,
    u64::MAX,
];

/// The most bytes that an input grows to: as many as the largest structure that is read at once.
const LONGEST_INPUT: usize = 128 << 10;

/// The same numbers from the same seed, everywhere.
pub struct Random(Rng);

impl Random {
    /// The sequence of `seed`.
    pub const fn new(seed: u64) -> Random {
        Random(Rng::new(seed))
    }

    /// The next 64 bits.
    #[expect(clippy::should_implement_trait, reason = "it does not end")]
    pub fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `limit`; 0 if that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }
}

/// One of `corpus`, changed in a few places.
///
/// # Panics
/// If `corpus` is empty.
pub fn mutate(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = corpus[random.below(corpus.len())].clone();
    for _ in 0..=random.below(5) {
        let at = place(random, bytes.len());
        match random.below(12) {
            0 => put(&mut bytes, at, |byte| byte ^ 1 << random.below(8)),
            1 => put(&mut bytes, at, |_| random.next() as u8),
            2..=4 => edge(random, &mut bytes, at),
            // A small step: from a sound value to one just beyond.
            5 => {
                put(&mut bytes, at, |byte| byte.wrapping_add(random.below(5) as u8).wrapping_sub(2))
            }
            6 | 7 => {
                let other = &corpus[random.below(corpus.len())];
                let piece = piece(random, other);
                if random.below(2) == 0 {
                    bytes.splice(at..at, piece.iter().copied());
                } else {
                    for (to, from) in bytes.iter_mut().skip(at).zip(piece) {
                        *to = *from;
                    }
                }
            }
            8 => {
                let end = bytes.len().min(at + 1 + random.below(64));
                bytes.drain(at..end);
            }
            9 => {
                let again = piece(random, &bytes).to_vec();
                bytes.splice(at..at, again);
            }
            // Numbers in texts.
            10 => {
                let is_digit = |byte: &&mut u8| byte.is_ascii_digit();
                let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
                let index = random.below(digits);
                if let Some(digit) = bytes.iter_mut().filter(is_digit).nth(index) {
                    *digit = random.of(b"0123456789.-e");
                }
            }
            _ => {
                let len = [random.below(bytes.len() + 1), 4096, 512][random.below(3)];
                bytes.resize(len.max(1), random.next() as u8);
            }
        }
    }
    bytes.truncate(LONGEST_INPUT);
    bytes
}

/// A place in `len` bytes, mostly in the header.
fn place(random: &mut Random, len: usize) -> usize {
    let len = if random.below(4) == 0 { len } else { len.min(272) };
    random.below(len)
}

/// Up to 64 bytes of `from`, from anywhere.
fn piece<'a>(random: &mut Random, from: &'a [u8]) -> &'a [u8] {
    let start = random.below(from.len());
    let len = random.below(64).min(from.len() - start);
    &from[start..start + len]
}

fn put(bytes: &mut [u8], at: usize, change: impl FnOnce(u8) -> u8) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte = change(*byte);
    }
}

/// A number of 2, 4 or 8 bytes; mostly where such a number would be aligned.
fn edge(random: &mut Random, bytes: &mut [u8], at: usize) {
    let width = random.of(&[2, 4, 8]);
    let value = random.of(&EDGES);
    let at = if random.below(4) == 0 { at } else { at / width * width };
    let (little, big) = (value.to_le_bytes(), value.to_be_bytes());
    let value = if random.below(2) == 0 { &little[..width] } else { &big[8 - width..] };
    for (to, from) in bytes.iter_mut().skip(at).zip(value) {
        *to = *from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_the_same_input_again_and_others_make_others() {
        let corpus = [vec![7; 300], b"size=64K, count=12".to_vec(), Vec::new()];
        let make = |seed| mutate(&mut Random::new(seed), &corpus);
        let inputs: Vec<Vec<u8>> = (0..2000).map(make).collect();
        assert_eq!(inputs, (0..2000).map(make).collect::<Vec<_>>());
        let changed = inputs.iter().filter(|input| !corpus.contains(input)).count();
        assert!(changed > 1500, "{changed} of 2000 are changed");
        assert!(inputs.iter().any(|input| input.len() > 300), "none grew");
    }
}
