//! Results in, a table of cells out: for each workload and subject the numbers by repetition,
//! their estimates, the comparison with the baseline, and whether they can be believed. Pure; a
//! report only words and draws what is here.
//!
//! ```text
//! Results ──> index by workload and subject ──> Cell: values, estimates, effect
//!                 │    ▲                          │
//!   rounds: what ─┘    │                          ├──> kinds: each subject at each kind of work
//!                      │                          ├──> contest: who is best at a kind, if anybody
//!                      │                          └──> factors: what chunk, count, bus ... do
//!   counts             │
//!   judgement ─────────┘ standing, findings
//! ```
//!
//! Invariants:
//!
//! * there is a [`Cell`] for every workload on every subject, measured or not, at
//!   `workload * subjects + subject`;
//! * an invalid number takes no part in any comparison: its cell has no effect, and where a
//!   baseline is invalid no cell of that workload has one;
//! * where repetitions are rounds of one long run, only settled ones count;
//! * a percentile is there only where the requests support it;
//! * samples are read once; nothing is looked up by name after the index is made.
//!
//! Deliberately absent: sentences (the report's), and any second look at what was measured.

use std::collections::{BTreeMap, BTreeSet};

use crate::stats::{ByRepetition, Effect, Estimate, average_baselines, estimate, holm, scatter};
use crate::trust::{Verdict as TrustVerdict, judge};
use braid_lab::matrix::Workload;
use braid_lab::metric::{Better, Metric};
use braid_lab::settings::Value;
use braid_lab::store::Results;

mod contest;
mod factors;
mod gather;
mod health;
mod kinds;
mod rounds;
mod tails;

pub use crate::trust::{Finding, Judgement, Standing};
pub use contest::{Contest, Outcome, find_contests};
pub use factors::{Factor, Level, LevelEffect, find_factors};
use gather::Gathered;
pub use health::{Phase, PhaseEffect, Rebuild, find_phases, find_rebuilds};
pub use kinds::{
    Kind, KindEffect, find_effects, find_kinds, pooled_baseline, pooled_speed, speeds,
};
pub(crate) use rounds::WITHOUT_WORK;
pub use rounds::{Rounds, has_rounds};
pub(crate) use tails::merged_latencies;

/// The level at which a difference is called proven.
pub const ALPHA: f64 = 0.05;

/// Everything that a report is made of, beside the [`Results`] themselves.
#[derive(Debug, Clone)]
pub struct Analysis {
    /// Every workload of the campaign, in its order.
    pub workloads: Vec<Work>,
    /// Number of subjects; their order is that of [`Planned::subjects`](braid_lab::matrix::Planned::subjects).
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
    /// What concerns all numbers.
    pub campaign: Vec<Finding>,
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

/// One workload on one subject.
#[derive(Debug, Clone)]
pub struct Cell {
    /// Index into [`Analysis::workloads`].
    pub workload: usize,
    /// Index into [`Planned::subjects`](braid_lab::matrix::Planned::subjects).
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
    /// Medians and ranges of the same.
    pub estimates: BTreeMap<Metric, Estimate>,
    /// Percentiles that the tool gave and the requests do not support.
    pub unsupported: BTreeSet<Metric>,
    /// All values, where some repetitions were disturbed.
    all: Option<BTreeMap<Metric, ByRepetition>>,
    /// Repetitions that were disturbed from outside and do not count.
    pub disturbed: BTreeSet<u32>,
    /// Its rounds, in a campaign whose repetitions are rounds of one long run.
    pub rounds: Option<Rounds>,
    /// Standard deviation of the logarithms of the headline's repetitions; `None` of fewer than two.
    pub scatter: Option<f64>,
    /// How many times as fast as the baseline, whichever way the headline is better; `None` for a
    /// lone baseline itself, and where one of the two is missing or invalid.
    pub effect: Option<Effect>,
    /// What that says with every comparison of a cell of the campaign counted.
    pub outlook: Option<Outlook>,
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
        match (&self.rounds, &self.all) {
            (Some(rounds), _) => &rounds.all,
            (None, Some(all)) => all,
            (None, None) => &self.values,
        }
    }

