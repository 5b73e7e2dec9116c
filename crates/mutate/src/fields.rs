//! The values in a hostile superblock.

use braid_seed::Rng;

/// Fields of version 1: place and number of bytes.
const FIELDS: [(usize, usize); 33] = [
    (8, 4),
    (12, 4),
    (16, 8),
    (32, 8),
    (64, 8),
    (72, 4),
    (76, 4),
    (80, 8),
    (88, 4),
    (92, 4),
    (96, 4),
    (100, 4),
    (104, 8),
    (112, 4),
    (116, 4),
    (120, 4),
    (124, 4),
    (128, 8),
    (136, 8),
    (144, 8),
    (152, 8),
    (160, 4),
    (164, 4),
    (168, 8),
    (184, 1),
    (185, 1),
    (186, 2),
    (188, 4),
    (192, 8),
    (200, 8),
    (208, 8),
    (220, 4),
    (224, 4),
];
/// Fields of a level.
const LEVELS: [usize; 2] = [72, 100];
/// Numbers near which something changes; those next to them are drawn, too.
const EDGES: [u64; 24] = [
    0,
    2,
    4,
    8,
    16,
    27,
    32,
    64,
    128,
    256,
    384,
    512,
    1024,
    1920,
    4096,
    0x8000,
    0x1_0000,
    1 << 23,
    1 << 31,
    1 << 32,
    1 << 53,
    1 << 54,
    1 << 55,
    1 << 63,
];

/// Changes up to six fields of md's superblock in `bytes`, which is of version 0.90 (`is_old`) or 1. Its checksum
/// stays as it is.
pub fn change_superblock(is_old: bool, bytes: &mut [u8], rng: &mut Rng) {
    let change = if is_old { change_word } else { change_field };
    for _ in 0..[1, 1, 1, 2, 2, 3, 4, 6][rng.index(8)] {
        change(bytes, rng);
    }
}

fn change_field(bytes: &mut [u8], rng: &mut Rng) {
    if rng.percent(12) {
        let role = [0, 1, 2, 3, 0xffff, 0xfffe, 0xfffd, rng.below(1 << 16)][rng.index(8)];
        let at = 256 + 2 * rng.index(16);
        return put(bytes, at, 2, role);
    }
    if rng.percent(10) {
        let bit = 1 << rng.below(13);
        let features = get(bytes, 8, 4) ^ bit;
        return put(bytes, 8, 4, features);
    }
    let (at, len) = FIELDS[rng.index(FIELDS.len())];
    let value = match LEVELS.contains(&at) {
        true => [0, 1, 4, 5, 6, 10, u64::MAX, u64::MAX - 3, 2, 100][rng.index(10)],
        false => number(get(bytes, at, len), rng),
    };
    put(bytes, at, len, value);
}

/// Version 0.90 has words of four bytes, 1,024 of them.
fn change_word(bytes: &mut [u8], rng: &mut Rng) {
    let (first, end) = [(1, 32), (32, 64), (64, 128), (128, 992), (992, 1024)][rng.index(5)];
    let at = 4 * rng.within(first..=end - 1) as usize;
    let value = number(get(bytes, at, 4), rng);
    put(bytes, at, 4, value);
}

fn number(old: u64, rng: &mut Rng) -> u64 {
    let edge = EDGES[rng.index(EDGES.len())].wrapping_add(rng.below(3)).wrapping_sub(1);
    match rng.below(9) {
        0..3 => edge,
        3 => edge.wrapping_neg(),
        4 => old.wrapping_add(1),
        5 => old.wrapping_sub(1),
        6 => old.wrapping_mul(2),
        7 => old ^ 1 << rng.below(64),
        _ => rng.next_u64(),
    }
}

fn get(bytes: &[u8], at: usize, len: usize) -> u64 {
    let mut value = [0; 8];
    value[..len].copy_from_slice(&bytes[at..at + len]);
    u64::from_le_bytes(value)
}

fn put(bytes: &mut [u8], at: usize, len: usize, value: u64) {
    bytes[at..at + len].copy_from_slice(&value.to_le_bytes()[..len]);
}
