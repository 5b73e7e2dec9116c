//! The statistics of the laboratory: how large, how sure, and which differences may be named.
//! Pure: numbers in, numbers out. `docs/statistics.md` gives each method with its formula, its
//! source and its limits.
//!
//! ```text
//! repetitions ──> estimate, spread, outliers          median, where it may lie, what stands out
//!             ──> compare_with_baseline               percent of a baseline, in pairs
//!             ──> percent_table                       tests x subjects, totals, mean percent
//!             ──> find_winner, compare_runs           tests, with the comparisons counted
//! requests    ──> Histogram::percentile               tails, only where the sample has them
//! rounds      ──> find_steady_state                   where they have settled
//! ```
//!
//! Invariants:
//!
//! * No result is NaN or infinite. An infinite or undefined input is refused: `None` from the
//!   functions that return an `Option`, [`StatsError`] from the others.
//! * The same numbers give the same answer in any order of subjects' repetitions and in any year:
//!   intervals of medians are computed from the exact bootstrap distribution, without drawing;
//!   what must be drawn has a fixed seed.
//! * Nothing is dropped for being far away. Outliers are named and stay in.
//!
//! Deliberately absent: intervals for means (a trial disturbed by a neighbour is an outlier, not
//! noise around a mean), normal approximations where an exact count is cheap, and any averaging
//! of percentiles.

mod binomial;
mod bootstrap;
mod check;
mod error;
mod estimate;
mod histogram;
mod multiple;
mod percent;
mod percent_table;
mod percentile;
mod permutation;
mod ranks;
mod spread;
mod steady;
mod two_sample;
mod verdict;

pub use error::StatsError;
pub use estimate::{BOOTSTRAP_FROM, Estimate, IntervalKind, estimate, median};
pub use histogram::{CumulativePoint, Histogram};
pub use multiple::{Better, Comparison, Contest, Standing, find_winner, holm, repetitions_needed};
pub use percent::{BaselinePercent, ByRepetition, average_baselines, compare_with_baseline};
pub use percent_table::{ColumnSummary, PercentCell, PercentRow, PercentTable, percent_table};
pub use percentile::{Percentile, values_needed};
pub use permutation::{
    PairedTest, TestMethod, TestResult, mann_whitney, sign_flip, wilcoxon_signed_rank,
};
pub use spread::{Outlier, Spread, outliers, spread};
pub use steady::{SteadyState, Window, find_steady_state, judge_window};
pub use two_sample::{JudgedRun, RunComparison, compare_runs, judge_runs};
pub use verdict::Verdict;

#[cfg(test)]
mod tests;
