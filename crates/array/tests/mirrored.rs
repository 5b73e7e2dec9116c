//! Exhaustive small worlds of the levels that keep copies, against brute force.

use std::collections::BTreeSet;

use braid_array::geometry::{GeometryError, Raid1, Raid10};
use braid_array::plan::{plan_span, plan_span_with};
use braid_array::{ArrayByte, ArraySpan, Geometry, MemberByte, MemberSpan, Mirrored};
use braid_array::{Plan, Role, Run};
use braid_level::{LayoutError, Raid10Layout};

const BLOCK: u64 = 4096;

/// Near, far and offset copies from 2 to 4, both kinds together, and md's far sets.
const LAYOUTS: &[u32] = &[
    0x102, 0x103, 0x104, 0x201, 0x301, 0x401, 0x10201, 0x10301, 0x10401, // n, f, o
    0x202, 0x203, 0x302, 0x10202, 0x10302, 0x10203, 0x10102, // near with far or offset
    0x20201, 0x20301, 0x30201, 0x20202, 0x40201, 0x40301, 0x50201, 0x40202,
    0x50202, // far sets
];

/// Every array over 2 to 6 members of up to 9 blocks, chunks of 1, 2 and 4 blocks.
fn small_worlds(mut check: impl FnMut(&dyn Mirrored, &str)) {
    for members in 2..=6usize {
        for blocks in 1..=9u64 {
            check(&Raid1::new(blocks * BLOCK, members).unwrap(), "raid1");
            for number in LAYOUTS {
                let layout = Raid10Layout::from_number(*number).unwrap();
                for chunk in [1, 2, 4] {
                    let label = format!("{layout}, {members} × {blocks}, chunk {chunk}");
                    match Raid10::new(blocks * BLOCK, members, chunk * BLOCK, layout) {
                        Ok(raid10) => check(&raid10, &label),
                        Err(error) => check_refusal(error, members, blocks, chunk, layout),
                    }
                }
            }
        }
    }
}

/// Only what cannot be is refused.
fn check_refusal(
    error: GeometryError,
    members: usize,
    blocks: u64,
    chunk: u64,
    layout: Raid10Layout,
) {
    match error {
        GeometryError::Copies { .. } => assert!(layout.copies() > members),
        GeometryError::MemberSize { .. } => assert!(blocks < chunk * layout.far() as u64),
        GeometryError::Layout(LayoutError::Raid10 { number, .. }) => {
            let uneven = layout.near() > 1 && !members.is_multiple_of(layout.near());
            let offset_does_not_fit = layout.is_offset() && layout.far() > 1 && uneven;
            assert!(offset_does_not_fit || number >> 17 != 0, "{layout} over {members}");
        }
        other => panic!("{other}"),
    }
}

fn blocks_of(array: &dyn Mirrored) -> impl Iterator<Item = ArrayByte> {
    ArraySpan::first(array.size()).step_by(BLOCK)
}

#[test]
fn copies_lie_apart_and_locate_and_owner_are_inverse() {
    small_worlds(|array, label| {
        let mut places = BTreeSet::new();
        for offset in blocks_of(array) {
            let mut members = BTreeSet::new();
            for copy in 0..array.copies() {
                let run = array.locate(offset, copy);
                assert!(run.role.index() < array.members(), "{label}");
                let there = MemberSpan::new(run.offset, run.len);
                assert!(run.len >= BLOCK && there.is_within(array.member_size()), "{label}");
                assert!(members.insert(run.role), "{label}: two copies on {}", run.role);
                assert!(places.insert((run.role, run.offset)), "{label}: two blocks in a place");
                let owner = array.owner(run.role, run.offset).expect(label);
                assert_eq!(
                    (owner.offset, owner.copy, owner.len),
                    (offset, copy, run.len),
                    "{label}"
                );
            }
        }
        // From the members' side: a place has an owner exactly if locate led there.
        for role in Role::all(array.members()) {
            for offset in MemberSpan::first(array.member_size() + 2 * BLOCK).step_by(BLOCK) {
                let owned = array.owner(role, offset).is_some();
                assert_eq!(owned, places.contains(&(role, offset)), "{label}");
            }
        }
        assert_eq!(array.owner(Role::nth(array.members()), MemberByte::START), None, "{label}");
    });
}

