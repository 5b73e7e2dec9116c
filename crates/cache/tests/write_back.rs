//! A write-back cache: nothing that was flushed is lost, whatever happens and whenever the power goes.

mod worlds;

use braid_sim::for_each_seed;

#[test]
fn what_was_flushed_survives_every_crash() {
    for_each_seed("write_back::what_was_flushed_survives_every_crash", 200, |seed| {
        if let Err(what) = worlds::lives(seed) {
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
