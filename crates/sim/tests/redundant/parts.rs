//! Scrubs in parts: all parts together find what one scrub finds, wherever they are cut, also by the end of
//! the array's life; no byte is compared twice, and none is left out.

use std::cell::Cell;
use std::time::Duration;

use braid_engine::Clock;
use braid_engine::redundant::{
    Consistency, JobKind, Redundant, ScrubFound, ScrubOrder, ScrubPlace, Speed, Status,
};
use braid_md::Level;
use braid_sim::{Handle, Sim, for_each_seed};

use crate::world::{DATA, PAIR, Shape, SimClock, World, parity, rng};

const MEMBER: u64 = 4 << 20;
const SHAPES: [Shape; 4] = [
    Shape { member_size: MEMBER, ..PAIR },
    Shape { member_size: MEMBER, ..parity(Level::Raid5, 2, 4, Consistency::Resync) },
    Shape { member_size: MEMBER, ..parity(Level::Raid6, 2, 5, Consistency::Bitmap) },
    Shape { member_size: MEMBER, ..parity(Level::Raid6, 2, 4, Consistency::Log) },
];
/// A scrub takes four seconds at this rate.
const SLOW: Speed = Speed { min: 1 << 20, max: Some(1 << 20), latency: None };

fn order(kind: JobKind, from: Option<ScrubPlace>, until: Option<Duration>) -> ScrubOrder {
    ScrubOrder { kind, from, until, speed: Some(SLOW) }
}

/// Waits until nothing is asked for and nothing runs.
async fn until_quiet(array: &Redundant, handle: &Handle) -> Status {
    loop {
        let status = array.status();
        if status.requested.is_none() && status.job.is_none() {
            return status;
        }
        handle.sleep(5_000_000).await;
    }
}

/// An array on disks and timers that are in time: parts are cut by the clock.
fn world_of(seed: u64, shape: Shape, images: &[Option<Vec<u8>>]) -> World {
    let sim = Sim::new(seed);
    sim.be_punctual();
    World::on(sim, shape, images, |_| {})
}

/// Waits in steps: an event may overtake tasks that are ready.
async fn rest(handle: &Handle, millis: u64) {
    for _ in 0..millis {
        handle.sleep(1_000_000).await;
    }
}

fn found_by(status: Status) -> ScrubFound {
    ScrubFound {
        mismatches: status.mismatches,
        mismatch_places: status.mismatch_places,
        suspects: status.suspects,
        unproved: status.unproved,
        repaired: status.repaired,
        compared: status.compared,
        listed: status.listed,
        unread: status.unread,
        unread_places: status.unread_places,
    }
}

#[test]
fn all_parts_together_find_what_one_scrub_finds() {
    let all_parts = Cell::new(0);
    for_each_seed("parts::all_parts_together_find_what_one_scrub_finds", 40, |seed| {
        let shape = SHAPES[seed as usize % SHAPES.len()];
        let kind = [JobKind::Check, JobKind::Repair, JobKind::ForcedRepair][seed as usize / 4 % 3];
        let mut dice = rng(seed);
        let mut images = shape.images();
        for _ in 0..dice.within(1..=12) {
            let member = images[dice.index(shape.members)].as_mut().expect("a disk");
            let at = (DATA + dice.below(MEMBER / 512) * 512) as usize;
            member[at..at + 512].fill(0xbd);
        }
        let whole = world_of(seed, shape, &images);
        let (array, handle) = (whole.array.clone(), whole.sim.handle());
        let expected = whole.run(async move {
            array.scrub(Some(kind)).expect("it is writable");
            found_by(until_quiet(&array, &handle).await)
        });
        assert!(expected.mismatches > 0, "{expected:#?}");

        let (mut place, mut parts) = (None::<ScrubPlace>, 0);
        let mut world = world_of(seed, shape, &images);
        let found = loop {
            parts += 1;
            let (array, handle) = (world.array.clone(), world.sim.handle());
            let (from, part) = (place.clone(), dice.within(100..=1000));
            let is_cut_off = dice.percent(30);
            let status = world.run(async move {
                let until = SimClock(handle.clone()).unix_time() + Duration::from_millis(part);
                let until = if is_cut_off { until * 2 } else { until };
                array.scrub_as(Some(order(kind, from, Some(until)))).expect("it is writable");
                if is_cut_off {
                    // As a process sees it that is killed later: with many windows under way, some of
                    // them done before those below.
                    rest(&handle, 70).await;
                    array.set_speed(Speed { max: None, ..SLOW });
                    for _ in 0..part / 8 {
                        handle.sleep(10_000).await;
                    }
                    return array.status();
                }
                until_quiet(&array, &handle).await
            });
            let Some(reached) = status.scrub_place.clone() else {
                let last = status.last_scrub.as_ref().expect("it went through");
                assert_eq!((last.kind, &last.found), (kind, &found_by(status.clone())));
                break found_by(status);
            };
            assert!(status.last_scrub.is_none(), "a part is no scrub: {status:#?}");
            assert!(place.is_none_or(|before| before.done <= reached.done));
            place = Some(reached);
            if is_cut_off || dice.percent(30) {
                world = world_of(seed + 1000 * parts, shape, &world.images());
            }
        };
        all_parts.set(all_parts.get() + parts);
        let is_doubtful = |found: &ScrubFound| found.repaired > 0;
        match is_doubtful(&expected) && is_doubtful(&found) {
            // What was repaired above a place that was cut off agrees by now.
            true => assert!(found.mismatches <= expected.mismatches, "{found:#?} {expected:#?}"),
            false => assert_eq!(found, expected),
        }
        assert_eq!(found.compared, expected.compared);
    });
    assert!(all_parts.get() > 1, "nothing was cut");
}

