//! A section for each factor of a study: what its levels do, as a curve and as a table, and single
//! numbers by two factors.

use std::collections::BTreeMap;

use super::charts::{self, MOST_SERIES};
use super::summary::{OF_LEVELS, lines_of};
use super::words::{as_number, name_of, short, spell};
use super::{Context, cells, section};
use crate::analysis::{Factor, Level};
use crate::report::model::{Axis, Block, Chart, Point, Section, Series, Shape, Table};
use crate::report::units::title;
use braid_lab::settings::Value;

/// Tables of single numbers of a factor; the section on numbers has all.
const MOST_TABLES: usize = 6;

/// The sections. Of a study the picture is the first factor's, and the answer's table has all levels.
pub(super) fn sections(context: &Context<'_>) -> Vec<Section> {
    let of_factor = |(place, factor): (usize, &Factor)| {
        let is_told = context.is_study();
        let drawn = chart(factor).filter(|_| !is_told || place > 0);
        let mut blocks: Vec<Block> = drawn.into_iter().map(Block::Chart).collect();
        blocks.extend((!is_told).then(|| Block::Table(table(factor))));
        blocks.extend(crossed(context, factor).into_iter().map(Block::Table));
        let name = name_of(&factor.dimension);
        let reference = short(&factor.dimension, &factor.levels[factor.reference].value);
        let lead = format!(
            "Each level against {reference}, all else alike: the mean over everything that has both."
        );
        let id = format!("by-{}", slug(&factor.dimension));
        section(&id, &format!("By {name}"), lead, !is_asked(factor), blocks)
    };
    context.factors.iter().enumerate().flat_map(of_factor).collect()
}

/// True if a study would ask for it. That excludes the size of requests and the number in flight, which a
/// campaign varies to look at subjects from several sides.
pub(super) fn is_asked(factor: &Factor) -> bool {
    !["block_size", "bs", "iodepth", "threads", "drop_caches", "size"]
        .contains(&factor.dimension.as_str())
}

fn slug(name: &str) -> String {
    let slug = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    slug.take(20).collect()
}

fn table(factor: &Factor) -> Table {
    let directions: Vec<&str> = factor.directions.iter().map(String::as_str).collect();
    let mut columns = vec![cells::column(name_of(&factor.dimension))];
    columns.extend(directions.iter().map(|direction| cells::numbers(*direction)));
    Table {
        id: "factor".to_owned(),
        note: OF_LEVELS.to_owned(),
        columns,
        rows: lines_of(factor, &directions).into_iter().map(cells::row).collect(),
        ..Table::default()
    }
}

/// A curve over numbers, bars over words; `None` where no level has a number.
pub(super) fn chart(factor: &Factor) -> Option<Chart> {
    let numbers: Option<Vec<f64>> =
        factor.levels.iter().map(|level| as_number(&level.value)).collect();
    let is_curve = numbers.is_some();
    let at = numbers.unwrap_or_else(|| (0..).map(f64::from).take(factor.levels.len()).collect());
    let points = |place: usize| {
        let levels = factor.levels.iter().zip(&at).enumerate();
        levels.filter_map(move |(index, (level, x))| match &level.effects[place] {
            Some(one) => Some(charts::of_effect(*x, &one.effect, one.standing)),
            None => {
                (index == factor.reference).then_some(Point { x: *x, y: 1.0, ..Point::default() })
            }
        })
    };
    let directions = factor.directions.iter().enumerate().take(MOST_SERIES - 1);
    let mut series: Vec<Series> = directions
        .map(|(place, name)| Series { name: name.clone(), points: points(place).collect() })
        .collect();
    if ["members", "buses"].contains(&factor.dimension.as_str()) {
        // Twice the members, twice the speed.
        let ideal = |x: &f64| Point { x: *x, y: x / at[factor.reference], ..Point::default() };
        series.push(Series { name: "ideal".to_owned(), points: at.iter().map(ideal).collect() });
    }
    let chart = charts::bars(
        &format!("What {} does", name_of(&factor.dimension)),
        factor.levels.iter().map(|level| short(&factor.dimension, &level.value)),
        charts::axis("times the reference", ""),
        series,
    )?;
    let chart = Chart { id: "factor".to_owned(), note: "More is better.".to_owned(), ..chart };
    if !is_curve {
        return Some(Chart { mark: Some(1.0), ..chart });
    }
    // Powers of two and the like are read by factors.
    let is_wide = at.last() >= at.first().map(|first| first * 8.0).as_ref();
    let ticks = at.iter().copied().zip(chart.x.ticks.iter().map(|(_, name)| name.clone()));
    let x = Axis {
        label: name_of(&factor.dimension),
        log: is_wide && at.iter().all(|x| *x > 0.0),
        ticks: ticks.collect(),
        ..Axis::default()
    };
    Some(Chart { shape: Shape::Lines, x, ..chart })
}

