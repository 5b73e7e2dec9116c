//! Exhaustive small worlds of the levels that keep parity, against brute force and pictures.

use std::collections::BTreeSet;

use braid_array::geometry::{Column, GeometryError, Raid456};
use braid_array::{ArraySpan, Geometry, MemberSpan, Role};
use braid_level::{ParityLayout, ParityLevel};

const BLOCK: u64 = 4096;
const LEVELS: [ParityLevel; 3] = [ParityLevel::Raid4, ParityLevel::Raid5, ParityLevel::Raid6];

/// Every level, layout and number of members up to 6, chunks of 1 and 2 blocks, and so many stripes
/// that the parity has gone round more than twice.
fn small_worlds(mut check: impl FnMut(&Raid456, &str)) {
    for level in LEVELS {
        for layout in ParityLayout::all().filter(|layout| layout.suits(level)) {
            for members in level.least_members()..=6 {
                for chunk in [BLOCK, 2 * BLOCK] {
                    let size = chunk * (2 * members as u64 + 1) + BLOCK / 2;
                    let raid = Raid456::new(size, members, chunk, level, layout).unwrap();
                    check(&raid, &format!("{level} {layout} over {members}, chunk {chunk}"));
                }
            }
        }
    }
}

fn columns(raid: &Raid456) -> impl Iterator<Item = Column> {
    let parities = [Column::P, Column::Q].into_iter().take(raid.parities());
    (0..raid.data()).map(Column::Data).chain(parities)
}

#[test]
fn each_stripe_has_every_column_once_and_role_and_column_are_inverse() {
    small_worlds(|raid, label| {
        assert_eq!(raid.data() + raid.parities(), raid.members(), "{label}");
        for stripe in 0..raid.stripes() {
            let roles: BTreeSet<Role> =
                columns(raid).map(|column| raid.role_of(stripe, column)).collect();
            assert!(roles.into_iter().eq(Role::all(raid.members())), "{label}, stripe {stripe}");
            for column in columns(raid) {
                let role = raid.role_of(stripe, column);
                assert_eq!(raid.column_of(stripe, role), column, "{label}, stripe {stripe}");
            }
        }
    });
}

#[test]
fn data_and_parity_fill_the_members_and_nothing_lies_on_anything_else() {
    small_worlds(|raid, label| {
        let mut places = BTreeSet::new();
        for offset in ArraySpan::first(raid.size()).step_by(BLOCK) {
            let run = raid.locate(offset);
            let there = MemberSpan::new(run.offset, run.len);
            assert!(run.len >= BLOCK && there.is_within(raid.member_size()), "{label}");
            assert!(places.insert((run.role, run.offset)), "{label}: two blocks in a place");
            let (stripe, within) = (offset / raid.stripe(), offset % raid.stripe());
            assert_eq!(
                (raid.column_of(stripe, run.role), raid.stripe_of_row(run.offset)),
                (Column::Data((within / raid.chunk()) as usize), stripe),
                "{label}"
            );
            let middle = raid.locate(offset + 1000);
            assert_eq!(
                (middle.role, middle.offset, middle.len),
                (run.role, run.offset + 1000, run.len - 1000),
                "{label}"
            );
        }
        for stripe in 0..raid.stripes() {
            for column in columns(raid).skip(raid.data()) {
                for place in raid.rows_of_stripe(stripe).step_by(BLOCK) {
                    let role = raid.role_of(stripe, column);
                    assert!(places.insert((role, place)), "{label}: parity on something");
                }
            }
        }
        let blocks = raid.members() as u64 * raid.member_size() / BLOCK;
        assert_eq!(places.len() as u64, blocks, "{label}");
    });
}

/// As md walks a stripe: from the member behind Q, or from the first by DDF, counting.
#[test]
fn powers_are_counted_from_behind_q_or_over_all_members() {
    small_worlds(|raid, label| {
        if raid.level() != ParityLevel::Raid6 {
            return;
        }
        for stripe in 0..raid.stripes() {
            let q = raid.role_of(stripe, Column::Q);
            let start = if raid.layout().is_ddf() { 0 } else { q.index() + 1 };
            let mut count = 0;
            for step in 0..raid.members() {
                let role = Role::nth((start + step) % raid.members());
                if let Column::Data(index) = raid.column_of(stripe, role) {
                    assert!(count < raid.powers(), "{label}");
                    assert_eq!(usize::from(raid.power(stripe, index)), count, "{label}");
                    count += 1;
                } else if raid.layout().is_ddf() {
                    count += 1;
                }
            }
            assert_eq!(count, raid.powers(), "{label}");
        }
    });
}

