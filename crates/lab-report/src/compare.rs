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

use crate::analysis::{ALPHA, Cell, Standing, analyse};
use crate::stats::{BothRuns, Drift, Effect, holm, median};
use braid_lab::metric::{Better, Metric};
use braid_lab::store::Results;

mod pairing;
mod report;

use pairing::{Pair, Pairing};

/// From run to run by experience: two runs on a quiet machine differ by so much.
const LEAST_DRIFT: Drift = Drift { deviation: 0.03, freedom: 30.0 };
/// The same of a machine as a whole, which is what numbers drift by that are not in percent of a
/// baseline of their own run.
const MACHINE_DRIFT: Drift = Drift { deviation: 0.15, freedom: 30.0 };
/// Baselines' cells from which on the drift from run to run is estimated.
const DRIFT_FROM: usize = 3;
/// Version of the JSON form.
const OUTPUT_VERSION: u32 = 4;

/// The change of one number, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
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
    /// True if the percentage is of numbers in percent of the baseline of their own run.
    pub against_baseline: bool,
    /// Repetitions of the first and the second run.
    pub repetitions: (usize, usize),
    /// The probability that a change up to the threshold would look like this one, or larger.
    pub p_value: f64,
    /// The same with all cells counted (Holm).
    pub adjusted_p: f64,
    /// The meaning of the change.
    pub change: Change,
    /// True if there is a reason to doubt one of the two numbers.
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
    /// For the first and the second run: true if it was predicted, and not measured.
    pub predicted: [bool; 2],
    /// The error of predictions, in percent, if one of the two was predicted.
    pub model_error_percent: Option<f64>,
    /// True if a number became worse, beyond the threshold and beyond chance, or no longer exists.
    pub regression: bool,
    /// The percentage up to which a change counts as none.
    pub threshold_percent: f64,
    /// The assumed standard deviation from run to run, in percent.
    pub drift_percent: f64,
    /// The movement of the baselines' own numbers between the runs, in percent of the first; none without a
    /// baseline.
    pub baseline_percent: Option<f64>,
    /// Every number that both have and that may be compared, the worst change first.
    pub cells: Vec<CellChange>,
    /// Cells with a number in the first run and none in the second, though it was to be measured
    /// there: "subject: workload", and why.
    pub lost: Vec<(String, String)>,
    /// Every other cell that one of the runs has a number of, and why it is not compared.
    pub not_compared: Vec<(String, String)>,
    /// In what the environments differ, in words.
    pub environment: Vec<String>,
    /// In what the campaigns differ that is no dimension of a cell, in words.
    pub settings: Vec<String>,
}

impl Comparison {
    /// The number of numbers with this change.
    pub fn count(&self, change: Change) -> usize {
        self.cells.iter().filter(|cell| cell.change == change).count()
    }
}

/// Compares a second run with a first one. A change of up to `threshold` is none: 0.05 for 5 %.
pub fn compare_runs(first: &Results, second: &Results, threshold: f64) -> Comparison {
    let analyses = [analyse(first), analyse(second)];
    let pairing = Pairing::of([(first, &analyses[0]), (second, &analyses[1])]);
    let is_mixed = first.prediction().is_some() != second.prediction().is_some();
    let log_error = [&analyses[0], &analyses[1]].into_iter().filter_map(|one| one.log_error);
    let log_error = log_error.reduce(f64::max);
    let drift = drift_of(&pairing.pairs);
    let baselines = pairing.pairs.iter().filter(|pair| pair.is_baseline);
    let moved: Vec<f64> = baselines.map(|pair| pair.change().exp() * 100.0).collect();
    let mut cells = judge(&pairing.pairs, drift, threshold, log_error);
    let harm = |cell: &CellChange| match cell.which.better() {
        Better::Lower => cell.percent.ln(),
        _ => -cell.percent.ln(),
    };
    cells.sort_by(|a, b| a.change.cmp(&b.change).then(harm(b).total_cmp(&harm(a))));
    Comparison {
        output_version: OUTPUT_VERSION,
        first: first.campaign.name.clone(),
        second: second.campaign.name.clone(),
        predicted: [first, second].map(|run| run.prediction().is_some()),
        model_error_percent: log_error.map(|log_error| (log_error * 100.0).round()),
        // What a prediction and a measurement differ by is no change of anything.
        regression: !pairing.lost.is_empty()
            || !is_mixed && cells.iter().any(|cell| cell.change == Change::Regression),
        threshold_percent: threshold * 100.0,
        drift_percent: drift.deviation * 100.0,
        baseline_percent: median(&moved).filter(|_| !is_mixed),
        cells,
        lost: pairing.lost,
        not_compared: pairing.not_compared,
        environment: environments(first, second),
        settings: settings(first, second),
    }
}

