//! An entry point for fuzzers: bytes in, panic on a broken invariant, nothing out.

use crate::{MAX_SIZE, Map, State};

/// Any bytes as a map: blocks follow one another, holes are the bytes that are not finished, a coarser map has no
/// fewer of them, and the map written and parsed again is the same.
pub fn fuzz_map(data: &[u8]) {
    let Ok(map) = Map::parse(data) else { return };
    let mut end = 0;
    for block in map.blocks() {
        assert!(block.range.start == end && !block.range.is_empty(), "{block:?} behind {end}");
        end = block.range.end;
    }
    assert!(end == map.size() && end <= MAX_SIZE, "{end}");
    assert!(map.blocks().windows(2).all(|pair| pair[0].state != pair[1].state), "neighbours");
    let holes = map.holes();
    assert!(holes.windows(2).all(|pair| pair[0].end < pair[1].start), "{holes:?}");
    let bytes: u64 = holes.iter().map(|hole| hole.end - hole.start).sum();
    assert_eq!(bytes + map.finished_bytes(), map.size());
    let first = map.first_hole(0..u64::MAX);
    assert_eq!(first.map(|hole| hole.start), holes.first().map(|hole| hole.start));
    for unit in [512, 4096] {
        let coarse = map.coarsened(unit);
        assert_eq!(coarse.size(), map.size());
        assert!(coarse.finished_bytes() <= map.finished_bytes(), "a coarser map");
        let is_hole = |hole: &std::ops::Range<u64>| coarse.first_hole(hole.clone()).is_some();
        assert!(holes.iter().take(100).all(is_hole), "a hole is lost");
        assert_eq!(coarse.coarsened(unit), coarse);
    }
    let text = map.to_string();
    assert_eq!(Map::parse(text.as_bytes()).as_ref(), Ok(&map), "{text}");
    if let Some(last) = map.blocks().last().map(|last| last.range.clone()) {
        let mut other = map.clone();
        other.set(last.start..last.end, State::Finished);
        assert_eq!(other.size(), map.size());
        assert_eq!(other.first_hole(last), None);
    }
}
