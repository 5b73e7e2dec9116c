//! The tables of a study: tests by subjects, each a value and its percent of the baseline; one table
//! for each tool, metric and number of processes.
//!
//! ```text
//!   test          single [s]   raid0 [s]   raid0 [%]
//!   dd write        10.0          5.1        51.0         rates are better above 100, times below
//!   cp               4.0          2.4        60.0
//!   sum             14.0          7.5        53.6         of the medians, as studies print it
//!   mean of the percents                     55.5         each test with the same weight
//! ```
//!
//! More than twelve subjects stand down the table, with tests across.

use super::{Context, cells, section};
use crate::analysis::{Cell as Measured, Standing, State, Work};
use crate::report::model::{Block, Cell, Column, Row, Section, Table, Tone};
use crate::report::units::{Scale, digits, title};
use braid_lab::campaign::Setup;
use braid_lab::matrix::Workload;
use braid_lab::metric::Metric;
use braid_lab::settings::Value;
use braid_lab::tool::Effort;

/// Most subjects across, beside the baselines.
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
    let effort = work.workload.work().map(|work| work.effort);
    let is_fixed = effort.is_some_and(|effort| effort != Effort::Runtime);
    let key = |metric| Key {
        tool: (metric != Metric::Seconds).then(|| work.workload.tool.clone()),
        metric,
        processes: setup.processes,
    };
    let mut keys = Vec::new();
    if is_fixed || work.headline == Metric::Seconds {
        keys.push(key(Metric::Seconds));
    }
    if work.headline != Metric::Seconds {
        keys.push(key(work.headline));
    }
    keys
}

/// The tables, if there is anything measured.
pub(super) fn sections(context: &Context<'_>) -> Vec<Section> {
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
            "Medians of the repetitions, with their range; and the percent of {name}, made within each \
             repetition, with its 95 % interval. Rates are better above 100 %, times below. In colour \
             is what is told apart with every comparison of this report counted."
        ),
        None => "Medians of the repetitions, with their range.".to_owned(),
    };
    let blocks: Vec<Block> =
        groups.iter().flat_map(|(key, workloads)| tables(context, key, workloads)).collect();
    let is_detail = !context.factors.is_empty() || !context.phases.is_empty();
    section("numbers", "Numbers", lead, is_detail, blocks)
}

fn tables(context: &Context<'_>, key: &Key, workloads: &[usize]) -> Vec<Block> {
    let analysis = context.analysis;
    let takes_part = |subject: &usize| {
        workloads.iter().any(|work| analysis.cell(*work, *subject).state != State::NotPlanned)
    };
    let (mut subjects, others): (Vec<usize>, Vec<usize>) =
        (0..analysis.subjects).filter(takes_part).partition(|s| analysis.is_baseline(*s));
    let measured = || workloads.iter().flat_map(|work| analysis.row(*work));
    if !measured().any(|cell| cell.get(key.metric).is_some()) {
        return Vec::new();
    }
    let scale = cells::scale_of(measured(), key.metric);
    let is_turned = others.len() > MOST_SUBJECTS;
    subjects.extend(others);
    let sheet = |workloads| Sheet { context, key, workloads, scale, subjects: &subjects };
    if is_turned {
        let parts = workloads.chunks(cells::evenly(workloads.len(), MOST_TESTS));
        return parts.map(|part| Block::Table(sheet(part).turned())).collect();
    }
    vec![Block::Table(sheet(workloads).table())]
}

/// One table in the making.
struct Sheet<'a> {
    context: &'a Context<'a>,
    key: &'a Key,
    workloads: &'a [usize],
    scale: Scale,
    /// The baselines first.
    subjects: &'a [usize],
}

