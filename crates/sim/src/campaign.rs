//! Running seeds: one after the other, or many on threads, each with a world of its own.

use std::time::Instant;

use crate::draw::HALVES;
use crate::halves;
pub use crate::quiet::{keep_panics, quietly};
use crate::report::Report;
use crate::scenario::Scenario;
use crate::share::share;
use crate::timeline::Timeline;
use crate::world::run;

/// The result of a seed, or of a scenario.
pub type Result = std::result::Result<Report, String>;

/// Runs `scenario`; a panic is a failure as well.
pub fn run_scenario(scenario: &Scenario, timeline: &Timeline) -> Result {
    quietly(|| run(scenario, timeline))
}

/// Runs what `seed` stands for.
pub fn run_seed(seed: u64) -> Result {
    match seed & HALVES {
        0 => run_scenario(&Scenario::of(seed), &Timeline::default()),
        _ => quietly(|| halves::run(seed)),
    }
}

/// The results of many seeds.
#[derive(Debug, Default)]
pub struct Sum {
    /// Seeds that were run.
    pub seeds: u64,
    /// The sum of their events.
    pub report: Report,
    /// The seeds that failed, and their failures.
    pub failed: Vec<(u64, String)>,
}

/// Runs seeds from `first` on, on `threads`, until there were `count`, or `until` has passed, or
/// `most_failures` failed; `failed` hears of each that does.
pub fn run_seeds(
    first: u64,
    count: u64,
    until: Option<Instant>,
    most_failures: usize,
    threads: usize,
    failed: &(dyn Fn(u64, &str) + Sync),
) -> Sum {
    let is_late = || until.is_some_and(|until| Instant::now() >= until);
    let job = |index| {
        let seed = first.wrapping_add(index);
        // None of a seed that would begin too late.
        let result = (!is_late()).then(|| run_seed(seed));
        if let Some(Err(what)) = &result {
            failed(seed, what);
        }
        (seed, result)
    };
    let mut sum: Sum = share(threads, count, job, |sum: &mut Sum, (seed, result)| {
        let Some(result) = result else { return false };
        sum.seeds += 1;
        match result {
            Ok(report) => sum.report = sum.report.and(report),
            Err(what) => sum.failed.push((seed, what)),
        }
        sum.failed.len() < most_failures
    });
    sum.failed.sort_unstable();
    sum
}
