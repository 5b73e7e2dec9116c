//! A remote member over a network that fails, by seed.

use std::cell::Cell;

use braid_sim::for_each_seed;
use braid_sim::remote::live;

#[test]
fn nothing_acknowledged_is_lost_over_cuts_and_crashes_of_the_server() {
    let (reconnects, repeated, overdue) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let holes = Cell::new(0);
    for_each_seed("nothing_acknowledged", 500, |seed| {
        let told = live(seed, 120, 24).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        reconnects.set(reconnects.get() + told.reconnects);
        repeated.set(repeated.get() + told.repeated);
        overdue.set(overdue.get() + told.overdue);
        holes.set(holes.get() + told.holes);
    });
    assert!(holes.get() > 0, "no hole was seen");
    assert!(reconnects.get() > 0 && repeated.get() > 0, "nothing failed");
    println!(
        "{} reconnects, {} changes repeated, {} requests overdue",
        reconnects.get(),
        repeated.get(),
        overdue.get()
    );
}

/// Without failures each change reaches the server once.
#[test]
fn nothing_is_repeated_without_a_failure() {
    for seed in 0..10 {
        let told = live(seed, 60, 0).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        assert_eq!(told.overdue, 0, "{told:?}");
        // The loss of power at the end makes the connections anew, behind the last flush.
        assert_eq!((told.repeated, told.applied), (0, told.asked), "{told:?}");
    }
}
