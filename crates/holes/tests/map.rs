//! Maps against a list of bytes, by seed; and texts, with the exact errors.

use std::ops::Range;

use braid_holes::{Activity, MAX_SIZE, Map, Misfit, Phase, State};
use braid_seed::Rng;

/// The example of ddrescue's manual.
const EXAMPLE: &str = "\
# Mapfile. Created by GNU ddrescue version 1.28
# Command line: ddrescue -d -c18 /dev/fd0 fdimage mapfile
# Copying non-tried blocks... Pass 1 (forwards)
# current_pos  current_status  current_pass
0x00120000     ?               1
#      pos        size  status
0x00000000  0x00117000  +
0x00117000  0x00000200  -
0x00117200  0x00001000  /
0x00118200  0x00007E00  *
0x00120000  0x00048000  ?
";

fn parse(text: &str) -> Map {
    Map::parse(text.as_bytes()).unwrap()
}

/// The holes of a map, each from its start to its end.
fn holes(map: &Map) -> Vec<(u64, u64)> {
    map.holes().into_iter().map(|hole| (hole.start, hole.end)).collect()
}

#[test]
fn the_manuals_example_is_read() {
    let map = parse(EXAMPLE);
    assert_eq!(map.activity, Activity { position: 0x12_0000, phase: Phase::Copying, pass: 1 });
    let states: Vec<char> = map.blocks().iter().map(|block| block.state.letter()).collect();
    assert_eq!(states, ['+', '-', '/', '*', '?']);
    assert_eq!((map.size(), map.finished_bytes()), (0x16_8000, 0x11_7000));
    assert_eq!(holes(&map), [(0x11_7000, 0x16_8000)]);
    assert_eq!(parse(&map.to_string()), map);
}

#[test]
fn numbers_comments_and_old_versions_are_read() {
    // No pass before 1.20; decimal and octal numbers; comments behind whitespace; the ends of lines of other systems.
    let map = parse("\r\n0 +\r\n0 01000 + # read \r\n512\t0X200 -\r\n\n1024 0 ?\r\n");
    assert_eq!((map.size(), holes(&map), map.activity.pass), (1024, vec![(512, 1024)], 1));
    let named = b"# ddrescue /dev/sda \xff\xfe.img\n0 + 1\n0 512 +\n";
    assert_eq!(Map::parse(named).unwrap().size(), 512);
    // Neighbours of one state are one block.
    assert_eq!(parse("0 + 1\n0 1 -\n1 1 -\n").blocks().len(), 1);
    assert_eq!(parse("0 + 1\n").size(), 0);
}

#[test]
fn an_open_end_is_cut_off_at_the_devices_end() {
    for last in ["4096 -1 ?", "4096 0x7FFFFFFFFFFFEFFF ?"] {
        let map = parse(&format!("0 ? 1\n0 4096 +\n{last}\n"));
        assert_eq!(map.size(), MAX_SIZE);
        assert_eq!(parse(&map.to_string()), map);
        let fitted = map.fitted(1 << 20, 512).unwrap();
        assert_eq!((fitted.size(), holes(&fitted)), (1 << 20, vec![(4096, 1 << 20)]));
        assert_eq!(map.fitted(4096, 512).unwrap().holes(), []);
        // A device that ends inside of what was read is another one.
        assert_eq!(map.fitted(2048, 512), Err(Misfit { map: MAX_SIZE, device: 2048 }));
    }
}

#[test]
fn a_copy_may_be_shorter_than_its_map_by_what_was_not_read() {
    let map = parse("0 + 1\n0 4096 +\n4096 4096 ?\n8192 4096 -\n12288 100 ?\n");
    for size in [4096, 5120, 8192] {
        let fitted = map.fitted(size, 512).unwrap();
        assert_eq!((fitted.size(), holes(&fitted)), (12288, vec![(4096, 12288)]), "{size}");
    }
    assert_eq!(map.fitted(3584, 512), Err(Misfit { map: 12388, device: 3584 }));
}

#[test]
fn a_map_of_another_device_does_not_fit() {
    let map = parse("0 + 1\n0 8192 +\n8192 100 -\n");
    // The device is read in whole sectors: the last, cut off one is not part of it.
    assert_eq!(map.fitted(8192, 512).unwrap().size(), 8192);
    for size in [4096, 8704, 0] {
        assert_eq!(map.fitted(size, 512), Err(Misfit { map: 8292, device: size }));
    }
    assert_eq!(
        Misfit { map: 8292, device: 4096 }.to_string(),
        "the map describes 8292 bytes, and the device has 4096"
    );
}

