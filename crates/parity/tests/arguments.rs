//! Arguments that make no sense are refused before a byte is written.

use braid_parity::{pq, q, recover_by_q, recover_two, update_q, xor, xor_into};

#[test]
#[should_panic(expected = "a source as long as the target")]
fn a_short_source() {
    xor(&mut [0; 4], &[&[0; 4], &[0; 3]]);
}

#[test]
#[should_panic(expected = "a source as long as the target")]
fn a_long_source() {
    xor_into(&mut [0; 4], &[0; 5]);
}

#[test]
#[should_panic(expected = "Q as long as P")]
fn p_and_q_that_differ() {
    pq(&mut [0; 4], &mut [0; 3], &[]);
}

#[test]
#[should_panic(expected = "a data block as long as the parity")]
fn a_long_data_block() {
    pq(&mut [0; 4], &mut [0; 4], &[None, Some(&[0; 5])]);
}

#[test]
#[should_panic(expected = "256 data blocks, of at most 255")]
fn more_data_than_powers() {
    q(&mut [], &[None; 256]);
}

#[test]
#[should_panic(expected = "no data block has the power 255")]
fn a_power_that_repeats_another() {
    update_q(&mut [0; 4], 255, &[0; 4]);
}

#[test]
#[should_panic(expected = "a difference as long as Q")]
fn a_short_difference() {
    update_q(&mut [0; 4], 0, &[0; 3]);
}

#[test]
#[should_panic(expected = "the data block of power 1 is not given as lost")]
fn a_lost_block_that_is_there() {
    recover_by_q(&mut [0; 4], 1, &[0; 4], &[None, Some(&[0; 4])]);
}

#[test]
#[should_panic(expected = "the data block of power 2 is not given as lost")]
fn a_lost_block_that_there_is_none_of() {
    recover_by_q(&mut [0; 4], 2, &[0; 4], &[None, None]);
}

#[test]
#[should_panic(expected = "two different lost blocks")]
fn the_same_block_lost_twice() {
    let (mut a, mut b) = ([0; 4], [0; 4]);
    recover_two(&mut a, 1, &mut b, 1, &[0; 4], &[0; 4], &[None, None]);
}

#[test]
#[should_panic(expected = "two targets equally long")]
fn targets_that_differ() {
    let (mut a, mut b) = ([0; 4], [0; 3]);
    recover_two(&mut a, 0, &mut b, 1, &[0; 4], &[0; 4], &[None, None]);
}
