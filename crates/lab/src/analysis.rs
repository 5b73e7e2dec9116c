//! Results in, a table of cells out: for each workload and subject the numbers by repetition,
//! their estimates, the comparison with the baseline, and whether they can be believed. Pure; a
//! report only words and draws what is here.
//!
//! ```text
//! Results ──> index by workload and subject ──> Cell: values, estimates, spread, ratio
//!                 │    ▲                          │
//!   rounds: what ─┘    │                          └──> contest: who is best, if anybody
//!   counts             │
//!   judgement ─────────┘ standing, findings
//! ```
//!
//! Invariants:
//!
//! * there is a [`Cell`] for every workload on every subject, measured or not, at
//!   `workload * subjects + subject`;
//! * an invalid number takes no part in any comparison: its cell has no ratio, and where a
//!   baseline is invalid no cell of that workload has one;
//! * where repetitions are rounds of one long run, only settled ones count;
//! * a percentile is there only where the requests support it;
//! * samples are read once; nothing is looked up by name after the index is made.
//!
//! Deliberately absent: sentences (the report's), and any second look at what was measured.

use std::collections::BTreeMap;

use crate::matrix::Workload;
use crate::metric::{Better, Metric};
use crate::settings::Value;
use crate::stats::{
    BaselinePercent, ByRepetition, Estimate, Spread, Verdict, compare_with_baseline, estimate,
    outliers, spread,
};
use crate::store::Results;
use crate::trust::{Verdict as TrustVerdict, judge};

mod contest;
mod gather;
mod rounds;
mod tails;

pub use crate::trust::{Finding, Judgement, Standing};
pub use contest::{
    ALPHA, Kind, KindContests, Overall, compare_kinds, find_kinds, find_overall, pooled_baseline,
    pooled_speed, speeds, test_for,
};
use gather::Gathered;
pub use rounds::{Rounds, has_rounds};
pub(crate) use tails::merged_latencies;

/// Everything that a report is made of, beside the [`Results`] themselves.
#[derive(Debug, Clone)]
pub struct Analysis {
    /// Every workload of the campaign, in its order.
    pub workloads: Vec<Work>,
    /// Number of subjects; their order is that of [`Results::subjects`].
    pub subjects: usize,
    /// Subjects that are the baseline, together when there are several.
    pub baselines: Vec<usize>,
    /// Every workload on every subject; [`Analysis::cell`] finds one.
    pub cells: Vec<Cell>,
    /// Trials that went well.
    pub done: usize,
    /// Trials that were planned and can be done.
    pub planned: usize,
    /// What speaks against single trials, by number.
    pub trials: BTreeMap<u32, Vec<Finding>>,
    /// How often a rule could not be checked for lack of evidence, by its name.
    pub unchecked: BTreeMap<&'static str, usize>,
}

/// A workload, and what is asked of it often.
#[derive(Debug, Clone)]
pub struct Work {
    /// The workload.
    pub workload: Workload,
    /// Its label.
    pub label: String,
    /// The number that is compared.
    pub headline: Metric,
    /// What it can be told apart by.
    pub dimensions: BTreeMap<String, Value>,
}

/// Whether a cell has numbers, and why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// At least one repetition went well.
    Measured,
    /// Its repetitions are rounds of one long run and have not settled; why.
    Unsettled(String),
    /// It was tried, every time in vain; the last reason.
    Failed(String),
    /// It cannot be done, and why.
    Impossible(String),
    /// It is planned and was not begun.
    NotYet,
    /// No job is for this subject.
    NotPlanned,
}

/// From so many repetitions on single ones may stand out. Of fewer the median deviation is itself
/// a matter of chance: of three clean normal values one stands out in 29 % of cells, of eight
/// in 13 %, of twenty in 10 %.
const ODD_FROM: usize = 8;

/// A repetition that stands out from the others of its cell, which has enough of them and can be
/// used. It stays in every number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OddRepetition {
    /// Which, from 1.
    pub repetition: u32,
    /// Its headline.
    pub value: f64,
    /// Distance from the median in robust standard deviations, with sign.
    pub modified_z: f64,
}

