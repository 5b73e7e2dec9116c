//! Members without any block that says where it belongs.

use braid_level::Level;
use braid_rescue::{Answer, Pattern, Question, Redundancy, related, solve};

use super::world::{Plan, World};

fn world(seed: u64, level: Level, layout: u32, foreign: usize) -> World {
    let plan = Plan {
        missing: 0,
        unequal_offsets: false,
        foreign,
        clones: 0,
        journal: 0,
        empty: 20,
        blocks: 0,
        base: 0,
        unequal_sizes: false,
    };
    World::new(seed, Pattern { level, layout, chunk: 64 << 10, members: 5 }, plan)
}

#[test]
fn members_are_related_by_parity_alone() {
    for (seed, level, layout, redundancy) in [
        (1, Level::Raid1, 0, Redundancy::Copies),
        (2, Level::Raid5, 2, Redundancy::OneParity),
        (3, Level::Raid4, 0, Redundancy::OneParity),
        (4, Level::Raid6, 2, Redundancy::TwoParities),
        (5, Level::Raid6, 18, Redundancy::TwoParities),
    ] {
        let world = world(seed, level, layout, 0);
        let rows = |member: usize, at: u64, length: usize| world.read(member, at, length);
        let found = related(&world.sizes, &rows).unwrap_or_else(|| panic!("{level} {layout}"));
        assert_eq!((found.redundancy, found.members.len()), (redundancy, 5), "{level} {layout}");
        let question = Question { sizes: world.sizes.clone(), ..Question::default() };
        let Answer::Undecided { would_decide, .. } = solve(&question, &rows) else {
            panic!("{level}")
        };
        assert!(
            would_decide[0].starts_with("the order of members 0 from byte"),
            "{would_decide:?}"
        );
    }
    let world = world(6, Level::Raid0, 2, 0);
    assert_eq!(related(&world.sizes, &|member, at, length| world.read(member, at, length)), None);
}

#[test]
fn unequal_offsets_and_a_foreign_member_are_found() {
    for seed in 10..14 {
        let mut world = world(seed, Level::Raid5, 2, 1);
        // Data offsets of several versions of mdadm.
        let offsets = [1 << 20, 0, 1 << 20, 8192, 1 << 20];
        for (seat, offset) in world.seats.iter_mut().zip(offsets) {
            let (member, at) = seat.as_mut().unwrap();
            *at = offset;
            world.sizes[*member] = world.lengths[0] + offset;
        }
        let rows = |member: usize, at: u64, length: usize| world.read(member, at, length);
        let found = related(&world.sizes, &rows).unwrap();
        let mut seats: Vec<(usize, u64)> = world.seats.iter().copied().flatten().collect();
        seats.sort_unstable();
        assert_eq!((found.redundancy, found.members), (Redundancy::OneParity, seats));
    }
}
