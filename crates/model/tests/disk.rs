//! A disk from first principles: what its order, its queue and its cache make of the same requests.

use braid_model::{Answer, Bus, BusProfile, CommandQueue, Disk, Kind, Timetable, Work, profile};
use braid_seed::Rng;
use proptest::prelude::*;

const SIZE: u64 = 1_000_204_886_016;
const BLOCK: u64 = 4096;

/// A disk of 7200 revolutions a minute whose average seek takes 8.5 ms.
fn disk(queue_depth: usize, write_cache: u64) -> Disk {
    let profile = profile("sata-7200").expect("a profile that comes with braid");
    let Kind::Disk(disk) = profile.kind else { panic!("{:?} is no disk", profile.kind) };
    Disk { queue_depth, write_cache, ..disk }
}

fn queue(disk: Disk) -> CommandQueue {
    CommandQueue::new(Timetable::new(&Kind::Disk(disk), SIZE).expect("a disk is a device"))
}

fn bus() -> Bus {
    Bus::new(BusProfile::default())
}

fn anywhere(rng: &mut Rng, write: bool) -> Work {
    let offset = rng.below(SIZE / BLOCK) * BLOCK;
    if write { Work::Write { offset, bytes: BLOCK } } else { Work::Read { offset, bytes: BLOCK } }
}

/// Seconds from the first request to the last answer, with so many under way all the time; and how long the one
/// that took longest took.
fn run(queue: &mut CommandQueue, depth: usize, work: &[Work]) -> (f64, f64) {
    let (mut bus, mut now_ns, mut longest_ns) = (bus(), 0, 0);
    let mut under_way: Vec<(u64, u64)> = Vec::new();
    let mut work = work.iter();
    loop {
        while under_way.len() < depth
            && let Some(work) = work.next()
        {
            under_way.push((queue.ask(now_ns, *work), now_ns));
        }
        if under_way.is_empty() {
            return (now_ns as f64 / 1e9, longest_ns as f64 / 1e9);
        }
        let mut next_ns = u64::MAX;
        let mut done = None;
        for (index, (number, since_ns)) in under_way.iter().enumerate() {
            match queue.answer(&mut bus, now_ns, *number) {
                Answer::Done(at_ns) => {
                    longest_ns = longest_ns.max(at_ns - since_ns);
                    (next_ns, done) = (at_ns, Some(index));
                    break;
                }
                Answer::Waits(until_ns) => next_ns = next_ns.min(until_ns),
            }
        }
        now_ns = now_ns.max(next_ns);
        done.map(|index| under_way.remove(index));
    }
}

fn reads(count: usize) -> Vec<Work> {
    let mut rng = Rng::new(1);
    (0..count).map(|_| anywhere(&mut rng, false)).collect()
}

fn writes(count: usize) -> Vec<Work> {
    let mut rng = Rng::new(2);
    (0..count).map(|_| anywhere(&mut rng, true)).collect()
}

/// Time of a single request at a random place: the command, the average seek, half a revolution; the rest is
/// little.
const ALONE: f64 = 0.0001 + 0.0085 + 0.5 / 120.0;

#[test]
fn one_read_at_a_time_takes_a_seek_and_half_a_revolution() {
    for depth in [1, 32] {
        let (seconds, _) = run(&mut queue(disk(depth, 0)), 1, &reads(2000));
        let each = seconds / 2000.0;
        assert!((each / ALONE - 1.0).abs() < 0.02, "{each} for {ALONE}");
    }
}

#[test]
fn who_may_choose_among_more_is_faster_and_nobody_waits_for_ever() {
    let rate = |depth| {
        let (seconds, longest) = run(&mut queue(disk(depth, 0)), 32, &reads(2000));
        // Others go before the oldest four times as often as the queue is deep.
        let most = 5.0 * 32.0 * ALONE;
        assert!(longest < most, "{longest} s at {depth}");
        2000.0 / seconds
    };
    let rates = [1, 2, 4, 8, 16, 32].map(rate);
    assert!(rates.windows(2).all(|pair| pair[1] > 1.05 * pair[0]), "{rates:?}");
    assert!((rates[0] * ALONE - 1.0).abs() < 0.02, "in their order it does not matter: {rates:?}");
    assert!(rates[5] > 2.0 * rates[0], "{rates:?}");
}

/// A cache takes what fits as fast as it comes; beyond it a write waits for the medium, which chooses among what is
/// in the cache however few the client has under way.
#[test]
fn a_full_cache_is_as_slow_as_the_medium() {
    let cached = |depth, count| run(&mut queue(disk(depth, 1 << 20)), 1, &writes(count)).0;
    let fits = cached(32, 256);
    assert!(fits < 256.0 * 0.0002, "{fits}");
    let each = |depth| (cached(depth, 4256) - cached(depth, 1256)) / 3000.0;
    assert!((each(1) / ALONE - 1.0).abs() < 0.03, "{}", each(1));
    let (at_once, _) = run(&mut queue(disk(32, 0)), 32, &reads(3000));
    let ratio = each(32) / (at_once / 3000.0);
    assert!((0.9..1.1).contains(&ratio), "reads with 32 under way, and writes: {ratio}");
}

