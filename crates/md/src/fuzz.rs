//! Entry points for fuzzers and property tests: bytes in, panic on a broken invariant, nothing
//! out.
//!
//! Each takes any `&[u8]`. Beyond "does not panic" they assert what the modules promise: what was
//! accepted is in range, lies on the member, and is written so that the same is read again.
//!
//! Absent on purpose: a fuzzer. `crates/mutate` changes a committed corpus, `fuzz/` has targets for
//! libFuzzer.

use crate::stripe_log::{self, BLOCK, Head, MemberLog, Record};
use crate::superblock::Contents;
use crate::superblock::checksum;
use crate::{BadBlocks, Bitmap, BitmapHeader, Level, Superblock, Uuid, Version, ppl};

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
    let pages: Vec<u8> = (0..bitmap.page_count()).flat_map(|index| bitmap.page(index)).collect();
    let again = Bitmap::parse(&pages).expect("what is written is read again");
    for index in 0..bitmap.page_count() {
        assert_eq!(again.page(index), bitmap.page(index), "page {index} again");
    }
    let before = bitmap.count_set();
    if let Some(chunk) = bitmap.next_set(0) {
        assert!(bitmap.clear(chunk) && !bitmap.is_set(chunk) && bitmap.count_set() == before - 1);
        assert!(bitmap.set(chunk) && bitmap.is_set(chunk) && bitmap.count_set() == before);
    }
    bitmap.set_all();
    assert_eq!(bitmap.count_set(), bitmap.chunk_count());
}

/// Any bytes as a bad-block log, on members of several sizes; the first one is the shift.
pub fn fuzz_bad_blocks(data: &[u8]) {
    let Some((&shift, bytes)) = data.split_first() else {
        return;
    };
    for size in DEVICE_SIZES {
        if let Ok(log) = BadBlocks::parse(bytes, shift, size) {
            assert_bad_blocks(log, shift, size);
        }
    }
}

fn assert_bad_blocks(mut log: BadBlocks, shift: u8, size: u64) {
    let mut end = None;
    for range in log.iter() {
        assert!(range.len > 0 && end.is_none_or(|end| end < range.offset), "unsorted");
        assert_eq!(log.overlaps(range.offset, 1), Some(range));
        assert!(range.offset < size, "outside");
        end = Some(range.offset + range.len);
    }
    // The rest of the last unit may lie behind the end.
    let unit = 512 << shift;
    assert!(end.is_none_or(|end| end - size.min(end) < unit), "outside");
    let again = |log: &BadBlocks| BadBlocks::parse(&log.encode(), shift, size);
    assert_eq!(again(&log).as_ref(), Ok(&log));
    // As a member would change it: a range that joins the first one is entered, and mended again.
    let Some(first) = log.iter().next().filter(|first| first.offset + first.len < 1 << 61) else {
        return;
    };
    let before = log.clone();
    let offset = first.offset.saturating_sub(512);
    let len = first.len + 512;
    // Nothing is entered behind the member's end; but for the rest of its last unit nothing is there.
    match log.insert(offset, len.min(size - offset)) {
        Ok(()) => assert!(log.overlaps(offset, 1).is_some_and(|range| range.offset <= offset)),
        Err(_) => assert_eq!(log, before, "what is refused changes nothing"),
    }
    if log.remove(offset, len).is_ok() {
        assert_eq!(log.overlaps(first.offset, 1), None);
    }
    assert_eq!(again(&log), Ok(log));
}

/// Any bytes as the area of a partial parity log, as they are and with the first header's checksum
/// put right.
pub fn fuzz_ppl(data: &[u8]) {
    let Some(signed) = data.get(512..516) else {
        return;
    };
    let signature = u32::from_le_bytes([signed[0], signed[1], signed[2], signed[3]]);
    let mut sealed = data.to_vec();
    if let Some(header) = sealed.get_mut(..ppl::HEADER_BYTES) {
        seal_block(header, 532);
    }
    for area in [data, &sealed] {
        let Ok(newest) = ppl::newest(area, signature) else { continue };
        let bytes = newest.header.encode();
        assert_eq!(ppl::Header::parse(&bytes, signature), Ok(newest.header.clone()));
        assert!(newest.offset + ppl::HEADER_BYTES <= area.len(), "a header outside");
        for (entry, range) in newest.parity_ranges() {
            if let Ok(parity) = ppl::Newest::parity(area, entry, range) {
                assert_eq!(parity.len(), entry.parity_len as usize);
            }
            for (chunk, columns, size) in
                [(4096, 1, 1 << 30), (65536, 2, 28 << 20), (512, 383, 1 << 62)]
            {
                let Ok(covered) = ppl::covered(entry, chunk, columns, size) else { continue };
                assert!(covered.first + covered.count <= columns, "columns");
                let (start, end) = covered.rows;
                assert!(start < end && start / chunk == (end - 1) / chunk, "rows");
                assert!(end * columns as u64 <= size.next_multiple_of(chunk * columns as u64));
                assert_eq!((end - start) * covered.count as u64, u64::from(entry.data_len));
            }
        }
    }
}

