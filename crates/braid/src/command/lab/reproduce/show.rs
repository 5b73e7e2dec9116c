//! Judgements as tables and charts of the laboratory's reports, for the terminal and for a page.

use braid_lab_report::report::model::{
    Axis, Block, Cell, Chart, Column, Point, Report, Row, Section, Series, Shape, Table, Tone,
};
use braid_published::{Decision, JudgedClaim, JudgedRow, NullModel, Role, Unit};

use super::Judged;

/// Which claims are told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Claims {
    All,
    Failed,
}

/// A row that is off by more has a sign.
const FAR: f64 = 0.25;
/// More series cannot be told apart.
const MOST_SERIES: usize = 8;

pub(super) fn report(judged: &[Judged], claims: Claims) -> Report {
    let section = |(at, one): (usize, &Judged)| section(at, one, claims);
    Report {
        title: "Device models beside published figures".to_owned(),
        answer: answer(judged),
        table: summary(judged),
        sections: judged.iter().enumerate().map(section).collect(),
        ..Report::default()
    }
}

fn answer(judged: &[Judged]) -> Vec<String> {
    let summaries = judged.iter().filter_map(|one| one.model.predictions());
    let rows: usize = summaries.clone().map(|one| one.scored).sum();
    let missing: usize = judged.iter().map(|one| one.model.missing()).sum();
    let mean = summaries.map(|one| one.mean * one.scored as f64).sum::<f64>() / rows as f64;
    let (held, published) = judged
        .iter()
        .map(|one| one.model.held())
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let off = match rows {
        0 => "No row to be predicted has a value of the model".to_owned(),
        rows => format!(
            "{rows} predicted rows are off by {mean:.3} in the mean (a factor of {:.2})",
            mean.exp()
        ),
    };
    let missing = match missing {
        0 => String::new(),
        1 => "; for 1 more the model has no value".to_owned(),
        missing => format!("; for {missing} more the model has no value"),
    };
    let mut answer = vec![format!("{off}{missing}; {held} of {published} published claims hold.")];
    let passed_over: Vec<_> = judged.iter().flat_map(|one| &one.model.passed_over).collect();
    if let Some((id, why)) = passed_over.first() {
        answer.push(format!("{} passed over, not judged: {id}, …: {why}.", passed_over.len()));
    }
    answer
}

fn text(text: impl Into<String>) -> Cell {
    Cell { text: text.into(), ..Cell::default() }
}

fn number(shown: String, number: f64) -> Cell {
    Cell { text: shown, number: Some(number), ..Cell::default() }
}

fn missing() -> Cell {
    Cell { text: "—".to_owned(), tone: Tone::Missing, ..Cell::default() }
}

/// Headings; those with `#` are of numbers.
fn columns(headings: &[&str]) -> Vec<Column> {
    let column = |heading: &&str| Column {
        heading: heading.trim_start_matches('#').to_owned(),
        numeric: heading.starts_with('#'),
    };
    headings.iter().map(column).collect()
}

/// A row each file.
fn summary(judged: &[Judged]) -> Table {
    let row = |one: &Judged| {
        let score = |value: Option<f64>| {
            value.map_or_else(missing, |value| number(format!("{value:.3}"), value))
        };
        let predicted = one.model.predictions();
        let scored = predicted.map_or(0, |summary| summary.scored);
        let (held, published) = one.model.held();
        let mut cells = vec![
            text(&*one.model.study),
            text(match one.model.missing() {
                0 => scored.to_string(),
                missing => format!("{scored} of {}", scored + missing),
            }),
            score(predicted.map(|summary| summary.mean)),
            score(predicted.map(|summary| summary.median)),
            score(one.model.worst().map(|(_, score)| score)),
        ];
        cells
            .extend(one.null.iter().map(|(_, summary)| score(summary.map(|summary| summary.mean))));
        cells.push(text(format!("{held} of {published}")));
        Row { cells, total: false }
    };
    let null = NullModel::ALL.map(|null| format!("{}: {}", null.name(), null.says()));
    Table {
        id: "files".to_owned(),
        title: String::new(),
        note: format!(
            "mean, median, worst: of |ln(model / published)| over the rows to be predicted, 0 inside of what the \
             print may mean. The same mean of models without a mechanism: {}.",
            null.join("; ")
        ),
        columns: columns(&[
            "series",
            "#rows",
            "#mean",
            "#median",
            "#worst",
            "#average",
            "#striping",
            "#claims",
        ]),
        rows: judged.iter().map(row).collect(),
    }
}

