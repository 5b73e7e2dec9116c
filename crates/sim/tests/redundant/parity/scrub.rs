//! Silent corruption: what a check tells of it, and what a repair writes.
//!
//! ```text
//!   one parity     data and parity do not agree: which is wrong is not proved, and nothing is written;
//!                  a forced repair makes parity fit
//!   two parities   one column alone explains what both say: that one is written again
//!                  none does: nothing is written, but by a forced repair
//! ```

use braid_array::Role;
use braid_array::geometry::Column;
use braid_engine::redundant::{Consistency, JobKind, Status};
use braid_md::Level;
use braid_sim::Rng;

use crate::copies::life::blocks_of;
use crate::parity::images::{Stripes, check_recoverable, images_with};
use crate::world::{DATA, Shape, World, data_of, parity, rng};

const RAID6: [Shape; 4] = [
    parity(Level::Raid6, 2, 4, Consistency::Resync),
    parity(Level::Raid6, 2, 6, Consistency::Log),
    parity(Level::Raid6, 8, 5, Consistency::Bitmap),
    parity(Level::Raid6, 20, 5, Consistency::Resync),
];
const ONE_PARITY: [Shape; 4] = [
    parity(Level::Raid4, 0, 4, Consistency::Resync),
    parity(Level::Raid5, 2, 4, Consistency::Ppl),
    parity(Level::Raid5, 1, 3, Consistency::Bitmap),
    parity(Level::Raid5, 2, 5, Consistency::Log),
];
/// The unit of comparison.
const BLOCK: u64 = 4096;

fn random_bytes(shape: &Shape, dice: &mut Rng) -> Vec<u8> {
    (0..shape.size() / 8).flat_map(|_| dice.next_u64().to_le_bytes()).collect()
}

/// Puts other bytes into the block at `row` of `role`.
fn corrupt(images: &mut [Option<Vec<u8>>], role: usize, row: u64, dice: &mut Rng) {
    let at = (DATA + row + 512 * dice.below(8)) as usize;
    let image = images[role].as_mut().unwrap();
    image[at..at + 512].iter_mut().for_each(|byte| *byte ^= dice.below(255) as u8 + 1);
}

/// Checks, repairs and checks again; answers what each of the three found.
fn scrub(world: &World) -> [Status; 3] {
    scrub_by(world, JobKind::Repair)
}

fn scrub_by(world: &World, repair: JobKind) -> [Status; 3] {
    [JobKind::Check, repair, JobKind::Check].map(|kind| {
        let (array, handle) = (world.array.clone(), world.sim.handle());
        world.run(async move {
            array.scrub(Some(kind)).unwrap();
            while array.status().requested.is_some() {
                handle.sleep(5_000_000).await;
            }
            array.status()
        })
    })
}

/// Every column in every stripe: data, P and Q.
#[test]
fn with_two_parities_the_one_that_is_wrong_is_named_and_put_right() {
    for (seed, shape) in (0..).zip(RAID6) {
        let mut dice = rng(seed);
        let bytes = random_bytes(&shape, &mut dice);
        let right = images_with(&shape, &bytes);
        for role in 0..shape.members {
            let mut images = right.clone();
            let rows: Vec<u64> = (0..shape.member_size).step_by(2 * BLOCK as usize).collect();
            rows.iter().for_each(|row| corrupt(&mut images, role, *row, &mut dice));
            let world = World::with_images(seed, shape, &images);
            let [found, repaired, again] = scrub(&world);
            let len = rows.len() as u64 * BLOCK;
            for status in [&found, &repaired] {
                assert_eq!(status.mismatches, len, "{status:#?}");
                assert_eq!(status.suspects, [(Role::nth(role), len)], "{status:#?}");
                assert_eq!(status.unproved, 0, "{status:#?}");
                assert_eq!(blocks_of(status), rows, "{status:#?}");
            }
            assert_eq!((found.repaired, repaired.repaired), (0, len), "what is proved and no more");
            assert_eq!((again.mismatches, again.suspects.len()), (0, 0), "{again:#?}");
            for (image, right) in world.images().iter().flatten().zip(right.iter().flatten()) {
                assert!(data_of(image) == data_of(right), "not what it was");
            }
        }
    }
}

/// Different columns in different blocks are each told on their own.
#[test]
fn several_suspects_are_told_apart() {
    for (seed, shape) in (0..).zip(RAID6) {
        let mut dice = rng(seed);
        let bytes = random_bytes(&shape, &mut dice);
        let right = images_with(&shape, &bytes);
        let mut images = right.clone();
        for (index, row) in (0..shape.member_size).step_by(BLOCK as usize).enumerate() {
            corrupt(&mut images, index % shape.members, row, &mut dice);
        }
        let world = World::with_images(seed, shape, &images);
        let [found, _, again] = scrub(&world);
        assert_eq!((found.mismatches, found.unproved), (shape.member_size, 0), "{found:#?}");
        assert_eq!(found.suspects.len(), shape.members, "{found:#?}");
        assert_eq!(again.mismatches, 0, "{again:#?}");
        check_recoverable(&shape, &world.images(), &bytes);
    }
}