/// Any bytes as the head of a stripe log, with its ring behind it; as they are and with the
/// checksums of all blocks that look like some put right.
pub fn fuzz_stripe_log(data: &[u8]) {
    let mut sealed = data.to_vec();
    for block in sealed.chunks_exact_mut(BLOCK) {
        if block.starts_with(b"braid") {
            seal_block(block, 12);
        }
    }
    for bytes in [data, &sealed] {
        let Some((block, area)) = bytes.split_at_checked(BLOCK) else { continue };
        let mut uuid = Uuid::default();
        uuid.0.copy_from_slice(&block[16..32]);
        let device = u32::from_le_bytes([block[32], block[33], block[34], block[35]]);
        let room = bytes.len() as u64;
        let Ok(head) = Head::parse(block, &uuid, device, room) else { continue };
        assert_eq!(Head::parse(&head.encode(), &uuid, device, room), Ok(head.clone()));
        assert!(head.area <= room, "a log outside");
        let found = stripe_log::scan(area, &head);
        let mut end = 0;
        for one in &found {
            assert!(end <= one.position && one.payload.start == one.position + BLOCK, "places");
            end = one.payload.end;
            assert!(end <= area.len() && end as u64 <= head.ring(), "a payload outside");
            let mut again = vec![0; BLOCK];
            one.record.encode_into(&mut again);
            assert_eq!(Record::parse(&again, &head).as_ref(), Ok(&one.record));
        }
        assert_replayable(head, found);
    }
}

/// Checks that found records can be replayed: every part lies in its payload.
fn assert_replayable(head: Head, found: Vec<stripe_log::Found>) {
    let role = found.first().map_or(0, |one| one.record.role);
    let payloads: Vec<_> = found.iter().map(|one| one.payload.clone()).collect();
    let member = MemberLog { role, in_sync: true, head: Some(head), found };
    let replay = stripe_log::plan_replay(&[member]).expect("a member with a head");
    for transaction in &replay.transactions {
        assert!(transaction.sequence < replay.next_sequence, "sequence");
        for part in &transaction.parts {
            let end = part.payload + part.len as usize;
            let holds = |payload: &std::ops::Range<usize>| {
                payload.start <= part.payload && end <= payload.end
            };
            assert!(payloads.iter().any(holds), "a part outside");
        }
    }
}

/// Puts a CRC-32C at `at` over a block, as if it was zero before.
fn seal_block(block: &mut [u8], at: usize) {
    block[at..at + 4].fill(0);
    let sum = crc32c::crc32c(block);
    block[at..at + 4].copy_from_slice(&sum.to_le_bytes());
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

/// Checks the promises of every superblock that was accepted on a member of `device_size` bytes.
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

/// Checks that an accepted superblock is written so that the same is read again.
fn assert_same_again(superblock: &Superblock, device_size: u64) {
    let Contents { version, super_offset, .. } = **superblock;
    let bytes = superblock.encode();
    assert_eq!(bytes.len(), superblock.raw.len());
    if version != Version::V0_90 {
        let changed: Vec<usize> =
            (0..bytes.len()).filter(|at| bytes[*at] != superblock.raw[*at]).collect();
        assert!(changed.is_empty(), "what was read is written as it was, but {changed:?}");
    }
    let again = Superblock::parse(version, super_offset, device_size, &bytes);
    let again = again.expect("what is written is read again");
    assert!(again.encode() == bytes, "written again it is the same");
    let expected = Contents { raw: bytes, ..superblock.clone().into_contents() };
    assert_eq!(again.into_contents(), expected);
}