fn section(at: usize, one: &Judged, claims: Claims) -> Section {
    let mut blocks: Vec<Block> = charts(at, one).into_iter().map(Block::Chart).collect();
    blocks.extend(claims_table(at, one, claims).map(Block::Table));
    let tables = [
        ("predicted", "Rows to be predicted", Role::Prediction),
        ("calibration", "Rows of calibration", Role::Calibration(braid_published::CalibUse::Input)),
        ("context", "Context", Role::Context),
    ];
    for (id, title, role) in tables {
        let is_of = |row: &&JudgedRow| row.role.text() == role.text();
        let rows: Vec<&JudgedRow> = one.model.rows.iter().filter(is_of).collect();
        if !rows.is_empty() {
            let summary = one.model.summary(|other| other.text() == role.text());
            let off = summary.map_or(String::new(), |summary| {
                format!(
                    ": {} with a value, mean {:.3}, median {:.3}",
                    summary.scored, summary.mean, summary.median
                )
            });
            blocks.push(Block::Table(rows_table(
                format!("{id}-{at}"),
                format!("{title}{off}"),
                &rows,
            )));
        }
    }
    let worst = one.model.worst().filter(|(_, score)| *score > 0.0);
    let worst = worst.map(|(row, score)| format!(". Furthest off is {}, by {score:.3}", row.id));
    Section {
        id: format!("file-{at}"),
        title: one.model.study.clone(),
        lead: format!("{}{}", one.model.title, worst.unwrap_or_default()),
        is_detail: false,
        blocks,
    }
}

fn rows_table(id: String, title: String, rows: &[&JudgedRow]) -> Table {
    let row = |row: &&JudgedRow| {
        let mut cells =
            vec![text(&*row.id), number(quantity(row.published, row.unit), row.published)];
        match &row.model {
            Ok(model) => {
                let score = row.score.unwrap_or_default();
                let ratio = model / row.published;
                cells.push(number(quantity(*model, row.unit), *model));
                cells.push(number(ratio_text(ratio), ratio));
                let tone = if score > FAR { Tone::Suspect } else { Tone::Plain };
                cells.push(Cell { tone, ..number(format!("{score:.3}"), score) });
                cells.push(text(""));
            }
            Err(why) => cells.extend([missing(), missing(), missing(), text(why.to_string())]),
        }
        cells
    };
    let mut all: Vec<Vec<Cell>> = rows.iter().map(row).collect();
    let mut headings =
        vec!["row", "#published", "#model", "#ratio", "#off by", "why there is no value"];
    if rows.iter().all(|row| row.model.is_ok()) {
        headings.pop();
        all.iter_mut().for_each(|cells| cells.truncate(headings.len()));
    }
    Table {
        id,
        title,
        note: String::new(),
        columns: columns(&headings),
        rows: all.into_iter().map(|cells| Row { cells, total: false }).collect(),
    }
}

fn claims_table(at: usize, one: &Judged, claims: Claims) -> Option<Table> {
    let is_told = |claim: &&JudgedClaim| claims == Claims::All || !claim.in_model.holds();
    let told: Vec<&JudgedClaim> = one.model.claims.iter().filter(is_told).collect();
    if one.model.claims.is_empty() {
        return None;
    }
    let row = |claim: &&JudgedClaim| {
        let (held, tone, compared) = match &claim.in_model {
            Decision::Holds(seen) => ("holds", Tone::Plain, seen.clone()),
            Decision::Fails(seen) => ("fails", Tone::Suspect, seen.clone()),
            Decision::Undecided(why) => ("undecided", Tone::Suspect, why.to_string()),
        };
        let print = match &claim.in_print {
            Decision::Holds(_) => "holds",
            Decision::Fails(_) => "fails",
            Decision::Undecided(_) => "said",
        };
        let detail = match claim.taken.as_slice() {
            [] => String::new(),
            taken => format!("with the published value of {}", taken.join(", ")),
        };
        let cells = vec![
            Cell { detail: claim.statement.clone(), ..text(&*claim.id) },
            text(print),
            Cell { tone, ..text(held) },
            Cell { detail, ..text(compared) },
        ];
        Row { cells, total: false }
    };
    let (held, published) = one.model.held();
    let failed = match (claims, told.len()) {
        (Claims::All, _) => String::new(),
        (Claims::Failed, 0) => ", and none fails".to_owned(),
        (Claims::Failed, _) => "; those that do not hold".to_owned(),
    };
    Some(Table {
        id: format!("claims-{at}"),
        title: format!(
            "Claims: {held} of {published} that hold in print hold in the model{failed}"
        ),
        note: String::new(),
        columns: columns(&["claim", "in print", "in the model", "compared last, in the model"]),
        rows: told.iter().map(row).collect(),
    })
}