/// The drift by the baselines, which are the same thing in both runs.
fn drift_of(pairs: &[Pair<'_>]) -> Drift {
    let baselines = pairs.iter().filter(|pair| pair.is_baseline);
    let baselines: Vec<&BothRuns> = baselines.map(|pair| &pair.logarithms).collect();
    let drift = Drift::of_the_same(&baselines).filter(|_| baselines.len() >= DRIFT_FROM);
    drift.filter(|drift| drift.deviation > LEAST_DRIFT.deviation).unwrap_or(LEAST_DRIFT)
}

fn judge(
    pairs: &[Pair<'_>],
    drift: Drift,
    threshold: f64,
    log_error: Option<f64>,
) -> Vec<CellChange> {
    let of_machine = if drift.deviation > MACHINE_DRIFT.deviation { drift } else { MACHINE_DRIFT };
    let weigh = |pair: &Pair<'_>| {
        // A prediction has no repetitions: what counts is how far off it may be.
        if let Some(log_error) = log_error {
            let effect = Effect::of_logarithms(&[pair.change()])?;
            return Some(effect.of_models(log_error.max((1.0 + threshold).ln())));
        }
        let drift = if pair.against_baseline { drift } else { of_machine };
        Effect::between_runs(&pair.logarithms, drift, threshold)
    };
    let judged: Vec<(&Pair<'_>, Effect)> =
        pairs.iter().filter_map(|pair| Some((pair, weigh(pair)?))).collect();
    let adjusted = holm(&judged.iter().map(|(_, effect)| effect.p_value).collect::<Vec<f64>>());
    let main = |cell: &Cell| cell.main().map_or((0.0, 0), |main| (main.median, main.count));
    let change = |((pair, effect), adjusted_p): ((&Pair<'_>, Effect), f64)| {
        let which = pair.first.headline;
        let (first, second) = (main(pair.first), main(pair.second));
        CellChange {
            change: match adjusted_p <= ALPHA {
                _ if !effect.has_interval() => Change::TooFew,
                false => Change::Same,
                true if (effect.ratio < 1.0) == (which.better() == Better::Lower) => {
                    Change::Improvement
                }
                true => Change::Regression,
            },
            subject: pair.subject.to_owned(),
            workload: pair.workload.to_owned(),
            metric: which.name(),
            unit: which.unit(),
            first: first.0,
            second: second.0,
            repetitions: (first.1, second.1),
            percent: effect.ratio * 100.0,
            interval: (effect.low * 100.0, effect.high * 100.0),
            against_baseline: pair.against_baseline,
            p_value: effect.p_value,
            adjusted_p,
            suspect: pair.first.standing.max(pair.second.standing) == Standing::Suspect,
            which,
        }
    };
    judged.into_iter().zip(adjusted).map(change).collect()
}

/// Differences between the last sessions' machines.
fn environments(first: &Results, second: &Results) -> Vec<String> {
    match (first.sessions.last(), second.sessions.last()) {
        (Some(a), Some(b)) => a.environment.differences(&b.environment),
        _ => Vec::new(),
    }
}

/// The differing settings of the campaigns around equal cells.
fn settings(first: &Results, second: &Results) -> Vec<String> {
    let (a, b) = (&first.campaign, &second.campaign);
    let mut found: Vec<String> = [
        ("runtime", format!("{} s", a.runtime_s), format!("{} s", b.runtime_s)),
        ("ramp", format!("{} s", a.ramp_s), format!("{} s", b.ramp_s)),
        ("rest", format!("{} s", a.rest_s), format!("{} s", b.rest_s)),
        ("region", a.region.to_string(), b.region.to_string()),
        ("fill", a.fill.to_string(), b.fill.to_string()),
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
