//! Entry points for fuzzers: bytes in, panic on a broken invariant, nothing out.

use std::ops::Range;

use crate::sparse::Sparse;
use crate::{Event, Kind, Limits, ReadAt, Volume, owners};

/// Any bytes as a packed image of a file system, all of which is wanted: every wanted byte has an owner, and
/// none that is not wanted has.
pub fn fuzz_files(data: &[u8]) {
    fuzz_walk(data);
    let image = Sparse::unpack(data);
    let limits = Limits { pieces: 2000, name_bytes: 64 << 10 };
    let wanted: Range<u64> = 0..image.size().saturating_add(512);
    let Ok(report) = owners(&image, std::slice::from_ref(&wanted), &limits) else { return };
    let is_cut = report.pieces.len() >= limits.pieces;
    let mut at = wanted.start;
    for piece in &report.pieces {
        assert!(piece.range.start < piece.range.end && piece.range.end <= wanted.end, "a range");
        assert!(is_cut || piece.range.start <= at, "a gap at {at}");
        assert!(
            piece.owner.inode().is_none_or(|inode| report.files.contains_key(&inode)),
            "a file"
        );
        at = at.max(piece.range.end);
    }
    assert!(is_cut || at == wanted.end, "a gap at the end");
}

/// Any bytes as a packed image of a file system: a walk over it ends, leaves each directory that it enters, passes on
/// only names that a file can have, and extents that lie in the volume and in their file.
fn fuzz_walk(data: &[u8]) {
    let image = Sparse::unpack(data);
    let Ok(volume) = Volume::open(&image) else { return };
    let Ok(mut walk) = volume.walk() else { return };
    walk.set_doubtful(vec![4096..8192, 65_536..66_000]);
    let mut depth = 0_u64;
    while let Some(event) = walk.next() {
        let (name, node) = match event {
            Event::Enter(name, _) => {
                assert!(is_name(&name) || depth == 0 && name.is_empty(), "{name:?}");
                depth += 1;
                continue;
            }
            Event::Leave => {
                depth = depth.checked_sub(1).expect("a directory was entered");
                continue;
            }
            Event::Trouble { .. } => continue,
            Event::Entry(name, node) => (name, node),
        };
        assert!(depth > 0 && is_name(&name), "{name:?}");
        if node.kind == Kind::Link
            && let Ok(target) = walk.target(&node)
        {
            assert!(!target.is_empty() && !target.contains(&0), "{target:?}");
        }
        if node.kind != Kind::File || walk.inline(&node).is_ok_and(|bytes| bytes.is_some()) {
            continue;
        }
        let mut from = 0;
        loop {
            let (extents, _) = walk.extents(&node, from);
            let Some(last) = extents.last() else { break };
            for extent in &extents {
                let len = extent.range.end - extent.range.start;
                assert!(extent.offset >= from && extent.offset + len <= node.size, "{extent:?}");
                assert!(extent.range.end <= walk.size(), "{extent:?}");
                walk.claim(extent);
            }
            let end = last.offset + (last.range.end - last.range.start);
            assert!(end > from, "{extents:?}");
            from = end;
        }
    }
    assert_eq!(depth, 0, "a directory was not left");
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name != b"." && name != b".." && !name.contains(&b'/') && !name.contains(&0)
}
