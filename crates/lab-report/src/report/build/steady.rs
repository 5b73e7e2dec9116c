//! Whether rounds have settled, for campaigns whose repetitions are rounds of one long run.

use super::cells;
use super::factors::MOST_SERIES;
use super::{Context, section};
use crate::analysis::{Cell as Measured, Rounds, Standing, WITHOUT_WORK};
use crate::report::model::{Axis, Block, Chart, LineSeries, Plot, Point, Section, Table, Tone};
use crate::report::units::{Scale, percent_number, quantity, title};
use crate::stats::{SteadyState, Window};
use crate::words::enumerate;

/// The verdicts, and the rounds as lines.
pub(super) fn sections(context: &Context<'_>) -> Vec<Section> {
    if !context.results.campaign.rounds {
        return Vec::new();
    }
    let analysis = context.analysis;
    let mut blocks = Vec::new();
    let mut rows = Vec::new();
    for work in 0..analysis.workloads.len() {
        let metric = analysis.workloads[work].headline;
        let believed = |cell: &&Measured| cell.standing != Standing::Invalid;
        let rounds_of = |cell: &'_ Measured| {
            let values = cell.all.get(&metric).filter(|_| cell.rounds.is_some())?.clone();
            (!values.is_empty()).then_some(values)
        };
        let row = || analysis.row(work).iter().filter(believed);
        let largest = row().filter_map(rounds_of).flat_map(|values| values.into_values());
        let scale = Scale::of(metric, largest.fold(0.0, f64::max));
        let mut series = Vec::new();
        for cell in row() {
            let Some((rounds, values)) = cell.rounds.as_ref().zip(rounds_of(cell)) else {
                continue;
            };
            rows.push(cells::row(verdict(context, cell, rounds, values.len())));
            let points = values.iter().map(|(round, value)| Point {
                x: f64::from(*round),
                y: scale.apply(*value),
                interval: None,
                suspect: cells::is_suspect(cell),
            });
            series.push(LineSeries {
                name: context.subject(cell.subject).to_owned(),
                points: points.collect(),
                steps: false,
            });
        }
        series.retain(|line| line.points.len() > 1);
        for series in series.chunks(cells::evenly(series.len(), MOST_SERIES)) {
            blocks.push(Block::Chart(Chart {
                id: "rounds".to_owned(),
                title: format!("{}: {} by round", context.label(work), title(metric)),
                note: cells::note_on_better(metric),
                plot: Plot::Lines {
                    x: Axis { label: "round".to_owned(), ..Axis::default() },
                    y: Axis {
                        label: title(metric).to_owned(),
                        unit: scale.unit.to_owned(),
                        ..Axis::default()
                    },
                    series: series.to_vec(),
                    events: Vec::new(),
                },
            }));
        }
    }
    if rows.is_empty() {
        return Vec::new();
    }
    let table = Table {
        id: "steady".to_owned(),
        title: "Has it settled?".to_owned(),
        note:
            "Settled are the last rounds, five or more in a row, whose values lie within 20 % of \
               their average and whose trend line rises or falls by at most 10 % of it (the rule \
               of the SNIA Solid State Storage Performance Test Specification), if no later round \
               contradicts them. Only they are in \
               the numbers of this report."
                .to_owned(),
        columns: vec![
            cells::column("workload"),
            cells::column("subject"),
            cells::column("verdict"),
            cells::numbers("rounds"),
            cells::numbers("mean of the settled"),
            cells::numbers_in("range", "%"),
            cells::numbers_in("trend", "%"),
        ],
        rows,
    };
    blocks.insert(0, Block::Table(table));
    let lead = "Flash is fast when fresh; only what it keeps up is a property of it.";
    section("steady-state", "Steady state", lead.to_owned(), false, blocks)
}

fn verdict(
    context: &Context<'_>,
    cell: &Measured,
    rounds: &Rounds,
    count: usize,
) -> Vec<crate::report::model::Cell> {
    let words =
        |text: String, tone: Tone| crate::report::model::Cell { tone, ..cells::words(text) };
    let (said, window): (_, Option<&Window>) = match &rounds.settled {
        Some(SteadyState::Steady(window)) => {
            (words(format!("settled in rounds {}", in_words(window)), Tone::Better), Some(window))
        }
        Some(SteadyState::Left { was, round, fell }) => {
            let what = if *fell { "fell" } else { "rose" };
            let said = format!("settled in rounds {}, then {what} in round {round}", in_words(was));
            (words(said, Tone::Suspect), Some(was))
        }
        Some(SteadyState::NotSteady(window)) => {
            (words("not settled; measure more rounds".to_owned(), Tone::Suspect), Some(window))
        }
        Some(SteadyState::TooShort { have, needed }) => (
            words(
                format!("too few rounds: it takes {needed} in a row, and there are {have}"),
                Tone::Missing,
            ),
            None,
        ),
        None => (words(WITHOUT_WORK.to_owned(), Tone::Missing), None),
    };
    let part = |of: fn(&Window) -> f64| {
        window.as_ref().map_or_else(
            || cells::missing(""),
            |window| {
                let percent = of(window) * 100.0;
                let sign = if percent < 0.0 { "-" } else { "" };
                cells::number(format!("{sign}{}", percent_number(percent.abs())), percent)
            },
        )
    };
    vec![
        cells::words(context.label(cell.workload)),
        cells::words(context.subject(cell.subject)),
        said,
        cells::count(count),
        match window.filter(|window| window.is_steady()) {
            Some(window) => {
                let tone = cells::tone_of(cell.standing, Tone::Plain);
                let mean = quantity(cell.headline, window.average);
                crate::report::model::Cell { tone, ..cells::number(mean, window.average) }
            }
            None => cells::missing(""),
        },
        part(|window| window.range),
        part(|window| window.slope),
    ]
}

/// "11 to 15".
fn in_words(window: &Window) -> String {
    format!("{} to {}", window.first, window.last())
}

/// Who has not settled, for an answer.
pub(super) fn sentence(context: &Context<'_>) -> Option<String> {
    let unsettled =
        |cell: &&Measured| cell.rounds.as_ref().is_some_and(|rounds| rounds.window().is_none());
    let names: Vec<String> = context
        .analysis
        .cells
        .iter()
        .filter(unsettled)
        .map(|cell| format!("{} ({})", context.subject(cell.subject), context.label(cell.workload)))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    (!names.is_empty()).then(|| {
        format!(
            "Not settled, and so without a number: {}. Measure more rounds, into a new directory.",
            enumerate(&names)
        )
    })
}
