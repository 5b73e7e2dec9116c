//! Reads of planned writes to arrays with parity: never more than needed, and as the rules say.

use braid_array::coordinates::{Coordinate, Offset, Stretch};
use braid_array::geometry::{Column, Raid456};
use braid_array::parity_plan::{
    Band, Bands, Lost, MAX_BANDS, Method, ParityState, bands, choose, reads, split_stripes, writes,
};
use braid_array::{ArrayByte, ArraySpan, Geometry, MemberSpan, Role};
use braid_level::{ParityLayout, ParityLevel};

const BLOCK: u64 = 4096;
const METHODS: [Method; 5] =
    [Method::Full, Method::Modify, Method::Reconstruct, Method::Restore, Method::Plain];

fn raid(level: ParityLevel, members: usize, chunk: u64) -> Raid456 {
    let layout = ParityLayout::LeftSymmetric;
    Raid456::new(4 * chunk * BLOCK, members, chunk * BLOCK, level, layout).unwrap()
}

fn span<C: Coordinate>(start: u64, len: u64) -> Stretch<C> {
    Stretch::new(Offset::new(start * BLOCK), len * BLOCK)
}

/// Roles, each with rows.
fn roles<const N: usize>(all: [(u16, MemberSpan); N]) -> [(Role, MemberSpan); N] {
    all.map(|(role, rows)| (Role::new(role), rows))
}

fn everyone(_: Role) -> bool {
    true
}

/// Every level over up to 6 members, every loss, every span of blocks in stripe 1.
fn small_worlds(mut check: impl FnMut(&Raid456, &Bands, &Lost, ArraySpan)) {
    for level in [ParityLevel::Raid5, ParityLevel::Raid6] {
        for members in level.least_members()..=6 {
            let raid = raid(level, members, 4);
            let width = raid.stripe() / BLOCK;
            for lost in 0..1u32 << members {
                let Some(lost) = Lost::of(&raid, 1, &|role| lost >> role.index() & 1 == 0) else {
                    assert!(lost.count_ones() as usize > raid.parities());
                    continue;
                };
                for start in 0..width {
                    for len in 1..=width - start {
                        let part = span(width + start, len);
                        check(&raid, &bands(&raid, 1, part), &lost, part);
                    }
                }
            }
        }
    }
}

/// Returns true if a method suits a band, by the needs of each method: without any reads if possible, from
/// everything only if nothing else works.
fn is_possible(raid: &Raid456, band: &Band, lost: &Lost, method: Method) -> bool {
    let written = band.first..band.first + band.count;
    let mut gone = (0..raid.data()).filter(|&index| lost.has(Column::Data(index)));
    let p_there = !lost.has(Column::P);
    let q_there = raid.parities() == 2 && !lost.has(Column::Q);
    let modify = gone.clone().all(|index| !written.contains(&index));
    let reconstruct = gone.all(|index| written.contains(&index));
    if !p_there && !q_there {
        return method == Method::Plain;
    }
    if written.len() == raid.data() {
        return method == Method::Full;
    }
    match method {
        Method::Plain | Method::Full => false,
        Method::Modify => modify,
        Method::Reconstruct => reconstruct,
        Method::Restore => !modify && !reconstruct,
    }
}

#[test]
fn no_other_combination_of_methods_reads_less() {
    small_worlds(|raid, bands, lost, part| {
        let cost = |methods: &[Method; MAX_BANDS]| {
            let reads = reads(raid, 1, bands, methods, lost);
            (reads.len(), reads.iter().map(|(_, rows)| rows.len).sum::<u64>())
        };
        let possible = |methods: &[Method; MAX_BANDS]| {
            (0..bands.len()).all(|index| is_possible(raid, &bands[index], lost, methods[index]))
        };
        let chosen = choose(raid, bands, lost, ParityState::InSync);
        assert!(possible(&chosen), "{part} without {lost:?}: {chosen:?}");
        let combinations = METHODS.len().pow(bands.len() as u32);
        let least = (0..combinations)
            .map(|code| std::array::from_fn(|index| METHODS[code / 5usize.pow(index as u32) % 5]))
            .filter(possible)
            .map(|methods| cost(&methods))
            .min();
        assert_eq!(Some(cost(&chosen)), least, "{part} without {lost:?}: {chosen:?}");
    });
}

