//! What the kernel wrote, changed at random from a seed, against the promises in
//! `braid_md::fuzz`.
//!
//! `BRAID_FUZZ_ITERATIONS` says how many changed inputs there are (as many as take about a
//! second if it is not set), `BRAID_FUZZ_SEED` where to start. A failure prints the command that
//! repeats it alone.

mod common;

use braid_md::fuzz::{fuzz_bad_blocks, fuzz_bitmap, fuzz_ppl, fuzz_stripe_log, fuzz_superblock};
use braid_md::stripe_log::{Head, Part, Record, Roles};
use braid_md::{Uuid, ppl};
use common::Random;

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

/// A place in `len` bytes, mostly in the header.
fn place(random: &mut Random, len: usize) -> usize {
    let len = if random.below(4) == 0 { len } else { len.min(272) };
    random.below(len)
}

fn mutate(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = corpus[random.below(corpus.len())].clone();
    for _ in 0..=random.below(5) {
        let at = place(random, bytes.len());
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

#[test]
fn partial_parity_logs() {
    let entry = |start: u64, len: u32| ppl::Entry {
        data_start: start,
        data_len: len,
        parity_len: len,
        parity_role: 2,
        checksum: ppl::parity_checksum([&vec![0; len as usize][..]]),
    };
    let mut area = vec![0; 64 << 10];
    let entries = vec![entry(1 << 20, 4096), entry(3 << 20, 512)];
    let first = ppl::Header { signature: 5, generation: 7, entries };
    first.encode_into(&mut area[..4096]);
    let behind = first.unit_len();
    let second = ppl::Header { generation: 8, entries: vec![entry(0, 1024)], ..first };
    second.encode_into(&mut area[behind..behind + 4096]);
    run("partial_parity_logs", 3_000, &[area, second.encode()], fuzz_ppl);
}

#[test]
fn stripe_logs() {
    let payload = [0x5a; 1536];
    let record = Record {
        array_uuid: Uuid([3; 16]),
        device_number: 2,
        role: 1,
        nonce: 77,
        sequence: 9,
        tail: 8,
        participants: [1, 2, 3].into_iter().collect::<Roles>(),
        parts: vec![Part { offset: 512, len: 1024 }, Part { offset: 8192, len: 512 }],
        payload_len: 1536,
        payload_checksum: Record::checksum_of([&payload[..]]),
    };
    let Record { array_uuid, device_number, nonce, .. } = record;
    let updated = braid_md::Timestamp::default();
    let head = Head {
        array_uuid,
        device_number,
        area: 5 * 4096,
        events: 4,
        tail: 7,
        nonce,
        synced: 0,
        updated,
        before: updated,
    };
    let mut area = vec![0; 5 * 4096];
    record.encode_into(&mut area[..4096]);
    area[4096..4096 + 1536].copy_from_slice(&payload);
    head.encode_into(&mut area[4 * 4096..]);
    area.rotate_right(4096);
    run("stripe_logs", 3_000, &[area], fuzz_stripe_log);
}
