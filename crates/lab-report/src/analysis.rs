//! From results to a table of cells: for each workload and subject the numbers by repetition, their estimates,
//! the comparison with the baseline, and whether the numbers can be trusted. Pure; a report only puts this
//! content into words and charts.
//!
//! ```text
//! Results ──> index by workload and subject ──> Cell: values, estimates, effect
//!                 │    ▲                          │
//!   rounds: what ─┘    │                          ├──> kinds: each subject at each kind of work
//!                      │                          ├──> contest: the best subject at a kind, if there is one
//!                      │                          └──> factors: effects of chunk, count, bus ...
//!   counts             │
//!   judgement ─────────┘ standing, findings
//! ```
//!
//! Invariants:
//!
//! * there is a [`Cell`] for every workload on every subject, measured or not, at
//!   `workload * subjects + subject`;
//! * an invalid number takes no part in any comparison: its cell has no effect, and if a baseline is invalid no
//!   cell of that workload has one;
//! * if repetitions are rounds of one long run, only settled ones count;
//! * a percentile exists only if the requests of each counted repetition support it;
//! * samples are read once; nothing is looked up by name after the index is made.
//!
//! Deliberately absent: sentences (the report's), and any second look at the measurements.

use std::collections::{BTreeMap, BTreeSet};

use crate::stats::{ByRepetition, Effect, Estimate, estimate, holm, mean, together};
use crate::trust::judge_counted;
use braid_lab::matrix::Workload;
use braid_lab::metric::Metric;
use braid_lab::settings::Value;
use braid_lab::store::{Results, StoredTrial};

mod contest;
mod factors;
mod gather;
mod health;
mod kinds;
mod rounds;
mod tails;

pub use crate::trust::{Finding, Judgement, Standing};
pub(crate) use contest::{ALIKE, LEAST_PAIRS, PLACES};
pub use contest::{Contest, Outcome, Unknown, find_contests};
pub use factors::{Factor, Level, LevelEffect, find_factors};
use gather::gather;
pub use health::{Phase, PhaseEffect, Rebuild, find_phases, find_rebuilds};
pub use kinds::{Kind, KindEffect, find_effects, find_kinds, speeds};
pub use rounds::Rounds;
pub(crate) use rounds::WITHOUT_WORK;
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
    /// The baseline a second time, in another place: never chosen, and what says how far equals are apart.
    pub control: Option<usize>,
    /// Every workload on every subject; [`Analysis::cell`] finds one.
    pub cells: Vec<Cell>,
    /// The greatest error of predicted numbers, as a logarithm; `None` for measurements.
    pub log_error: Option<f64>,
    /// Trials that went well.
    pub done: usize,
    /// Trials that were planned and can be done.
    pub planned: usize,
    /// Reasons to doubt single trials, by number.
    pub trials: BTreeMap<u32, Vec<Finding>>,
    /// Findings that concern all numbers.
    pub campaign: Vec<Finding>,
    /// For each rule by name, the number of cases that could not be checked for lack of evidence.
    pub unchecked: BTreeMap<&'static str, usize>,
}

/// A workload, and its facts that are used often.
#[derive(Debug, Clone)]
pub struct Work {
    /// The workload.
    pub workload: Workload,
    /// Its label.
    pub label: String,
    /// The number that is compared.
    pub headline: Metric,
    /// The dimensions that distinguish it.
    pub dimensions: BTreeMap<String, Value>,
}

impl Work {
    /// A dimension that is a word; empty of any other.
    fn word(&self, name: &str) -> &str {
        match self.dimensions.get(name) {
            Some(Value::Word(word)) => word,
            _ => "",
        }
    }
}