#[test]
fn what_follows_in_one_piece_does() {
    small_worlds(|array, label| {
        for offset in blocks_of(array) {
            for copy in 0..array.copies() {
                let run = array.locate(offset, copy);
                for step in [1000, BLOCK, run.len - 1].into_iter().filter(|step| *step < run.len) {
                    let Run { role, offset: place, len } = array.locate(offset + step, copy);
                    assert_eq!(
                        (role, place, len),
                        (run.role, run.offset + step, run.len - step),
                        "{label}"
                    );
                    let owner = array.owner(role, place).expect(label);
                    assert_eq!((owner.offset, owner.copy), (offset + step, copy), "{label}");
                }
            }
        }
    });
}

/// A raid10 wastes less of its members than what one row more would need.
#[test]
fn members_are_used_as_far_as_whole_rows_go() {
    small_worlds(|array, label| {
        let used = array.size() * array.copies() as u64;
        let given = array.member_size() * array.members() as u64;
        assert!(used <= given, "{label}");
        let chunk = array.locate(ArrayByte::START, 0).len;
        assert!(given - used < array.copies() as u64 * chunk, "{label}: {used} of {given}");
    });
}

#[test]
fn every_loss_is_survived_exactly_if_each_byte_has_a_copy_left() {
    small_worlds(|array, label| {
        for lost in 0..1u32 << array.members() {
            let alive = |role: Role| lost >> role.index() & 1 == 0;
            let every_block = blocks_of(array).all(|offset| {
                (0..array.copies()).any(|copy| alive(array.locate(offset, copy).role))
            });
            assert_eq!(array.is_readable(&alive), every_block, "{label} without {lost:#b}");
            let count = lost.count_ones() as usize;
            assert!(count >= array.copies() || every_block, "{label} without {lost:#b}");
        }
    });
}

/// One copy of a mirrored array, as a geometry.
struct OneCopy<'a>(&'a dyn Mirrored, usize);

impl Geometry for OneCopy<'_> {
    fn size(&self) -> u64 {
        self.0.size()
    }

    fn members(&self) -> usize {
        self.0.members()
    }

    fn locate(&self, offset: ArrayByte) -> Run {
        self.0.locate(offset, self.1)
    }

    fn stripe(&self) -> u64 {
        self.0.stripe()
    }
}

#[test]
fn a_plan_may_take_another_copy_for_each_piece() {
    small_worlds(|array, label| {
        let span = ArraySpan::first(array.size());
        // In turn, and what each call answered, block by block.
        let mut turn = 0;
        let mut expected = Vec::new();
        let plan = plan_span_with(array.members(), span, |offset| {
            assert_eq!(
                offset.get(),
                expected.len() as u64 * BLOCK,
                "{label}: once a piece, in order"
            );
            let run = array.locate(offset, turn % array.copies());
            turn += 1;
            expected.extend((0..run.len / BLOCK).map(|b| (run.role, run.offset + b * BLOCK)));
            run
        });
        assert_eq!(places(&plan, span), expected, "{label}");
        for copy in 0..array.copies() {
            let plan = plan_span(&OneCopy(array, copy), span);
            let expected: Vec<_> = blocks_of(array)
                .map(|offset| array.locate(offset, copy))
                .map(|run| (run.role, run.offset))
                .collect();
            assert_eq!(places(&plan, span), expected, "{label}, copy {copy}");
        }
    });
}

/// Returns the place of each block of a request in a plan.
fn places(plan: &Plan, span: ArraySpan) -> Vec<(Role, MemberByte)> {
    let blocks = |len: u64| (0..len / BLOCK).map(|block| block * BLOCK);
    match plan {
        Plan::Forward { role, offset } => {
            blocks(span.len).map(|block| (*role, *offset + block)).collect()
        }
        Plan::Fan(fan) => {
            let mut next: Vec<MemberByte> = fan.spans.iter().map(|one| one.span.offset).collect();
            let mut places = Vec::new();
            for piece in &fan.pieces {
                let from = next[piece.span];
                let role = fan.spans[piece.span].role;
                places.extend(blocks(piece.len).map(|block| (role, from + block)));
                next[piece.span] += piece.len;
            }
            places
        }
    }
}

