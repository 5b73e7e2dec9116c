//! The answer as a table that fits on a screen: a row for each subject and a column for each kind of
//! work; of a study, a row for each level of what was varied.

use super::Context;
use super::cells;
use super::words::{name_of, short};
use crate::analysis::Factor;
use crate::report::model::{Cell, Table, Tone};
use crate::report::units::quantity;

/// Kinds of work across.
const MOST_KINDS: usize = 6;

/// The table; empty of nothing.
pub(super) fn table(context: &Context<'_>) -> Table {
    let table = if context.is_study() { of_factors(context) } else { of_subjects(context) };
    Table { id: "answer".to_owned(), ..table }
}

fn of_subjects(context: &Context<'_>) -> Table {
    let all = context.kinds.len();
    let kinds = || context.kinds.iter().zip(&context.effects).take(MOST_KINDS);
    let mut columns = vec![cells::column("subject")];
    columns.extend(kinds().map(|(kind, _)| cells::numbers(&kind.name)));
    let rows = (0..context.analysis.subjects).map(|subject| {
        let mut line = vec![cells::words(context.subject(subject))];
        line.extend(kinds().map(|(kind, effects)| {
            match effects.iter().find(|one| one.subject == subject) {
                Some(one) => cells::ratio(&one.effect, 1.0, Some(one.outlook), one.standing),
                None => absolute(context, subject, &kind.workloads),
            }
        }));
        cells::row(line)
    });
    let mut note = match context.baseline_name() {
        Some(name) => format!("How many times as fast as {name}, with the 95 % interval."),
        None => "Medians, and from where to where the repetitions lie.".to_owned(),
    };
    if all > MOST_KINDS {
        note += &format!(" {} further kinds of work are below.", all - MOST_KINDS);
    }
    Table { note, columns, rows: rows.collect(), ..Table::default() }
}

/// What a subject does by itself: of the baseline, and where nothing is compared. Several workloads
/// have no number together.
fn absolute(context: &Context<'_>, subject: usize, workloads: &[usize]) -> Cell {
    let analysis = context.analysis;
    let is_baseline = analysis.is_baseline(subject);
    let measured: Vec<_> = workloads.iter().map(|work| analysis.cell(*work, subject)).collect();
    if let [only] = measured.as_slice() {
        let scale = cells::scale_of(measured.iter().copied(), only.headline);
        let mut shown = cells::median(only, only.headline, scale);
        if let (Some(main), Tone::Plain) = (only.main(), shown.tone) {
            shown.text = quantity(only.headline, main.median);
            shown.tone = if is_baseline { Tone::Baseline } else { Tone::Plain };
        }
        return shown;
    }
    match measured.iter().filter(|cell| cell.is_usable()).count() {
        0 => cells::missing(measured.first().map_or_else(String::new, |c| cells::why_missing(c))),
        _ if is_baseline => Cell { tone: Tone::Baseline, ..cells::number("1", 1.0) },
        some => cells::missing(format!("{some} workloads, see below")),
    }
}

fn of_factors(context: &Context<'_>) -> Table {
    let mut directions: Vec<&str> = Vec::new();
    for direction in context.factors.iter().flat_map(|factor| &factor.directions) {
        if !directions.contains(&direction.as_str()) {
            directions.push(direction);
        }
    }
    directions.truncate(MOST_KINDS);
    let mut columns = vec![cells::column("what"), cells::column("level")];
    columns.extend(directions.iter().map(|name| cells::numbers(*name)));
    let rows = context.factors.iter().flat_map(|factor| {
        lines_of(factor, &directions).into_iter().enumerate().map(|(place, mut line)| {
            let name = if place == 0 { name_of(&factor.dimension) } else { String::new() };
            line.insert(0, cells::words(name));
            cells::row(line)
        })
    });
    Table { note: OF_LEVELS.to_owned(), columns, rows: rows.collect(), ..Table::default() }
}

/// How a table of levels is read.
pub(super) const OF_LEVELS: &str =
    "How many times as fast as the level marked 1, all else alike, with the 95 % interval.";

/// The levels of a factor: each with its value and what it does in these directions.
pub(super) fn lines_of(factor: &Factor, directions: &[&str]) -> Vec<Vec<Cell>> {
    let line = |(place, level): (usize, &crate::analysis::Level)| {
        let mut line = vec![cells::words(short(&factor.dimension, &level.value))];
        line.extend(directions.iter().map(|direction| {
            let at = factor.directions.iter().position(|one| one == direction);
            match at.and_then(|at| level.effects[at].as_ref()) {
                Some(one) => cells::ratio(&one.effect, 1.0, Some(one.outlook), one.standing),
                None if place == factor.reference => {
                    Cell { tone: Tone::Baseline, ..cells::number("1", 1.0) }
                }
                None => cells::missing(""),
            }
        }));
        line
    };
    factor.levels.iter().enumerate().map(line).collect()
}
