//! Every planted bug of write-back mode is found, by seeds that change with the commit.

mod worlds;

use braid_cache::canary::{Canary, plant};
use braid_cache::least_log;
use braid_seed::{Rng, commit, first_of_commit};
use worlds::Shape;

/// Number of seeds after which a canary counts as not found.
const BUDGET: u64 = 1000;

/// Returns a shape in which the rule that `canary` breaks soon matters: with a log, many requests, changes of
/// mode, and a crash that is tried now and then instead of at every event.
fn fit(canary: Canary, shape: Shape) -> Shape {
    let log = shape.log.or(Some(least_log(shape.config.block)));
    let busy = Shape { log, requests: 60, bursts: 3, switches: true, tried: 100, ..shape };
    match canary {
        // The log fails while much is dirty, and a crash follows before that is drained.
        Canary::ForsakenBeforeDrain => Shape {
            errors: (true, false),
            dirty: shape.config.size,
            age_us: 20_000,
            bursts: 1,
            tried: 20,
            ..busy
        },
        // Zeroes arrive while a commit writes several records.
        Canary::ZeroesLeaveOutData => shape.cramped(),
        _ => busy,
    }
}

#[test]
fn every_canary_is_found() {
    let run = |canary, seed| {
        worlds::lives(seed, |shape| fit(canary, shape)).and_then(|()| worlds::given_up(seed))
    };
    hunt(Canary::ALL, &run);
}

/// The canaries that matter for an origin of several disks: what the log retires must be on all of
/// them.
#[test]
fn canaries_are_found_over_arrays() {
    let run = |canary, seed| {
        let mut dice = Rng::new(seed);
        worlds::lives(seed, |shape| fit(canary, shape).over_an_array(&mut dice))
    };
    let canaries = [Canary::TailBeforeOriginFlush, Canary::DrainBeforeLog, Canary::PastNotFlushed];
    hunt(&canaries, &run);
}

/// It matters what holds memory only if the pools are exhausted.
#[test]
fn memory_that_is_held_is_found() {
    let run = |canary, seed| {
        let fit = |shape| Shape { little_memory: true, ..fit(canary, shape).cramped() };
        worlds::lives(seed, fit)
    };
    hunt(&[Canary::MemoryHeld], &run);
}

/// Has `run` find each of `canaries`, by seeds that pass without a canary.
fn hunt(canaries: &[Canary], run: &dyn Fn(Canary, u64) -> Result<(), String>) {
    std::panic::set_hook(Box::new(|_| {}));
    let first = first_of_commit(&commit());
    let mut survived = Vec::new();
    for &canary in canaries {
        let found = (0..BUDGET).find_map(|count| {
            let seed = first.wrapping_add(count);
            plant(Some(canary));
            let with = run(canary, seed);
            plant(None);
            Some((count, seed, with.err()?)).filter(|_| run(canary, seed).is_ok())
        });
        match found {
            Some((count, seed, what)) => println!("{canary:?}: seed {seed}, {count}: {what}"),
            None => survived.push(canary),
        }
    }
    assert!(survived.is_empty(), "{survived:?}");
}
