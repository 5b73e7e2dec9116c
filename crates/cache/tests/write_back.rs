//! A write-back cache loses no flushed data, for any errors and power failures.

mod short;
mod worlds;

use std::time::Duration;

use braid_cache::Config;
use braid_level::CacheMode;
use braid_seed::Rng;
use braid_sim::for_each_seed;
use worlds::Shape;

const HOUR: Duration = Duration::from_secs(60 * 60);

#[test]
fn what_was_flushed_survives_every_crash() {
    for_each_seed("write_back::what_was_flushed_survives_every_crash", 200, |seed| {
        if let Err(what) = worlds::lives(seed, |shape| shape) {
            panic!("{what}");
        }
    });
}

#[test]
fn small_logs_survive_crashes_within_replays() {
    for_each_seed("write_back::small_logs_survive_crashes_within_replays", 50, |seed| {
        if let Err(what) = worlds::lives(seed, Shape::cramped) {
            panic!("{what}");
        }
    });
}

#[test]
fn what_was_flushed_survives_crashes_and_lost_members() {
    for_each_seed("write_back::what_was_flushed_survives_crashes_and_lost_members", 100, |seed| {
        let mut dice = Rng::new(seed);
        let result = worlds::lives(seed, |shape| {
            let shape = shape.over_an_array(&mut dice);
            let is_through = dice.percent(30);
            let mode = if is_through { CacheMode::WriteThrough } else { CacheMode::WriteBack };
            let log = shape.log.filter(|_| !is_through);
            let switches = shape.switches && !is_through;
            Shape { config: Config { mode, ..shape.config }, log, switches, ..shape }
        });
        if let Err(what) = result {
            panic!("{what}");
        }
    });
}

#[test]
fn what_was_flushed_survives_where_memory_is_spent() {
    for_each_seed("write_back::what_was_flushed_survives_where_memory_is_spent", 90, |seed| {
        let mut dice = Rng::new(seed);
        let result = worlds::lives(seed, |shape| {
            let shape = Shape { little_memory: true, tried: shape.tried.max(20), ..shape };
            match seed % 3 {
                0 => shape,
                1 => shape.cramped(),
                _ => shape.over_an_array(&mut dice),
            }
        });
        if let Err(what) = result {
            panic!("{what}");
        }
    });
}

#[test]
fn requests_that_are_given_up_are_carried_out_or_not() {
    for_each_seed("write_back::requests_that_are_given_up_are_carried_out_or_not", 200, |seed| {
        if let Err(what) = worlds::given_up(seed) {
            panic!("{what}");
        }
    });
}

/// All modes, sizes, bursts, pauses of up to ten minutes, errors and crashes: one hour per seed, or
/// `BRAID_CACHE_HOURS`.
#[test]
fn a_cache_lives_for_days() {
    let hours = std::env::var("BRAID_CACHE_HOURS").map_or(1, |text| {
        text.parse().unwrap_or_else(|error| panic!("BRAID_CACHE_HOURS={text}: {error}"))
    });
    for_each_seed("write_back::a_cache_lives_for_days", 12, |seed| {
        braid_mem::keep_arenas();
        let mut dice = Rng::new(!seed);
        let (bursts, calm_ns) = (dice.within(1..=40), dice.within(1..=600) * 1_000_000_000);
        let shape = Shape { bursts, calm_ns, tried: 100, ..Shape::of(&mut dice) };
        let is_over = |_, lived| lived >= HOUR * hours;
        if let Err(what) = worlds::lives_of(seed, &shape, &mut dice, is_over) {
            panic!("{what}\n{shape:?}");
        }
    });
}