#[test]
fn bands_cover_what_is_written_once_from_the_first_rows_to_the_last() {
    small_worlds(|raid, bands, lost, part| {
        if *lost != Lost::NOTHING {
            return;
        }
        let mut covered = Vec::new();
        let rows = raid.rows_of_stripe(1);
        let mut end = rows.offset;
        for band in bands.iter() {
            assert!(band.rows.offset >= end && rows.covers(band.rows), "{part}");
            assert!(band.count > 0 && band.first + band.count <= raid.data(), "{part}");
            end = band.rows.end();
            for index in band.first..band.first + band.count {
                assert!(band.covers(Column::Data(index)));
                let column = raid.span_of_stripe(1).offset + index as u64 * raid.chunk();
                for row in band.rows.step_by(BLOCK) {
                    covered.push(column + (row - rows.offset));
                }
            }
        }
        covered.sort_unstable();
        let expected: Vec<ArrayByte> = part.step_by(BLOCK).collect();
        assert_eq!(covered, expected);
    });
}

#[test]
fn a_parity_that_may_be_wrong_is_modified_only_if_there_is_no_other_way() {
    small_worlds(|raid, bands, lost, part| {
        let chosen = choose(raid, bands, lost, ParityState::Unknown);
        for (band, method) in bands.iter().zip(chosen) {
            assert!(is_possible(raid, band, lost, method), "{part} without {lost:?}");
            let reconstruct = is_possible(raid, band, lost, Method::Reconstruct);
            assert!(method != Method::Modify || !reconstruct, "{part} without {lost:?}");
        }
    });
}

/// The methods for a write to stripe 0, and what they read, as (member, first block, blocks).
fn plan(
    raid: &Raid456,
    part: ArraySpan,
    available: &dyn Fn(Role) -> bool,
) -> (Vec<Method>, Vec<(u16, u64, u64)>) {
    let bands = bands(raid, 0, part);
    let lost = Lost::of(raid, 0, available).unwrap();
    let methods = choose(raid, &bands, &lost, ParityState::InSync);
    let reads = reads(raid, 0, &bands, &methods, &lost)
        .into_iter()
        .map(|(role, rows)| (role.get(), rows.offset / BLOCK, rows.len / BLOCK))
        .collect();
    (methods[..bands.len()].to_vec(), reads)
}

/// Stripe 0 of a left-symmetric raid5 is D0 D1 … P.
#[test]
fn a_small_write_to_a_healthy_raid5_reads_two_blocks_and_of_three_members_one() {
    let plan =
        |members: u16| plan(&raid(ParityLevel::Raid5, members.into(), 4), span(1, 1), &everyone);
    assert_eq!(plan(2), (vec![Method::Full], vec![]));
    assert_eq!(plan(3), (vec![Method::Reconstruct], vec![(1, 1, 1)]));
    for members in 4..=6 {
        assert_eq!(plan(members), (vec![Method::Modify], vec![(0, 1, 1), (members - 1, 1, 1)]));
    }
}

/// Stripe 0 of a left-symmetric raid6 is Q D0 D1 … P.
#[test]
fn a_small_write_to_a_healthy_raid6_reads_three_blocks_or_fewer() {
    let plan = |members| plan(&raid(ParityLevel::Raid6, members, 4), span(1, 1), &everyone);
    assert_eq!(plan(4), (vec![Method::Reconstruct], vec![(2, 1, 1)]));
    assert_eq!(plan(5), (vec![Method::Reconstruct], vec![(2, 1, 1), (3, 1, 1)]));
    let modify = |p| (vec![Method::Modify], vec![(1, 1, 1), (p, 1, 1), (0, 1, 1)]);
    assert_eq!(plan(6), modify(5));
    assert_eq!(plan(7), modify(6));
}

#[test]
fn losses_decide_where_there_is_no_choice() {
    let raid5 = raid(ParityLevel::Raid5, 5, 4);
    let without = |lost: &'static [u16]| move |role: Role| !lost.contains(&role.get());
    // The written member: the others are read. One that is not written: never mind. P: nothing.
    let others = vec![(1, 1, 1), (2, 1, 1), (3, 1, 1)];
    assert_eq!(plan(&raid5, span(1, 1), &without(&[0])), (vec![Method::Reconstruct], others));
    let modify = (vec![Method::Modify], vec![(0, 1, 1), (4, 1, 1)]);
    assert_eq!(plan(&raid5, span(1, 1), &without(&[2])), modify);
    assert_eq!(plan(&raid5, span(1, 1), &without(&[4])), (vec![Method::Plain], vec![]));

    let raid6 = raid(ParityLevel::Raid6, 7, 4);
    // One of each kind: everything that is there. P alone, or Q alone, is done without.
    let all = vec![(2, 1, 1), (3, 1, 1), (4, 1, 1), (6, 1, 1), (0, 1, 1)];
    assert_eq!(plan(&raid6, span(1, 1), &without(&[1, 5])), (vec![Method::Restore], all));
    let modify_q = (vec![Method::Modify], vec![(1, 1, 1), (0, 1, 1)]);
    assert_eq!(plan(&raid6, span(1, 1), &without(&[6])), modify_q);
    let modify_p = (vec![Method::Modify], vec![(1, 1, 1), (6, 1, 1)]);
    assert_eq!(plan(&raid6, span(1, 1), &without(&[0, 3])), modify_p);
    assert_eq!(plan(&raid6, span(1, 1), &without(&[0, 6])), (vec![Method::Plain], vec![]));
    let everything = (vec![Method::Full], vec![]);
    assert_eq!(plan(&raid6, span(0, 20), &without(&[1, 5])), everything);
}

