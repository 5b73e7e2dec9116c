//! Copies of blocks in the journal of ext3 and ext4, and the places of these blocks.
//!
//! ```text
//!   journal       │ 5, 9, 7 │ copy of 5 │ copy of 9 │ copy of 7 │ commit │   in one chunk of a member
//!                  descriptor
//!   elsewhere     │ same bytes as the copy of 9 │                            the block 9
//! ```
//!
//! So a file system without checksums of metadata has blocks that say where they belong, too.
//!
//! Invariants
//! * All bytes of a block are compared. Blocks with hardly any content say nothing, nor do those that two numbers share.
//! * Copies count if the end of their transaction follows them: so the chunk had not ended before. The descriptors of one that
//!   has several follow each other at one distance, in every n-th chunk, too.
//! * The copies themselves are no clues.
//!
//! Deliberately absent: the file system to which a journal belongs. It does not say, so [`Copies`] is for a case with one.

use std::collections::BTreeMap;

use super::super::bytes::{be16, be32, le64};

const MAGIC: u32 = 0xc03b_3998;
/// Kinds of the journal's own blocks: a descriptor, the end of a transaction, and all.
const DESCRIPTOR: u32 = 1;
const COMMIT: u32 = 2;
const KINDS: std::ops::RangeInclusive<u32> = 1..=5;
const HEADER: usize = 12;
/// Bytes of a tag without and with the upper half of the number, and with checksums of the third kind.
const TAGS: [usize; 3] = [8, 12, 16];
/// Flags of a tag: the copy's first bytes were those of a journal's block; no identifier follows; it is the last one.
const ESCAPED: u16 = 1;
const NO_UUID: u16 = 2;
const LAST: u16 = 8;
const FLAGS: u16 = 0xf;
/// Blocks beside one of the journal's own that may be the journal's, too. Of an array with n members, each has every
/// n-th of them: few runs of copies are four times as long as the longest on one disk.
const NEAR: u64 = 1024;
/// Copies that are kept, at most: 16 MiB.
const MOST: usize = 4096;
/// Different words of eight bytes that are content: bitmaps of groups that are used alike have fewer.
const LEAST_WORDS: usize = 12;
/// Bytes between two words of a block by which it is sought.
const STRIDE: usize = 64;

/// A member may have its data at any of these.
const SECTOR: usize = 512;

/// The journal's own blocks in a window, and the distance in which its copies may be.
pub(super) struct Journal {
    headers: Vec<usize>,
    near: usize,
}

impl Journal {
    pub(super) fn new(window: &[u8], block: u64) -> Journal {
        let starts = (0..window.len()).step_by(SECTOR);
        let headers = starts.filter(|from| is_own(&window[*from..])).collect();
        Journal { headers, near: (NEAR * block) as usize }
    }

    pub(super) fn is_near(&self, from: usize) -> bool {
        let first = from.saturating_sub(self.near);
        let behind = self.headers.partition_point(|header| *header < first);
        self.headers.get(behind).is_some_and(|header| *header <= from + self.near)
    }
}

/// True for a block of the journal itself.
fn is_own(bytes: &[u8]) -> bool {
    be32(bytes, 0) == Some(MAGIC) && be32(bytes, 4).is_some_and(|kind| KINDS.contains(&kind))
}

/// A block of which the journal has a copy, and its number; `None` if two numbers have the same bytes.
#[derive(Clone, Debug)]
struct Copy {
    bytes: Box<[u8]>,
    number: Option<u64>,
}

/// The copies in a journal, by some of their bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct Copies {
    by_key: BTreeMap<u64, Vec<Copy>>,
    count: usize,
}

impl Copies {
    /// Enters the copies in a window, of a file system with `blocks` blocks of `block` bytes.
    pub(super) fn learn(&mut self, window: &[u8], block: usize, blocks: u64) {
        for (at, number, is_escaped) in tagged(window, block, blocks) {
            let mut bytes = window[at..at + block].to_vec();
            if is_escaped {
                bytes[..4].copy_from_slice(&MAGIC.to_be_bytes());
            }
            if self.count == MOST || !has_content(&bytes) {
                continue;
            }
            let same = self.by_key.entry(key(&bytes)).or_default();
            match same.iter_mut().find(|one| *one.bytes == *bytes) {
                Some(known) if known.number != Some(number) => known.number = None,
                Some(_) => {}
                None => {
                    same.push(Copy { bytes: bytes.into(), number: Some(number) });
                    self.count += 1;
                }
            }
        }
    }

    /// Returns the blocks in a window of which there are copies: where each lies, and its number.
    pub(super) fn find(&self, window: &[u8], block: usize, blocks: u64) -> Vec<(usize, u64)> {
        if self.by_key.is_empty() {
            return Vec::new();
        }
        let copies: Vec<usize> = tagged(window, block, blocks).map(|(at, ..)| at).collect();
        let number = |bytes: &[u8]| {
            let same = self.by_key.get(&key(bytes))?;
            same.iter().find(|one| *one.bytes == *bytes)?.number
        };
        let each = window.chunks_exact(block).enumerate();
        let found = each.filter_map(|(index, bytes)| Some((index * block, number(bytes)?)));
        found.filter(|(at, _)| !copies.contains(at)).collect()
    }
}

/// The copies behind the descriptors in a window: where each lies, its number, and whether its first bytes were taken out.
fn tagged(window: &[u8], block: usize, blocks: u64) -> impl Iterator<Item = (usize, u64, bool)> {
    let each = window.chunks_exact(block).enumerate();
    let descriptors = each.filter_map(move |(index, bytes)| {
        let tags = tags(bytes, blocks)?;
        let (first, next) = ((index + 1) * block, (index + 1 + tags.len()) * block);
        let next = window.get(next..).filter(|next| is_own(next))?;
        let is_end = be32(next, 4) == Some(COMMIT) && be32(next, 8) == be32(bytes, 8);
        is_end.then_some((first, tags))
    });
    descriptors.flat_map(move |(first, tags)| {
        let copy = move |(index, (number, is_escaped))| (first + index * block, number, is_escaped);
        tags.into_iter().enumerate().map(copy)
    })
}