/// The state of a cell: measured, or the reason why it has no numbers.
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
    /// The state of its numbers.
    pub state: State,
    /// The trust in its numbers.
    pub standing: Standing,
    /// The reasons to doubt them.
    pub findings: Vec<Finding>,
    /// The compared number, and its better direction.
    pub headline: Metric,
    /// Everything that was measured, by metric and repetition, but for percentiles that the requests of
    /// a trial do not support.
    pub all: BTreeMap<Metric, ByRepetition>,
    /// The part of it that counts.
    pub values: BTreeMap<Metric, ByRepetition>,
    /// Medians and ranges of `values`.
    pub estimates: BTreeMap<Metric, Estimate>,
    /// Percentiles that the tool gave and the requests of a repetition do not support.
    pub unsupported: BTreeSet<Metric>,
    /// Repetitions that were disturbed from outside and do not count.
    pub disturbed: BTreeSet<u32>,
    /// Its rounds, in a campaign whose repetitions are rounds of one long run.
    pub rounds: Option<Rounds>,
    /// The speed relative to the baseline, in the better direction of the headline; `None` for a lone baseline
    /// itself, and if one of the two is missing or invalid.
    pub effect: Option<Effect>,
    /// The meaning of the effect when all comparisons of the campaign's cells are counted.
    pub outlook: Option<Outlook>,
    /// Its trials, as indices into [`Results::trials`], by repetition.
    pub trials: Vec<usize>,
}

/// The result of the comparison of a subject with the baseline, in the better direction of its metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlook {
    /// Better, with proof.
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

    /// True if a repetition counts.
    pub fn counts(&self, repetition: u32) -> bool {
        let in_window = |rounds: &Rounds| rounds.window().is_some_and(|w| w.holds(repetition));
        self.rounds.as_ref().is_none_or(in_window) && !self.disturbed.contains(&repetition)
    }

    /// Leaves only what counts.
    fn keep_what_counts(&mut self) {
        let counted = |values: &ByRepetition| -> ByRepetition {
            let all = values.iter().map(|(repetition, value)| (*repetition, *value));
            all.filter(|(repetition, _)| self.counts(*repetition)).collect()
        };
        let counted = self.all.iter().map(|(metric, values)| (*metric, counted(values)));
        self.values = counted.filter(|(_, values)| !values.is_empty()).collect();
    }

    /// True if it has a number that may be used.
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

    /// A metric of the baseline at a workload: of several subjects the mean in each repetition. `None`
    /// without a baseline, and where a number of one is missing or invalid.
    pub fn baseline(&self, workload: usize, metric: Metric) -> Option<ByRepetition> {
        let cells = self.baselines.iter().map(|subject| self.cell(workload, *subject));
        let values =
            cells.map(|cell| cell.values.get(&metric).filter(|_| cell.is_usable()).cloned());
        let all: Vec<ByRepetition> = values.collect::<Option<_>>()?;
        (!all.is_empty()).then(|| together(&all, mean))
    }

    /// Any metric of a cell against the baseline's: the ratio of the numbers themselves, of which
    /// [`Cell::effect`] is that of the speeds. `None` of a lone baseline, and where a number is missing,
    /// invalid or not above 0.
    pub fn compare(&self, cell: &Cell, metric: Metric) -> Option<Effect> {
        let own = cell.values.get(&metric).filter(|_| cell.is_usable())?;
        let baseline = self.baseline(cell.workload, metric);
        let effect = Effect::of(own, &baseline.filter(|_| self.baselines != [cell.subject])?);
        effect.map(|effect| self.weighed(effect))
    }

    /// An effect with what says how sure it is: its repetitions, or how far off predictions are.
    fn weighed(&self, effect: Effect) -> Effect {
        self.log_error.map_or(effect, |log_error| effect.of_models(log_error))
    }

    /// The trust in a comparison with the baseline: that of its worse side.
    pub fn standing_against_baseline(&self, cell: &Cell) -> Standing {
        let of_baseline = |subject: &usize| self.cell(cell.workload, *subject).standing;
        self.baselines.iter().map(of_baseline).fold(cell.standing, Standing::max)
    }

    /// True if the subject is a baseline.
    pub fn is_baseline(&self, subject: usize) -> bool {
        self.baselines.contains(&subject)
    }
}

