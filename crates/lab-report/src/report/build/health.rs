//! The cost of a lost member, state by state, and the time until the array was whole again.

use super::answer::rebuild_in_words;
use super::charts::{self, MOST_SERIES};
use super::{Context, cells, section};
use crate::analysis::{Phase, PhaseEffect, outlook};
use crate::report::model::{Block, Chart, Section, Series, Table};

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

/// Each subject with each direction of work.
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
    (subject, direction): (usize, &str),
    phase: Phase,
) -> Option<&'c PhaseEffect> {
    let mut of_phase = context.phases.iter().filter(|one| one.phase == phase);
    of_phase.find(|one| one.subject == subject && one.direction == direction)
}

fn table(context: &Context<'_>) -> Table {
    let mut columns = vec![cells::column("subject"), cells::column("work")];
    columns.extend(PHASES.map(|phase| cells::numbers(phase.words())));
    let rows = lines(context).into_iter().map(|line| {
        let mut row = vec![cells::words(context.subject(line.0)), cells::words(line.1)];
        row.extend(PHASES.map(|phase| match find(context, line, phase) {
            Some(one) => {
                // By its own interval: a state is expected to cost something.
                let said = outlook(&one.effect, one.effect.p_value);
                cells::ratio(&one.effect, 1.0, Some(said), one.standing)
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
        cells::row(vec![
            cells::words(context.subject(one.subject)),
            cells::words(context.label(one.workload)),
            cells::words(rebuild_in_words(&[one]).unwrap_or_default()),
        ])
    });
    Table {
        id: "rebuilds".to_owned(),
        title: "How long until it was whole again".to_owned(),
        note: "From the moment at which a member was put in, beside the work.".to_owned(),
        columns: vec![cells::column("subject"), cells::column("beside"), cells::column("recovery")],
        rows: rows.collect(),
    }
}

/// Bars for each state, the healthy array's speed being 1.
pub(super) fn picture(context: &Context<'_>) -> Option<Chart> {
    let lines = lines(context);
    let is_shown = |phase: &Phase| lines.iter().any(|line| find(context, *line, *phase).is_some());
    let shown: Vec<Phase> = PHASES.into_iter().filter(is_shown).collect();
    let series = lines.iter().take(MOST_SERIES).map(|line| {
        let points = (0..).map(f64::from).zip(&shown).filter_map(|(x, phase)| {
            let one = find(context, *line, *phase)?;
            Some(charts::of_effect(x, &one.effect, one.standing))
        });
        Series {
            name: format!("{}, {}", context.subject(line.0), line.1),
            points: points.collect(),
        }
    });
    let chart = charts::bars(
        "Times the healthy speed",
        shown.iter().map(|phase| phase.words().to_owned()),
        charts::axis("times healthy", ""),
        series.collect(),
    )?;
    let note = "The line is the healthy array.".to_owned();
    Some(Chart { note, mark: Some(1.0), ..chart })
}