/// One workload on one subject.
#[derive(Debug, Clone)]
pub struct Cell {
    /// Index into [`Analysis::workloads`].
    pub workload: usize,
    /// Index into [`Results::subjects`].
    pub subject: usize,
    /// Whether it has numbers.
    pub state: State,
    /// Whether the numbers can be believed.
    pub standing: Standing,
    /// What speaks against them.
    pub findings: Vec<Finding>,
    /// The number that is compared, and which way it is better.
    pub headline: Metric,
    /// What was measured and counts, by metric and repetition. Percentiles are those of trials
    /// whose requests support them.
    pub values: BTreeMap<Metric, ByRepetition>,
    /// Medians and intervals of the same; of percentiles those of all requests together.
    pub estimates: BTreeMap<Metric, Estimate>,
    /// Percentiles that the tool gave and the requests do not support, and how many it takes.
    pub unsupported: BTreeMap<Metric, u64>,
    /// Its rounds, in a campaign whose repetitions are rounds of one long run.
    pub rounds: Option<Rounds>,
    /// How far the headline's repetitions lie apart; `None` of nothing.
    pub spread: Option<Spread>,
    /// Repetitions whose headline stands out.
    pub odd: Vec<OddRepetition>,
    /// The headline in percent of the baseline's; `None` for a lone baseline itself, and where
    /// one of the two is missing or invalid.
    pub ratio: Option<BaselinePercent>,
    /// Its trials, as indices into [`Results::trials`], by repetition.
    pub trials: Vec<usize>,
}

/// How a subject compares with the baseline, whichever way its metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlook {
    /// Better, and told apart.
    Better,
    /// Worse, and told apart.
    Worse,
    /// Not distinguishable.
    Same,
}

impl Cell {
    /// One estimate.
    pub fn get(&self, metric: Metric) -> Option<&Estimate> {
        self.estimates.get(&metric)
    }

    /// The headline's estimate.
    pub fn main(&self) -> Option<&Estimate> {
        self.get(self.headline)
    }

    /// Everything that was measured, whether it counts or not.
    pub fn all_values(&self) -> &BTreeMap<Metric, ByRepetition> {
        self.rounds.as_ref().map_or(&self.values, |rounds| &rounds.all)
    }

    /// Whether a repetition counts.
    pub fn counts(&self, repetition: u32) -> bool {
        let in_window = |rounds: &Rounds| rounds.window().is_some_and(|w| w.holds(repetition));
        self.rounds.as_ref().is_none_or(in_window)
    }

    /// Whether it has a number that may be used.
    pub fn is_usable(&self) -> bool {
        self.standing != Standing::Invalid && self.main().is_some()
    }

    /// What the comparison with the baseline says; `None` without one.
    pub fn outlook(&self) -> Option<Outlook> {
        Some(outlook(self.headline.better(), self.ratio.as_ref()?.verdict))
    }

    /// How many times as fast as the baseline, with its interval in which 1 is equal: the ratio
    /// of rates, or the inverse ratio of times.
    pub fn gain(&self) -> Option<Estimate> {
        let ratio = self.ratio.as_ref()?;
        Some(match self.headline.better() {
            Better::Lower => inverted(&ratio.paired)?,
            Better::Higher | Better::Neither => ratio.paired.scaled(0.01),
        })
    }
}

/// What a verdict on a metric means for who wants it better.
pub fn outlook(better: Better, verdict: Verdict) -> Outlook {
    match (better, verdict) {
        (Better::Higher, Verdict::Above) | (Better::Lower, Verdict::Below) => Outlook::Better,
        (Better::Higher, Verdict::Below) | (Better::Lower, Verdict::Above) => Outlook::Worse,
        _ => Outlook::Same,
    }
}

/// An estimate in percent, as the factor of the inverse. `None` when an end is 0.
fn inverted(percent: &Estimate) -> Option<Estimate> {
    let ends = [percent.median, percent.low, percent.high];
    if ends.iter().any(|end| *end <= 0.0) {
        return None;
    }
    Some(Estimate {
        median: 100.0 / percent.median,
        low: 100.0 / percent.high,
        high: 100.0 / percent.low,
        kind: percent.kind,
    })
}

impl Analysis {
    /// The cell of a workload and a subject, by their indices.
    ///
    /// # Panics
    ///
    /// When an index is not below [`Analysis::workloads`]' length or [`Analysis::subjects`].
    pub fn cell(&self, workload: usize, subject: usize) -> &Cell {
        &self.cells[workload * self.subjects + subject]
    }

    /// The cells of a workload, one for each subject.
    pub fn row(&self, workload: usize) -> &[Cell] {
        let start = workload * self.subjects;
        &self.cells[start..start + self.subjects]
    }

    /// Any metric of a cell in percent of the baseline's, as [`Cell::ratio`] is of the headline.
    pub fn compare(&self, cell: &Cell, metric: Metric) -> Option<BaselinePercent> {
        compare_in(self.row(cell.workload), &self.baselines, cell, metric)
    }

    /// How far a comparison with the baseline can be believed: as far as its worst side.
    pub fn standing_against_baseline(&self, cell: &Cell) -> Standing {
        let of_baseline = |subject: &usize| self.cell(cell.workload, *subject).standing;
        self.baselines.iter().map(of_baseline).fold(cell.standing, Standing::max)
    }

    /// Whether the subject is a baseline.
    pub fn is_baseline(&self, subject: usize) -> bool {
        self.baselines.contains(&subject)
    }

