//! A section for each factor of a study: what its levels do, as a table and as a curve, and what it
//! does to each array or workload by itself.

use super::cells;
use super::summary::{directions_of, rows_of};
use super::words::{as_number, name_of, short, spell};
use super::{Context, section};
use crate::analysis::{Cell as Measured, Factor};
use crate::report::model::{
    Axis, BarSeries, Block, Chart, Datum, Gap, LineSeries, Plot, Point, Section, Spread, Table,
};
use crate::report::units::{factor as in_words, span, title};
use crate::stats::Effect;
use braid_lab::metric::Metric;
use braid_lab::settings::Value;

/// Most lines or bars of a chart.
pub(super) const MOST_SERIES: usize = 8;
/// Tables of single numbers of a factor; the section on numbers has all.
const MOST_TABLES: usize = 6;

/// The sections.
pub(super) fn sections(context: &Context<'_>) -> Vec<Section> {
    context.factors.iter().flat_map(|factor| of_factor(context, factor)).collect()
}

fn of_factor(context: &Context<'_>, factor: &Factor) -> Vec<Section> {
    let name = name_of(&factor.dimension);
    let reference = short(&factor.dimension, &factor.levels[factor.reference].value);
    let mut blocks = vec![Block::Chart(chart(factor)), Block::Table(table(factor))];
    blocks.extend(crossed(context, factor).into_iter().map(Block::Table));
    let lead = format!(
        "Each level against {reference}, all else alike: the mean over everything that has both, with \
         the 95 % interval; under it, from where to where single pairs lie."
    );
    section(&format!("by-{}", slug(&factor.dimension)), &format!("By {name}"), lead, false, blocks)
}

