//! The answer as a table that fits on a screen: a row for each subject and a column for each kind of
//! work; of a study, a row for each level of what was varied.

use super::Context;
use super::cells;
use super::words::{name_of, short};
use crate::analysis::{Cell as Measured, Factor, KindEffect, LevelEffect, Outlook, Standing};
use crate::report::model::{Cell, Column, Row, Table, Tone};
use crate::report::units::{factor, interval, quantity};
use crate::stats::Effect;

/// More subjects than this are no table that fits on a screen, if factors can be told instead.
const MOST_SUBJECTS: usize = 12;
/// Kinds of work across.
const MOST_KINDS: usize = 6;

/// The table; empty of nothing.
pub(super) fn table(context: &Context<'_>) -> Table {
    let by_factor = context.analysis.subjects > MOST_SUBJECTS && !context.factors.is_empty();
    if by_factor { of_factors(context) } else { of_subjects(context) }
}

fn of_subjects(context: &Context<'_>) -> Table {
    let analysis = context.analysis;
    let all = context.kinds.len();
    let kinds = || context.kinds.iter().zip(&context.effects).take(MOST_KINDS);
    let mut columns = vec![cells::column("subject")];
    columns.extend(kinds().map(|(kind, _)| cells::numbers(&kind.name)));
    let rows = (0..analysis.subjects).map(|subject| {
        let mut line = vec![cells::words(context.subject(subject))];
        line.extend(kinds().map(|(kind, effects)| {
            match effects.iter().find(|one| one.subject == subject) {
                Some(one) => of_effect(one),
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
    Table { id: "answer".to_owned(), title: String::new(), note, columns, rows: rows.collect() }
}

fn of_effect(one: &KindEffect) -> Cell {
    of(&one.effect, one.outlook, one.standing)
}

/// A ratio, coloured by what it says and how far it is believed.
pub(super) fn of(effect: &Effect, outlook: Outlook, standing: Standing) -> Cell {
    let tone = cells::tone_of(standing, cells::tone_of_outlook(outlook));
    Cell {
        text: factor(effect.ratio),
        detail: interval(effect).unwrap_or_default(),
        number: Some(effect.ratio).filter(|_| standing != Standing::Invalid),
        ends: effect.has_interval().then_some((effect.low, effect.high)),
        strength: match tone {
            Tone::Better | Tone::Worse => cells::strength(100.0 * effect.ratio),
            _ => 0.0,
        },
        tone,
    }
}

/// What a subject does by itself: of the baseline, and where nothing is compared. Several workloads
/// have no number together.
fn absolute(context: &Context<'_>, subject: usize, workloads: &[usize]) -> Cell {
    let analysis = context.analysis;
    let of = |work: &usize| analysis.cell(*work, subject);
    match workloads {
        [only] => {
            let cell = of(only);
            let is_baseline = analysis.is_baseline(subject);
            let scale = cells::scale_of([cell], cell.headline);
            let shown = cells::median(cell, cell.headline, scale);
            match (cell.main(), shown.tone) {
                (Some(main), Tone::Plain) => Cell {
                    text: quantity(cell.headline, main.median),
                    tone: if is_baseline { Tone::Baseline } else { Tone::Plain },
                    ..shown
                },
                _ => shown,
            }
        }
        many => {
            let has = |cell: &Measured| cell.is_usable();
            let count = many.iter().map(of).filter(|cell| has(cell)).count();
            match analysis.is_baseline(subject) && count > 0 {
                true => Cell { tone: Tone::Baseline, ..cells::number("1", 1.0) },
                false => cells::missing(match count {
                    0 => many.first().map_or(String::new(), |w| cells::why_missing(of(w))),
                    some => format!("{some} workloads, see below"),
                }),
            }
        }
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
    Table {
        id: "answer".to_owned(),
        title: String::new(),
        note:
            "How many times as fast as the level marked 1, all else alike, with the 95 % interval."
                .to_owned(),
        columns,
        rows: context.factors.iter().flat_map(|factor| rows_of(factor, &directions)).collect(),
    }
}

/// A row for each level of a factor.
pub(super) fn rows_of(factor: &Factor, directions: &[&str]) -> Vec<Row> {
    let effect_at = |level: usize, direction: &str| -> Option<&LevelEffect> {
        let place = factor.directions.iter().position(|one| one == direction)?;
        factor.levels[level].effects[place].as_ref()
    };
    (0..factor.levels.len())
        .map(|level| {
            let value = &factor.levels[level].value;
            let mut line = vec![
                cells::words(if level == 0 { name_of(&factor.dimension) } else { String::new() }),
                cells::words(short(&factor.dimension, value)),
            ];
            line.extend(directions.iter().map(|direction| match effect_at(level, direction) {
                Some(one) => of(&one.effect, one.outlook, one.standing),
                None if level == factor.reference => {
                    Cell { tone: Tone::Baseline, ..cells::number("1", 1.0) }
                }
                None => cells::missing(""),
            }));
            cells::row(line)
        })
        .collect()
}

/// A heading for each direction.
pub(super) fn directions_of(factor: &Factor) -> Vec<Column> {
    factor.directions.iter().map(cells::numbers).collect()
}
