//! The tables of a study: tests down, subjects across, each a value and its percent of the
//! baseline; one table for each number of processes.

use super::cells;
use super::pivot::evenly;
use super::{Context, section as make_section};
use crate::analysis::{Cell as Measured, Standing, State, Work};
use crate::metric::{Better, Metric};
use crate::report::model::{Block, Cell, Column, Row, Section, Table, Tone};
use crate::report::units::{Scale, digits, title};
use crate::stats::{PercentTable, percent_table};
use crate::tool::Effort;

/// Most subjects across, beside the baselines; more stand down the table, with tests across.
const MOST_SUBJECTS: usize = 12;
/// Most tests across.
const MOST_TESTS: usize = 6;

/// Workloads of one table.
#[derive(PartialEq)]
struct Key {
    /// `None` for times, which tests of all tools have in common.
    tool: Option<String>,
    metric: Metric,
    processes: u32,
}

/// The tables that a workload is in: its headline's, and that of times when it does a fixed
/// amount of work, so that its time means something.
fn keys_of(work: &Work) -> Vec<Key> {
    let setup = &work.workload.setup;
    let tool = work.workload.tool();
    let fixed = tool.is_some_and(|tool| {
        tool.effort(&work.workload.settings, setup.processes) != Effort::Runtime
    });
    let key = |metric| Key {
        tool: (metric != Metric::Seconds).then(|| work.workload.tool.clone()),
        metric,
        processes: setup.processes,
    };
    let mut keys = Vec::new();
    if fixed || work.headline == Metric::Seconds {
        keys.push(key(Metric::Seconds));
    }
    if work.headline != Metric::Seconds {
        keys.push(key(work.headline));
    }
    keys
}

/// The tables, if there is anything measured.
pub(super) fn section(context: &Context<'_>) -> Option<Section> {
    let mut groups: Vec<(Key, Vec<usize>)> = Vec::new();
    for (index, work) in context.analysis.workloads.iter().enumerate() {
        for key in keys_of(work) {
            match groups.iter_mut().find(|(other, _)| *other == key) {
                Some((_, workloads)) => workloads.push(index),
                None => groups.push((key, vec![index])),
            }
        }
    }
    groups.sort_by_key(|(key, _)| (key.metric != Metric::Seconds, key.processes));
    let lead = match context.baseline_name() {
        Some(name) => format!(
            "Medians of the repetitions, and the median of each repetition's percent of {name}. Rates are better \
             above 100 %, times below. A percent without colour cannot be told apart from 100."
        ),
        None => "Medians of the repetitions, with their intervals.".to_owned(),
    };
    let blocks = groups.iter().flat_map(|(key, workloads)| tables(context, key, workloads));
    make_section("numbers", "Numbers", lead, blocks.collect())
}

fn tables(context: &Context<'_>, key: &Key, workloads: &[usize]) -> Vec<Block> {
    let analysis = context.analysis;
    let takes_part = |subject: &usize| {
        workloads.iter().any(|work| analysis.cell(*work, *subject).state != State::NotPlanned)
    };
    let (baselines, others): (Vec<usize>, Vec<usize>) =
        (0..analysis.subjects).filter(takes_part).partition(|s| analysis.is_baseline(*s));
    let measured = workloads.iter().flat_map(|work| analysis.row(*work));
    if !measured.clone().any(|cell| cell.get(key.metric).is_some()) {
        return Vec::new();
    }
    let scale = cells::scale_of(measured, key.metric);
    let subjects: Vec<usize> = baselines.iter().chain(&others).copied().collect();
    let sheet = |workloads| Sheet {
        context,
        key,
        workloads,
        scale,
        subjects: subjects.clone(),
        baselines: baselines.len(),
    };
    if others.len() <= MOST_SUBJECTS {
        return vec![Block::Table(sheet(workloads).table())];
    }
    let parts = workloads.chunks(evenly(workloads.len(), MOST_TESTS));
    parts.map(|part| Block::Table(sheet(part).turned_table())).collect()
}

/// One table in the making.
struct Sheet<'a> {
    context: &'a Context<'a>,
    key: &'a Key,
    workloads: &'a [usize],
    scale: Scale,
    /// The baselines first.
    subjects: Vec<usize>,
    baselines: usize,
}