/// The numbers in a descriptor, whichever size its tags have, each with whether its copy's first bytes were taken out.
fn tags(bytes: &[u8], blocks: u64) -> Option<Vec<(u64, bool)>> {
    if !is_own(bytes) || be32(bytes, 4) != Some(DESCRIPTOR) {
        return None;
    }
    let readings = TAGS.into_iter().filter_map(|size| tags_of(bytes, size, blocks));
    readings.max_by_key(Vec::len)
}

fn tags_of(bytes: &[u8], size: usize, blocks: u64) -> Option<Vec<(u64, bool)>> {
    let (mut at, mut found) = (HEADER, Vec::new());
    loop {
        let tag = bytes.get(at..at + size)?;
        let (low, checksum, flags) = (be32(tag, 0)?, be16(tag, 4)?, be16(tag, 6)?);
        let high = be32(tag, 8).unwrap_or(0);
        let number = u64::from(high) << 32 | u64::from(low);
        // The identifier follows the first tag alone.
        let is_first = found.is_empty();
        let is_tag = checksum == 0 && flags & !FLAGS == 0 && (flags & NO_UUID == 0) == is_first;
        if !is_tag || number >= blocks {
            return None;
        }
        found.push((number, flags & ESCAPED != 0));
        if flags & LAST != 0 {
            return Some(found);
        }
        at += size + if is_first { 16 } else { 0 };
    }
}

/// A number of some of a block's words, by which it is sought.
fn key(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(STRIDE).filter_map(|part| le64(part, 0));
    words.fold(0, |key, word| (key ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
}

/// True if a block has [`LEAST_WORDS`] different words.
fn has_content(bytes: &[u8]) -> bool {
    let mut different = Vec::with_capacity(LEAST_WORDS);
    for word in bytes.chunks_exact(8).filter_map(|word| le64(word, 0)) {
        if !different.contains(&word) {
            different.push(word);
        }
        if different.len() == LEAST_WORDS {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = 1024;

    fn content(seed: u8) -> Vec<u8> {
        (0..BLOCK).map(|at| (at / 7) as u8 ^ (at as u8).wrapping_mul(seed)).collect()
    }

    /// A descriptor of these blocks, with tags of `size` bytes, and the copies behind it.
    fn journal(size: usize, blocks: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let mut descriptor = [MAGIC, DESCRIPTOR, 7].map(u32::to_be_bytes).concat();
        for (index, (number, bytes)) in blocks.iter().enumerate() {
            let mut tag = vec![0; size];
            tag[..4].copy_from_slice(&(*number as u32).to_be_bytes());
            tag[7] = if index > 0 { NO_UUID as u8 } else { 0 };
            tag[7] |= if index + 1 == blocks.len() { LAST as u8 } else { 0 };
            tag[7] |= if bytes.starts_with(&MAGIC.to_be_bytes()) { ESCAPED as u8 } else { 0 };
            descriptor.extend(tag);
            descriptor.extend(if index == 0 { vec![0xab; 16] } else { Vec::new() });
        }
        descriptor.resize(BLOCK, 0);
        for (_, bytes) in blocks {
            let mut copy = bytes.clone();
            if copy.starts_with(&MAGIC.to_be_bytes()) {
                copy[..4].fill(0);
            }
            descriptor.extend(copy);
        }
        descriptor.extend([MAGIC, COMMIT, 7].map(u32::to_be_bytes).concat());
        descriptor.resize((2 + blocks.len()) * BLOCK, 0);
        descriptor
    }

    #[test]
    fn a_block_with_the_bytes_of_a_copy_has_its_number() {
        let escaped = [&MAGIC.to_be_bytes()[..], &content(3)[4..]].concat();
        for size in TAGS {
            let blocks = [(5, content(1)), (900, content(2)), (7, escaped.clone())];
            let mut copies = Copies::default();
            copies.learn(&journal(size, &blocks), BLOCK, 1000);
            let member = [content(9), escaped.clone(), vec![0; BLOCK], content(2)].concat();
            assert_eq!(copies.find(&member, BLOCK, 1000), [(BLOCK, 7), (3 * BLOCK, 900)], "{size}");
            // The copies themselves say nothing.
            assert_eq!(copies.find(&journal(size, &blocks), BLOCK, 1000), []);
        }
    }

    #[test]
    fn what_proves_nothing_is_left_out() {
        let mut copies = Copies::default();
        // A number that the file system does not have, blocks without content, the same bytes twice.
        copies.learn(&journal(12, &[(1000, content(1))]), BLOCK, 1000);
        copies.learn(&journal(12, &[(1, vec![0xff; BLOCK])]), BLOCK, 1000);
        copies.learn(&journal(12, &[(2, content(2)), (3, content(2))]), BLOCK, 1000);
        let member = [content(1), vec![0xff; BLOCK], content(2)].concat();
        assert_eq!(copies.find(&member, BLOCK, 1000), []);
        // A window that ends behind the descriptor, and a chunk that ends behind the copy.
        let mut cut = journal(12, &[(2, content(4))]);
        copies.learn(&cut[..BLOCK], BLOCK, 1000);
        copies.learn(&cut[..2 * BLOCK], BLOCK, 1000);
        cut[2 * BLOCK + 11] = 8;
        copies.learn(&cut, BLOCK, 1000);
        assert_eq!(copies.find(&content(4), BLOCK, 1000), []);
    }
}
