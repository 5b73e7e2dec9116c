//! Each request of each disk below a cache fails, once and forever, and a bit flips in each block of the metadata of
//! the origin's members and of the log.

use braid_cache::canary::{Canary, plant};
use braid_sim::for_each_seed;

use super::{Begun, Failure, KINDS};

/// Runs all failures of `seed` until one goes wrong. Returns their number.
fn fail_everywhere(seed: u64) -> Result<u64, String> {
    let begun = Begun::of(seed).map_err(|what| format!("its first life: {what}"))?;
    let counts = begun.count().map_err(|what| format!("without a failure: {what}"))?;
    let mut runs = 0;
    for (disk, count) in counts.into_iter().enumerate() {
        for (request, lasts) in (0..count).flat_map(|request| [(request, false), (request, true)]) {
            let failure = Failure { disk, request, lasts };
            begun
                .fail(failure)
                .map_err(|what| format!("{failure:?}: {what}\n{:?}", begun.shape))?;
            runs += 1;
        }
    }
    Ok(runs)
}

#[test]
fn a_cache_outlives_the_failure_of_any_request() {
    let name = "everywhere::a_cache_outlives_the_failure_of_any_request";
    for_each_seed(name, 2 * KINDS, |seed| match fail_everywhere(seed) {
        Ok(runs) => assert!(runs > 0, "no request was failed"),
        Err(what) => panic!("{what}"),
    });
}

/// No other test has an unreadable log.
#[test]
fn an_unreadable_record_that_is_taken_for_the_end_of_the_log_is_found() {
    let goes_wrong = |seed| {
        plant(Some(Canary::UnreadableIsEnd));
        let with = fail_everywhere(seed);
        plant(None);
        with.is_err() && fail_everywhere(seed).is_ok()
    };
    assert!((0..10 * KINDS).any(goes_wrong));
}

/// Starts with each flip after the first life of `seed`, until one goes wrong. There are none without metadata.
fn rot_everywhere(seed: u64) -> Result<(), String> {
    let begun = Begun::of(seed).map_err(|what| format!("its first life: {what}"))?;
    let (rots, shape) = (begun.rots(), &begun.shape);
    assert_eq!(rots.is_empty(), shape.array.is_none() && shape.log.is_none(), "{shape:?}");
    rots.iter().try_for_each(|rot| {
        begun.start_rotten(rot).map_err(|what| format!("{rot:?}: {what}\n{shape:?}"))
    })
}

#[test]
fn a_flipped_bit_in_any_metadata_below_a_cache_costs_nothing_that_was_flushed() {
    let name =
        "everywhere::a_flipped_bit_in_any_metadata_below_a_cache_costs_nothing_that_was_flushed";
    for_each_seed(name, KINDS, |seed| {
        if let Err(what) = rot_everywhere(seed) {
            panic!("{what}");
        }
    });
}

/// A crash leaves no such log: a durable record is valid.
#[test]
fn rot_that_is_taken_for_a_torn_end_is_found() {
    let goes_wrong = |seed| {
        plant(Some(Canary::RotIsTornEnd));
        let with = rot_everywhere(seed);
        plant(None);
        with.is_err() && rot_everywhere(seed).is_ok()
    };
    assert!((0..10 * KINDS).any(goes_wrong));
}