impl Sheet<'_> {
    /// Tests down, subjects across.
    fn table(&self) -> Table {
        let mut columns = vec![cells::column("test")];
        for subject in self.subjects {
            let name = self.context.subject(*subject);
            columns.extend(self.columns_of(name, self.has_percent(*subject)));
        }
        let mut rows: Vec<Row> = Vec::new();
        for work in self.workloads {
            let mut line = vec![cells::words(self.test_name(*work))];
            for subject in self.subjects {
                line.push(self.value(*work, *subject));
                line.extend(self.has_percent(*subject).then(|| self.percent(*work, *subject)));
            }
            rows.push(cells::row(line));
        }
        if self.workloads.len() > 1 && !self.context.analysis.baselines.is_empty() {
            rows.extend(self.totals());
        }
        Table { columns, rows, ..self.heading() }
    }

    /// Subjects down, tests across, for many subjects.
    fn turned(&self) -> Table {
        let mut columns = vec![cells::column("subject")];
        let has_baseline = !self.context.analysis.baselines.is_empty();
        for work in self.workloads {
            columns.extend(self.columns_of(&self.test_name(*work), has_baseline));
        }
        let takes_part = |subject: &&usize| {
            let cells = self.workloads.iter().map(|w| self.context.analysis.cell(*w, **subject));
            cells.into_iter().any(|cell| cell.state != State::NotPlanned)
        };
        let rows = self.subjects.iter().filter(takes_part).map(|subject| {
            let mut line = vec![cells::words(self.context.subject(*subject))];
            for work in self.workloads {
                line.push(self.value(*work, *subject));
                line.extend(has_baseline.then(|| self.percent(*work, *subject)));
            }
            cells::row(line)
        });
        Table { columns, rows: rows.collect(), ..self.heading() }
    }

    fn heading(&self) -> Table {
        let works = &self.context.analysis.workloads;
        let differ = works.iter().any(|work| work.workload.setup.processes != self.key.processes);
        let processes = match self.key.processes {
            1 if differ => ", one process".to_owned(),
            1 => String::new(),
            many => format!(", {many} processes at once"),
        };
        let mut note = cells::note_on_better(self.key.metric);
        if let Some(filesystem) = self.shared_filesystem() {
            note += &format!(" All on {filesystem}.");
        }
        Table {
            id: "percent".to_owned(),
            title: match &self.key.tool {
                Some(tool) => format!("{tool}: {}{processes}", title(self.key.metric)),
                None => format!("Times of the tests{processes}"),
            },
            note,
            ..Table::default()
        }
    }

    fn columns_of(&self, name: &str, has_percent: bool) -> Vec<Column> {
        let mut columns = vec![cells::numbers_in(name, self.scale.unit)];
        columns.extend(has_percent.then(|| cells::numbers(format!("{name} [%]"))));
        columns
    }

    /// Whether a subject has a column of percents: a lone baseline is always 100.
    fn has_percent(&self, subject: usize) -> bool {
        let baselines = &self.context.analysis.baselines;
        !baselines.is_empty() && *baselines != [subject]
    }

    fn value(&self, work: usize, subject: usize) -> Cell {
        let cell = self.context.analysis.cell(work, subject);
        let value = cells::median(cell, self.key.metric, self.scale);
        match value.tone {
            Tone::Plain if self.context.analysis.is_baseline(subject) => {
                Cell { tone: Tone::Baseline, ..value }
            }
            _ => value,
        }
    }

    fn percent(&self, work: usize, subject: usize) -> Cell {
        let analysis = self.context.analysis;
        let cell = analysis.cell(work, subject);
        if analysis.baselines == [subject] {
            return match cell.get(self.key.metric).filter(|_| cell.is_usable()) {
                Some(_) => Cell { tone: Tone::Baseline, ..cells::number("100", 100.0) },
                None => cells::missing(cells::why_missing(cell)),
            };
        }
        let Some(ratio) = analysis.compare(cell, self.key.metric) else {
            return cells::missing(self.why_no_percent(cell, work));
        };
        let shown = cells::percent(&ratio, cell.outlook, analysis.standing_against_baseline(cell));
        match shown.tone {
            Tone::Better | Tone::Worse | Tone::Same if analysis.is_baseline(subject) => {
                Cell { tone: Tone::Baseline, strength: 0.0, ..shown }
            }
            _ => shown,
        }
    }

    fn why_no_percent(&self, cell: &Measured, work: usize) -> String {
        let baselines = &self.context.analysis.baselines;
        let of_baseline = |subject: &usize| self.context.analysis.cell(work, *subject);
        let without = baselines.iter().map(of_baseline).find(|cell| !cell.is_usable());
        match (cells::why_missing(cell), without) {
            (why, _) if !why.is_empty() => why,
            _ if !cell.is_usable() => "invalid".to_owned(),
            (_, Some(baseline)) => match cells::why_missing(baseline) {
                why if why.is_empty() => "the baseline cannot be believed".to_owned(),
                why => format!("of the baseline: {why}"),
            },
            _ if cell.get(self.key.metric).is_none() => String::new(),
            _ => "no repetition has both".to_owned(),
        }
    }

    /// A workload's label where processes are in the heading, and the file system where all have the
    /// same.
    fn test_name(&self, work: usize) -> String {
        let workload = &self.context.analysis.workloads[work].workload;
        let mut setup = Setup { processes: Setup::default().processes, ..workload.setup.clone() };
        if self.shared_filesystem().is_some() {
            setup.filesystem = Setup::default().filesystem;
        }
        Workload { setup, ..workload.clone() }.label()
    }

    /// The file system that every workload is on; `None` when they differ, or use none.
    fn shared_filesystem(&self) -> Option<String> {
        let works = &self.context.analysis.workloads;
        let mut all = works.iter().map(|work| work.dimensions.get("filesystem"));
        match all.next()?? {
            first @ Value::Word(word) if word != "none" => {
                all.all(|other| other == Some(first)).then(|| word.clone())
            }
            _ => None,
        }
    }

    /// Sum of the times, and mean of the percents.
    fn totals(&self) -> Vec<Row> {
        let line = |name: &str, of: &dyn Fn(usize) -> (Cell, Cell)| {
            let mut line = vec![cells::words(name)];
            for subject in self.subjects {
                let (value, percent) = of(*subject);
                line.push(value);
                line.extend(self.has_percent(*subject).then_some(percent));
            }
            Row { cells: line, total: true }
        };
        let mut rows = Vec::new();
        if self.key.metric == Metric::Seconds {
            rows.push(line("sum of the medians", &|subject| self.sum(subject)));
        }
        rows.push(line("mean of the percents", &|s| (Cell::default(), self.mean_percent(s))));
        rows
    }

    /// The tests that a subject and every baseline have, as medians: the subject's and the mean of
    /// the baselines'.
    fn in_both(&self, subject: usize) -> Vec<(f64, f64)> {
        let analysis = self.context.analysis;
        let median = |work: usize, subject: usize| {
            let cell = analysis.cell(work, subject);
            Some(cell.get(self.key.metric).filter(|_| cell.is_usable())?.median)
        };
        let both = |work: &usize| {
            let of: Option<Vec<f64>> =
                analysis.baselines.iter().map(|baseline| median(*work, *baseline)).collect();
            let of = of?;
            Some((median(*work, subject)?, of.iter().sum::<f64>() / of.len() as f64))
        };
        self.workloads.iter().filter_map(both).collect()
    }

    fn sum(&self, subject: usize) -> (Cell, Cell) {
        let both = self.in_both(subject);
        if both.is_empty() {
            return (Cell::default(), Cell::default());
        }
        let (own, of): (f64, f64) =
            both.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let shown = |value: f64| {
            let tone = cells::tone_of(self.worst_standing(subject), Tone::Plain);
            Cell { tone, ..cells::number(digits(value), value) }
        };
        let sum = Cell { detail: self.partly(both.len()), ..shown(self.scale.apply(own)) };
        (sum, if of > 0.0 { shown(own / of * 100.0) } else { Cell::default() })
    }

    /// The mean of the percents above; those of a lone baseline are 100. Empty of none.
    fn mean_percent(&self, subject: usize) -> Cell {
        let percents: Vec<f64> =
            self.workloads.iter().filter_map(|work| self.percent(*work, subject).number).collect();
        if percents.is_empty() {
            return cells::missing("");
        }
        let mean = percents.iter().sum::<f64>() / percents.len() as f64;
        Cell {
            detail: self.partly(percents.len()),
            tone: cells::tone_of(self.worst_standing(subject), Tone::Plain),
            ..cells::number(digits(mean), mean)
        }
    }

    /// The worst standing of what a sum or mean is made of, the baselines' numbers too.
    fn worst_standing(&self, subject: usize) -> Standing {
        let analysis = self.context.analysis;
        let cells = self.workloads.iter().map(|work| analysis.cell(*work, subject));
        let standings = cells.map(|cell| analysis.standing_against_baseline(cell));
        // What is invalid is in no sum.
        standings.filter(|standing| *standing != Standing::Invalid).max().unwrap_or_default()
    }

    /// "of 3 of 4 tests", where some have no number.
    fn partly(&self, rows: usize) -> String {
        match self.workloads.len() {
            all if rows < all => format!("of {rows} of {all} tests"),
            _ => String::new(),
        }
    }
}