#[test]
fn wrong_texts_are_refused_with_line_and_reason() {
    let long = format!("0 + 1\n0 {} +\n", "9".repeat(60));
    let cases: &[(&str, &str)] = &[
        (
            "",
            "it has no status line, which every map of GNU ddrescue begins with, such as `0x00000000 + 1`",
        ),
        ("# only\n\n", "it has no status line"),
        ("0\n", "line 1: the phase, such as +, is missing"),
        ("0 X\n", "line 1: \"X\" is no phase of ddrescue: one of ? * / - F G +"),
        ("0 + 0\n", "line 1: \"0\" is no number"),
        ("0 + 1 2\n", "line 1: unexpected \"2\" at its end"),
        ("-1 + 1\n", "line 1: \"-1\" is no number"),
        (
            "0 + 1\n\n0 0x +\n",
            "line 3: \"0x\" is no number: decimal, 0x and hexadecimal digits, or 0 and octal digits",
        ),
        ("0 + 1\n0 089 +\n", "line 2: \"089\" is no number"),
        ("0 + 1\n0 512\n", "line 2: the state of the block, such as +, is missing"),
        ("0 + 1\n0\n", "line 2: the size of the block is missing"),
        ("0 + 1\n0 512 F\n", "line 2: \"F\" is no state of a block: one of ? * / - +"),
        ("0 + 1\n0 512 + +\n", "line 2: unexpected \"+\" at its end"),
        (
            "0 + 1\n0 512 +\n1024 512 -\n",
            "line 3: its block starts at 0x400, and the one before ends at 0x200: a gap",
        ),
        ("0 + 1\n512 512 +\n", "line 2: its block starts at 0x200, and the one before ends at 0x0"),
        (
            "0 + 1\n0 512 +\n256 512 -\n",
            "line 3: its block starts at 0x100, and the one before ends at 0x200: they overlap",
        ),
        (
            "0 + 1\n0 512 +\n512 0x7FFFFFFFFFFFFFFF -\n",
            "line 3: its block of 0x7fffffffffffffff bytes at 0x200 ends beyond 2^63 - 1",
        ),
        ("0 + 1\n0 0x8000000000000000 +\n", "line 2: \"0x8000000000000000\" is more than 2^63 - 1"),
        (&long, "line 2: \"9999999999999999999999999999999999999999\" is more than 2^63 - 1"),
        ("0 + 1\n0 -2 +\n", "line 2: \"-2\" is no number"),
        ("0 + 1\n0 -1 +\n512 1 +\n", "line 3: its block starts at 0x200"),
    ];
    for (text, expected) in cases {
        let error = Map::parse(text.as_bytes()).expect_err(text).to_string();
        assert!(error.starts_with(expected), "{text:?}: {error}");
    }
    let error = Map::parse(&vec![b'\n'; braid_holes::MAX_TEXT + 1]).unwrap_err();
    assert_eq!(error.to_string(), "it has 67108865 bytes; a map has at most 67108864");
}

/// A map and its bytes, one by one.
fn drawn(rng: &mut Rng, size: u64) -> (Map, Vec<State>) {
    let mut map = Map::new(size, State::NonTried);
    let mut bytes = vec![State::NonTried; size as usize];
    for _ in 0..rng.below(12) {
        let (range, state) = (range(rng, size), State::ALL[rng.index(5)]);
        bytes[range.start as usize..range.end as usize].fill(state);
        map.set(range, state);
    }
    (map, bytes)
}

fn range(rng: &mut Rng, size: u64) -> Range<u64> {
    let (one, other) = (rng.within(0..=size), rng.within(0..=size));
    one.min(other)..one.max(other)
}

fn assert_is(map: &Map, bytes: &[State]) {
    let listed = map.blocks().iter().flat_map(|block| {
        std::iter::repeat_n(block.state, (block.range.end - block.range.start) as usize)
    });
    assert_eq!(listed.collect::<Vec<_>>(), bytes);
    assert!(map.blocks().windows(2).all(|pair| pair[0].state != pair[1].state), "{map}");
    braid_holes::fuzz::fuzz_map(map.to_string().as_bytes());
}

#[test]
fn maps_are_what_their_bytes_are() {
    for seed in 0..2000 {
        let mut rng = Rng::new(seed);
        let size = rng.within(1..=80);
        let (mut map, mut bytes) = drawn(&mut rng, size);
        assert_is(&map, &bytes);
        let is_hole = |at: u64| bytes[at as usize] != State::Finished;
        let listed: Vec<u64> = map.holes().into_iter().flatten().collect();
        assert_eq!(listed, (0..size).filter(|at| is_hole(*at)).collect::<Vec<_>>(), "seed {seed}");
        let within = range(&mut rng, size);
        let first = map.first_hole(within.clone());
        assert_eq!(first.clone().map(|hole| hole.start), within.clone().find(|at| is_hole(*at)));
        assert!(first.is_none_or(|mut hole| hole.end <= within.end && hole.all(is_hole)));

        let unit = rng.within(1..=16);
        let coarse: Vec<bool> = (0..size)
            .map(|at| at / unit * unit..(at / unit * unit + unit).min(size))
            .map(|mut unit| unit.any(is_hole))
            .collect();
        let coarsened = map.coarsened(unit);
        let listed: Vec<u64> = coarsened.holes().into_iter().flatten().collect();
        let expected = (0..size).filter(|at| coarse[*at as usize]).collect::<Vec<_>>();
        assert_eq!(listed, expected, "seed {seed}");

        let (other, of_other) = drawn(&mut rng, size);
        map.add_finished(&other).unwrap();
        for (byte, other) in bytes.iter_mut().zip(of_other) {
            if other == State::Finished {
                *byte = State::Finished;
            }
        }
        assert_is(&map, &bytes);
    }
}

#[test]
fn maps_of_different_sizes_are_not_joined() {
    let mut map = Map::new(512, State::Bad);
    let refused = map.add_finished(&Map::new(1024, State::Finished));
    assert_eq!(refused, Err(Misfit { map: 1024, device: 512 }));
}