/// The pictures of the module header, row by row, over four members and over three.
#[test]
fn chunks_are_dealt_as_the_pictures_show() {
    for (layout, members, rows) in [
        ("n2", 4, vec!["0 0 1 1", "2 2 3 3", "4 4 5 5", "6 6 7 7"]),
        ("f2", 4, vec!["0 1 2 3", "4 5 6 7", "3 0 1 2", "7 4 5 6"]),
        ("o2", 4, vec!["0 1 2 3", "3 0 1 2", "4 5 6 7", "7 4 5 6"]),
        ("n2", 3, vec!["0 0 1", "1 2 2", "3 3 4", "4 5 5"]),
        ("f2", 3, vec!["0 1 2", "3 4 5", "2 0 1", "5 3 4"]),
        ("o2", 3, vec!["0 1 2", "2 0 1", "3 4 5", "5 3 4"]),
        ("n2f2", 5, vec!["0 0 1 1 2", "2 3 3 4 4", "1 2 0 0 1", "4 4 2 3 3"]),
        // Far copies go round in sets of two; the last set has the rest.
        ("0x40201", 4, vec!["0 1 2 3", "4 5 6 7", "1 0 3 2", "5 4 7 6"]),
        ("0x40201", 5, vec!["0 1 2 3 4", "1 0 4 2 3"]),
        // An odd slot holds nothing.
        ("n2", 3, vec!["0 0 -"]),
    ] {
        let layout = Raid10Layout::from_name(layout).unwrap();
        let member_size = rows.len() as u64 * BLOCK;
        let raid10 = Raid10::new(member_size, members, BLOCK, layout).unwrap();
        for (row, expected) in rows.iter().enumerate() {
            let place = MemberByte::new(row as u64 * BLOCK);
            let chunk = |role| match raid10.owner(role, place) {
                Some(owner) => (owner.offset / BLOCK).to_string(),
                None => "-".to_owned(),
            };
            let found: Vec<String> = Role::all(members).map(chunk).collect();
            assert_eq!(found.join(" "), *expected, "row {row} of {layout} over {members}");
        }
    }
}

#[test]
fn sizes_are_rounded_to_what_the_far_copies_divide() {
    // Five chunks and a bit: far copies use four of them, near copies five.
    let member_size = 5 * BLOCK + 512;
    for (layout, member_chunks, chunks, stripe) in
        [("n2", 5, 7, 3), ("f2", 4, 6, 3), ("o2", 4, 6, 3), ("n3", 5, 5, 1)]
    {
        let raid10 =
            Raid10::new(member_size, 3, BLOCK, Raid10Layout::from_name(layout).unwrap()).unwrap();
        assert_eq!(raid10.member_size(), member_chunks * BLOCK, "{layout}");
        assert_eq!(raid10.size(), chunks * BLOCK, "{layout}");
        assert_eq!(raid10.stripe(), stripe * BLOCK, "{layout}");
    }
}

#[test]
fn where_each_member_holds_all_a_request_stays_in_one_piece() {
    let raid10 = Raid10::new(1 << 20, 2, 64 << 10, Raid10Layout::NEAR_2).unwrap();
    let offset = MemberByte::new(100 << 10);
    let run = Run { role: Role::new(1), offset, len: 924 << 10 };
    assert_eq!(raid10.locate(ArrayByte::new(100 << 10), 1), run);
}

#[test]
fn what_makes_no_array_is_refused_with_its_values() {
    let refusal = |size, members, chunk, layout: &str| {
        Raid10::new(size, members, chunk, Raid10Layout::from_name(layout).unwrap())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refusal(1 << 20, 2, 4096, "n3"),
        "raid10 layout n3 keeps 3 copies on different members; there are 2"
    );
    for chunk in [0, 2048, 12 << 10, 1 << 40] {
        assert_eq!(
            refusal(1 << 20, 2, chunk, "n2"),
            format!(
                "a raid10 chunk of {chunk} bytes: it must be a power of two from 4096 to 549755813888"
            )
        );
    }
    assert_eq!(
        refusal(8191, 2, 4096, "f2"),
        "members of 8191 bytes: at least 8192 are needed of each"
    );
    assert_eq!(
        refusal(1 << 20, 5, 4096, "n2o2"),
        "raid10 layout 0x10202: md puts two chunks in one place when near copies of the offset layout do not divide the members"
    );
    assert_eq!(
        refusal(1 << 20, 4, 4096, "0x20301"),
        "raid10 layout 0x20301: md puts two copies on one member with so many members"
    );
    assert_eq!(
        refusal(1 << 20, 9, 4096, "0x40202"),
        "raid10 layout 0x40202: md puts two chunks in one place with so many members"
    );
    let error = Raid10::new(u64::MAX, 4, 4096, Raid10Layout::NEAR_2).unwrap_err();
    assert_eq!(error, GeometryError::TooLarge);
    for count in [0, 385] {
        let error = Raid10::new(1 << 20, count, 4096, Raid10Layout::NEAR_2).unwrap_err();
        assert_eq!(error, GeometryError::MemberCount { count });
    }
}
