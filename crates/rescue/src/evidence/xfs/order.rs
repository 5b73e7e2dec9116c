//! Order within blocks, which a sum of blocks does not have.

use crate::evidence::bytes::{be16, be32, be64};

const BIG_TIMES: u64 = 8;
const FREE: u16 = 0xffff;
/// Directory entries with a type, as version 5 has them: inode, length of the name, type, tag.
const ENTRY: usize = 12;
const HEADER: usize = 64;

/// Returns whether the block of a directory or of attributes is in order; true for all other kinds.
pub(super) fn is_ordered(block: &[u8]) -> bool {
    match block.first_chunk() {
        Some(b"XDB3") => is_single(block).unwrap_or(false),
        Some(b"XDD3") => is_walk(block, block.len()),
        _ => match be16(block, 8) {
            Some(0x3ebe | 0x3df1 | 0x3dff) => has_hashes(block, HEADER),
            Some(0x3bee) => has_hashes(block, 80),
            _ => true,
        },
    }
}

/// The hashes of leaves and nodes do not fall.
fn has_hashes(block: &[u8], start: usize) -> bool {
    let entries = block[start..].chunks_exact(8);
    let count = usize::from(be16(block, 56).unwrap_or(0));
    let hashes = entries.clone().take(count).map(|entry| be32(entry, 0));
    count <= entries.len() && hashes.is_sorted()
}

/// A directory of one block has its hashes at the end.
fn is_single(block: &[u8]) -> Option<bool> {
    let tail = block.len() - 8;
    let leaves = usize::try_from(be32(block, tail)?).ok()?.checked_mul(8)?;
    let end = tail.checked_sub(leaves)?;
    let hashes = block[end..tail].chunks_exact(8).map(|entry| be32(entry, 0));
    Some(hashes.is_sorted() && is_walk(block, end))
}

/// Entries and free pieces lead from one to the next up to `end`, and each has its own place in its last two bytes.
fn is_walk(block: &[u8], end: usize) -> bool {
    let mut at = HEADER;
    while at < end {
        let length = match be16(block, at) {
            Some(FREE) => usize::from(be16(block, at + 2).unwrap_or(0)),
            _ => {
                let name = usize::from(block.get(at + 8).copied().unwrap_or(0));
                (ENTRY + name).next_multiple_of(8)
            }
        };
        if length < 8
            || length > end - at
            || be16(block, at + length - 2).map(usize::from) != Some(at)
        {
            return false;
        }
        at += length;
    }
    at == end
}

/// Returns whether an inode was changed before its creation, or its contents after its last change, or times have more
/// nanoseconds than a second.
pub(super) fn has_odd_times(inode: &[u8]) -> bool {
    let is_big = be64(inode, 120).is_some_and(|flags| flags & BIG_TIMES != 0);
    // Seconds have a sign, which is not in the order of the unsigned number.
    let sign = if is_big { 0 } else { 1 << 63 };
    let time = |at: usize| be64(inode, at).unwrap_or(0) ^ sign;
    let (modified, changed, created) = (time(40), time(48), time(144));
    let is_odd = |at: usize| !is_big && be32(inode, at + 4).is_some_and(|ns| ns >= 1_000_000_000);
    created > changed || modified > changed || is_odd(40) || is_odd(48)
}