#[test]
fn as_many_members_may_be_lost_as_there_are_parities() {
    small_worlds(|raid, label| {
        for lost in 0..1u32 << raid.members() {
            let alive = |role: Role| lost >> role.index() & 1 == 0;
            let enough = lost.count_ones() as usize <= raid.parities();
            assert_eq!(raid.is_readable(&alive), enough, "{label} without {lost:#b}");
        }
    });
}

/// A stripe, member by member: `P`, `Q`, or the array's chunk as a digit to base 36.
fn picture(raid: &Raid456, stripe: u64) -> String {
    let text = |role| match raid.column_of(stripe, role) {
        Column::P => 'P',
        Column::Q => 'Q',
        Column::Data(index) => {
            let chunk = stripe * raid.data() as u64 + index as u64;
            char::from_digit(chunk as u32, 36).unwrap()
        }
    };
    Role::all(raid.members()).map(text).collect()
}

/// Written down from md's formula by hand: the pictures of the module header, and the others.
#[test]
fn chunks_are_dealt_as_the_pictures_show() {
    use ParityLevel::{Raid4, Raid5, Raid6};
    for (level, layout, stripes) in [
        (Raid4, "parity-last", "012P 345P 678P 9abP"),
        (Raid5, "left-asymmetric", "012P 34P5 6P78 P9ab cdeP"),
        (Raid5, "right-asymmetric", "P012 3P45 67P8 9abP Pcde"),
        (Raid5, "left-symmetric", "012P 45P3 8P67 P9ab cdeP"),
        (Raid5, "right-symmetric", "P012 5P34 78P6 9abP Pcde"),
        (Raid5, "parity-first", "P012 P345 P678 P9ab"),
        (Raid5, "parity-last", "012P 345P 678P 9abP"),
        (Raid6, "left-asymmetric", "Q01P 23PQ 4PQ5 PQ67 Q89P"),
        (Raid6, "right-asymmetric", "PQ01 2PQ3 45PQ Q67P PQ89"),
        (Raid6, "left-symmetric", "Q01P 23PQ 5PQ4 PQ67 Q89P"),
        (Raid6, "right-symmetric", "PQ01 3PQ2 45PQ Q67P PQ89"),
        (Raid6, "parity-first", "PQ01 PQ23 PQ45 PQ67"),
        (Raid6, "parity-last", "01PQ 23PQ 45PQ 67PQ"),
        (Raid6, "ddf-zero-restart", "PQ01 2PQ3 45PQ Q67P PQ89"),
        (Raid6, "ddf-N-restart", "01PQ 2PQ3 PQ45 Q67P 89PQ"),
        (Raid6, "ddf-N-continue", "01QP 3QP2 QP45 P67Q 89QP"),
        (Raid6, "left-asymmetric-6", "01PQ 2P3Q P45Q 67PQ"),
        (Raid6, "right-asymmetric-6", "P01Q 2P3Q 45PQ P67Q"),
        (Raid6, "left-symmetric-6", "01PQ 3P2Q P45Q 67PQ"),
        (Raid6, "right-symmetric-6", "P01Q 3P2Q 45PQ P67Q"),
        (Raid6, "parity-first-6", "P01Q P23Q P45Q P67Q"),
    ] {
        let layout = ParityLayout::from_name(layout).unwrap();
        let raid = Raid456::new(9 * BLOCK, 4, BLOCK, level, layout).unwrap();
        for (stripe, expected) in (0..).zip(stripes.split(' ')) {
            assert_eq!(picture(&raid, stripe), expected, "stripe {stripe} of {level} {layout}");
        }
    }
    let raid = Raid456::new(9 * BLOCK, 6, BLOCK, Raid6, ParityLayout::LeftSymmetric).unwrap();
    let stripes: Vec<String> = (0..6).map(|stripe| picture(&raid, stripe)).collect();
    assert_eq!(stripes.join(" "), "Q0123P 4567PQ 9abPQ8 efPQcd jPQghi PQklmn");
}

