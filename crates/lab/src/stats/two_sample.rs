//! Two runs that know nothing of each other, such as a campaign before and after a change.
//!
//! No pairs can be made, so a drift between the two runs looks like a difference; only the report
//! of their environments can say whether it is one. What is computed: the ratio of the medians
//! with a 95 % bootstrap interval (both samples resampled, from the exact distributions), and the
//! Mann-Whitney test. A difference is named when both agree.

use super::bootstrap::MedianDistribution;
use super::check::{check_open_unit, check_positive, sorted};
use super::error::StatsError;
use super::estimate::{BOOTSTRAP_FROM, Estimate, IntervalKind, median_of_sorted};
use super::multiple::holm;
use super::permutation::{TestResult, mann_whitney};
use super::verdict::Verdict;

/// One cell of two runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunComparison {
    /// Median of the second run in percent of that of the first. When either has fewer than six
    /// repetitions the interval runs from smallest / largest to largest / smallest, and is
    /// called the range of the fewer.
    pub percent: Estimate,
    /// Whether the two samples differ.
    pub test: TestResult,
    /// Repetitions of the first run and of the second.
    pub repetitions: (usize, usize),
}

/// The same with all cells taken together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JudgedRun {
    /// The p-value adjusted for the number of cells compared.
    pub adjusted_p: f64,
    /// Above or below the first run when the interval does not hold 100 and `adjusted_p` is
    /// within the level.
    pub verdict: Verdict,
}

/// Compares two independent samples of values above 0; the first is the baseline.
///
/// # Errors
///
/// When a sample is empty or has a value that is not finite or not above 0.
pub fn compare_runs(first: &[f64], second: &[f64]) -> Result<RunComparison, StatsError> {
    let what = "comparison of two runs";
    check_positive(what, first)?;
    check_positive(what, second)?;
    let (a, b) = (sorted(what, first)?, sorted(what, second)?);
    let percent = percent_of(&a, &b).ok_or(StatsError::Empty { what })?;
    let test = mann_whitney(first, second)?;
    Ok(RunComparison { percent, test, repetitions: (a.len(), b.len()) })
}

/// Of samples in ascending order.
fn percent_of(a: &[f64], b: &[f64]) -> Option<Estimate> {
    let ratio = median_of_sorted(b)? / median_of_sorted(a)?;
    let fewer = a.len().min(b.len());
    let (low, high, kind) = if fewer < BOOTSTRAP_FROM {
        (b[0] / a.last()?, b.last()? / a[0], IntervalKind::Range(fewer))
    } else {
        let (of_a, of_b) = (MedianDistribution::of_sorted(a), MedianDistribution::of_sorted(b));
        let (low, high) = of_b.ratio_interval(&of_a)?;
        (low.min(ratio), high.max(ratio), IntervalKind::Bootstrap95)
    };
    Some(Estimate { median: ratio, low, high, kind }.scaled(100.0))
}

/// Says which cells differ when all of these are looked at together, at the level `alpha`.
///
/// # Errors
///
/// When `alpha` is not between 0 and 1.
pub fn judge_runs(runs: &[RunComparison], alpha: f64) -> Result<Vec<JudgedRun>, StatsError> {
    check_open_unit("level of significance", alpha)?;
    let adjusted = holm(&runs.iter().map(|run| run.test.p_value).collect::<Vec<_>>())?;
    let judge = |(run, adjusted_p): (&RunComparison, f64)| JudgedRun {
        adjusted_p,
        verdict: if adjusted_p <= alpha {
            Verdict::of_percent(&run.percent)
        } else {
            Verdict::NotDistinguishable
        },
    };
    Ok(runs.iter().zip(adjusted).map(judge).collect())
}
