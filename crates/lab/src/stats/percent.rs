//! Percent of a baseline, with an interval, made in pairs.
//!
//! A pair is one repetition. Where several subjects are the baseline together (a study of an
//! array against its single disks), a repetition's baseline is the mean of their values in that
//! repetition: the average disk, on the machine as it was at that time.
//!
//! One number comes out, with its interval: the median of the repetitions' ratios, in which a drift
//! cancels out. The ratio of the medians, which a reader may compute from a table of them, is
//! another number: with a drift it can even lie outside the interval. It is nowhere given as the
//! result; only sums of medians are compared as a study prints them (`percent_table`).

use std::collections::BTreeMap;

use super::check::{check_not_negative, check_positive};
use super::error::StatsError;
use super::estimate::{Estimate, estimate};
use super::verdict::Verdict;

/// One value for each repetition that was measured.
pub type ByRepetition = BTreeMap<u32, f64>;

const WHAT: &str = "percent of the baseline";

/// A subject against its baseline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BaselinePercent {
    /// The repetitions' ratios in percent: their median and its interval.
    pub paired: Estimate,
    /// Repetitions measured on both sides.
    pub pairs: usize,
    /// Repetitions measured on one side only, which say nothing here.
    pub unpaired: usize,
    /// Above or below the baseline, or not distinguishable when the interval holds 100.
    pub verdict: Verdict,
}

/// The baseline of each repetition: the mean of the subjects' values in it. A repetition that one
/// of them lacks has no baseline, for a mean over fewer disks is another baseline.
pub fn average_baselines(baselines: &[&ByRepetition]) -> ByRepetition {
    let Some((first, others)) = baselines.split_first() else { return ByRepetition::new() };
    let count = baselines.len() as f64;
    first
        .iter()
        .filter_map(|(repetition, value)| {
            let further: Option<Vec<f64>> =
                others.iter().map(|other| other.get(repetition).copied()).collect();
            Some((*repetition, (value + further?.iter().sum::<f64>()) / count))
        })
        .collect()
}

/// A subject as percent of one baseline or of the average of several.
///
/// # Errors
///
/// When no repetition was measured on all sides, a subject's value is below 0, a baseline's is
/// not above 0, or any is not finite.
pub fn compare_with_baseline(
    subject: &ByRepetition,
    baselines: &[&ByRepetition],
) -> Result<BaselinePercent, StatsError> {
    let average = average_baselines(baselines);
    let (values, divisors): (Vec<f64>, Vec<f64>) = subject
        .iter()
        .filter_map(|(repetition, value)| Some((*value, *average.get(repetition)?)))
        .unzip();
    let none = || StatsError::NoPairs { what: WHAT };
    if values.is_empty() {
        return Err(none());
    }
    check_not_negative(WHAT, &values)?;
    check_positive(WHAT, &divisors)?;
    let percents: Vec<f64> =
        values.iter().zip(&divisors).map(|(value, divisor)| value / divisor * 100.0).collect();
    let paired = estimate(&percents).ok_or_else(none)?;
    let pairs = values.len();
    Ok(BaselinePercent {
        paired,
        pairs,
        unpaired: subject.len() + average.len() - 2 * pairs,
        verdict: Verdict::of_percent(&paired),
    })
}
