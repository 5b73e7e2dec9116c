//! The order of the trials of a repetition. Pure.
//!
//! ```text
//! repetition 1    A read   B write  B read   C read   A write ...    workloads: shuffled slots
//! repetition 2    the same, last to first                            subjects: a row of a Williams square
//! ```
//!
//! Invariants:
//!
//! * repetition 2k is repetition 2k − 1 reversed: over an even number of repetitions each cell precedes
//!   each other cell equally often, over an odd number once more or less, and a steady drift hits all alike;
//! * within a workload the subjects follow one another as in a Williams square (Williams 1949): over n
//!   repetitions of an even number n of subjects, or 2n of an odd one, each subject stands equally often
//!   at each place and directly behind each other subject;
//! * the order depends only on the seed and the number of the repetition: more repetitions do not change the
//!   order of the earlier ones.

use std::collections::BTreeMap;

use braid_seed::{Rng, mix};

use super::Cell;

/// Keys of the draws for slots and names.
const SLOTS: u64 = 1;
const NAMES: u64 = 2;

/// Returns the cells of a repetition (from 1) in the order in which they run, as indices into `cells`.
pub(super) fn order_of(cells: &[Cell], seed: u64, repetition: u32) -> Vec<usize> {
    let pair = u64::from(repetition.saturating_sub(1) / 2);
    let mut by_workload: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, cell) in cells.iter().enumerate() {
        by_workload.entry(cell.workload_index).or_default().push(index);
    }
    let mut rows: BTreeMap<usize, std::vec::IntoIter<usize>> = BTreeMap::new();
    for (workload, mut own) in by_workload {
        // The same in all repetitions, and different for each workload.
        let mut rng = Rng::new(mix(&[seed, NAMES, workload as u64]));
        rng.shuffle(&mut own);
        let first = rng.index(own.len()) as u64;
        let row = williams_row(own.len(), pair.wrapping_add(first));
        rows.insert(
            workload,
            row.into_iter().map(|place| own[place]).collect::<Vec<_>>().into_iter(),
        );
    }
    let mut slots: Vec<usize> = cells.iter().map(|cell| cell.workload_index).collect();
    Rng::new(mix(&[seed, SLOTS, pair])).shuffle(&mut slots);
    let mut order: Vec<usize> =
        slots.iter().filter_map(|workload| rows.get_mut(workload)?.next()).collect();
    if repetition.is_multiple_of(2) {
        order.reverse();
    }
    order
}

/// Returns a row of Williams' square of `n` subjects, which begins 0, 1, n − 1, 2, n − 2 and continues by
/// adding 1 to each. Only rows that are no reverse of another count: n / 2 of an even n, n of an odd one.
fn williams_row(n: usize, row: u64) -> Vec<usize> {
    let rows = if n.is_multiple_of(2) { (n / 2).max(1) } else { n };
    let shift = (row % rows as u64) as usize;
    let zigzag = |place: usize| if place % 2 == 1 { place / 2 + 1 } else { (n - place / 2) % n };
    (0..n).map(|place| (zigzag(place) + shift) % n).collect()
}
