//! Rows by columns of one metric, and what is made of it: a table, lines, bars, a heat map. Every
//! comparison over a dimension goes through here.

use super::answer::enumerate;
use super::cells;
use super::dims::{as_number, short};
use crate::analysis::{Cell as Measured, Standing};
use crate::metric::Metric;
use crate::report::model::{
    Axis, BarSeries, Block, Cell, Chart, Datum, Gap, LineSeries, Plot, Point, Shade, Spread, Table,
};
use crate::report::units::{Scale, title};
use crate::settings::Value;
use crate::stats::{ByRepetition, compare_with_baseline};

/// A row or column.
#[derive(Clone)]
pub(super) struct Head {
    /// In words.
    pub(super) name: String,
    /// Where it is on an axis, if it is a number above 0.
    pub(super) at: Option<f64>,
}

impl Head {
    pub(super) fn word(name: impl Into<String>) -> Self {
        Self { name: name.into(), at: None }
    }

    pub(super) fn of(dimension: &str, value: &Value) -> Self {
        Self { name: short(dimension, value), at: as_number(value) }
    }
}

/// Cells by row and column.
pub(super) struct Pivot<'a> {
    /// What is seen, such as the workload.
    pub(super) title: String,
    /// What the rows are, such as "members".
    pub(super) rows_are: String,
    /// What the columns are, such as "subject".
    pub(super) columns_are: String,
    /// The rows.
    pub(super) rows: Vec<Head>,
    /// The columns.
    pub(super) columns: Vec<Head>,
    /// `cells[row][column]`.
    pub(super) cells: Vec<Vec<Option<&'a Measured>>>,
    /// Which number of the cells.
    pub(super) metric: Metric,
}

/// Most lines or bars of a chart.
pub(super) const MOST_SERIES: usize = 8;
/// Most groups of bars in a chart.
pub(super) const MOST_CATEGORIES: usize = 8;

impl<'a> Pivot<'a> {
    /// Without rows and columns in which nothing was measured; `None` when fewer than two rows
    /// are left.
    pub(super) fn trimmed(mut self) -> Option<Self> {
        let metric = self.metric;
        let has = |cell: &Option<&Measured>| cell.is_some_and(|cell| cell.get(metric).is_some());
        let used: Vec<bool> = (0..self.columns.len())
            .map(|column| self.cells.iter().any(|row| has(&row[column])))
            .collect();
        let mut keep = used.iter();
        self.columns.retain(|_| keep.next() == Some(&true));
        for row in &mut self.cells {
            let mut keep = used.iter();
            row.retain(|_| keep.next() == Some(&true));
        }
        let filled: Vec<bool> = self.cells.iter().map(|row| row.iter().any(has)).collect();
        let mut keep = filled.iter();
        self.rows.retain(|_| keep.next() == Some(&true));
        self.cells.retain(|row| row.iter().any(has));
        (self.rows.len() > 1).then_some(self)
    }

    /// Rows as columns.
    pub(super) fn turned(self) -> Self {
        let cells = (0..self.columns.len())
            .map(|column| self.cells.iter().map(|row| row[column]).collect())
            .collect();
        Self {
            rows_are: self.columns_are,
            columns_are: self.rows_are,
            rows: self.columns,
            columns: self.rows,
            cells,
            ..self
        }
    }

    /// The same cells with another number of theirs.
    pub(super) fn of_metric(&self, metric: Metric) -> Self {
        Self {
            title: self.title.clone(),
            rows_are: self.rows_are.clone(),
            columns_are: self.columns_are.clone(),
            rows: self.rows.clone(),
            columns: self.columns.clone(),
            cells: self.cells.clone(),
            metric,
        }
    }

    /// Whether any cell has the number, or says what it takes.
    pub(super) fn has_numbers(&self) -> bool {
        let metric = self.metric;
        self.all().any(|cell| cell.get(metric).is_some() || cell.unsupported.contains_key(&metric))
    }

    fn all(&self) -> impl Iterator<Item = &'a Measured> + '_ {
        self.cells.iter().flatten().flatten().copied()
    }

    /// The unit for all of it.
    pub(super) fn scale(&self) -> Scale {
        cells::scale_of(self.all(), self.metric)
    }

    /// The medians with their intervals.
    pub(super) fn table(&self, id: &str) -> Table {
        let scale = self.scale();
        self.table_of(id, String::new(), |_, cell| cells::median(cell, self.metric, scale))
    }