/// Two columns of the same block: nothing is written there, and what is beside is put right.
#[test]
fn what_nobody_explains_is_left_as_it_is() {
    for (seed, shape) in (0..).zip(RAID6) {
        for a in 0..shape.members {
            for b in 0..a {
                let mut dice = rng(seed);
                let bytes = random_bytes(&shape, &mut dice);
                let mut images = images_with(&shape, &bytes);
                // The same bytes of both, each by another difference in each byte.
                for role in [a, b] {
                    let image = images[role].as_mut().unwrap();
                    let place = &mut image[(DATA + 8192) as usize..][..512];
                    place.iter_mut().for_each(|byte| *byte ^= dice.below(255) as u8 + 1);
                }
                let before = images.clone();
                corrupt(&mut images, a, 12288, &mut dice);
                let world = World::with_images(seed, shape, &images);
                let [found, repaired, again] = scrub(&world);
                for status in [&found, &repaired] {
                    assert_eq!(status.mismatches, 2 * BLOCK, "{status:#?}");
                    assert_eq!(status.unproved, BLOCK, "{status:#?}");
                    assert_eq!(status.suspects, [(Role::nth(a), BLOCK)], "{status:#?}");
                }
                assert_eq!((again.mismatches, again.unproved), (BLOCK, BLOCK), "{again:#?}");
                for (image, before) in world.images().iter().flatten().zip(before.iter().flatten())
                {
                    assert!(data_of(image) == data_of(before), "{a} and {b}: it was written");
                }
            }
        }
    }
}

/// With one parity it is counted, a repair writes nothing, and a forced one makes the parity fit: data are
/// what they are.
#[test]
fn with_one_parity_only_a_forced_repair_makes_it_fit() {
    for (seed, shape) in (0..).zip(ONE_PARITY) {
        let mut dice = rng(seed);
        let bytes = random_bytes(&shape, &mut dice);
        let mut images = images_with(&shape, &bytes);
        let mut rows = Vec::new();
        for row in (0..shape.member_size).step_by(BLOCK as usize) {
            if dice.percent(40) {
                corrupt(&mut images, dice.index(shape.members), row, &mut dice);
                rows.push(row);
            }
        }
        let before = images.clone();
        let world = World::with_images(seed, shape, &images);
        let [found, left, _] = scrub(&world);
        assert_eq!((left.mismatches, left.repaired), (found.mismatches, 0), "{left:#?}");
        for (image, before) in world.images().iter().flatten().zip(before.iter().flatten()) {
            assert!(data_of(image) == data_of(before), "nothing is proved, and it was written");
        }
        let [found, repaired, again] = scrub_by(&world, JobKind::ForcedRepair);
        for status in [&found, &repaired] {
            assert_eq!(status.mismatches, rows.len() as u64 * BLOCK, "{status:#?}");
            assert_eq!(blocks_of(status), rows, "{status:#?}");
            assert_eq!(
                (status.suspects.len(), status.unproved),
                (0, status.mismatches),
                "{status:#?}"
            );
        }
        assert_eq!(again.mismatches, 0, "{again:#?}");
        let images = world.images();
        assert!(Stripes::new(&shape, &images).misfits().is_empty(), "parity fits");
        let geometry = shape.stripes();
        for (role, (image, before)) in
            images.iter().flatten().zip(before.iter().flatten()).enumerate()
        {
            for (stripe, (now, before)) in (0..).zip(
                data_of(image)
                    .chunks(shape.chunk as usize)
                    .zip(data_of(before).chunks(shape.chunk as usize)),
            ) {
                let is_data =
                    matches!(geometry.column_of(stripe, Role::nth(role)), Column::Data(_));
                assert!(!is_data || now == before, "data of role {role} in stripe {stripe}");
            }
        }
    }
}

/// With a member missing there is one parity to compare: contradictions are counted, and no member is
/// suspected.
#[test]
fn two_parities_without_a_member_are_compared_as_one() {
    let shape = RAID6[1];
    for missing in 0..shape.members {
        let mut dice = rng(missing as u64);
        let bytes = random_bytes(&shape, &mut dice);
        let mut images = images_with(&shape, &bytes);
        let bad = (missing + 1) % shape.members;
        corrupt(&mut images, bad, 4096, &mut dice);
        images[missing] = None;
        let world = World::with_images(1, shape, &images);
        let [_, left, _] = scrub(&world);
        assert_eq!((left.mismatches, left.repaired), (BLOCK, 0), "{missing} missing: {left:#?}");
        let [found, repaired, again] = scrub_by(&world, JobKind::ForcedRepair);
        for status in [&found, &repaired] {
            assert_eq!(status.mismatches, BLOCK, "{missing} missing: {status:#?}");
            assert_eq!((status.suspects.len(), status.unproved), (0, BLOCK), "{status:#?}");
        }
        assert_eq!(again.mismatches, 0, "{missing} missing: {again:#?}");
    }
}