    /// Whether something is still to be measured.
    pub fn is_unfinished(&self) -> bool {
        self.done < self.planned
    }
}

/// Makes the analysis, with the laboratory's own judgement of what can be believed.
pub fn analyse(results: &Results) -> Analysis {
    let workloads = results.workloads.clone();
    let mut judgement = judge(results, &workloads);
    let gathered = Gathered::of(results, &workloads);
    if has_rounds(&results.campaign) {
        // A number is judged by what it is made of, each trial by itself.
        let counted = rounds::counted_results(results, &gathered.cells);
        judgement.cells = judge(&counted, &workloads).cells;
    }
    gathered.finish(results, judgement)
}

/// The same with a judgement that was made before. `workloads` are those of
/// [`crate::matrix::Planned`]; a cell that the judgement does not have is [`Standing::Ok`].
pub fn analyse_judged(
    results: &Results,
    workloads: Vec<Workload>,
    judgement: Judgement,
) -> Analysis {
    Gathered::of(results, &workloads).finish(results, judgement)
}

impl Gathered {
    fn finish(self, results: &Results, mut judgement: Judgement) -> Analysis {
        let Self { works, mut cells, done } = self;
        let subjects = results.subjects.len();
        add_verdicts(results, &works, &mut cells, &mut judgement.cells);
        for cell in &mut cells {
            add_estimates(cell);
            tails::add_percentiles(results, cell);
        }
        let baselines: Vec<usize> =
            (0..subjects).filter(|subject| results.subjects[*subject].baseline).collect();
        if subjects > 0 {
            for row in cells.chunks_mut(subjects) {
                add_ratios(row, &baselines);
            }
        }
        let possible = cells.iter().filter(|cell| cell.can_be_measured()).count();
        Analysis {
            done,
            planned: possible * results.campaign.repetitions as usize,
            workloads: works,
            subjects,
            baselines,
            cells,
            trials: judgement.trials,
            unchecked: judgement.unchecked,
        }
    }
}

impl Cell {
    fn can_be_measured(&self) -> bool {
        !matches!(self.state, State::Impossible(_) | State::NotPlanned)
    }
}

/// Moves what is thought of each cell into it.
fn add_verdicts(
    results: &Results,
    works: &[Work],
    cells: &mut [Cell],
    verdicts: &mut BTreeMap<(String, String), TrustVerdict>,
) {
    if verdicts.is_empty() {
        return;
    }
    for cell in cells {
        let subject = results.subjects[cell.subject].name.clone();
        let key = (subject, works[cell.workload].label.clone());
        if let Some(verdict) = verdicts.remove(&key) {
            cell.standing = verdict.standing;
            cell.findings = verdict.findings;
        }
    }
}

fn add_estimates(cell: &mut Cell) {
    for (metric, values) in &cell.values {
        let numbers: Vec<f64> = values.values().copied().collect();
        if let Some(estimate) = estimate(&numbers) {
            cell.estimates.insert(*metric, estimate);
        }
    }
    let Some(values) = cell.values.get(&cell.headline) else { return };
    let numbers: Vec<f64> = values.values().copied().collect();
    let repetitions: Vec<u32> = values.keys().copied().collect();
    // An error means that there is nothing to look at.
    cell.spread = spread(&numbers).ok();
    if numbers.len() < ODD_FROM || !cell.is_usable() {
        return;
    }
    let odd = outliers(&numbers).unwrap_or_default();
    cell.odd = odd
        .iter()
        .map(|odd| OddRepetition {
            repetition: repetitions[odd.index],
            value: odd.value,
            modified_z: odd.modified_z,
        })
        .collect();
}

/// The comparisons of one workload.
fn add_ratios(row: &mut [Cell], baselines: &[usize]) {
    let compare = |cell: &Cell| compare_in(row, baselines, cell, cell.headline);
    let ratios: Vec<Option<BaselinePercent>> = row.iter().map(compare).collect();
    for (cell, ratio) in row.iter_mut().zip(ratios) {
        cell.ratio = ratio;
    }
}

/// A cell's metric against the baselines in the same row; `None` for a lone baseline, without a
/// baseline, and where a number is missing, invalid or not above 0.
fn compare_in(
    row: &[Cell],
    baselines: &[usize],
    cell: &Cell,
    metric: Metric,
) -> Option<BaselinePercent> {
    if baselines.is_empty() || baselines == [cell.subject] {
        return None;
    }
    if !cell.is_usable() || !baselines.iter().all(|subject| row[*subject].is_usable()) {
        return None;
    }
    let of_baselines: Option<Vec<&ByRepetition>> =
        baselines.iter().map(|subject| row[*subject].values.get(&metric)).collect();
    // An error means that there is no pair, or that a number is not above 0: no ratio.
    compare_with_baseline(cell.values.get(&metric)?, &of_baselines?).ok()
}

#[cfg(test)]
mod tests;
