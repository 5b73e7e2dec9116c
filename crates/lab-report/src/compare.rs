//! Two results directories: what became faster or slower, and whether that is more than chance.
//!
//! ```text
//! Results a ─┐ cells that both have, by   ┌─ against the baseline of their own run, where there is one
//! Results b ─┴ subject and workload ──────┤  (else by themselves)
//!                                         └─ change, its scatter within the runs, and from run to run
//! ```
//!
//! Two runs of the same thing differ by more than their repetitions do: repetitions of one run share
//! the machine as it was that hour. So a cell is compared in percent of the baseline of its own run,
//! which that hour slowed down as well, and what is left from run to run is part of the reckoning: it is
//! estimated from how far the baselines' cells moved, and never taken for less than 3 %; of the baseline
//! itself, for less than 15 %. A cell is a regression
//! when it is worse by more than the threshold beyond all of that, with every cell counted. A cell that
//! had a number and has none any more is worse than any regression: it is named with its reason, and
//! the comparison is not passed.
//!
//! Invariants: invalid numbers take no part and are named; which way is better is the metric's;
//! environments that differ are named first, because then nothing else may be the cause; every
//! cell that one of the runs has a number of is in exactly one list.
//!
//! Deliberately absent: pairs of repetitions. Those of two runs have nothing in common.

use serde::Serialize;

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::analysis::analyse;
use crate::stats::{LEAST_NOISE, holm, logarithms, mean_and_deviation, median};
use braid_lab::metric::{Better, Metric};
use braid_lab::store::Results;

mod pairing;
mod report;

use pairing::{Pair, Pairing};

/// Standard deviation of a logarithm from run to run that is believed at least: two runs on a quiet
/// machine differ by so much.
const LEAST_DRIFT: f64 = 0.03;
/// The same of a machine as a whole, which is what numbers drift by that are not in percent of a
/// baseline of their own run.
const MACHINE_DRIFT: f64 = 0.15;
/// With how many degrees of freedom that is known: it is experience and no estimate.
const FREEDOM_OF_LEAST: f64 = 30.0;
/// Baselines' cells from which on the drift from run to run is estimated.
const DRIFT_FROM: usize = 3;
/// Version of the JSON form.
const OUTPUT_VERSION: u32 = 3;

/// What counts as a regression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CompareOptions {
    /// A change of the median up to this part of it is none: 0.05 for 5 %; from 0 on.
    pub threshold: f64,
    /// Level of significance for all cells together, between 0 and 1.
    pub alpha: f64,
}

impl Default for CompareOptions {
    fn default() -> Self {
        Self { threshold: 0.05, alpha: 0.05 }
    }
}

/// What became of one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Worse by more than the threshold, and proven.
    Regression,
    /// Better by more than the threshold, and proven.
    Improvement,
    /// No difference that is both proven and beyond the threshold.
    Same,
    /// There is one repetition on one of the sides.
    TooFew,
}

/// One number of one cell, in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellChange {
    /// The subject's name.
    pub subject: String,
    /// The workload's label.
    pub workload: String,
    /// The metric's name in the store.
    pub metric: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Median of the first run, in the unit.
    pub first: f64,
    /// Median of the second run.
    pub second: f64,
    /// The second in percent of the first; of the same in percent of the baseline of its run, where
    /// `against_baseline` says so.
    pub percent: f64,
    /// Lower and upper end of its 95 % interval, drift from run to run included; both the percent itself
    /// where a side has one repetition.
    pub interval: (f64, f64),
    /// Whether the percent is of numbers in percent of the baseline of their own run.
    pub against_baseline: bool,
    /// Repetitions of the first and the second run.
    pub repetitions: (usize, usize),
    /// How often a change up to the threshold would look like this one, or larger.
    pub p_value: f64,
    /// The same with all cells counted (Holm).
    pub adjusted_p: f64,
    /// What that says.
    pub change: Change,
    /// Whether something speaks against one of the two numbers.
    pub suspect: bool,
    #[serde(skip)]
    which: Metric,
}

