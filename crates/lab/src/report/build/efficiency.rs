//! How much of a member's speed is left in a larger array.
//!
//! Invariants: all lines of a table have their 100 % at the same number of members, the smallest
//! with which all its subjects are planned; a subject without a usable number there has no
//! efficiency, for a line that begins later looks better than one that does not.

use super::cells;
use super::pivot::{Head, MOST_SERIES, Pivot, evenly, not_drawn};
use crate::analysis::{Cell, Standing, State, speeds};
use crate::report::model::{Axis, Block, Chart, LineSeries, Plot, Point, Table};
use crate::report::units::percent_number;
use crate::stats::median;

/// The smallest size with which every subject that was measured at all is planned. `None` when
/// there is none. `planned` is the pivot before anything is cut from it.
pub(super) fn smallest_shared(planned: &Pivot<'_>) -> Option<Head> {
    let has_number = |column: usize| {
        planned.cells.iter().any(|row| row[column].is_some_and(|cell| cell.main().is_some()))
    };
    let columns: Vec<usize> = (0..planned.columns.len()).filter(|c| has_number(*c)).collect();
    let in_plan = |cell: Option<&Cell>| cell.is_some_and(|c| c.state != State::NotPlanned);
    let rows = planned.rows.iter().zip(&planned.cells);
    let shared = rows.filter(|(head, row)| {
        head.at.is_some_and(|members| members > 0.0) && columns.iter().all(|c| in_plan(row[*c]))
    });
    let smallest = |a: &Head, b: &Head| a.at.unwrap_or(0.0).total_cmp(&b.at.unwrap_or(0.0));
    shared.map(|(head, _)| head).min_by(|a, b| smallest(a, b)).cloned()
}

/// Speed per member in percent of that with the reference's number of members.
struct Efficiency<'a, 'p> {
    pivot: &'p Pivot<'a>,
    /// The row of the reference; `None` when nothing of it was measured.
    reference: Option<usize>,
}

impl Efficiency<'_, '_> {
    fn per_member(&self, row: usize, column: usize) -> Option<f64> {
        let members = self.pivot.rows[row].at.filter(|members| *members > 0.0)?;
        Some(speed(self.pivot.cells[row][column]?)? / members)
    }

    fn percent(&self, row: usize, column: usize) -> Option<f64> {
        let whole = self.per_member(self.reference?, column)?;
        Some(self.per_member(row, column)? / whole * 100.0)
    }

    /// As far as both can be believed.
    fn standing(&self, row: usize, column: usize) -> Standing {
        let of = |row: usize| self.pivot.cells[row][column].map(|cell| cell.standing);
        of(row).max(self.reference.and_then(of)).unwrap_or_default()
    }

    fn cell(&self, row: usize, column: usize, reference: &Head) -> crate::report::model::Cell {
        if let Some(percent) = self.percent(row, column) {
            let tone = cells::tone_of(self.standing(row, column), Default::default());
            let number = cells::number(percent_number(percent), percent);
            return crate::report::model::Cell { tone, ..number };
        }
        let why = match self.pivot.cells[row][column] {
            None => "not in the campaign".to_owned(),
            Some(cell) if speed(cell).is_none() => match cells::why_missing(cell) {
                why if why.is_empty() => "invalid".to_owned(),
                why => why,
            },
            Some(_) => {
                format!("no number with {} {}", reference.name, self.pivot.rows_are)
            }
        };
        cells::missing(why)
    }

    fn line(&self, column: usize) -> LineSeries {
        let point = |row: usize| {
            let (x, y) = (self.pivot.rows[row].at?, self.percent(row, column)?);
            let suspect = self.standing(row, column) == Standing::Suspect;
            Some(Point { x, y, interval: None, suspect })
        };
        LineSeries {
            name: self.pivot.columns[column].name.clone(),
            points: (0..self.pivot.rows.len()).filter_map(point).collect(),
            steps: false,
        }
    }
}

/// Median speed: a rate, or one over a time.
fn speed(cell: &Cell) -> Option<f64> {
    median(&speeds(cell)?.values().copied().collect::<Vec<_>>())
}

/// A table, and its lines in as many charts as they need.
pub(super) fn efficiency(pivot: &Pivot<'_>, reference: &Head) -> Vec<Block> {
    let row = pivot.rows.iter().position(|head| head.at == reference.at);
    let all = Efficiency { pivot, reference: row };
    let name = format!("{}: scaling efficiency", pivot.title);
    let mut columns = vec![cells::column(pivot.rows_are.clone())];
    columns.extend(pivot.columns.iter().map(|head| cells::numbers_in(&head.name, "%")));
    let rows = pivot.rows.iter().enumerate().map(|(row, head)| {
        let mut line = vec![cells::words(head.name.clone())];
        line.extend((0..pivot.columns.len()).map(|column| all.cell(row, column, reference)));
        cells::row(line)
    });
    let table = Table {
        id: "efficiency".to_owned(),
        title: name.clone(),
        note: format!(
            "100 % is as much for each member as with {} {}.",
            reference.name, pivot.rows_are
        ),
        columns,
        rows: rows.collect(),
    };
    let (series, short): (Vec<LineSeries>, Vec<LineSeries>) =
        (0..pivot.columns.len()).map(|column| all.line(column)).partition(|l| l.points.len() > 1);
    let ticks: Vec<(f64, String)> =
        pivot.rows.iter().filter_map(|head| Some((head.at?, head.name.clone()))).collect();
    let note = format!("A level line at 100 % is perfect scaling.{}", not_drawn(&short));
    let charts = series.chunks(evenly(series.len(), MOST_SERIES)).map(|series| {
        Block::Chart(Chart {
            id: "efficiency-lines".to_owned(),
            title: name.clone(),
            note: note.clone(),
            plot: Plot::Lines {
                x: Axis { label: pivot.rows_are.clone(), ticks: ticks.clone(), ..Axis::default() },
                y: Axis {
                    label: "speed per member".to_owned(),
                    unit: "%".to_owned(),
                    ..Axis::default()
                },
                series: series.to_vec(),
                events: Vec::new(),
            },
        })
    });
    std::iter::once(Block::Table(table)).chain(charts).collect()
}
