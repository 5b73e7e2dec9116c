//! What the kernel wrote, changed at random from a seed, against the promises in
//! `braid_md::fuzz`.
//!
//! `BRAID_FUZZ_ITERATIONS` says how many changed inputs there are (as many as take about a
//! second if it is not set), `BRAID_FUZZ_SEED` where to start. A failure prints the command that
//! repeats it alone.

mod common;

use braid_md::fuzz::{fuzz_bad_blocks, fuzz_bitmap, fuzz_superblock};

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

/// Splitmix64: the same numbers from the same seed, everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ value >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// A place in `len` bytes, mostly in the header.
    fn place(&mut self, len: usize) -> usize {
        let len = if self.below(4) == 0 { len } else { len.min(272) };
        self.below(len)
    }
}

fn mutate(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = corpus[random.below(corpus.len())].clone();
    for _ in 0..=random.below(5) {
        let at = random.place(bytes.len());
        match random.below(8) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next() as u8,
            2..=4 => {
                let width = [2, 4, 8][random.below(3)];
                let value = EDGES[random.below(EDGES.len())].to_le_bytes();
                put(&mut bytes, at / width * width, &value[..width]);
            }
            5 => {
                // A small step: from a sound value to one just beyond.
                let at = at / 8 * 8;
                bytes[at] = bytes[at].wrapping_add(random.below(5) as u8).wrapping_sub(2);
            }
            6 => {
                let other = &corpus[random.below(corpus.len())];
                let from = at.min(other.len());
                let len = random.below(64).min(other.len() - from);
                put(&mut bytes, at, &other[from..from + len]);
            }
            _ => {
                let len = [random.below(bytes.len() + 1), 4096, 512][random.below(3)];
                bytes.resize(len.max(1), random.next() as u8);
            }
        }
    }
    bytes
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    for (to, from) in bytes.iter_mut().skip(at).zip(value) {
        *to = *from;
    }
}

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, no number")),
        Err(_) => default,
    }
}

/// Prints, if the test fails, how to repeat what failed.
struct Seed<'a>(&'a str, u64);

impl Drop for Seed<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Seed(test, seed) = self;
            eprintln!(
                "again: BRAID_FUZZ_SEED={seed} BRAID_FUZZ_ITERATIONS=1 \
                 cargo test -p braid-md --test fuzz {test}"
            );
        }
    }
}

fn run(test: &str, default: u64, corpus: &[Vec<u8>], target: fn(&[u8])) {
    let first = number("BRAID_FUZZ_SEED", 1);
    corpus.iter().for_each(|bytes| target(bytes));
    for seed in (first..).take(number("BRAID_FUZZ_ITERATIONS", default) as usize) {
        let guard = Seed(test, seed);
        target(&mutate(&mut Random(seed), corpus));
        drop(guard);
    }
}

#[test]
fn superblocks() {
    let corpus: Vec<_> = common::goldens().into_iter().map(|golden| golden.bytes).collect();
    run("superblocks", 2_000, &corpus, fuzz_superblock);
}

#[test]
fn bitmaps() {
    let corpus: Vec<_> = common::goldens().into_iter().filter_map(|golden| golden.bitmap).collect();
    run("bitmaps", 5_000, &corpus, fuzz_bitmap);
}

#[test]
fn bad_blocks() {
    let mut log = braid_md::BadBlocks::new(4096, 0).expect("a shift that can be");
    for sector in [8, 100, 5_000] {
        log.insert(sector * 512, sector * 512).expect("room");
    }
    let corpus = [[&[0], &log.encode()[..]].concat(), [&[3], &log.encode()[..64]].concat()];
    run("bad_blocks", 5_000, &corpus, fuzz_bad_blocks);
}