/// A place of another array or another scrub is none; one is forgotten when a member was filled meanwhile, when
/// another scrub is asked for, and when the scrub is ended.
#[test]
fn a_place_is_of_one_scrub_of_one_array() {
    for_each_seed("parts::a_place_is_of_one_scrub_of_one_array", 24, |seed| {
        let shape = SHAPES[seed as usize % SHAPES.len()];
        let world = world_of(seed, shape, &shape.images());
        let (array, handle) = (world.array.clone(), world.sim.handle());
        let spare = world.spare(array.free_number());
        world.run(async move {
            let now = || SimClock(handle.clone()).unix_time();
            let until = Some(now() + Duration::from_secs(1));
            array.scrub_as(Some(order(JobKind::Check, None, until))).expect("it is writable");
            let usual = array.status().speed;
            rest(&handle, 500).await;
            assert_eq!(array.status().speed, SLOW, "while it runs");
            let status = until_quiet(&array, &handle).await;
            assert_eq!(status.speed, usual, "and not beyond");
            let place = status.scrub_place.expect("it paused");
            let whole = place.total;
            assert!(place.done > 0 && place.done < place.total, "{place:?}");
            assert!(status.log.iter().any(|(_, what)| what.starts_with("check pauses at ")));
            let begins_at = async |kind, from| {
                array.scrub_as(Some(order(kind, Some(from), None))).expect("it is writable");
                let at = loop {
                    if let Some(job) = array.status().job {
                        break job.done;
                    }
                    handle.sleep(1_000).await;
                };
                array.scrub(None).expect("it is writable");
                assert_eq!(until_quiet(&array, &handle).await.scrub_place, None, "it was ended");
                at
            };
            assert_eq!(begins_at(JobKind::Check, place.clone()).await, place.done);
            assert_eq!(begins_at(JobKind::Repair, place.clone()).await, 0);
            let larger = ScrubPlace { total: place.total + 4096, ..place.clone() };
            assert_eq!(begins_at(JobKind::Check, larger).await, 0);
            let beyond = ScrubPlace { done: place.total + 4096, ..place.clone() };
            assert_eq!(begins_at(JobKind::Check, beyond).await, 0);
            let crooked = ScrubPlace { done: place.done + 1, ..place.clone() };
            assert_eq!(begins_at(JobKind::Check, crooked).await, 0);
            // Its time is over before its turn: nothing happens.
            let late = order(JobKind::Check, Some(place.clone()), Some(now()));
            array.scrub_as(Some(late)).expect("it is writable");
            rest(&handle, 100).await;
            let status = array.status();
            assert!(status.job.is_none() && status.requested.is_none(), "{status:#?}");
            // A member is replaced meanwhile: all of the array is compared again.
            let mut place = place;
            place.found.mismatches = 4096;
            let on = order(JobKind::Check, Some(place), None);
            array.scrub_as(Some(on)).expect("it is writable");
            rest(&handle, 200).await;
            array.replace("disk0", spare).await.expect("a replacement");
            let status = until_quiet(&array, &handle).await;
            assert!(
                status.last_scrub.as_ref().is_some_and(|last| last.found.mismatches == 0),
                "{status:#?}"
            );
            assert_eq!(status.compared, whole, "{status:#?}");
        });
    });
}
