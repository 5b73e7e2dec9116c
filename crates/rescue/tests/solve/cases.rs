//! Levels without chunks, members of different sizes, structures that begin anywhere, and many members.

use std::time::Instant;

use braid_level::Level;
use braid_rescue::{Answer, Fixed, Pattern, solve};

use super::world::{Plan, World};
use super::{Outcome, outcome, outcome_of};

const PLAN: Plan = Plan {
    missing: 0,
    unequal_offsets: false,
    foreign: 0,
    clones: 0,
    journal: 2,
    empty: 30,
    blocks: 600,
    base: 0,
    unequal_sizes: false,
};

#[test]
fn mirrors_and_concatenations_are_found() {
    for seed in 0..4 {
        let members = 2 + seed as usize;
        let mirror = Pattern { level: Level::Raid1, layout: 0, chunk: 0, members };
        assert_ne!(outcome(&World::new(seed, mirror, PLAN)), Outcome::Undecided, "{mirror}");
        let row = Pattern { level: Level::Linear, layout: 0, chunk: 0, members };
        assert_ne!(outcome(&World::new(seed, row, PLAN)), Outcome::Undecided, "{row}");
    }
}

#[test]
fn zones_of_a_raid0_are_found() {
    let mut decided = 0;
    for (seed, layout) in (0..4).flat_map(|seed| [(seed, 1), (seed, 2)]) {
        let pattern = Pattern { level: Level::Raid0, layout, chunk: 64 << 10, members: 4 };
        let plan = Plan { unequal_sizes: true, ..PLAN };
        decided += u32::from(outcome(&World::new(seed, pattern, plan)) != Outcome::Undecided);
    }
    // Members of nearly the same size have few blocks in the zones behind the first.
    assert!(decided >= 6, "{decided} of 8");
}

#[test]
fn a_structure_may_begin_in_a_partition() {
    for seed in 0..3 {
        let pattern = Pattern { level: Level::Raid5, layout: 2, chunk: 64 << 10, members: 4 };
        let world = World::new(seed, pattern, Plan { base: 1 << 20, ..PLAN });
        assert_ne!(outcome(&world), Outcome::Undecided, "seed {seed}");
        // A partition table says where.
        let world = World::new(seed, pattern, Plan { base: 37 << 20, ..PLAN });
        let mut question = world.question();
        question.bases = vec![vec![37 << 20]];
        assert_eq!(outcome_of(&world, &question), Outcome::Exact, "seed {seed}");
    }
}

#[test]
fn parameters_that_are_given_hold() {
    let pattern = Pattern { level: Level::Raid6, layout: 2, chunk: 32 << 10, members: 6 };
    let world = World::new(1, pattern, PLAN);
    let mut question = world.question();
    let Pattern { level, layout, chunk, members } = pattern;
    question.fixed = Fixed {
        level: Some(level),
        layout: Some(layout),
        chunk: Some(chunk),
        members: Some(members),
    };
    assert_eq!(outcome_of(&world, &question), Outcome::Exact);
    question.fixed.chunk = Some(64 << 10);
    assert_eq!(outcome_of(&world, &question), Outcome::Undecided);
}

#[test]
fn as_many_members_as_md_allows_are_seated() {
    let members = braid_array::MAX_MEMBERS;
    let pattern = Pattern { level: Level::Raid5, layout: 2, chunk: 16 << 10, members };
    let world = World::new(1, pattern, Plan { blocks: 12_000, journal: 0, empty: 0, ..PLAN });
    let mut question = world.question();
    question.fixed.level = Some(Level::Raid5);
    let rows = |member: usize, at: u64, length: usize| world.read(member, at, length);
    let start = Instant::now();
    let answer = solve(&question, &rows);
    println!("{members} members in {:?}", start.elapsed());
    let Answer::Decided { first, .. } = &answer else { panic!("{answer:?}") };
    assert_eq!(first.pattern, pattern);
}
