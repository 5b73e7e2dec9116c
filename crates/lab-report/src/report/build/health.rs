//! What a lost member costs, state by state, and how long it took to be whole again.

use super::answer::rebuild_in_words;
use super::factors::{MOST_SERIES, bar};
use super::summary::of;
use super::{Context, cells, section};
use crate::analysis::{Outlook, Phase, PhaseEffect, Standing};
use crate::report::model::{Axis, BarSeries, Block, Chart, Datum, Gap, Plot, Section, Table};

/// States, in the order of a failure.
const PHASES: [Phase; 4] =
    [Phase::Degraded, Phase::Rebuilding, Phase::Scrubbing, Phase::WholeAgain];

/// The section; none where every array was healthy throughout.
pub(super) fn sections(context: &Context<'_>) -> Vec<Section> {
    let mut blocks = Vec::new();
    if !context.phases.is_empty() {
        blocks.push(Block::Table(table(context)));
    }
    if !context.rebuilds.is_empty() {
        blocks.push(Block::Table(rebuilds(context)));
    }
    let lead = "Against the same array when it is healthy, reads and writes apart.".to_owned();
    section("state-of-array", "When a member fails", lead, false, blocks)
}

fn lines<'c>(context: &'c Context<'_>) -> Vec<(usize, &'c str)> {
    let mut lines: Vec<(usize, &str)> = Vec::new();
    for one in &context.phases {
        let line = (one.subject, one.direction.as_str());
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

fn find<'c>(
    context: &'c Context<'_>,
    line: (usize, &str),
    phase: Phase,
) -> Option<&'c PhaseEffect> {
    let is_it =
        |one: &&PhaseEffect| (one.subject, one.direction.as_str()) == line && one.phase == phase;
    context.phases.iter().find(is_it)
}

fn table(context: &Context<'_>) -> Table {
    let mut columns = vec![cells::column("subject"), cells::column("work")];
    columns.extend(PHASES.map(|phase| cells::numbers(phase.words())));
    let rows = lines(context).into_iter().map(|line| {
        let mut row = vec![cells::words(context.subject(line.0)), cells::words(line.1)];
        row.extend(PHASES.map(|phase| match find(context, line, phase) {
            Some(one) => {
                // By its own interval: a state is expected to cost something.
                let outlook = match one.effect.p_value <= crate::analysis::ALPHA {
                    true if one.effect.ratio > 1.0 => Outlook::Better,
                    true => Outlook::Worse,
                    false => Outlook::Same,
                };
                of(&one.effect, outlook, one.standing)
            }
            None => cells::missing("not measured"),
        }));
        cells::row(row)
    });
    Table {
        id: "health".to_owned(),
        title: "Times the healthy speed".to_owned(),
        note: "With the 95 % interval.".to_owned(),
        columns,
        rows: rows.collect(),
    }
}

fn rebuilds(context: &Context<'_>) -> Table {
    let rows = context.rebuilds.iter().map(|one| {
        let words = rebuild_in_words(context, one.subject).unwrap_or_default();
        cells::row(vec![
            cells::words(context.subject(one.subject)),
            cells::words(context.label(one.workload)),
            cells::count(one.ended_s.len()),
            cells::count(one.unended_s.len()),
            cells::words(words),
        ])
    });
    Table {
        id: "rebuilds".to_owned(),
        title: "How long until it was whole again".to_owned(),
        note: "From the moment at which a member was put in, beside the work.".to_owned(),
        columns: vec![
            cells::column("subject"),
            cells::column("beside"),
            cells::numbers("ended"),
            cells::numbers("not ended with the trial"),
            cells::column("seconds"),
        ],
        rows: rows.collect(),
    }
}

/// Bars for each state, the healthy array's speed being 1.
pub(super) fn picture(context: &Context<'_>) -> Option<Chart> {
    let lines = lines(context);
    let shown: Vec<Phase> = PHASES
        .into_iter()
        .filter(|phase| lines.iter().any(|line| find(context, *line, *phase).is_some()))
        .collect();
    let series = lines.iter().take(MOST_SERIES).map(|line| BarSeries {
        name: format!("{}, {}", context.subject(line.0), line.1),
        values: shown
            .iter()
            .map(|phase| match find(context, *line, *phase) {
                Some(one) => bar(&one.effect, 100.0, one.standing != Standing::Ok),
                None => Datum::Gap(Gap::NotMeasured),
            })
            .collect(),
    });
    (!shown.is_empty()).then(|| Chart {
        id: "answer".to_owned(),
        title: "Speed in percent of the healthy array's".to_owned(),
        note: "The line is the healthy array.".to_owned(),
        plot: Plot::Bars {
            axis: Axis {
                label: "percent of healthy".to_owned(),
                unit: "%".to_owned(),
                ..Axis::default()
            },
            categories: shown.iter().map(|phase| phase.words().to_owned()).collect(),
            series: series.collect(),
            mark: Some(100.0),
        },
    })
}
