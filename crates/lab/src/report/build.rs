//! Builds the [`Report`] of a campaign: which sections it gets, in which order.
//!
//! A section is a file below and a line in [`SECTIONS`]. Each looks at the campaign's dimensions
//! and gives nothing when it does not have the one that it is about, so a campaign over chunk
//! sizes gets a heat map and one over file systems does not.
//!
//! ```text
//! Analysis ─┬─ dims: what varies ── pivot: rows x columns ─┬─> tables
//!           │                                              └─> bars, lines, heat maps
//!           └─ answer, trust, notes ──> sentences
//! ```
//!
//! Invariants: an invalid number is shown as such and is in no chart; ids are made unique here,
//! after all sections are there; every number of a chart is also in a table, or, for courses and
//!   distributions, in the samples.
//!
//! Deliberately absent: what a number means (the analysis has decided), how anything looks.

use std::collections::BTreeMap;
use std::path::Path;

use super::model::{Block, Report, Section};
use crate::analysis::Analysis;
use crate::store::Results;

mod about;
mod answer;
mod bars;
mod cells;
mod course;
mod details;
mod dims;
mod efficiency;
mod latency;
mod notes;
mod overview;
mod percent;
mod pivot;
mod samples;
mod scaling;
mod steady;
mod sweep;
mod trust;
mod variants;

pub(crate) use cells::why_missing;
pub use samples::tidy_rows;

/// What every section is made of.
pub(super) struct Context<'a> {
    analysis: &'a Analysis,
    results: &'a Results,
}

impl<'a> Context<'a> {
    fn subject(&self, index: usize) -> &'a str {
        &self.results.subjects[index].name
    }

    fn label(&self, workload: usize) -> &'a str {
        &self.analysis.workloads[workload].label
    }

    /// The baseline as sentences name it; `None` without one.
    fn baseline_name(&self) -> Option<String> {
        match self.analysis.baselines.as_slice() {
            [] => None,
            [only] => Some(self.subject(*only).to_owned()),
            few if few.len() <= 3 => {
                let names: Vec<&str> = few.iter().map(|index| self.subject(*index)).collect();
                Some(format!("the average of {}", answer::enumerate(&names)))
            }
            many => Some(format!("the average of {} baselines", many.len())),
        }
    }
}

/// Every section that a report may have, in its order.
const SECTIONS: &[fn(&Context<'_>) -> Option<Section>] = &[
    overview::section,
    percent::section,
    bars::section,
    scaling::members,
    scaling::buses,
    sweep::depth,
    sweep::sizes,
    sweep::processes,
    sweep::others,
    variants::health,
    variants::words,
    latency::section,
    course::section,
    steady::section,
    details::section,
];

/// The report of a campaign whose results are in `dir`.
pub fn build_report(analysis: &Analysis, results: &Results, dir: &Path) -> Report {
    let context = Context { analysis, results };
    let mut report = Report {
        title: results.campaign.name.clone(),
        question: results.campaign.description.clone(),
        subtitle: about::subtitle(&context),
        answer: answer::sentences(&context),
        trust: trust::trust_box(&context),
        sections: SECTIONS.iter().filter_map(|section| section(&context)).collect(),
        subjects: about::subjects(&context),
        environment: about::environment(results),
        commands: about::commands(&context),
        notes: notes::sentences(&context),
        again: about::again(results, dir),
    };
    make_ids_unique(&mut report);
    report
}

/// The most important sentence of the answer that is not about what is still missing.
pub(crate) fn first_sentence(analysis: &Analysis, results: &Results) -> String {
    answer::of_numbers(&Context { analysis, results }).into_iter().next().unwrap_or_default()
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
    unique(&mut report.subjects.id);
    unique(&mut report.commands.id);
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

/// A section whose charts come before its tables: charts stand side by side where there is room,
/// and the tables are for looking up.
fn charts_first(id: &str, title: &str, lead: String, blocks: Vec<Block>) -> Option<Section> {
    let (charts, tables): (Vec<Block>, Vec<Block>) =
        blocks.into_iter().partition(|block| matches!(block, Block::Chart(_)));
    section(id, title, lead, [charts, tables].concat())
}

/// A section, if it has anything to show.
fn section(id: &str, title: &str, lead: String, blocks: Vec<Block>) -> Option<Section> {
    (!blocks.is_empty()).then(|| Section {
        id: id.to_owned(),
        title: title.to_owned(),
        lead,
        blocks,
    })
}

#[cfg(test)]
mod tests;