/// Makes the analysis, with the laboratory's own judgement of what can be believed.
pub fn analyse(results: &Results) -> Analysis {
    let analysis = gather(results, &results.workloads);
    // Of what has not settled every round is judged, for no number is made of them.
    let settled = analysis.cells.iter().filter(|cell| cell.state == State::Measured);
    let of_cell = |cell: &Cell| -> Vec<&StoredTrial> {
        let trials = cell.trials.iter().map(|index| &results.trials[*index]);
        trials.filter(|trial| !cell.counts(trial.repetition)).collect()
    };
    let left_out: BTreeSet<u32> = settled.flat_map(of_cell).map(|trial| trial.number).collect();
    let judgement =
        judge_counted(results, &results.workloads, |trial| !left_out.contains(&trial.number));
    finish(analysis, results, judgement)
}

/// The same with a judgement that was made before. `workloads` are those of
/// [`braid_lab::matrix::Planned`]; a cell that the judgement does not have is [`Standing::Ok`].
#[cfg(test)]
pub(crate) fn analyse_judged(
    results: &Results,
    workloads: Vec<Workload>,
    judgement: Judgement,
) -> Analysis {
    finish(gather(results, &workloads), results, judgement)
}

/// Adds the conclusions from the numbers and from their judgement.
fn finish(mut analysis: Analysis, results: &Results, mut judgement: Judgement) -> Analysis {
    for cell in &mut analysis.cells {
        let subject = results.subjects[cell.subject].name.clone();
        let key = (subject, analysis.workloads[cell.workload].label.clone());
        if let Some(verdict) = judgement.cells.remove(&key) {
            cell.standing = verdict.standing;
            cell.findings = verdict.findings;
            cell.disturbed = verdict.disturbed;
        }
        if cell.state == State::Measured {
            cell.keep_what_counts();
            tails::leave_out_unsupported(results, cell);
        }
        cell.estimates = cell
            .values
            .iter()
            .filter_map(|(metric, all)| {
                Some((*metric, estimate(&all.values().copied().collect::<Vec<f64>>())?))
            })
            .collect();
    }
    let effect_of = |cell: &Cell| {
        let baseline = kinds::baseline_speeds(&analysis, cell.workload);
        let baseline = baseline.filter(|_| analysis.baselines != [cell.subject])?;
        Effect::of(&speeds(cell)?, &baseline).map(|effect| analysis.weighed(effect))
    };
    let effects: Vec<Option<Effect>> = analysis.cells.iter().map(effect_of).collect();
    let mut outlooks = outlooks(effects.iter().copied().flatten()).into_iter();
    for (cell, effect) in analysis.cells.iter_mut().zip(effects) {
        cell.effect = effect;
        cell.outlook = effect.and_then(|_| outlooks.next());
    }
    let Judgement { trials, campaign, unchecked, .. } = judgement;
    Analysis { trials, campaign, unchecked, ..analysis }
}

/// The meaning of speed effects when all of them are counted (Holm), so that among twenty campaigns with equal
/// subjects only one finds a difference, instead of one comparison in twenty in each campaign.
fn outlooks(effects: impl Iterator<Item = Effect>) -> Vec<Outlook> {
    let effects: Vec<Effect> = effects.collect();
    let adjusted = holm(&effects.iter().map(|effect| effect.p_value).collect::<Vec<f64>>());
    effects.into_iter().zip(adjusted).map(|(effect, p_value)| outlook(&effect, p_value)).collect()
}

/// A speed that differs by less is shown as 1.00 times the other, and said to be no different.
const LEAST_DIFFERENCE: f64 = 0.005;

/// The meaning of an effect at an adjusted p-value.
pub(crate) fn outlook(effect: &Effect, p_value: f64) -> Outlook {
    match p_value <= ALPHA {
        true if (effect.ratio - 1.0).abs() < LEAST_DIFFERENCE => Outlook::Same,
        true if effect.ratio > 1.0 => Outlook::Better,
        true => Outlook::Worse,
        false => Outlook::Same,
    }
}

#[cfg(test)]
mod tests;
