//! Copies that differ: what a majority proves, and what a scrub does with it.
//!
//! ```text
//!   each block of the array has another pattern     A A B    A B C    A ? B    ? A A    …
//!   check            writes what cannot be read, if what it should hold is proved
//!   repair           … and the copies that a majority contradicts
//!   forced repair    … and without a majority makes copies as the first one is
//! ```

use std::collections::BTreeMap;
use std::rc::Rc;

use braid_array::{ArrayByte, Role};
use braid_block::{Flags, Io, Op, Span};
use braid_engine::canary::{Canary, plant};
use braid_engine::redundant::{JobKind, Status};
use braid_md::Level;
use braid_sim::{Fault, Target, for_each_seed};

use crate::copies::life::blocks_of;
use crate::world::{DATA, SHAPES, Shape, TRIPLE, World, data_of, filled, rng};

const BLOCK: u64 = 4096;

/// All ways in which so many copies can have one of as many contents, or be unreadable.
fn patterns(copies: usize) -> Vec<Vec<Option<u8>>> {
    let choices = || std::iter::once(None).chain((0..copies as u8).map(Some));
    (0..copies).fold(vec![Vec::new()], |all, _| {
        let longer = |before: &Vec<Option<u8>>| {
            choices().map(|one| [&before[..], &[one]].concat()).collect::<Vec<_>>()
        };
        all.iter().flat_map(longer).collect()
    })
}

/// Returns the content that more than half of the readable copies have.
fn winner(pattern: &[Option<u8>]) -> Option<u8> {
    let votes: Vec<u8> = pattern.iter().flatten().copied().collect();
    votes
        .iter()
        .find(|one| 2 * votes.iter().filter(|vote| vote == one).count() > votes.len())
        .copied()
}

fn content(byte: u8, place: usize) -> Vec<u8> {
    let mut block = vec![0x5a; BLOCK as usize];
    block[place] = byte + 1;
    block
}

/// A pattern, what its copies have after a scrub, and at which byte contents differ.
type Judged = (Vec<Option<u8>>, Vec<(Role, Vec<u8>)>, usize);

/// Scrubs an array of `shape` whose blocks have all patterns; returns what it found, and for each pattern
/// what its copies have then.
fn scrub(shape: Shape, copies: usize, kind: JobKind) -> (Status, Vec<Judged>) {
    let patterns = patterns(copies);
    let unit = shape.chunk.max(BLOCK);
    let least = patterns.len() as u64 * BLOCK * copies as u64 / shape.members as u64;
    let shape = Shape { member_size: least.next_multiple_of(unit) + 4 * unit, ..shape };
    let geometry = shape.geometry();
    assert_eq!(geometry.copies(), copies);
    let (mut images, mut dice) = (shape.images(), rng(copies as u64));
    let mut latent = Vec::new();
    let mut placed = Vec::new();
    for (pattern, offset) in patterns.into_iter().zip((0..).step_by(BLOCK as usize)) {
        let place = dice.index(BLOCK as usize);
        for (copy, has) in pattern.iter().enumerate() {
            let run = geometry.locate(ArrayByte::new(offset), copy);
            let at = DATA + run.offset.get();
            // A sector that no member can read is equal: the other sectors are compared.
            let hidden = if pattern.iter().all(Option::is_none) { 0 } else { dice.below(9) as u8 };
            let block = content(has.unwrap_or(hidden), place);
            let image = images[run.role.index()].as_mut().expect("a disk");
            image[at as usize..][..BLOCK as usize].copy_from_slice(&block);
            if has.is_none() {
                latent.push((run.role.index(), Span::new(at, 512)));
            }
        }
        placed.push((pattern, offset, place));
    }
    let world = World::with_images(7, shape, &images);
    latent.iter().for_each(|(disk, span)| world.disk(*disk).faults().add_latent(*span));
    let (array, handle) = (world.array.clone(), world.sim.handle());
    let status = world.run(async move {
        array.scrub(Some(kind)).unwrap();
        while array.status().requested.is_some() {
            handle.sleep(5_000_000).await;
        }
        array.status()
    });
    assert!(status.in_sync.iter().all(|in_sync| *in_sync), "{status:#?}");
    let images = world.images();
    let judged = placed.into_iter().map(|(pattern, offset, place)| {
        let copy = |copy: usize| {
            let run = geometry.locate(ArrayByte::new(offset), copy);
            let span = Span::new(DATA + run.offset.get(), BLOCK);
            // What still cannot be read is shown as nothing.
            let bytes = match world.disk(run.role.index()).faults().is_latent(span) {
                true => Vec::new(),
                false => {
                    let image = images[run.role.index()].as_ref().expect("a disk");
                    data_of(image)[run.offset.get() as usize..][..BLOCK as usize].to_vec()
                }
            };
            (run.role, bytes)
        };
        let copies = (0..pattern.len()).map(copy).collect();
        (pattern, copies, place)
    });
    (status, judged.collect())
}

