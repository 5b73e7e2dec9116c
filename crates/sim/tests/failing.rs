//! Each request of each disk fails in short loads: some loads by seeds that change with the commit.

use braid_engine::canary::{Canary, plant};
use braid_seed::{commit, first_of_commit};
use braid_sim::campaign::{keep_panics, quietly};
use braid_sim::failing::{Failure, fail_everywhere, run};

/// As many loads of each level and policy.
const EACH: u64 = 2;

#[test]
fn an_array_outlives_the_failure_of_any_request() {
    keep_panics();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let tally = fail_everywhere(first_of_commit(&commit()), 18 * EACH, threads);
    assert!(tally.failed.is_empty(), "commit {}: {:#?}", commit(), tally.failed);
    assert!(tally.loads == 18 * EACH && tally.runs > 1000, "{tally:?}");
}

#[test]
fn a_failed_write_that_is_forgotten_is_found() {
    keep_panics();
    let goes_wrong = |seed: u64| {
        let counts = run(seed, None).expect("well without failures");
        let mut failures = counts.into_iter().enumerate().flat_map(|(disk, count)| {
            (0..count).map(move |request| Failure { disk, request, lasts: false })
        });
        plant(Some(Canary::FailedWriteForgotten));
        let found = failures.any(|one| quietly(|| run(seed, Some(one))).is_err());
        plant(None);
        found
    };
    assert!((0..18).any(goes_wrong));
}
