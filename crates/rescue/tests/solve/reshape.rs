//! Reshapes that stopped.

use braid_level::Level;
use braid_rescue::{Answer, Clue, Pattern, solve};
use braid_seed::Rng;

use super::world::{Plan, World};

/// A raid5 that was growing by one member. Both geometries and the position are found, however far it came.
#[test]
fn a_growth_that_stopped_has_two_geometries() {
    for (seed, share) in [(1, 15), (2, 35), (3, 60), (4, 85)] {
        let mut rng = Rng::new(seed);
        let chunk = 64 << 10;
        let before = 3 + seed as usize % 3;
        let plan = Plan {
            missing: 0,
            unequal_offsets: false,
            foreign: 0,
            clones: 0,
            journal: 0,
            empty: 30,
            blocks: 2500,
            base: 0,
            unequal_sizes: false,
        };
        let old = World::new(
            seed,
            Pattern { level: Level::Raid5, layout: 2, chunk, members: before },
            plan,
        );
        // A member that is as large as the others joins them.
        let mut seats = old.seats.clone();
        seats.push(Some((old.sizes.len(), seats[0].unwrap().1)));
        let mut new = old.in_other_geometry(Pattern { members: before + 1, ..old.pattern }, seats);
        new.sizes.push(new.sizes[0]);
        // Whole stripes of both.
        let unit = chunk * (before as u64 - 1) * before as u64;
        let position = new.size * share / 100 / unit * unit;
        // Rows below have been written anew; old blocks from there on are still where they were.
        let rows = position / before as u64;
        let offset = new.seats[0].unwrap().1;
        let mut clues = Vec::new();
        for &place in &new.places {
            let is_left = |&(_, at): &(usize, u64)| at >= offset + rows;
            let new_spots = new.at(place).into_iter().filter(|_| place < position);
            let spots = new_spots.chain(old.at(place).into_iter().filter(is_left));
            clues.extend(spots.map(|(member, at)| Clue {
                member,
                at,
                anchor: 0,
                place,
                length: 4096,
            }));
        }
        rng.shuffle(&mut clues);
        new.clues = clues;
        let read = |member: usize, at: u64, length: usize| {
            let is_new = at < offset + rows || member >= old.sizes.len();
            if is_new { new.read(member, at, length) } else { old.read(member, at, length) }
        };
        let answer = solve(&new.question(), &read);
        let Answer::Reshaping(reshape) = answer else { panic!("{share} %: {answer:?}") };
        assert_eq!(reshape.below.pattern, new.pattern);
        assert_eq!(reshape.above.pattern, old.pattern);
        let near = |at: u64| at.abs_diff(position) < new.size / 40;
        assert!(near(reshape.position.end), "{:?}, not {position}", reshape.position);
    }
}