const fn near(members: usize, copies: u32) -> Shape {
    Shape { level: Level::Raid10, members, layout: 0x100 | copies, chunk: 8192, ..TRIPLE }
}

#[test]
fn every_pattern_of_two_three_and_four_copies_is_repaired_as_far_as_it_is_proved() {
    let raid1 = |members| Shape { members, ..TRIPLE };
    let shapes = [
        (raid1(2), 2),
        (raid1(3), 3),
        (raid1(4), 4),
        (near(4, 2), 2),
        (near(4, 3), 3),
        (near(5, 4), 4),
    ];
    for (shape, copies) in shapes {
        for kind in [JobKind::Check, JobKind::Repair, JobKind::ForcedRepair] {
            let (status, judged) = scrub(shape, copies, kind);
            let (mut differ, mut unproved) = (Vec::new(), 0);
            let mut suspects: BTreeMap<Role, u64> = BTreeMap::new();
            for (number, (pattern, found, place)) in judged.iter().enumerate() {
                let first = pattern.iter().flatten().next().copied();
                let proved = winner(pattern);
                let differs = pattern.iter().flatten().any(|one| Some(*one) != first);
                if differs {
                    differ.push(number as u64 * BLOCK);
                    unproved += if proved.is_none() { BLOCK } else { 0 };
                }
                let result = if kind == JobKind::ForcedRepair { proved.or(first) } else { proved };
                for (before, (role, bytes)) in pattern.iter().zip(found) {
                    let is_written = before.is_none() || kind != JobKind::Check;
                    let expected = if is_written { result.or(*before) } else { *before };
                    let expected = expected.map_or(Vec::new(), |byte| content(byte, *place));
                    assert!(*bytes == expected, "{kind} of {pattern:?} on {shape:?}: {role:?}");
                    if before.is_some() && proved.is_some() && *before != proved {
                        *suspects.entry(*role).or_default() += BLOCK;
                    }
                }
            }
            assert_eq!(status.mismatches, differ.len() as u64 * BLOCK, "{status:#?}");
            assert_eq!(status.unproved, unproved, "{status:#?}");
            assert_eq!(status.suspects, suspects.into_iter().collect::<Vec<_>>(), "{status:#?}");
            let told = blocks_of(&status);
            assert!(!told.is_empty() && differ.starts_with(&told), "{told:?} {differ:?}");
            for place in &status.mismatch_places {
                let (pattern, found, _) = &judged[(place.offset / BLOCK) as usize];
                let readable = pattern.iter().zip(found).filter(|(has, _)| has.is_some());
                let readable: Vec<(Option<u8>, Role)> =
                    readable.map(|(has, (role, _))| (*has, *role)).collect();
                assert_eq!(place.array, [place.offset]);
                assert_eq!(place.members.len(), readable.len(), "{place:?} {pattern:?}");
                for (member, (has, role)) in place.members.iter().zip(&readable) {
                    assert_eq!(member.role, *role);
                    let proved = winner(pattern);
                    assert_eq!(member.is_wrong, proved.is_some() && *has != proved, "{pattern:?}");
                    let same = |other: usize| {
                        (place.members[other].group == member.group) == (readable[other].0 == *has)
                    };
                    assert!((0..readable.len()).all(same), "{place:?} {pattern:?}");
                }
            }
        }
    }
}

