//! Builds the [`Report`] of a campaign: the answer in words, as a picture and as a table, then the
//! sections that its dimensions ask for.
//!
//! ```text
//! Analysis ─┬─ kinds, contests, factors, states ──> answer, picture, table: one screen
//!           ├─ judgement ──> doubts
//!           └─ cells ──> sections: numbers, latency, over time, steady state, all else, setting
//! ```
//!
//! A section is a file below and a line in [`SECTIONS`]. Each gives nothing when the campaign does not
//! have what it is about.
//!
//! Invariants: an invalid number is shown as such and is in no chart; ids are made unique here,
//! after all sections are there; every number of a chart is also in a table, or, for courses and
//! distributions, in the samples.
//!
//! Deliberately absent: what a number means (the analysis has decided), how anything looks.

use std::collections::BTreeMap;
use std::path::Path;

use super::model::{Block, Report, Section};
use crate::analysis::{
    Analysis, Contest, Factor, Kind, KindEffect, PhaseEffect, Rebuild, find_contests, find_effects,
    find_factors, find_kinds, find_phases, find_rebuilds,
};
use crate::words::enumerate;
use braid_lab::store::{Outcome, Results};

mod about;
mod answer;
pub(crate) mod cells;
mod charts;
mod course;
mod factors;
mod health;
mod latency;
mod numbers;
mod picture;
mod predicted;
mod samples;
mod steady;
mod summary;
mod trust;
mod undecided;
mod words;

pub(crate) use cells::why_missing;
pub use samples::tidy_rows;

/// More subjects than a baseline and the series of one chart are not told one by one.
const MOST_SUBJECTS: usize = 1 + charts::MOST_SERIES;

/// The data from which all parts are built.
pub(super) struct Context<'a> {
    analysis: &'a Analysis,
    results: &'a Results,
    dir: &'a Path,
    pub(super) kinds: Vec<Kind>,
    /// For each kind.
    pub(super) effects: Vec<Vec<KindEffect>>,
    pub(super) contests: Vec<Contest>,
    pub(super) factors: Vec<Factor>,
    pub(super) phases: Vec<PhaseEffect>,
    pub(super) rebuilds: Vec<Rebuild>,
}

impl<'a> Context<'a> {
    pub(super) fn new(analysis: &'a Analysis, results: &'a Results, dir: &'a Path) -> Self {
        let kinds = find_kinds(analysis);
        Self {
            effects: find_effects(analysis, &kinds),
            contests: find_contests(analysis, &kinds),
            factors: find_factors(analysis, results),
            phases: find_phases(analysis, results),
            rebuilds: find_rebuilds(analysis, results),
            analysis,
            results,
            dir,
            kinds,
        }
    }

    /// True if there are too many subjects to report each; then the levels of the factors are reported.
    fn is_study(&self) -> bool {
        self.analysis.subjects > MOST_SUBJECTS && !self.factors.is_empty()
    }

    pub(super) fn subject(&self, index: usize) -> &'a str {
        &self.results.subjects[index].name
    }

    pub(super) fn label(&self, workload: usize) -> &'a str {
        &self.analysis.workloads[workload].label
    }

    /// The baseline as sentences name it; `None` without one.
    fn baseline_name(&self) -> Option<String> {
        match self.analysis.baselines.as_slice() {
            [] => None,
            [only] => Some(self.subject(*only).to_owned()),
            few if few.len() <= 3 => {
                let names: Vec<&str> = few.iter().map(|index| self.subject(*index)).collect();
                Some(format!("the average of {}", enumerate(&names)))
            }
            many => Some(format!("the average of {} baselines", many.len())),
        }
    }

    /// The expected seconds of one more repetition, from the former ones: trials and the time around them.
    fn seconds_of_a_repetition(&self) -> f64 {
        let sessions = self.results.sessions.iter();
        let spent: f64 =
            sessions.map(|one| one.times.busy_s + one.times.set_up_s + one.times.overhead_s).sum();
        let trials = self.results.trials.iter();
        let run = trials.filter(|trial| !matches!(trial.outcome, Outcome::Impossible(_))).count();
        let cells = self.analysis.planned as f64 / f64::from(self.results.campaign.repetitions);
        spent / run.max(1) as f64 * cells
    }
}

/// Every section that a report may have, in its order.
const SECTIONS: &[fn(&Context<'_>) -> Vec<Section>] = &[
    health::sections,
    factors::sections,
    steady::sections,
    numbers::sections,
    about::sections,
    latency::sections,
    course::sections,
    numbers::further,
    about::setting,
];

/// The report of a campaign whose results are in `dir`.
pub fn build_report(analysis: &Analysis, results: &Results, dir: &Path) -> Report {
    let context = Context::new(analysis, results, dir);
    let mut report = Report {
        title: results.campaign.name.clone(),
        question: results.campaign.description.clone(),
        subtitle: about::subtitle(&context),
        answer: answer::sentences(&context),
        picture: picture::of(&context),
        table: summary::table(&context),
        trust: trust::trust_box(&context),
        sections: SECTIONS.iter().flat_map(|sections| sections(&context)).collect(),
    };
    predicted::mark(&mut report, &context);
    make_ids_unique(&mut report);
    report
}

/// The most important sentence of the answer.
pub(crate) fn first_sentence(analysis: &Analysis, results: &Results) -> String {
    let context = Context::new(analysis, results, Path::new("."));
    answer::sentences(&context).into_iter().next().unwrap_or_default()
}

/// Ids come as hints such as "percent"; the first keeps it and the next are numbered.
fn make_ids_unique(report: &mut Report) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut unique = |id: &mut String| {
        let count = seen.entry(id.clone()).or_default();
        *count += 1;
        if *count > 1 {
            *id = format!("{id}-{count}");
        }
    };
    unique(&mut report.table.id);
    if let Some(picture) = &mut report.picture {
        unique(&mut picture.id);
    }
    for section in &mut report.sections {
        unique(&mut section.id);
        for block in &mut section.blocks {
            match block {
                Block::Table(table) => unique(&mut table.id),
                Block::Chart(chart) => unique(&mut chart.id),
            }
        }
    }
}

/// A section, if it has anything to show.
pub(crate) fn section(
    id: &str,
    title: &str,
    lead: String,
    is_detail: bool,
    blocks: Vec<Block>,
) -> Vec<Section> {
    if blocks.is_empty() {
        return Vec::new();
    }
    vec![Section { id: id.to_owned(), title: title.to_owned(), lead, is_detail, blocks }]
}

#[cfg(test)]
mod tests;