/// Two runs compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Version of this form; it changes when a field changes its meaning.
    pub output_version: u32,
    /// Name of the first campaign, which is what the second is compared with.
    pub first: String,
    /// Name of the second.
    pub second: String,
    /// Whether something got worse: a number, or a cell that has none any more.
    pub regression: bool,
    /// Percent up to which a change is none.
    pub threshold_percent: f64,
    /// Level of significance.
    pub alpha: f64,
    /// Standard deviation from run to run that was reckoned with, in percent.
    pub drift_percent: f64,
    /// How far the baselines' own numbers moved between the runs, in percent of the first; none without
    /// a baseline.
    pub baseline_percent: Option<f64>,
    /// Every number that both have and that may be compared, the worst change first.
    pub cells: Vec<CellChange>,
    /// Cells with a number in the first run and none in the second, though it was to be measured
    /// there: "subject: workload", and why.
    pub lost: Vec<(String, String)>,
    /// Cells that have a number in the first run and that the second campaign does not have.
    pub only_first: Vec<String>,
    /// Cells that have a number in the second run and that the first campaign does not have.
    pub only_second: Vec<String>,
    /// Cells left out for other reasons, and why.
    pub left_out: Vec<(String, String)>,
    /// In what the environments differ, in words.
    pub environment: Vec<String>,
    /// In what the campaigns differ that is no dimension of a cell, in words.
    pub settings: Vec<String>,
}

impl Comparison {
    /// Whether anything became slower, beyond the threshold and beyond chance, or has no number
    /// any more.
    pub fn has_regression(&self) -> bool {
        self.regression
    }

    /// How many numbers changed in this way.
    pub fn count(&self, change: Change) -> usize {
        self.cells.iter().filter(|cell| cell.change == change).count()
    }
}

/// Compares a second run with a first one.
pub fn compare_runs(first: &Results, second: &Results, options: &CompareOptions) -> Comparison {
    let pairing = Pairing::of((first, &analyse(first)), (second, &analyse(second)));
    let drift = drift_of(&pairing.pairs);
    let baselines = pairing.pairs.iter().filter(|pair| pair.is_baseline);
    let moved: Vec<f64> = baselines.map(|pair| pair.change.exp() * 100.0).collect();
    let mut cells = judge(pairing.pairs, drift, options);
    let harm = |cell: &CellChange| match cell.which.better() {
        Better::Lower => cell.percent.ln(),
        _ => -cell.percent.ln(),
    };
    cells.sort_by(|a, b| (a.change as u8).cmp(&(b.change as u8)).then(harm(b).total_cmp(&harm(a))));
    Comparison {
        output_version: OUTPUT_VERSION,
        first: first.campaign.name.clone(),
        second: second.campaign.name.clone(),
        regression: !pairing.lost.is_empty()
            || cells.iter().any(|cell| cell.change == Change::Regression),
        threshold_percent: options.threshold * 100.0,
        alpha: options.alpha,
        drift_percent: drift.deviation * 100.0,
        baseline_percent: median(&moved),
        cells,
        lost: pairing.lost,
        only_first: pairing.only_first,
        only_second: pairing.only_second,
        left_out: pairing.left_out,
        environment: environments(first, second),
        settings: settings(first, second),
    }
}

/// How far equal cells move from run to run.
#[derive(Debug, Clone, Copy)]
struct Drift {
    /// Standard deviation of a logarithm.
    deviation: f64,
    /// Degrees of freedom with which it is known.
    freedom: f64,
}

/// The drift by the baselines, which are the same thing in both runs: what their changes scatter by
/// beyond the noise of their repetitions. Twice, since the subject drifts, too.
fn drift_of(pairs: &[Pair]) -> Drift {
    let least = Drift { deviation: LEAST_DRIFT, freedom: FREEDOM_OF_LEAST };
    let baselines: Vec<&Pair> = pairs.iter().filter(|pair| pair.is_baseline).collect();
    if baselines.len() < DRIFT_FROM {
        return least;
    }
    let changes: Vec<f64> = baselines.iter().map(|pair| pair.change).collect();
    let errors: Vec<f64> = baselines.iter().filter_map(|pair| pair.error).collect();
    let Some((_, all)) = mean_and_deviation(&changes) else { return least };
    let noise = errors.iter().map(|error| error.powi(2)).sum::<f64>() / errors.len().max(1) as f64;
    let own = (all.powi(2) - noise).max(0.0);
    let deviation = (2.0 * own).sqrt();
    if deviation <= LEAST_DRIFT {
        return least;
    }
    Drift { deviation, freedom: (baselines.len() - 1) as f64 }
}

