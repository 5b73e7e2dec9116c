//! The whole stack by seeds: those that once failed, and some that change with the commit.
//!
//! `BRAID_SEEDS=n` runs as many of the latter; `BRAID_COMMIT` names the commit instead of git.

use braid_seed::{commit, first_of_commit};
use braid_sim::campaign::{keep_panics, run_scenario, run_seed, run_seeds};
use braid_sim::draw::{HARSH, WIDE, WORLDS};
use braid_sim::keep::{kept, list};
use braid_sim::report::Report;
use braid_sim::scenario::Scenario;
use braid_sim::timeline::Timeline;

/// The number of seeds of the commit if none is given.
const COUNT: u64 = 2000;

#[test]
fn seeds_that_once_failed_are_well() {
    keep_panics();
    let fails = |seed: &u64| {
        let result = run_seed(*seed);
        result.err().map(|what| format!("--seed {seed}: {what}"))
    };
    let seeds = kept(&list()).expect("testdata/seeds/failed.txt");
    let failed: Vec<String> = seeds.iter().filter_map(fails).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn seeds_of_this_commit_are_well() {
    let first = first_of_commit(&commit()) & !WIDE;
    let worlds = WORLDS.iter().fold(0, |all, world| all | world);
    for world in [&[0], WORLDS].concat() {
        let report = run_well(first & !worlds | world, count() / (1 + WORLDS.len() as u64));
        assert!(report.crashes > 0 && report.probes > 0 && report.acts > 0, "{report:?}");
    }
}

/// Few, since their members are a hundred times as large and a seed takes seconds; and harsh ones, of which each
/// tries crashes.
#[test]
fn seeds_of_wide_bitmaps_are_well() {
    let report = run_well(first_of_commit(&commit()) | WIDE | HARSH, (count() / 1000).max(1));
    assert!(report.probes > 0, "{report:?}");
}

fn count() -> u64 {
    std::env::var("BRAID_SEEDS").map_or(COUNT, |text| text.parse().expect("a number"))
}

fn run_well(first: u64, count: u64) -> Report {
    keep_panics();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let sum = run_seeds(first, count, None, 5, threads, &|_, _| {});
    assert!(sum.failed.is_empty(), "commit {}: {:#?}", commit(), sum.failed);
    assert_eq!(sum.seeds, count);
    sum.report
}

/// The same seed has the same run, to the nanosecond.
#[test]
fn a_seed_is_a_run() {
    keep_panics();
    for seed in [3, 6, 11] {
        let run = || run_scenario(&Scenario::of(seed), &Timeline::default());
        assert_eq!(run(), run(), "seed {seed}");
        let told = || {
            let timeline = Timeline::kept();
            let _ = run_scenario(&Scenario::of(seed), &timeline);
            timeline.to_string()
        };
        assert!(told() == told(), "seed {seed}");
    }
}
