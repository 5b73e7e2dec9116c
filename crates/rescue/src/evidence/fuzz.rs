//! Entry point for fuzzers: bytes in, panic on a broken invariant, nothing out.

use std::ops::Range;

use braid_files::ReadAt;
use braid_files::sparse::Sparse;

use super::bytes::{be16, le32};
use super::crc::{START_LVM2, advance, advance_ieee, ieee};
use super::{Found, Known, anchors, clues, gather, learn, settle};

const WINDOW: u64 = 64 << 10;

/// Any bytes as a packed image of a member, as it is and with right checksums: each clue is one of a structure that was
/// found, and lies in its window and in its structure.
pub fn fuzz_evidence(data: &[u8]) {
    let image = Sparse::unpack(data);
    let mut starts: Vec<u64> = image.held().map(|at| at / WINDOW * WINDOW).collect();
    starts.dedup();
    starts.retain(|at| *at < image.size());
    let read = |at: &u64| {
        let mut window = vec![0; WINDOW.min(image.size() - at) as usize];
        image.read_at(*at, &mut window).expect("an image can be read");
        (*at, window)
    };
    let mut windows: Vec<(u64, Vec<u8>)> = starts.iter().map(read).collect();
    check(&windows);
    windows.iter_mut().for_each(|(_, window)| seal(window));
    check(&windows);
}

fn check(windows: &[(u64, Vec<u8>)]) {
    let mut known: Vec<Known> = Vec::new();
    for (at, window) in windows {
        gather(&mut known, anchors(window, *at).into_iter().map(|(_, one)| one));
    }
    windows.iter().for_each(|(_, window)| learn(window, &mut known));
    for one in &known {
        let size = one.anchor().size.unwrap_or(u64::MAX);
        let is_range = |range: &Range<u64>| range.start < range.end && range.start < size;
        assert!(one.landmarks().iter().all(is_range), "its landmarks");
        let _ = one.place_of_copy();
    }
    let mut all = Vec::new();
    for (at, window) in windows {
        let found = clues(window, *at, &known);
        for Found { anchor, at: from, place, length, other, .. } in &found {
            let end = at + window.len() as u64;
            assert!(at <= from && from + u64::from(*length) <= end && *length >= 512, "its window");
            let size = known[*anchor].anchor().size.unwrap_or(u64::MAX);
            let is_inside = |place: u64| place + u64::from(*length) <= size;
            assert!(is_inside(*place) && other.is_none_or(is_inside), "its structure");
        }
        all.extend(found);
    }
    settle(&mut all);
    assert!(all.iter().all(|one| one.other.is_none()), "settled");
}

/// Gives headers and superblocks in a window the checksums of their bytes.
fn seal(window: &mut [u8]) {
    for from in (0..window.len()).step_by(512) {
        if let Some((at, sum)) = sum(&window[from..]) {
            let sum = sum.to_le_bytes();
            window[from + at..from + at + 4].copy_from_slice(&sum);
        }
    }
}

/// The place of a checksum in the block at the start of `bytes`, and what it should be.
fn sum(bytes: &[u8]) -> Option<(usize, u32)> {
    let zeroed = |bytes: &[u8], at: usize| {
        let mut bytes = bytes.to_vec();
        bytes.get_mut(at..at + 4)?.fill(0);
        Some(bytes)
    };
    let has =
        |at: usize, magic: &[u8]| bytes.get(at..).is_some_and(|bytes| bytes.starts_with(magic));
    if has(0x38, &[0x53, 0xef]) {
        return Some((0x3fc, advance(u32::MAX, bytes.get(..0x3fc)?)))
            .filter(|_| bytes.len() >= 1024);
    }
    if has(0, b"XFSB") {
        let sector = bytes.get(..usize::from(be16(bytes, 102)?))?;
        return Some((224, crc32c::crc32c(&zeroed(sector, 224)?)));
    }
    if has(0x40, b"_BHRfS_M") {
        return Some((0, crc32c::crc32c(bytes.get(32..4096)?)));
    }
    if has(0, b"EFI PART") {
        let header = bytes.get(..512)?.get(..le32(bytes, 12)? as usize)?;
        return Some((16, ieee(&zeroed(header, 16)?)));
    }
    if has(0, b"LABELONE") {
        return Some((16, advance_ieee(START_LVM2, bytes.get(20..512)?)));
    }
    let is_area = has(4, b" LVM2 x[5A%r0N*>");
    is_area.then(|| Some((0, advance_ieee(START_LVM2, bytes.get(4..512)?))))?
}