    /// Whether a repetition counts.
    pub fn counts(&self, repetition: u32) -> bool {
        let in_window = |rounds: &Rounds| rounds.window().is_some_and(|w| w.holds(repetition));
        self.rounds.as_ref().is_none_or(in_window) && !self.disturbed.contains(&repetition)
    }

    /// Whether it has a number that may be used.
    pub fn is_usable(&self) -> bool {
        self.standing != Standing::Invalid && self.main().is_some()
    }
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

    /// Any metric of a cell against the baseline's: the ratio of the numbers themselves, of which
    /// [`Cell::effect`] is that of the speeds.
    pub fn compare(&self, cell: &Cell, metric: Metric) -> Option<Effect> {
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
/// [`braid_lab::matrix::Planned`]; a cell that the judgement does not have is [`Standing::Ok`].
#[cfg(test)]
pub(crate) fn analyse_judged(
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
            tails::note_unsupported(results, cell);
        }
        let baselines: Vec<usize> =
            (0..subjects).filter(|subject| results.subjects[*subject].baseline).collect();
        if subjects > 0 {
            for row in cells.chunks_mut(subjects) {
                add_effects(row, &baselines);
            }
            add_outlooks(&mut cells);
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
            campaign: judgement.campaign,
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
            if !verdict.disturbed.is_empty() {
                cell.all = Some(cell.values.clone());
            }
            for values in cell.values.values_mut() {
                values.retain(|repetition, _| !verdict.disturbed.contains(repetition));
            }
            cell.disturbed = verdict.disturbed;
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
    let values = cell.values.get(&cell.headline);
    cell.scatter = values.and_then(|v| scatter(&v.values().copied().collect::<Vec<f64>>()));
}

/// The comparisons of one workload.
fn add_effects(row: &mut [Cell], baselines: &[usize]) {
    let compare = |cell: &Cell| {
        let effect = compare_in(row, baselines, cell, cell.headline)?;
        Some(if cell.headline.better() == Better::Lower { effect.inverse() } else { effect })
    };
    let effects: Vec<Option<Effect>> = row.iter().map(compare).collect();
    for (cell, effect) in row.iter_mut().zip(effects) {
        cell.effect = effect;
    }
}

/// What each comparison says when all of them are counted, so that in one campaign of twenty with
/// equal subjects a single cell is told apart, and not one cell of twenty in each.
fn add_outlooks(cells: &mut [Cell]) {
    let compared = cells.iter().filter_map(|cell| cell.effect);
    let adjusted = holm(&compared.map(|effect| effect.p_value).collect::<Vec<f64>>());
    let compared = cells.iter_mut().filter(|cell| cell.effect.is_some());
    for (cell, p_value) in compared.zip(adjusted) {
        cell.outlook = cell.effect.map(|effect| outlook(&effect, p_value));
    }
}

/// What an effect of a speed says at an adjusted p-value.
pub(crate) fn outlook(effect: &Effect, p_value: f64) -> Outlook {
    match p_value <= ALPHA {
        true if effect.ratio > 1.0 => Outlook::Better,
        true => Outlook::Worse,
        false => Outlook::Same,
    }
}

/// A cell's metric against the baselines in the same row; `None` for a lone baseline, without a
/// baseline, and where a number is missing, invalid or not above 0.
fn compare_in(row: &[Cell], baselines: &[usize], cell: &Cell, metric: Metric) -> Option<Effect> {
    if baselines.is_empty() || baselines == [cell.subject] {
        return None;
    }
    if !cell.is_usable() || !baselines.iter().all(|subject| row[*subject].is_usable()) {
        return None;
    }
    let of_baselines: Option<Vec<&ByRepetition>> =
        baselines.iter().map(|subject| row[*subject].values.get(&metric)).collect();
    Effect::of(cell.values.get(&metric)?, &average_baselines(&of_baselines?))
}

#[cfg(test)]
mod tests;
