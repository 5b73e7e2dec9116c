//! The answer as a table that fits on a screen: a row for each subject and a column for each kind of
//! work; of a study, a row for each level of what was varied.

use super::Context;
use super::cells;
use super::words::{name_of, short};
use crate::analysis::{Factor, Kind};
use crate::report::model::{Cell, Table, Tone};
use crate::report::units::quantity;
use crate::words::enumerate;
use braid_lab::prediction::NOT_PREDICTED;

/// Kinds of work across.
const MOST_KINDS: usize = 6;

/// The table; empty of nothing.
pub(super) fn table(context: &Context<'_>) -> Table {
    let table = if context.is_study() { of_factors(context) } else { of_subjects(context) };
    Table { id: "answer".to_owned(), ..table }
}

fn of_subjects(context: &Context<'_>) -> Table {
    let has_number = |kind: &&Kind| {
        let mut works = kind.workloads.iter();
        works.any(|work| context.analysis.row(*work).iter().any(|cell| cell.main().is_some()))
    };
    let (shown, empty): (Vec<&Kind>, Vec<&Kind>) = context.kinds.iter().partition(has_number);
    // Of nothing but gaps each says why it is one.
    let (shown, empty) = if shown.is_empty() { (empty, shown) } else { (shown, empty) };
    let effects = |kind: &Kind| {
        let place = context.kinds.iter().position(|one| one.name == kind.name);
        place.map_or(&[][..], |place| context.effects[place].as_slice())
    };
    let kinds = || shown.iter().map(|kind| (*kind, effects(kind))).take(MOST_KINDS);
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
    if shown.len() > MOST_KINDS {
        note += &format!(" {} further kinds of work are below.", shown.len() - MOST_KINDS);
    }
    if let [first, ..] = empty.as_slice() {
        let names: Vec<&str> = empty.iter().map(|kind| kind.name.as_str()).collect();
        let cells = first.workloads.iter().flat_map(|work| context.analysis.row(*work));
        let why = cells.map(cells::why_missing).find(|why| !why.is_empty()).unwrap_or_default();
        let why = why.trim_start_matches(NOT_PREDICTED);
        note += &format!(" No number of {} ({why}).", enumerate(&names));
    }
    Table { note, columns, rows: rows.collect(), ..Table::default() }
}

/// The number of a subject by itself: for the baseline, and if nothing is compared. Several workloads have no
/// common number.
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
        1 => cells::missing("1 workload, see below"),
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

/// The explanation of a table of levels.
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
