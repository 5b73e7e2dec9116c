//! A bit flips in each block of md's own areas, after short lives by seeds that change with the commit.

use braid_seed::{commit, first_of_commit};
use braid_sim::campaign::keep_panics;
use braid_sim::draw::WIDE;
use braid_sim::rot::{rot_everywhere, turn};

/// Each kind of array goes through each story once.
#[test]
fn a_flipped_bit_in_any_block_of_metadata_costs_nothing_that_was_promised() {
    keep_panics();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let tally = rot_everywhere(first_of_commit(&commit()) & !WIDE, turn(), threads);
    assert!(tally.failed.is_empty(), "commit {}: {:#?}", commit(), tally.failed);
    assert!(tally.lives == turn() && tally.flips > 80 * turn(), "{tally:?}");
    assert!(tally.without > tally.lives, "superblocks have checksums: {tally:?}");
}

#[test]
fn a_flipped_bit_of_a_bitmap_of_two_pages() {
    keep_panics();
    let tally = rot_everywhere(first_of_commit(&commit()) | WIDE, 1, 1);
    assert!(tally.failed.is_empty(), "commit {}: {:#?}", commit(), tally.failed);
    assert!(tally.flips > 0, "{tally:?}");
}

/// Lives that went wrong once. In one, the superblocks of disk2 said at rest for 5 s that the array was active.
#[test]
fn lives_that_went_wrong_before() {
    keep_panics();
    let tally = rot_everywhere(13_909_097_702_279_860_664, 1, 1);
    assert!(tally.failed.is_empty() && tally.flips > 0, "{tally:?}");
}