#[test]
fn powers_are_as_the_pictures_say() {
    // The members' powers in stripe 1, `-` for parity.
    for (layout, expected) in [
        ("left-symmetric", "0123--"), // behind Q, which is on the last member
        ("right-symmetric", "3--012"),
        ("right-asymmetric", "3--012"),
        ("parity-first", "--0123"),
        ("ddf-zero-restart", "0--345"),
        ("ddf-N-restart", "012--5"),
        ("ddf-N-continue", "012--5"),
        ("left-symmetric-6", "012-3-"),
        ("right-asymmetric-6", "0-123-"),
    ] {
        let layout = ParityLayout::from_name(layout).unwrap();
        let raid = Raid456::new(9 * BLOCK, 6, BLOCK, ParityLevel::Raid6, layout).unwrap();
        let found: String = Role::all(6)
            .map(|role| match raid.column_of(1, role) {
                Column::Data(index) => char::from(b'0' + raid.power(1, index)),
                _ => '-',
            })
            .collect();
        assert_eq!(found, expected, "{layout}");
    }
}

#[test]
fn sizes_are_whole_chunks() {
    let (level, layout) = (ParityLevel::Raid6, ParityLayout::default());
    let raid = Raid456::new(5 * BLOCK + 512, 5, 2 * BLOCK, level, layout).unwrap();
    assert_eq!((raid.chunk(), raid.stripes()), (2 * BLOCK, 2));
    assert_eq!((raid.member_size(), raid.stripe()), (4 * BLOCK, 6 * BLOCK));
    assert_eq!(raid.size(), 12 * BLOCK);
}

#[test]
fn a_raid4_s_layout_is_not_looked_at() {
    for layout in ParityLayout::all() {
        let raid = Raid456::new(BLOCK, 3, BLOCK, ParityLevel::Raid4, layout).unwrap();
        assert_eq!(raid.layout(), ParityLayout::ParityLast);
    }
}

#[test]
fn a_raid6_has_as_many_members_as_there_are_powers() {
    let new = |members, layout: &str| {
        Raid456::new(
            BLOCK,
            members,
            BLOCK,
            ParityLevel::Raid6,
            ParityLayout::from_name(layout).unwrap(),
        )
    };
    for (layout, most) in [("ls", 255), ("left-symmetric-6", 255), ("ddf-N-continue", 253)] {
        let raid = new(most, layout).unwrap();
        let powers: BTreeSet<u8> = (0..raid.data()).map(|index| raid.power(0, index)).collect();
        assert_eq!(powers.len(), raid.data(), "{layout}");
        let error = new(most + 1, layout).unwrap_err();
        let count = most + 1;
        assert_eq!(error.to_string(), format!("raid6 has 4 to {most} members, not {count}"));
    }
}

#[test]
fn what_makes_no_array_is_refused_with_its_values() {
    let refusal = |size, members, chunk, level, layout: &str| {
        Raid456::new(size, members, chunk, level, ParityLayout::from_name(layout).unwrap())
            .unwrap_err()
            .to_string()
    };
    for (level, least) in LEVELS.into_iter().zip([2, 2, 4]) {
        let most = if level == ParityLevel::Raid6 { 255 } else { 384 };
        for count in [0, 1, least - 1, most + 1] {
            assert_eq!(
                refusal(1 << 20, count, 4096, level, "ls"),
                format!("{level} has {least} to {most} members, not {count}")
            );
        }
        for chunk in [0, 2048, 12 << 10, 1 << 40] {
            assert_eq!(
                refusal(1 << 20, 4, chunk, level, "ls"),
                format!(
                    "a {level} chunk of {chunk} bytes: it must be a power of two from 4096 to 549755813888"
                )
            );
        }
        assert_eq!(
            refusal(65535, 4, 65536, level, "ls"),
            "members of 65535 bytes: at least 65536 are needed of each"
        );
        for size in [u64::MAX, 1 << 62] {
            let layout = ParityLayout::default();
            let error = Raid456::new(size, 4, 4096, level, layout).unwrap_err();
            assert_eq!(error, GeometryError::TooLarge);
        }
    }
    assert_eq!(
        refusal(1 << 20, 4, 4096, ParityLevel::Raid5, "left-symmetric-6"),
        "raid5 has no layout left-symmetric-6"
    );
}