/// Cached writes wait for reads, also for those of a host that thinks between them, and reads do not wait for
/// them, except for the write that the medium is at.
#[test]
fn a_read_does_not_wait_for_the_cache() {
    let mut queue = queue(disk(32, 64 << 20));
    let (mut bus, mut rng) = (bus(), Rng::new(3));
    let mut now_ns = 0;
    for work in writes(5000) {
        let number = queue.ask(now_ns, work);
        let Answer::Done(done_ns) = queue.answer(&mut bus, now_ns, number) else {
            panic!("it is free")
        };
        now_ns = done_ns;
    }
    let access_ns = 17_000_000 + 8_400_000;
    for index in 0..100 {
        let number = queue.ask(now_ns, anywhere(&mut rng, false));
        let Answer::Done(done_ns) = queue.answer(&mut bus, now_ns, number) else {
            panic!("it is free")
        };
        let most_ns = if index == 0 { 2 * access_ns } else { access_ns };
        assert!(done_ns - now_ns < most_ns, "{index}: {} ms", (done_ns - now_ns) / 1_000_000);
        now_ns = done_ns + 200_000;
    }
    // When none has come for a while the medium turns to it: the next may find it at work.
    now_ns += 10_000_000_000;
    let number = queue.ask(now_ns, anywhere(&mut rng, false));
    let Answer::Done(done_ns) = queue.answer(&mut bus, now_ns, number) else {
        panic!("it is free")
    };
    now_ns = done_ns;
    // A flush waits for all of it, and what comes behind it for the flush.
    let [flush, read] =
        [Work::Command, anywhere(&mut rng, false)].map(|work| queue.ask(now_ns, work));
    let Answer::Done(flushed_ns) = queue.answer(&mut bus, now_ns, flush) else {
        panic!("it is free")
    };
    // Some 3000 of the 5000 are left after ten seconds.
    assert!(flushed_ns - now_ns > 2000 * 3_000_000, "{} ms", (flushed_ns - now_ns) / 1_000_000);
    assert_eq!(queue.answer(&mut bus, now_ns, read), Answer::Waits(flushed_ns));
}

proptest! {
    /// However late and in whatever order a queue is asked, it says the same; nothing is done before it came.
    #[test]
    fn who_asks_late_is_told_the_same(
        requests in prop::collection::vec((0u64..20_000_000, 0u64..4000, any::<bool>(), any::<bool>()), 1..60),
        queue_depth in prop_oneof![Just(1usize), 2usize..6, Just(32)],
    ) {
        let (mut prompt, mut late) = (queue(disk(queue_depth, 16 << 10)), queue(disk(queue_depth, 16 << 10)));
        let (mut one, mut other) = (bus(), bus());
        let mut now_ns = 0;
        let mut asked = Vec::new();
        for (wait_ns, place, write, looks) in requests {
            now_ns += wait_ns;
            let (offset, bytes) = (place * (SIZE / 4000 / BLOCK) * BLOCK, BLOCK);
            let work = if write { Work::Write { offset, bytes } } else { Work::Read { offset, bytes } };
            prop_assert_eq!(prompt.ask(now_ns, work), late.ask(now_ns, work));
            asked.push((asked.len() as u64 + 1, now_ns, None));
            if looks {
                for (number, _, done) in asked.iter_mut().filter(|one| one.2.is_none()) {
                    if let Answer::Done(at_ns) = prompt.answer(&mut one, now_ns, *number) {
                        *done = Some(at_ns);
                    }
                }
            }
        }
        let end_ns = now_ns + 3_600_000_000_000;
        for (number, since_ns, done) in asked.into_iter().rev() {
            let told = late.answer(&mut other, end_ns, number);
            let done = done.map_or_else(|| prompt.answer(&mut one, end_ns, number), Answer::Done);
            prop_assert_eq!(told, done);
            prop_assert!(matches!(done, Answer::Done(at_ns) if at_ns >= since_ns + 100_000));
        }
    }
}

/// A refused average says which ones there are.
#[test]
fn an_average_seek_that_cannot_be_is_refused_with_those_that_can() {
    let disk = |average: f64| {
        let constants = [
            ("rpm", 5400.0),
            ("seek_track_ms", 2.0),
            ("seek_average_ms", average),
            ("seek_full_ms", 20.0),
            ("outer_rate", 60e6),
            ("inner_rate", 30e6),
            ("command_us", 100.0),
            ("write_cache", 8e6),
            ("queue_depth", 1.0),
        ];
        let lines = constants.map(|(name, value)| format!("{name} = [{value}, \"a data sheet\"]"));
        let text = format!("kind = \"disk\"\nlabel = \"slow\"\n[constant]\n{}", lines.join("\n"));
        braid_model::Profile::parse(&text).map_err(|why| why.to_string())
    };
    let why = disk(12.0).expect_err("12 of 20 ms is too far");
    assert!(why.contains("between 8.00 and 11.60"), "{why}");
    assert!(disk(8.01).is_ok() && disk(11.59).is_ok());
}
