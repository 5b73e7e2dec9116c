//! Real file systems over arrays that are drawn from a seed, with the evidence that is found on the members.

use std::rc::Rc;

use braid_rescue::evidence::{Found, Known, anchors, choose, clues, gather, learn, settle};
use braid_rescue::{Clue, Question};
use braid_seed::Rng;
use braid_sim::for_each_seed;

use super::made::{Filled, MIB, mkfs};
use super::world::World;
use super::{Outcome, draw, outcome_of};

/// Bytes of a member that are looked at together.
const WINDOW: usize = 4 << 20;

/// The question that the members of a world pose.
fn question(world: &World) -> Question {
    let read = |member: usize| world.read(member, 0, world.sizes[member] as usize).unwrap();
    let members: Vec<Vec<u8>> = (0..world.sizes.len()).map(read).collect();
    let windows = |member: usize| members[member].chunks(WINDOW).zip((0..).step_by(WINDOW));
    let all = || (0..members.len()).flat_map(windows);
    let mut known: Vec<Known> = Vec::new();
    for (window, at) in all() {
        gather(&mut known, anchors(window, at).into_iter().map(|(_, one)| one));
    }
    all().for_each(|(window, _)| learn(window, &mut known));
    let mut question = Question {
        sizes: world.sizes.clone(),
        anchors: known.iter().map(Known::anchor).collect(),
        ..Question::default()
    };
    let of_member = |member: usize| {
        let mut found =
            windows(member).flat_map(|(window, at)| clues(window, at, &known)).collect();
        settle(&mut found);
        found
    };
    let mut of_members: Vec<Vec<Found>> = (0..members.len()).map(of_member).collect();
    choose(&mut of_members);
    for (member, found) in of_members.into_iter().enumerate() {
        let sure = found.into_iter().filter(|one| one.other.is_none());
        question.clues.extend(sure.map(|one| Clue {
            member,
            at: one.at,
            anchor: one.anchor,
            place: one.place,
            length: one.length,
        }));
    }
    question
}

fn solved(words: &[&str], size: u64, seeds: u64) {
    let Some(image) = mkfs(size, words, Filled::Mounted) else { return };
    let image: Rc<[u8]> = image.into();
    for_each_seed(words[0], seeds, |seed| {
        let mut rng = Rng::new(seed);
        let (mut pattern, mut plan) = draw(&mut rng);
        // Small images have few stripes of large chunks.
        pattern.chunk = pattern.chunk.min(512 << 10);
        pattern.members = pattern.members.min(8);
        (plan.clones, plan.foreign, plan.unequal_sizes) = (0, 0, false);
        let mut world = World::of_image(seed, pattern, plan, Rc::clone(&image));
        let question = question(&world);
        world.places = question.clues.iter().map(|clue| clue.place / 4096 * 4096).collect();
        println!("seed {seed}: {pattern}, {plan:?}: {} clues", question.clues.len());
        let outcome = outcome_of(&world, &question);
        println!("{outcome:?}");
        let has_enough = world.has_enough_evidence() && plan.missing == 0;
        assert!(outcome != Outcome::Undecided || !has_enough, "{pattern} is undecided");
    });
}

#[test]
fn a_real_ext4_is_found_in_its_array() {
    solved(&["mkfs.ext4", "-q", "-F", "-E", "nodiscard"], 128 * MIB, 3);
}

#[test]
fn a_real_xfs_is_found_in_its_array() {
    solved(&["mkfs.xfs", "-q", "-f"], 320 * MIB, 2);
}