impl Sheet<'_> {
    fn table(&self) -> Table {
        let sums = self.sums();
        let mut rows: Vec<Row> = self
            .workloads
            .iter()
            .enumerate()
            .map(|(at, work)| self.row(at, *work, &sums))
            .collect();
        if self.workloads.len() > 1 {
            rows.extend(self.totals(&sums));
        }
        let works = &self.context.analysis.workloads;
        let differ = works.iter().any(|work| work.workload.setup.processes != self.key.processes);
        let processes = match self.key.processes {
            1 if differ => ", one process".to_owned(),
            1 => String::new(),
            many => format!(", {many} processes at once"),
        };
        Table {
            id: "percent".to_owned(),
            title: match &self.key.tool {
                Some(tool) => format!("{tool}: {}{processes}", title(self.key.metric)),
                None => format!("Times of the tests{processes}"),
            },
            note: self.note(),
            columns: self.columns(),
            rows,
        }
    }

    fn note(&self) -> String {
        let better = match self.key.metric.better() {
            Better::Lower => "Less is better.",
            _ => "More is better.",
        };
        let mut note = better.to_owned();
        if let Some(name) = self.context.baseline_name() {
            note += &format!(" [%] is of {name}, made within each repetition.");
            if self.key.metric == Metric::Seconds && self.workloads.len() > 1 {
                note += " The sum is of the medians, and its percent that of the sums, as studies \
                         print it.";
            }
        }
        if let Some(filesystem) = self.context.shared_filesystem() {
            note += &format!(" All on {filesystem}.");
        }
        note
    }

    /// The same with subjects down and tests across, for many subjects; without sums.
    fn turned_table(&self) -> Table {
        let sums = self.sums();
        let table = self.table();
        let mut columns = vec![cells::column("subject")];
        for work in self.workloads {
            let name = self.context.test_name(*work);
            columns.push(cells::numbers_in(&name, self.scale.unit));
            if self.baselines > 0 {
                columns.push(cells::numbers(format!("{name} [%]")));
            }
        }
        columns.push(cells::numbers("mean of the percents"));
        let tests: Vec<Row> = self
            .workloads
            .iter()
            .enumerate()
            .map(|(at, work)| self.row(at, *work, &sums))
            .collect();
        let takes_part = |subject: usize| {
            let cells =
                self.workloads.iter().map(|work| self.context.analysis.cell(*work, subject));
            cells.into_iter().any(|cell| cell.state != State::NotPlanned)
        };
        let subjects = self.subjects.iter().enumerate().filter(|(_, s)| takes_part(**s));
        let rows = subjects.map(|(place, subject)| {
            let mut line = vec![cells::words(self.context.subject(*subject))];
            for test in &tests {
                let at = self.place_of_column(place);
                line.push(test.cells[at].clone());
                if self.has_percent(place) {
                    line.push(test.cells[at + 1].clone());
                } else if self.baselines > 0 {
                    line.push(match test.cells[at].number {
                        Some(_) => Cell { tone: Tone::Baseline, ..cells::number("100", 100.0) },
                        None => cells::missing(test.cells[at].detail.clone()),
                    });
                }
            }
            line.push(self.mean_percent(place));
            cells::row(line)
        });
        Table { columns, rows: rows.collect(), ..table }
    }

    /// Where a subject's value stands in a row.
    fn place_of_column(&self, place: usize) -> usize {
        let before = (0..place).map(|before| 1 + usize::from(self.has_percent(before)));
        let average = usize::from(self.baselines > 1 && place >= self.baselines);
        1 + before.sum::<usize>() + average
    }

    /// Whether a subject has a column of percents: a lone baseline is always 100.
    fn has_percent(&self, place: usize) -> bool {
        self.baselines > 0 && (place >= self.baselines || self.baselines > 1)
    }

    fn columns(&self) -> Vec<Column> {
        let mut columns = vec![cells::column("test")];
        for (place, subject) in self.subjects.iter().enumerate() {
            let name = self.context.subject(*subject);
            columns.push(cells::numbers_in(name, self.scale.unit));
            if self.has_percent(place) {
                columns.push(cells::numbers(format!("{name} [%]")));
            }
            if self.baselines > 1 && place + 1 == self.baselines {
                columns.push(cells::numbers_in("average", self.scale.unit));
            }
        }
        columns
    }

    /// The arithmetic of the table; `None` without a baseline. Invalid numbers are not in it.
    fn sums(&self) -> Option<PercentTable> {
        let names: Vec<String> =
            self.subjects.iter().map(|s| self.context.subject(*s).to_owned()).collect();
        let value = |cell: &Measured| {
            let median = cell.get(self.key.metric).filter(|_| cell.is_usable())?.median;
            (median > 0.0).then(|| self.scale.apply(median))
        };
        let rows: Vec<(String, Vec<Option<f64>>)> = self
            .workloads
            .iter()
            .map(|work| {
                let cells = self.subjects.iter().map(|s| self.context.analysis.cell(*work, *s));
                (self.context.test_name(*work), cells.map(value).collect())
            })
            .collect();
        let baselines: Vec<usize> = (0..self.baselines).collect();
        // Values are above 0 and rows are as long as the columns, so only a missing baseline is
        // refused.
        percent_table(&names, &rows, &baselines).ok()
    }

    fn row(&self, at: usize, work: usize, sums: &Option<PercentTable>) -> Row {
        let row = sums.as_ref().map(|sums| &sums.rows[at]);
        let mut line = vec![cells::words(self.context.test_name(work))];
        for (place, subject) in self.subjects.iter().enumerate() {
            let cell = self.context.analysis.cell(work, *subject);
            let mut value = cells::median(cell, self.key.metric, self.scale);
            if place < self.baselines && value.tone == Tone::Plain {
                value.tone = Tone::Baseline;
            }
            line.push(value);
            if self.has_percent(place) {
                let analysis = self.context.analysis;
                line.push(match analysis.compare(cell, self.key.metric) {
                    Some(ratio) => {
                        let standing = analysis.standing_against_baseline(cell);
                        let shown = cells::compared(&ratio, self.key.metric.better(), standing);
                        match shown.tone {
                            Tone::Better | Tone::Worse | Tone::Same if place < self.baselines => {
                                Cell { tone: Tone::Baseline, strength: 0.0, ..shown }
                            }
                            _ => shown,
                        }
                    }
                    None => cells::missing(self.why_no_percent(cell, work)),
                });
            }
            if self.baselines > 1 && place + 1 == self.baselines {
                line.push(match row.and_then(|row| row.baseline) {
                    Some(average) => {
                        Cell { tone: Tone::Baseline, ..cells::number(digits(average), average) }
                    }
                    None => cells::missing("a baseline has no number"),
                });
            }
        }
        cells::row(line)
    }

    fn why_no_percent(&self, cell: &Measured, work: usize) -> String {
        let baselines = &self.context.analysis.baselines;
        let of_baseline = |subject: &usize| self.context.analysis.cell(work, *subject);
        match cells::why_missing(cell) {
            why if !why.is_empty() => why,
            _ if !cell.is_usable() => "invalid".to_owned(),
            _ if baselines.iter().map(of_baseline).any(|cell| !cell.is_usable()) => {
                "the baseline has no number that can be believed".to_owned()
            }
            _ if cell.get(self.key.metric).is_none() => String::new(),
            _ => "no repetition has both".to_owned(),
        }
    }

    /// Sum of the times, and mean of the percents.
    fn totals(&self, sums: &Option<PercentTable>) -> Vec<Row> {
        let Some(sums) = sums.as_ref().filter(|sums| sums.summaries.iter().any(Option::is_some))
        else {
            return Vec::new();
        };
        let line = |name: &str, average: Option<f64>, value: &dyn Fn(usize) -> (Cell, Cell)| {
            let mut line = vec![cells::words(name)];
            for place in 0..self.subjects.len() {
                let (value, percent) = value(place);
                line.push(value);
                if self.has_percent(place) {
                    line.push(percent);
                }
                if self.baselines > 1 && place + 1 == self.baselines {
                    line.push(average.map_or_else(Cell::default, |a| cells::number(digits(a), a)));
                }
            }
            Row { cells: line, total: true }
        };
        let mut rows = Vec::new();
        if self.key.metric == Metric::Seconds {
            let average = sums.summaries.iter().flatten().map(|sum| sum.baseline_total);
            let sum_of = |place: usize| {
                let Some(sum) = &sums.summaries[place] else {
                    return (Cell::default(), Cell::default());
                };
                let summed = |percent: bool| {
                    let value = if percent { sum.total.percent } else { sum.total.value };
                    let tone = cells::tone_of(self.worst_standing(place, percent), Tone::Plain);
                    Cell { tone, ..cells::number(digits(value), value) }
                };
                (Cell { detail: self.partly(sum.rows), ..summed(false) }, summed(true))
            };
            rows.push(line("sum of the medians", average.reduce(f64::max), &sum_of));
        }
        rows.push(line("mean of the percents", None, &|place| {
            (Cell::default(), self.mean_percent(place))
        }));
        rows
    }

    /// The mean of the percents above, each of which is made in pairs; those of a lone baseline
    /// are 100. Empty of none.
    fn mean_percent(&self, place: usize) -> Cell {
        let analysis = self.context.analysis;
        let percent = |work: &usize| {
            let cell = analysis.cell(*work, self.subjects[place]);
            if analysis.baselines == [cell.subject] {
                return cell.get(self.key.metric).filter(|_| cell.is_usable()).map(|_| 100.0);
            }
            Some(analysis.compare(cell, self.key.metric)?.paired.median)
        };
        let percents: Vec<f64> = self.workloads.iter().filter_map(percent).collect();
        if percents.is_empty() {
            return cells::missing("");
        }
        let mean = percents.iter().sum::<f64>() / percents.len() as f64;
        Cell {
            detail: self.partly(percents.len()),
            tone: cells::tone_of(self.worst_standing(place, true), Tone::Plain),
            ..cells::number(digits(mean), mean)
        }
    }

    /// The worst standing of what a sum is made of; of a percent, of the baselines' numbers too.
    fn worst_standing(&self, place: usize, of_percent: bool) -> Standing {
        let analysis = self.context.analysis;
        let cells = self.workloads.iter().map(|work| analysis.cell(*work, self.subjects[place]));
        let standing = |cell: &Measured| match of_percent {
            true => analysis.standing_against_baseline(cell),
            false => cell.standing,
        };
        // What is invalid is in no sum.
        let standings = cells.map(standing).filter(|standing| *standing != Standing::Invalid);
        standings.max().unwrap_or_default()
    }

    /// "of 3 of 4 tests", where some have no number.
    fn partly(&self, rows: usize) -> String {
        match self.workloads.len() {
            all if rows < all => format!("of {rows} of {all} tests"),
            _ => String::new(),
        }
    }
}
