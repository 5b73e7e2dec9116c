//! Two results directories: what became faster or slower, and whether that is more than chance.
//!
//! ```text
//! Results a ─┐ cells that both have, by   ┌─ test: Mann-Whitney, all cells counted (Holm)
//! Results b ─┴ subject and workload ──────┤        and the 95 % interval without 100 %
//!                                         └─ ranges, where the test cannot reach its level
//! ```
//!
//! A cell is a regression when it is worse by more than the threshold **and** that is proven:
//! the adjusted p-value is within the level and the interval of the ratio does not hold 100 %.
//! With few repetitions no p-value can be that small. Then a stricter rule takes its place: at
//! least three repetitions on both sides, medians apart by more than twice the threshold, ranges
//! apart, and the gap between them wider than the wider range, 1.5 times for one cell and by the
//! cube root of their number more for many. A cell that had a number and has none any more is
//! worse than any regression: it is named with its reason, and the comparison is not passed.
//!
//! Invariants: invalid numbers take no part and are named; which way is better is the metric's;
//! environments that differ are named first, because then nothing else may be the cause; every
//! cell that one of the runs has a number of is in exactly one list.
//!
//! Deliberately absent: pairs. The repetitions of two runs have nothing in common.

use serde::Serialize;

use crate::analysis::analyse;
use crate::metric::{Better, Metric};
use crate::stats::{RunComparison, Verdict, holm, judge_runs};
use crate::store::Results;

mod pairing;
mod report;

use pairing::{Pair, Pairing};

/// Repetitions on both sides from which ranges may decide.
const RANGES_FROM: usize = 3;
/// How many thresholds apart medians must be for ranges to decide.
const RANGES_THRESHOLDS: f64 = 2.0;
/// How many times the wider range the gap must be for one cell.
const RANGES_GAP: f64 = 1.5;
/// Version of the JSON form.
const OUTPUT_VERSION: u32 = 2;

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
    /// There are too few repetitions for either rule.
    TooFew,
}

/// How a cell was judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// By the test, with all cells counted.
    Test,
    /// By ranges, because so few repetitions cannot pass the test.
    Ranges,
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
    /// The second in percent of the first.
    pub percent: f64,
    /// Lower and upper end of its interval: 95 % from six repetitions on both sides on, else the
    /// range of all ratios.
    pub interval: (f64, f64),
    /// Repetitions of the first and the second run.
    pub repetitions: (usize, usize),
    /// p-value of this cell alone (Mann-Whitney).
    pub p_value: f64,
    /// The same with all cells counted (Holm).
    pub adjusted_p: f64,
    /// The smallest adjusted p-value that so many repetitions allow.
    pub smallest_adjusted_p: f64,
    /// Which rule decided.
    pub rule: Rule,
    /// What it said.
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
    let mut cells = judge(pairing.pairs, options);
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
        cells,
        lost: pairing.lost,
        only_first: pairing.only_first,
        only_second: pairing.only_second,
        left_out: pairing.left_out,
        environment: environments(first, second),
        settings: settings(first, second),
    }
}

fn judge(pairs: Vec<Pair>, options: &CompareOptions) -> Vec<CellChange> {
    let runs: Vec<RunComparison> = pairs.iter().map(|pair| pair.run).collect();
    let smallest: Vec<f64> = runs.iter().map(|run| run.test.smallest_p).collect();
    // p-values are probabilities; an error can only come from a level that is none, and then
    // nothing is proven.
    let smallest = holm(&smallest).unwrap_or_else(|_| vec![1.0; runs.len()]);
    let judged = judge_runs(&runs, options.alpha).unwrap_or_default();
    pairs
        .into_iter()
        .zip(smallest)
        .enumerate()
        .map(|(index, (pair, smallest_adjusted_p))| {
            let rule = if smallest_adjusted_p <= options.alpha { Rule::Test } else { Rule::Ranges };
            let (adjusted_p, verdict) = judged
                .get(index)
                .map_or((1.0, Verdict::NotDistinguishable), |j| (j.adjusted_p, j.verdict));
            let change = match rule {
                Rule::Test => change_by_test(&pair, verdict, options),
                Rule::Ranges => change_by_ranges(&pair, runs.len(), options),
            };
            let percent = pair.run.percent;
            CellChange {
                first: crate::stats::median(&pair.first).unwrap_or(0.0),
                second: crate::stats::median(&pair.second).unwrap_or(0.0),
                subject: pair.subject,
                workload: pair.workload,
                metric: pair.metric.name(),
                unit: pair.metric.unit(),
                percent: percent.median,
                interval: (percent.low, percent.high),
                repetitions: pair.run.repetitions,
                p_value: pair.run.test.p_value,
                adjusted_p,
                smallest_adjusted_p,
                rule,
                change,
                suspect: pair.suspect,
                which: pair.metric,
            }
        })
        .collect()
}

fn change_by_test(pair: &Pair, verdict: Verdict, options: &CompareOptions) -> Change {
    let beyond = (pair.run.percent.median - 100.0).abs() > 100.0 * options.threshold;
    match verdict {
        Verdict::NotDistinguishable => Change::Same,
        _ if !beyond => Change::Same,
        verdict => direction(pair.metric, verdict),
    }
}

/// How many times the wider range the gap between two ranges must be among so many cells.
///
/// Of two equal sets of three values the gap is 1.5 times the wider range in 0.6 % of cases
/// (uniform noise; normal and exponential noise give half of that), and falls with about the third
/// power of the factor: by simulation 0.33 % at 2, 0.12 % at 3, 0.055 % at 4. So a factor that
/// grows with the cube root of the number of cells keeps the chance of any false alarm near 1 %.
/// Four values make it ten times smaller.
fn times_the_range(cells: usize) -> f64 {
    RANGES_GAP * (cells as f64).cbrt()
}

fn change_by_ranges(pair: &Pair, cells: usize, options: &CompareOptions) -> Change {
    let (a, b) = (&pair.first, &pair.second);
    if a.len().min(b.len()) < RANGES_FROM {
        return Change::TooFew;
    }
    let ends = |values: &[f64]| {
        values.iter().fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(*v), high.max(*v)))
    };
    let ((a_low, a_high), (b_low, b_high)) = (ends(a), ends(b));
    let gap = (b_low - a_high).max(a_low - b_high);
    let widest = (a_high - a_low).max(b_high - b_low);
    let apart = (pair.run.percent.median - 100.0).abs();
    let near = apart <= RANGES_THRESHOLDS * 100.0 * options.threshold;
    if near || gap <= 0.0 || gap <= times_the_range(cells) * widest {
        return Change::Same;
    }
    let above = pair.run.percent.median > 100.0;
    direction(pair.metric, if above { Verdict::Above } else { Verdict::Below })
}

fn direction(metric: Metric, verdict: Verdict) -> Change {
    match crate::analysis::outlook(metric.better(), verdict) {
        crate::analysis::Outlook::Better => Change::Improvement,
        crate::analysis::Outlook::Worse => Change::Regression,
        crate::analysis::Outlook::Same => Change::Same,
    }
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
