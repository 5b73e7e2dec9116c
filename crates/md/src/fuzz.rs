//! Entry points for fuzzers and property tests: bytes in, panic on a broken invariant, nothing
//! out.
//!
//! Each takes any `&[u8]`. Beyond "does not panic" they assert what the modules promise: what was
//! accepted is in range, lies on the member, and is written so that the same is read again.
//!
//! Absent on purpose: a fuzzer. `tests/fuzz.rs` mutates what the kernel wrote, `fuzz/` has
//! targets for libFuzzer.

use crate::superblock::checksum;
use crate::{BadBlocks, Bitmap, BitmapHeader, Level, Superblock, Version};

/// Sizes of members: ordinary, tiny, and more than there can be.
const DEVICE_SIZES: [u64; 4] = [16 << 20, 128 << 10, 8 << 10, u64::MAX];

/// Any bytes as a superblock in each of the four places, as they are and under a right checksum.
pub fn fuzz_superblock(data: &[u8]) {
    for version in Version::ALL {
        let mut sealed = data.to_vec();
        seal(version, &mut sealed);
        for device_size in DEVICE_SIZES {
            let Some(offset) = version.superblock_offset(device_size) else { continue };
            for bytes in [data, &sealed] {
                if let Ok(superblock) = Superblock::parse(version, offset, device_size, bytes) {
                    assert_in_range(&superblock, device_size);
                }
            }
        }
    }
}

/// Any bytes as the area of a bitmap.
pub fn fuzz_bitmap(data: &[u8]) {
    let Ok(mut bitmap) = Bitmap::parse(data) else {
        return;
    };
    assert_eq!(BitmapHeader::parse(data), Ok(bitmap.header.clone()));
    assert!(bitmap.byte_len() <= data.len() as u64, "bits beyond the area");
    for index in 0..bitmap.page_count() {
        let from = index as usize * bitmap.page(index).len();
        let known = data.len().saturating_sub(from).min(bitmap.page_len(index));
        assert_eq!(bitmap.page(index)[..known], data[from..from + known], "page {index}");
    }
    let marked = std::iter::successors(bitmap.next_set(0), |chunk| bitmap.next_set(chunk + 1));
    assert_eq!(marked.count() as u64, bitmap.count_set());
    bitmap.set_all();
    assert_eq!(bitmap.count_set(), bitmap.chunk_count());
}

/// Any bytes as a bad-block log; the first one is the shift.
pub fn fuzz_bad_blocks(data: &[u8]) {
    let Some((&shift, bytes)) = data.split_first() else {
        return;
    };
    let Ok(log) = BadBlocks::parse(bytes, shift) else {
        return;
    };
    let mut end = None;
    for range in log.iter() {
        assert!(range.len > 0 && end.is_none_or(|end| end < range.offset), "unsorted");
        assert_eq!(log.overlaps(range.offset, 1), Some(range));
        end = Some(range.offset + range.len);
    }
    assert_eq!(BadBlocks::parse(&log.encode(), shift), Ok(log));
}

/// Puts the checksum right, if the bytes are long enough to have one.
pub fn seal(version: Version, bytes: &mut [u8]) {
    let at = if version == Version::V0_90 { 152 } else { 216 };
    let is_big = version == Version::V0_90 && bytes.starts_with(&[0xa9]);
    if let Some((_, sum)) = checksum(version, bytes) {
        let sum = if is_big { sum.to_be_bytes() } else { sum.to_le_bytes() };
        bytes[at..at + 4].copy_from_slice(&sum);
    }
}

/// What is promised of every superblock that was accepted on a member of `device_size` bytes.
///
/// # Panics
/// If the promise is broken.
pub fn assert_in_range(superblock: &Superblock, device_size: u64) {
    let most = if superblock.version == Version::V0_90 { 27 } else { 384 };
    assert!((1..=most).contains(&superblock.raid_disks), "raid_disks");
    assert!((1..=most).contains(&superblock.previous_raid_disks()), "previous raid_disks");
    let limit = 1 << 63;
    for size in [superblock.data_offset, superblock.data_size, superblock.component_size] {
        assert!(size < limit, "a size of {size}");
    }
    assert!(superblock.data_offset + superblock.data_size <= device_size, "data outside");
    assert!((superblock.device_number as usize) < superblock.roles.len(), "no role");
    let super_end = superblock.super_offset + superblock.raw.len() as u64;
    assert!(superblock.raw.len().is_multiple_of(512) && super_end <= device_size, "outside");
    match superblock.array_size() {
        None => assert!(!superblock.level.is_redundant(), "no size"),
        Some(size) => assert!(size < limit, "an array of {size}"),
    }
    match superblock.level {
        Level::Linear | Level::Raid1 => {}
        Level::Raid0 => assert_ne!(superblock.chunk, 0),
        _ => assert!(superblock.chunk >= 4096 && superblock.chunk.is_power_of_two(), "chunk"),
    }
    let log = superblock.bad_block_log.map(|log| (log.offset, log.size));
    let bitmap = superblock.bitmap_offset.map(|offset| (offset, 512));
    for (offset, len) in [log, bitmap, superblock.ppl].into_iter().flatten() {
        let end = superblock.super_offset.checked_add_signed(offset).map(|start| start + len);
        assert!(end.is_some_and(|end| end <= device_size), "an area outside");
    }
    assert_same_again(superblock, device_size);
}

/// What was accepted is written so that the same is read again.
fn assert_same_again(superblock: &Superblock, device_size: u64) {
    let Superblock { version, super_offset, .. } = *superblock;
    let bytes = superblock.encode();
    assert_eq!(bytes.len(), superblock.raw.len());
    let again = Superblock::parse(version, super_offset, device_size, &bytes);
    assert_eq!(again, Ok(Superblock { raw: bytes, ..superblock.clone() }));
}
