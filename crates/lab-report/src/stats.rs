//! The statistics of the laboratory: how large, how sure, and which differences may be named.
//! Pure: numbers in, numbers out. `docs/statistics.md` gives each method with its formula, its
//! source, its limits, and how often it errs.
//!
//! ```text
//! repetitions ──> estimate                median, and from where to where they lie
//!             ──> Effect                  how many times as fast, in pairs, with interval and test
//! two runs    ──> Effect::between_runs    the same without pairs, with a drift from run to run
//! p-values    ──> holm                    tests, with all comparisons counted
//! requests    ──> Histogram::percentile   tails, only where the sample has them
//! rounds      ──> find_steady_state       where they have settled
//! ```
//!
//! Invariants:
//!
//! * No result is NaN or infinite. Of an infinite or undefined input there is `None`.
//! * The same numbers give the same answer in any order and in any year: nothing is drawn.
//! * Nothing is dropped for being far away.
//!
//! Deliberately absent: a second method for anything, and any averaging of percentiles.

mod effect;
mod estimate;
mod histogram;
mod runs;
mod steady;
mod student;

pub use effect::{ByRepetition, Effect, SANE, geometric_mean, holm, mean, scatter, together};
pub use estimate::{Estimate, estimate, median};
pub use histogram::{CumulativePoint, Histogram, values_needed};
pub use runs::{BothRuns, Drift};
pub use steady::{SteadyState, Window, find_steady_state, judge_window};

#[cfg(test)]
mod tests;