/// Chunk by number of members, and the like: the medians of one factor over another, where subjects
/// have both. Each pair of factors has its table once, under the first of the two.
fn crossed(context: &Context<'_>, factor: &Factor) -> Vec<Table> {
    let is_it = |other: &&Factor| other.dimension == factor.dimension;
    let others = context.factors.iter().skip_while(|other| !is_it(other)).skip(1);
    let works = 0..context.analysis.workloads.len();
    let pairs = others.flat_map(|other| works.clone().map(move |work| (other, work)));
    let tables = pairs.flat_map(|(other, work)| cross(context, factor, other, work));
    tables.take(MOST_TABLES).collect()
}

fn cross(context: &Context<'_>, down: &Factor, across: &Factor, work: usize) -> Vec<Table> {
    let subjects = &context.results.subjects;
    let value = |subject: usize, factor: &Factor| -> Option<&Value> {
        subjects[subject].dimensions.get(factor.dimension.as_str())
    };
    // Subjects that differ in nothing else, by what they have in common.
    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, subject) in subjects.iter().enumerate() {
        if value(index, down).is_none() || value(index, across).is_none() {
            continue;
        }
        let others = subject.dimensions.iter().filter(|(name, _)| {
            ![down.dimension.as_str(), across.dimension.as_str()].contains(*name)
        });
        let others: String =
            others.map(|(name, value)| format!(", {}", spell(name, value))).collect();
        groups.entry(subject.family.clone() + &others).or_default().push(index);
    }
    let of_work = &context.analysis.workloads[work];
    let tables = groups.into_iter().filter_map(|(name, group)| {
        let measured = || group.iter().map(|subject| context.analysis.cell(work, *subject));
        if measured().filter(|cell| cell.main().is_some()).count() < 4 {
            return None;
        }
        let scale = cells::scale_of(measured(), of_work.headline);
        // A level may be that of another group, or the baseline's.
        let levels_of = |factor: &'_ Factor| -> Vec<Level> {
            let has =
                |level: &&Level| group.iter().any(|s| value(*s, factor) == Some(&level.value));
            factor.levels.iter().filter(has).cloned().collect()
        };
        let (rows_of, columns_of) = (levels_of(down), levels_of(across));
        let mut columns = vec![cells::column(name_of(&down.dimension))];
        let heads = columns_of.iter().map(|level| spell(&across.dimension, &level.value));
        columns.extend(heads.map(cells::numbers));
        let rows = rows_of.iter().map(|row| {
            let mut line = vec![cells::words(short(&down.dimension, &row.value))];
            line.extend(columns_of.iter().map(|column| {
                let is_it = |subject: &&usize| {
                    value(**subject, down) == Some(&row.value)
                        && value(**subject, across) == Some(&column.value)
                };
                match group.iter().find(is_it) {
                    Some(subject) => cells::median(
                        context.analysis.cell(work, *subject),
                        of_work.headline,
                        scale,
                    ),
                    None => cells::missing("not in the campaign"),
                }
            }));
            cells::row(line)
        });
        let what = cells::in_unit(title(of_work.headline), scale.unit);
        Some(Table {
            id: "crossed".to_owned(),
            title: format!("{name}, {}: {what}", context.label(work)),
            note: "Medians of the repetitions.".to_owned(),
            columns,
            rows: rows.collect(),
        })
    });
    tables.collect()
}
