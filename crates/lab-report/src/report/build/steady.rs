//! The steady state of rounds, for campaigns whose repetitions are rounds of one long run.

use super::charts::{self, axis};
use super::{Context, cells, section};
use crate::analysis::{Cell as Measured, Rounds, Standing, WITHOUT_WORK};
use crate::report::model::{Block, Cell, Point, Row, Section, Series, Table, Tone};
use crate::report::units::{Scale, digits, title};
use crate::stats::{ByRepetition, SteadyState, Window};
use crate::words::enumerate;

/// The verdicts, and the rounds as lines.
pub(super) fn sections(context: &Context<'_>) -> Vec<Section> {
    let analysis = context.analysis;
    let mut charts = Vec::new();
    let mut rows = Vec::new();
    for (work, of_work) in analysis.workloads.iter().enumerate() {
        let metric = of_work.headline;
        let believed = analysis.row(work).iter().filter(|one| one.standing != Standing::Invalid);
        let lines: Vec<(&Measured, &Rounds, &ByRepetition)> = believed
            .filter_map(|cell| {
                let rounds = cell.rounds.as_ref()?;
                let values = cell.all.get(&metric).filter(|values| !values.is_empty())?;
                Some((cell, rounds, values))
            })
            .collect();
        let largest = lines.iter().flat_map(|(_, _, values)| values.values().copied());
        let scale = Scale::of(metric, largest.fold(0.0, f64::max));
        rows.extend(lines.iter().map(|(cell, rounds, _)| verdict(context, cell, rounds)));
        let series = lines.iter().filter(|(_, _, values)| values.len() > 1).map(|line| {
            let (cell, _, values) = line;
            let points = values.iter().map(|(round, value)| Point {
                x: f64::from(*round),
                y: scale.apply(*value),
                interval: None,
                suspect: charts::is_suspect(cell),
            });
            Series { name: context.subject(cell.subject).to_owned(), points: points.collect() }
        });
        let series: Vec<Series> = series.collect();
        charts.extend(charts::lines(
            "rounds",
            &format!("{}: {} by round", of_work.label, title(metric)),
            &cells::note_on_better(metric),
            (axis("round", ""), axis(title(metric), scale.unit)),
            &series,
        ));
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
               contradicts them. Only they are in the numbers of this report."
                .to_owned(),
        columns: ["workload", "subject", "verdict"].map(cells::column).to_vec(),
        rows,
    };
    let blocks = std::iter::once(Block::Table(table)).chain(charts).collect();
    let lead = "Flash is fast when fresh; only what it keeps up is a property of it.";
    section("steady-state", "Steady state", lead.to_owned(), false, blocks)
}

fn verdict(context: &Context<'_>, cell: &Measured, rounds: &Rounds) -> Row {
    let (text, tone, window) = match &rounds.settled {
        Some(SteadyState::Steady(window)) => {
            (format!("settled in rounds {}", in_words(window)), Tone::Better, Some(window))
        }
        Some(SteadyState::Left { was, round, fell }) => {
            let what = if *fell { "fell" } else { "rose" };
            let text = format!("settled in rounds {}, then {what} in round {round}", in_words(was));
            (text, Tone::Suspect, Some(was))
        }
        Some(SteadyState::NotSteady(window)) => {
            ("not settled; measure more rounds".to_owned(), Tone::Suspect, Some(window))
        }
        Some(SteadyState::TooShort { have, needed }) => {
            let text = format!("too few rounds: it takes {needed} in a row, and there are {have}");
            (text, Tone::Missing, None)
        }
        None => (WITHOUT_WORK.to_owned(), Tone::Missing, None),
    };
    let spread = |window: &Window| {
        let [range, trend] = [window.range, window.slope].map(|part| digits(part * 100.0));
        format!("values within {range} % of their average, trend {trend} %")
    };
    cells::row(vec![
        cells::words(context.label(cell.workload)),
        cells::words(context.subject(cell.subject)),
        Cell { tone, ..cells::words_with(text, window.map_or_else(String::new, spread)) },
    ])
}

/// "11 to 15".
fn in_words(window: &Window) -> String {
    format!("{} to {}", window.first, window.last())
}

/// The subjects that have not settled, for an answer.
pub(super) fn sentence(context: &Context<'_>) -> Option<String> {
    let unsettled =
        |cell: &&Measured| cell.rounds.as_ref().is_some_and(|rounds| rounds.window().is_none());
    let name = |cell: &Measured| {
        format!("{} ({})", context.subject(cell.subject), context.label(cell.workload))
    };
    let names: Vec<String> = context.analysis.cells.iter().filter(unsettled).map(name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    (!names.is_empty()).then(|| {
        format!(
            "Not settled, and so without a number: {}. Measure more rounds, into a new directory.",
            enumerate(&names)
        )
    })
}