fn slug(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

fn table(factor: &Factor) -> Table {
    let directions: Vec<&str> = factor.directions.iter().map(String::as_str).collect();
    let mut columns = vec![cells::column(name_of(&factor.dimension))];
    columns.extend(directions_of(factor));
    let mut rows = rows_of(factor, &directions);
    for (row, level) in rows.iter_mut().zip(&factor.levels) {
        // The factor's name is the heading here.
        row.cells.remove(0);
        for (cell, effect) in row.cells.iter_mut().skip(1).zip(&level.effects) {
            if let Some(one) = effect.as_ref().filter(|one| one.groups > 1) {
                let range = span(&in_words(one.lowest), &in_words(one.highest));
                cell.detail += &format!(" [{range} in {}]", one.groups);
            }
        }
    }
    Table { id: "factor".to_owned(), title: String::new(), note: String::new(), columns, rows }
}

/// A curve over numbers, bars over words.
pub(super) fn chart(factor: &Factor) -> Chart {
    let title = format!("What {} does", name_of(&factor.dimension));
    let at: Option<Vec<f64>> = factor.levels.iter().map(|level| as_number(&level.value)).collect();
    let y = Axis { label: "times the reference".to_owned(), ..Axis::default() };
    let names: Vec<String> =
        factor.levels.iter().map(|level| short(&factor.dimension, &level.value)).collect();
    let one = Effect { ratio: 1.0, low: 1.0, high: 1.0, pairs: 1, log_sd: 0.0, p_value: 1.0 };
    let effect = |level: usize, place: usize| match &factor.levels[level].effects[place] {
        Some(effect) => Some((effect.effect, effect.standing)),
        None if level == factor.reference => Some((one, crate::analysis::Standing::Ok)),
        None => None,
    };
    let is_suspect = |standing| standing != crate::analysis::Standing::Ok;
    let plot = match at {
        Some(at) => {
            let line = |(place, direction): (usize, &String)| LineSeries {
                name: direction.clone(),
                points: (0..factor.levels.len())
                    .filter_map(|level| {
                        let (effect, standing) = effect(level, place)?;
                        Some(Point {
                            x: at[level],
                            y: effect.ratio,
                            interval: effect.has_interval().then_some((effect.low, effect.high)),
                            suspect: is_suspect(standing),
                        })
                    })
                    .collect(),
                steps: false,
            };
            let mut series: Vec<LineSeries> =
                factor.directions.iter().enumerate().map(line).collect();
            series.truncate(MOST_SERIES);
            if ["members", "buses"].contains(&factor.dimension.as_str()) {
                series.push(ideal(&at, at[factor.reference]));
            }
            // Powers of two and the like are read by factors.
            let log =
                at.iter().all(|x| *x > 0.0) && at.last() >= at.first().map(|x| x * 8.0).as_ref();
            Plot::Lines {
                x: Axis {
                    label: name_of(&factor.dimension),
                    log,
                    ticks: at.iter().copied().zip(names).collect(),
                    ..Axis::default()
                },
                y,
                series,
                events: Vec::new(),
            }
        }
        None => Plot::Bars {
            axis: y,
            categories: names,
            series: factor
                .directions
                .iter()
                .enumerate()
                .take(MOST_SERIES)
                .map(|(place, direction)| BarSeries {
                    name: direction.clone(),
                    values: (0..factor.levels.len())
                        .map(|level| match effect(level, place) {
                            Some((effect, standing)) => bar(&effect, 1.0, is_suspect(standing)),
                            None => Datum::Gap(Gap::NotGiven),
                        })
                        .collect(),
                })
                .collect(),
            mark: Some(1.0),
        },
    };
    Chart { id: "factor".to_owned(), title, note: "More is better.".to_owned(), plot }
}

/// Twice the members, twice the speed.
fn ideal(at: &[f64], reference: f64) -> LineSeries {
    let point = |x: &f64| Point { x: *x, y: x / reference, interval: None, suspect: false };
    LineSeries { name: "ideal".to_owned(), points: at.iter().map(point).collect(), steps: false }
}

/// An effect as a bar, times `scale`.
pub(super) fn bar(effect: &Effect, scale: f64, suspect: bool) -> Datum<Spread> {
    Datum::Value(Spread {
        value: effect.ratio * scale,
        low: effect.low * scale,
        high: effect.high * scale,
        points: Vec::new(),
        suspect,
    })
}

/// Chunk by number of members, and the like: the medians of one factor over another, where subjects
/// have both. Each pair of factors has its table once, under the first of the two.
fn crossed(context: &Context<'_>, factor: &Factor) -> Vec<Table> {
    let place = |wanted: &Factor| {
        context.factors.iter().position(|other| other.dimension == wanted.dimension)
    };
    let others = context.factors.iter().filter(|other| place(other) > place(factor));
    others
        .flat_map(|other| {
            let works = 0..context.analysis.workloads.len();
            works.flat_map(move |work| cross(context, factor, other, work))
        })
        .take(MOST_TABLES)
        .collect()
}

fn cross(context: &Context<'_>, down: &Factor, across: &Factor, work: usize) -> Vec<Table> {
    let subjects = &context.results.subjects;
    let value = |subject: usize, factor: &Factor| -> Option<&Value> {
        subjects[subject].dimensions.get(factor.dimension.as_str())
    };
    let rest_of = |subject: usize| -> Option<String> {
        value(subject, down)?;
        value(subject, across)?;
        let mut name = subjects[subject].family.clone();
        for (key, value) in &subjects[subject].dimensions {
            if ![&down.dimension, &across.dimension].contains(&&(*key).to_owned()) {
                name += &format!(", {}", spell(key, value));
            }
        }
        Some(name)
    };
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    for subject in 0..subjects.len() {
        let Some(name) = rest_of(subject) else { continue };
        match groups.iter_mut().find(|(other, _)| *other == name) {
            Some((_, found)) => found.push(subject),
            None => groups.push((name, vec![subject])),
        }
    }
    let metric: Metric = context.analysis.workloads[work].headline;
    let tables = groups.into_iter().filter_map(|(name, group)| {
        let cell = |row: &Value, column: &Value| -> Option<&Measured> {
            let subject = group.iter().find(|subject| {
                value(**subject, down) == Some(row) && value(**subject, across) == Some(column)
            })?;
            Some(context.analysis.cell(work, *subject))
        };
        let all = || group.iter().map(|subject| context.analysis.cell(work, *subject));
        if all().filter(|cell| cell.main().is_some()).count() < 4 {
            return None;
        }
        let scale = cells::scale_of(all(), metric);
        let mut columns = vec![cells::column(name_of(&down.dimension))];
        columns.extend(
            across.levels.iter().map(|level| {
                cells::numbers_in(&spell(&across.dimension, &level.value), scale.unit)
            }),
        );
        let rows = down.levels.iter().map(|row| {
            let mut line = vec![cells::words(short(&down.dimension, &row.value))];
            line.extend(across.levels.iter().map(|column| match cell(&row.value, &column.value) {
                Some(cell) => cells::median(cell, metric, scale),
                None => cells::missing("not in the campaign"),
            }));
            cells::row(line)
        });
        Some(Table {
            id: "crossed".to_owned(),
            title: format!(
                "{name}, {}: {} by {}, {}",
                context.label(work),
                name_of(&down.dimension),
                name_of(&across.dimension),
                title(metric)
            ),
            note: "Medians of the repetitions.".to_owned(),
            columns,
            rows: rows.collect(),
        })
    });
    tables.collect()
}