#[test]
fn bands_that_touch_are_read_and_written_as_one() {
    // Blocks 2 … 9 of chunks of 4: D0 from row 2 on, D1 whole, D2 down to row 2.
    let raid = raid(ParityLevel::Raid5, 6, 4);
    let bands = bands(&raid, 0, span(2, 8));
    let found: Vec<_> = bands.iter().map(|band| (band.rows, band.first, band.count)).collect();
    assert_eq!(found, [(span(0, 2), 1, 2), (span(2, 2), 0, 2)]);
    // Of each band three columns are not written. D3 and D4 are read once for both, so that
    // Reconstruct takes four reads in all; Modify would, too, and of as many bytes.
    let methods = choose(&raid, &bands, &Lost::NOTHING, ParityState::InSync);
    assert_eq!(methods[..2], [Method::Modify; 2]);
    let reads = reads(&raid, 0, &bands, &methods, &Lost::NOTHING);
    let whole = span(0, 4);
    assert_eq!(reads, roles([(0, span(2, 2)), (1, whole), (2, span(0, 2)), (5, whole)]));
    // What is written lies where the old was read.
    assert_eq!(writes(&raid, 0, &bands, &Lost::NOTHING), reads);
}

#[test]
fn bands_apart_are_two_writes_of_the_parity() {
    // The end of D0 and the start of D1.
    let raid = raid(ParityLevel::Raid5, 4, 4);
    let bands = bands(&raid, 0, span(3, 2));
    let found: Vec<_> = bands.iter().map(|band| (band.rows, band.first, band.count)).collect();
    assert_eq!(found, [(span(0, 1), 1, 1), (span(3, 1), 0, 1)]);
    let expected = roles([(0, span(3, 1)), (1, span(0, 1)), (3, span(0, 1)), (3, span(3, 1))]);
    assert_eq!(writes(&raid, 0, &bands, &Lost::NOTHING), expected);
}

#[test]
fn a_write_is_cut_at_the_stripes_ends() {
    let raid = raid(ParityLevel::Raid5, 3, 2);
    let split =
        |start, len| -> Vec<(u64, ArraySpan)> { split_stripes(&raid, span(start, len)).collect() };
    assert_eq!(split(3, 6), [(0, span(3, 1)), (1, span(4, 4)), (2, span(8, 1))]);
    assert_eq!(split(4, 4), [(1, span(4, 4))]);
    assert_eq!(split(15, 1), [(3, span(15, 1))]);
    assert_eq!(split(5, 0), []);
    assert!(bands(&raid, 1, span(5, 0)).is_empty());
}

#[test]
fn more_than_the_parity_makes_up_for_is_no_loss_to_plan_with() {
    let raid5 = raid(ParityLevel::Raid5, 4, 2);
    assert_eq!(Lost::of(&raid5, 0, &|role| role.get() > 1), None);
    let lost = Lost::of(&raid5, 0, &|role| role.get() > 0).unwrap();
    assert_eq!(lost.columns().collect::<Vec<_>>(), [Column::Data(0)]);
    let raid6 = raid(ParityLevel::Raid6, 4, 2);
    assert_eq!(Lost::of(&raid6, 0, &|role| role.get() > 2), None);
    let lost = Lost::of(&raid6, 0, &|role| role.get() > 1).unwrap();
    assert!(lost.has(Column::Q) && lost.has(Column::Data(0)) && !lost.has(Column::P));
    assert_eq!(Lost::of(&raid6, 0, &everyone), Some(Lost::NOTHING));
}

#[test]
#[should_panic(expected = "is not within stripe 1")]
fn bands_of_another_stripe_are_a_mistake() {
    let raid = raid(ParityLevel::Raid5, 3, 2);
    let _ = bands(&raid, 1, span(3, 2));
}
