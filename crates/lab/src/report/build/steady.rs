//! Whether rounds have settled, for campaigns whose repetitions are rounds of one long run.

use super::cells;
use super::{Context, section as make_section};
use crate::report::model::{Axis, Block, Chart, LineSeries, Plot, Point, Section, Table, Tone};
use crate::report::units::{percent_number, title};
use crate::stats::{SteadyState, Window, find_steady_state};

/// The campaign's name, or its beginning, that asks for this section.
const NAME: &str = "steady";

/// The verdicts, and the rounds as lines.
pub(super) fn section(context: &Context<'_>) -> Option<Section> {
    if !context.results.campaign.name.starts_with(NAME) {
        return None;
    }
    let analysis = context.analysis;
    let mut blocks = Vec::new();
    let mut rows = Vec::new();
    for work in 0..analysis.workloads.len() {
        let metric = analysis.workloads[work].headline;
        let scale = cells::scale_of(analysis.row(work), metric);
        let mut series = Vec::new();
        for cell in analysis.row(work).iter().filter(|cell| cell.is_usable()) {
            let rounds: Vec<f64> = cell.main_values().collect();
            rows.push(cells::row(verdict(context, cell.subject, work, &rounds)));
            let points = rounds.iter().enumerate().map(|(round, value)| Point {
                x: (round + 1) as f64,
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
        for series in series.chunks(super::pivot::evenly(series.len(), super::pivot::MOST_SERIES)) {
            blocks.push(Block::Chart(Chart {
                id: "rounds".to_owned(),
                title: format!("{}: {} by round", context.label(work), title(metric)),
                note: super::pivot::note_on_better(metric),
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
        return None;
    }
    let table = Table {
        id: "steady".to_owned(),
        title: "Has it settled?".to_owned(),
        note: "Settled are five rounds in a row whose values lie within 20 % of their average and \
               whose trend line rises or falls by at most 10 % of it (the rule of the SNIA Solid \
               State Storage Performance Test Specification)."
            .to_owned(),
        columns: vec![
            cells::column("workload"),
            cells::column("subject"),
            cells::column("verdict"),
            cells::numbers("rounds"),
            cells::numbers_in("range", "%"),
            cells::numbers_in("trend", "%"),
        ],
        rows,
    };
    blocks.insert(0, Block::Table(table));
    let lead = "Flash is fast when fresh; only what it keeps up is a property of it.";
    make_section("steady-state", "Steady state", lead.to_owned(), blocks)
}

fn verdict(
    context: &Context<'_>,
    subject: usize,
    work: usize,
    rounds: &[f64],
) -> Vec<crate::report::model::Cell> {
    let words =
        |text: String, tone: Tone| crate::report::model::Cell { tone, ..cells::words(text) };
    let (said, window): (_, Option<Window>) = match find_steady_state(rounds) {
        Ok(SteadyState::Steady(window)) => (
            words(
                format!(
                    "settled in rounds {} to {}",
                    window.first + 1,
                    window.first + window.rounds
                ),
                Tone::Better,
            ),
            Some(window),
        ),
        Ok(SteadyState::NotSteady(window)) => {
            (words("not settled; measure more rounds".to_owned(), Tone::Suspect), Some(window))
        }
        Ok(SteadyState::TooShort { needed, .. }) => {
            (words(format!("too few rounds: it takes {needed}"), Tone::Missing), None)
        }
        Err(error) => (words(error.to_string(), Tone::Missing), None),
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
        cells::words(context.label(work)),
        cells::words(context.subject(subject)),
        said,
        cells::count(rounds.len()),
        part(|window| window.range),
        part(|window| window.slope),
    ]
}