    /// A table whose cells `write` makes, of the row's number and the cell.
    pub(super) fn table_of(
        &self,
        id: &str,
        note: String,
        write: impl Fn(usize, &'a Measured) -> Cell,
    ) -> Table {
        let unit = self.scale().unit;
        let mut columns = vec![cells::column(self.rows_are.clone())];
        columns.extend(self.columns.iter().map(|head| cells::numbers_in(&head.name, unit)));
        let rows = self.rows.iter().zip(&self.cells).enumerate().map(|(index, (head, row))| {
            let mut line = vec![Cell { number: head.at, ..cells::words(head.name.clone()) }];
            line.extend(row.iter().map(|cell| match cell {
                Some(cell) => write(index, cell),
                None => cells::missing("not in the campaign"),
            }));
            cells::row(line)
        });
        Table {
            id: id.to_owned(),
            title: format!("{}: {}", self.title, title(self.metric)),
            note,
            columns,
            rows: rows.collect(),
        }
    }

    /// Each row in percent of one row, column by column: what becomes of 100 % of it. `None`
    /// when that row has no numbers.
    pub(super) fn percent_of_row(&self, id: &str, row: usize) -> Option<Table> {
        let of_row = |column: usize| {
            let cell = self.cells[row][column].filter(|cell| cell.is_usable())?;
            cell.values.get(&self.metric)
        };
        if (0..self.columns.len()).all(|column| of_row(column).is_none()) {
            return None;
        }
        let mut columns = vec![cells::column(self.rows_are.clone())];
        columns.extend(self.columns.iter().map(|head| cells::numbers_in(&head.name, "%")));
        let compare = |cell: &Measured, column: usize| {
            let values = cell.values.get(&self.metric).filter(|_| cell.is_usable())?;
            compare_with_baseline(values, &[of_row(column)?]).ok()
        };
        let standing = |cell: &Measured, column: usize| {
            let of_row = self.cells[row][column].map_or(Standing::Ok, |cell| cell.standing);
            cell.standing.max(of_row)
        };
        let rows = self.rows.iter().zip(&self.cells).map(|(head, line)| {
            let mut cells_of = vec![Cell { number: head.at, ..cells::words(head.name.clone()) }];
            cells_of.extend(line.iter().enumerate().map(|(column, cell)| {
                let Some(cell) = cell else { return cells::missing("not in the campaign") };
                match compare(cell, column) {
                    Some(ratio) => {
                        cells::compared(&ratio, self.metric.better(), standing(cell, column))
                    }
                    None => cells::missing(why_no_percent(cell, self.metric, of_row(column))),
                }
            }));
            cells::row(cells_of)
        });
        Some(Table {
            id: id.to_owned(),
            title: format!(
                "{}: {} in percent of {}",
                self.title,
                title(self.metric),
                self.rows[row].name
            ),
            note: String::new(),
            columns,
            rows: rows.collect(),
        })
    }

    /// Charts with a line for each column over the rows, at most [`MOST_SERIES`] lines each.
    /// Empty when the rows are not numbers.
    pub(super) fn lines(&self, id: &str) -> Vec<Block> {
        let at: Option<Vec<f64>> = self.rows.iter().map(|head| head.at).collect();
        let Some(at) = at else { return Vec::new() };
        let scale = self.scale();
        let line = |column: usize| LineSeries {
            name: self.columns[column].name.clone(),
            points: self
                .cells
                .iter()
                .zip(&at)
                .filter_map(|(row, x)| {
                    let datum = cells::datum(row[column]?, self.metric, scale);
                    let spread = datum.value()?;
                    let interval = (spread.low < spread.high).then_some((spread.low, spread.high));
                    Some(Point { x: *x, y: spread.value, interval, suspect: spread.suspect })
                })
                .collect(),
            steps: false,
        };
        let (series, short): (Vec<LineSeries>, Vec<LineSeries>) =
            (0..self.columns.len()).map(line).partition(|line| line.points.len() > 1);
        let note = format!("{}{}", self.note_on_better(), not_drawn(&short));
        // Powers of two and the like are read by factors.
        let log = at.iter().all(|x| *x > 0.0) && at.last() >= at.first().map(|x| x * 8.0).as_ref();
        let ticks: Vec<(f64, String)> =
            self.rows.iter().zip(&at).map(|(head, x)| (*x, head.name.clone())).collect();
        series
            .chunks(evenly(series.len(), MOST_SERIES))
            .map(|series| {
                Block::Chart(Chart {
                    id: id.to_owned(),
                    title: format!("{}: {}", self.title, title(self.metric)),
                    note: note.trim_start().to_owned(),
                    plot: Plot::Lines {
                        x: Axis {
                            label: self.rows_are.clone(),
                            unit: String::new(),
                            log,
                            ticks: ticks.clone(),
                        },
                        y: self.axis(scale),
                        series: series.to_vec(),
                        events: Vec::new(),
                    },
                })
            })
            .collect::<Vec<Block>>()
    }

    /// Charts with a group of bars for each row and a bar for each column.
    pub(super) fn bars(&self, id: &str) -> Vec<Block> {
        let scale = self.scale();
        let mut charts = Vec::new();
        let columns: Vec<usize> = (0..self.columns.len()).collect();
        let rows: Vec<usize> = (0..self.rows.len()).collect();
        for columns in columns.chunks(evenly(columns.len(), MOST_SERIES)) {
            for rows in rows.chunks(evenly(rows.len(), MOST_CATEGORIES)) {
                let series: Vec<BarSeries> = columns
                    .iter()
                    .map(|column| BarSeries {
                        name: self.columns[*column].name.clone(),
                        values: rows.iter().map(|row| self.datum(*row, *column, scale)).collect(),
                    })
                    .filter(is_planned)
                    .collect();
                let drawn = series.iter().flat_map(|series| &series.values);
                if drawn.filter_map(Datum::value).next().is_none() {
                    continue;
                }
                charts.push(Block::Chart(Chart {
                    id: id.to_owned(),
                    title: format!("{}: {}", self.title, title(self.metric)),
                    note: self.note_on_better(),
                    plot: Plot::Bars {
                        axis: self.axis(scale),
                        categories: rows.iter().map(|row| self.rows[*row].name.clone()).collect(),
                        series,
                        mark: None,
                    },
                }));
            }
        }
        charts
    }

    /// The field of medians; `None` when nothing in it may be used.
    pub(super) fn heat_map(&self, id: &str) -> Option<Block> {
        let scale = self.scale();
        let shade = |row: usize, column: usize| match self.datum(row, column, scale) {
            Datum::Value(Spread { value, suspect, .. }) => Datum::Value(Shade { value, suspect }),
            Datum::Gap(gap) => Datum::Gap(gap),
        };
        let values: Vec<Vec<Datum<Shade>>> = (0..self.rows.len())
            .map(|row| (0..self.columns.len()).map(|column| shade(row, column)).collect())
            .collect();
        values.iter().flatten().any(|datum| datum.value().is_some()).then(|| {
            Block::Chart(Chart {
                id: id.to_owned(),
                title: format!("{}: {}", self.title, title(self.metric)),
                note: self.note_on_better(),
                plot: Plot::HeatMap {
                    x: self.columns_are.clone(),
                    y: self.rows_are.clone(),
                    columns: self.columns.iter().map(|head| head.name.clone()).collect(),
                    rows: self.rows.iter().map(|head| head.name.clone()).collect(),
                    values,
                    unit: scale.unit.to_owned(),
                },
            })
        })
    }

    /// What a chart has at a place.
    fn datum(&self, row: usize, column: usize, scale: Scale) -> Datum<Spread> {
        match self.cells[row][column] {
            Some(cell) => cells::datum(cell, self.metric, scale),
            None => Datum::Gap(Gap::NotPlanned),
        }
    }

    fn axis(&self, scale: Scale) -> Axis {
        Axis {
            label: title(self.metric).to_owned(),
            unit: scale.unit.to_owned(),
            ..Axis::default()
        }
    }

    fn note_on_better(&self) -> String {
        note_on_better(self.metric)
    }
}

/// Why a cell has no percent of another, whose values are given where they may be used.
fn why_no_percent(cell: &Measured, metric: Metric, of: Option<&ByRepetition>) -> String {
    match cells::why_missing(cell) {
        why if !why.is_empty() => why,
        _ if !cell.is_usable() => "invalid".to_owned(),
        _ if cell.get(metric).is_none() => "the tool does not say".to_owned(),
        _ if of.is_none() => "what it is compared with has no number".to_owned(),
        _ => "no repetition has both".to_owned(),
    }
}

/// A table with its rows across, under a name for what stands down now. All its columns but the first are numbers in one unit, which
/// stands in their headings.
pub(super) fn turn_table(table: Table, rows_are: &str) -> Table {
    let Some((_, heads)) = table.columns.split_first() else { return table };
    let unit = heads.first().and_then(|head| Some(head.heading.rsplit_once(" [")?.1.to_owned()));
    let unit = unit.map_or_else(String::new, |unit| format!(" [{unit}"));
    let mut columns = vec![cells::column(rows_are)];
    columns.extend(
        table.rows.iter().map(|row| cells::numbers(format!("{}{unit}", row.cells[0].text))),
    );
    let rows = heads.iter().enumerate().map(|(place, head)| {
        let name = head.heading.strip_suffix(&unit).unwrap_or(&head.heading);
        let mut line = vec![cells::words(name)];
        line.extend(table.rows.iter().map(|row| row.cells[place + 1].clone()));
        cells::row(line)
    });
    Table { rows: rows.collect(), columns, ..table.clone() }
}

/// What a note adds about lines that are too short to be drawn; empty without any.
pub(super) fn not_drawn(short: &[LineSeries]) -> String {
    let names: Vec<&str> = short.iter().map(|line| line.name.as_str()).collect();
    match names.as_slice() {
        [] => String::new(),
        names => format!(
            " Not drawn, with fewer than two numbers that may be used: {}.",
            enumerate(names)
        ),
    }
}

/// So many in each chart that none is nearly empty: nine lines are five and four.
pub(super) fn evenly(count: usize, most: usize) -> usize {
    count.div_ceil(count.div_ceil(most).max(1)).max(1)
}

/// Whether the campaign has any of the series; one that it has stays, with the reasons for its
/// gaps, also when no value is left.
pub(super) fn is_planned(series: &BarSeries) -> bool {
    series.values.iter().any(|datum| *datum != Datum::Gap(Gap::NotPlanned))
}

/// Which way is better, as a note under a chart.
pub(super) fn note_on_better(metric: Metric) -> String {
    match metric.better() {
        crate::metric::Better::Higher => "More is better.".to_owned(),
        crate::metric::Better::Lower => "Less is better.".to_owned(),
        crate::metric::Better::Neither => String::new(),
    }
}