/// Neighbouring blocks with the same findings are one place, and those with other findings another one.
#[test]
fn neighbours_are_told_as_one_place() {
    let mut images = TRIPLE.images();
    for (disk, blocks) in [(1, 2..40_u64), (2, 40..41)] {
        for block in blocks {
            let at = (DATA + block * BLOCK) as usize;
            images[disk].as_mut().expect("a disk")[at..at + 512].fill(0xbd);
        }
    }
    let world = World::with_images(3, TRIPLE, &images);
    let (array, handle) = (world.array.clone(), world.sim.handle());
    let status = world.run(async move {
        array.scrub(Some(JobKind::Check)).unwrap();
        while array.status().requested.is_some() {
            handle.sleep(5_000_000).await;
        }
        array.status()
    });
    let told: Vec<_> = status
        .mismatch_places
        .iter()
        .map(|place| {
            let wrong = place.members.iter().filter(|member| member.is_wrong);
            let wrong: Vec<_> = wrong.map(|one| (one.role.index(), one.offset)).collect();
            (place.offset, place.len, wrong)
        })
        .collect();
    let at = |block: u64| DATA + block * BLOCK;
    let expected =
        [(2 * BLOCK, 38 * BLOCK, vec![(1, at(2))]), (40 * BLOCK, BLOCK, vec![(2, at(40))])];
    assert_eq!(told, expected, "{status:#?}");
}

/// Two members that return with the same old content are no majority. Returns whether the array has what was written.
///
/// ```text
///   write of Y    |■■■■■■■ in flight ■■■■■■■|        disk0: Y
///   repair               waits for its lock  ▶       compares
///   disk1, disk2      fail ▶ return, with X          are being filled
/// ```
fn repair_while_two_come_back(seed: u64) -> bool {
    const LEN: u64 = 512;
    const SLOW_NS: u64 = 3_000_000_000;
    let world = World::new(seed, SHAPES[3]);
    // No task is kept waiting until the write completes.
    world.sim.be_prompt(10_000_000);
    for disk in 0..3 {
        let write = Target::op(Op::Write).touching(Span::new(DATA, LEN));
        world.disk(disk).faults().add_some(write, Fault::NotBefore(SLOW_NS), 1);
    }
    let (dev, array, disks) = (world.dev.clone(), world.array.clone(), Rc::clone(&world.disks));
    let (handle, rest) = (world.sim.handle(), world.sleep(30));
    let mut dice = rng(seed);
    world.run(async move {
        let write = dev.start(Io::write(0, filled(LEN as usize, 7), Flags::NONE));
        handle.spawn("client", async move { write.await.result.expect("disk0 has it") });
        handle.sleep(100_000_000).await;
        array.scrub(Some(JobKind::Repair)).expect("a repair");
        handle.sleep(100_000_000).await;
        for (disk, label) in [(1, "disk1"), (2, "disk2")] {
            array.fail(label).await.expect("disk0 is left");
            array.remove(label).await.expect("it is out");
            array.add(World::comes_back(&handle, &disks, disk, &mut dice)).await.expect("a member");
        }
        assert!(handle.now() < SLOW_NS, "the write is in flight");
        rest.await;
        let status = array.status();
        assert!(status.in_sync.iter().all(|in_sync| *in_sync), "{status:#?}");
        let read = dev.start(Io::read(0, filled(LEN as usize, 0).into_one().expect("one"))).await;
        read.payload.to_vec() == [7; LEN as usize]
    })
}

#[test]
fn a_member_that_is_being_filled_has_no_vote() {
    let name = "copies::majority::a_member_that_is_being_filled_has_no_vote";
    for_each_seed(name, 20, |seed| assert!(repair_while_two_come_back(seed)));
    plant(Some(Canary::FilledVotes));
    let found = (0..20).any(|seed| !repair_while_two_come_back(seed));
    plant(None);
    assert!(found);
}