/// Rows to be predicted, a chart for each unit: how the model compares with what was published.
fn charts(at: usize, one: &Judged) -> Vec<Chart> {
    let units = [Unit::BytesPerSecond, Unit::Seconds, Unit::PerSecond];
    units.into_iter().filter_map(|unit| chart(at, one, unit)).collect()
}

fn chart(at: usize, one: &Judged, unit: Unit) -> Option<Chart> {
    let (divisor, shown, id) = match unit {
        Unit::BytesPerSecond => (1e6, "MB/s", "rates"),
        Unit::Seconds => (1.0, "s", "times"),
        Unit::PerSecond => (1.0, "1/s", "counts"),
    };
    let mut series: Vec<Series> = Vec::new();
    let rows = one.model.rows.iter().filter(|row| row.role == Role::Prediction && row.unit == unit);
    for row in rows {
        let Ok(model) = row.model else { continue };
        let point =
            Point { x: row.published / divisor, y: model / row.published, ..Point::default() };
        match series.iter_mut().find(|one| one.name == row.subject) {
            Some(one) => one.points.push(point),
            None => series.push(Series { name: row.subject.clone(), points: vec![point] }),
        }
    }
    let points = || series.iter().flat_map(|one| &one.points);
    let furthest = points().map(|point| point.y.max(1.0 / point.y)).fold(1.0, f64::max);
    // One row alone is read in its table.
    if points().count() < 2 || series.len() > MOST_SERIES {
        return None;
    }
    let ticks: &[f64] = match furthest {
        far if far <= 1.5 => &[0.67, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5],
        far if far <= 2.0 => &[0.5, 0.67, 0.8, 1.0, 1.25, 1.5, 2.0],
        far if far <= 4.0 => &[0.25, 0.5, 0.8, 1.0, 1.25, 2.0, 4.0],
        _ => &[],
    };
    Some(Chart {
        id: format!("{id}-{at}"),
        title: format!("Model as a multiple of what was published: {id}"),
        note: "A mark is a row to be predicted; on the dashed line the model is right.".to_owned(),
        shape: Shape::Marks,
        x: Axis {
            label: "published".to_owned(),
            unit: shown.to_owned(),
            log: true,
            ..Axis::default()
        },
        y: Axis {
            label: "model / published".to_owned(),
            log: true,
            ticks: ticks.iter().map(|tick| (*tick, format!("{tick}"))).collect(),
            ..Axis::default()
        },
        series,
        mark: Some(1.0),
        ..Chart::default()
    })
}

/// Three digits and a unit that suits them.
fn quantity(value: f64, unit: Unit) -> String {
    let steps: &[(f64, &str)] = match unit {
        Unit::BytesPerSecond => &[(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")],
        Unit::Seconds => &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")],
        Unit::PerSecond => &[(1.0, "1/s")],
    };
    // What is rounded to 1000 of a unit is 1 of the next.
    let step = steps.iter().find(|(size, _)| value >= size * 0.9995).or(steps.last());
    let (size, name) = step.copied().unwrap_or((1.0, unit.text()));
    format!("{} {name}", digits(value / size))
}

fn digits(value: f64) -> String {
    match value {
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

fn ratio_text(ratio: f64) -> String {
    match ratio {
        ratio if !(0.005..1e4).contains(&ratio) => format!("{ratio:.1e}"),
        ratio => digits(ratio),
    }
}