fn judge(pairs: Vec<Pair>, drift: Drift, options: &CompareOptions) -> Vec<CellChange> {
    let judged: Vec<(f64, (f64, f64))> =
        pairs.iter().map(|pair| weigh(pair, drift, options)).collect();
    let adjusted = holm(&judged.iter().map(|(p_value, _)| *p_value).collect::<Vec<f64>>());
    let cells = pairs.into_iter().zip(judged).zip(adjusted);
    cells
        .map(|((pair, (p_value, interval)), adjusted_p)| CellChange {
            change: match (pair.error, adjusted_p <= options.alpha) {
                (None, _) => Change::TooFew,
                (_, false) => Change::Same,
                (_, true) => direction(pair.metric, pair.change),
            },
            first: median(&pair.first).unwrap_or(0.0),
            second: median(&pair.second).unwrap_or(0.0),
            repetitions: (pair.first.len(), pair.second.len()),
            subject: pair.subject,
            workload: pair.workload,
            metric: pair.metric.name(),
            unit: pair.metric.unit(),
            percent: pair.change.exp() * 100.0,
            interval,
            against_baseline: pair.against_baseline,
            p_value,
            adjusted_p,
            suspect: pair.suspect,
            which: pair.metric,
        })
        .collect()
}

/// The p-value of a change up to the threshold, in its direction, and the interval in percent.
fn weigh(pair: &Pair, drift: Drift, options: &CompareOptions) -> (f64, (f64, f64)) {
    let alone = (1.0, (pair.change.exp() * 100.0, pair.change.exp() * 100.0));
    let fewer = pair.first.len().min(pair.second.len());
    let Some(error) = pair.error.filter(|_| fewer > 1) else { return alone };
    let error = error.max(LEAST_NOISE);
    let drift = match pair.against_baseline {
        true => drift,
        false => Drift { deviation: drift.deviation.max(MACHINE_DRIFT), freedom: FREEDOM_OF_LEAST },
    };
    let whole = error.hypot(drift.deviation);
    // Welch and Satterthwaite's: the part that is larger says how well the sum is known.
    let parts = error.powi(4) / (fewer - 1) as f64 + drift.deviation.powi(4) / drift.freedom;
    // A scale of 1 and a freedom above 0 are accepted.
    let Ok(student) = StudentsT::new(0.0, 1.0, whole.powi(4) / parts) else { return alone };
    let beyond = pair.change.abs() - (1.0 + options.threshold).ln();
    let reach = student.inverse_cdf(0.975) * whole;
    let ends = [-reach, reach].map(|reach| (pair.change + reach).exp() * 100.0);
    (student.sf(beyond / whole).clamp(f64::MIN_POSITIVE, 1.0), (ends[0], ends[1]))
}

fn direction(metric: Metric, change: f64) -> Change {
    match metric.better() {
        Better::Lower if change < 0.0 => Change::Improvement,
        Better::Lower => Change::Regression,
        _ if change < 0.0 => Change::Regression,
        _ => Change::Improvement,
    }
}

/// The mean of the logarithms of some numbers, and its standard error; `None` when one is not above 0.
fn mean_log(values: &[f64]) -> Option<(f64, Option<f64>)> {
    let (mean, deviation) = mean_and_deviation(&logarithms(values)?)?;
    let error = (values.len() > 1).then(|| deviation / (values.len() as f64).sqrt());
    Some((mean, error))
}

/// Differences between the last sessions' machines.
fn environments(first: &Results, second: &Results) -> Vec<String> {
    match (first.sessions.last(), second.sessions.last()) {
        (Some(a), Some(b)) => a.environment.differences(&b.environment),
        _ => Vec::new(),
    }
}

/// What the campaigns set differently around equal cells.
fn settings(first: &Results, second: &Results) -> Vec<String> {
    let (a, b) = (&first.campaign, &second.campaign);
    let mut found: Vec<String> = [
        ("runtime", format!("{} s", a.runtime_s), format!("{} s", b.runtime_s)),
        ("ramp", format!("{} s", a.ramp_s), format!("{} s", b.ramp_s)),
        ("rest", format!("{} s", a.rest_s), format!("{} s", b.rest_s)),
        ("region", a.region.to_string(), b.region.to_string()),
        ("fill", a.fill.to_string(), b.fill.to_string()),
        ("seed", a.seed.to_string(), b.seed.to_string()),
    ]
    .into_iter()
    .filter(|(_, a, b)| a != b)
    .map(|(what, a, b)| format!("{what}: {a} and {b}"))
    .collect();
    for subject in &first.subjects {
        let other = second.subjects.iter().find(|other| other.name == subject.name);
        if let Some(other) = other.filter(|other| other.source != subject.source) {
            let (a, b) = (subject.source.text(), other.source.text());
            found.push(format!("{}: {a} and {b}", subject.name));
        }
    }
    found
}

#[cfg(test)]
mod tests;
