//! The tables of a study: tests by subjects, each a value and its percent of the baseline; one table
//! for each tool, metric and number of processes, and of all else that tools said one for each tool.
//!
//! ```text
//!   test                         single   raid0   raid0 [%]
//!   dd write                      10.0     5.1      51.0       rates are better above 100, times below
//!   cp                             4.0     2.4      60.0
//!   mean of the percents          14.0     7.5      55.5       each test with the same weight; of times
//!                                                              also their sum, as studies print it
//! ```
//!
//! More than twelve subjects stand down the table, with tests across.

use super::factors::is_asked;
use super::{Context, cells, section};
use crate::analysis::{Cell as Measured, State, Work};
use crate::report::model::{Block, Cell, Column, Row, Section, Table, Tone};
use crate::report::units::{Scale, digits, title};
use braid_lab::campaign::Setup;
use braid_lab::matrix::Workload;
use braid_lab::metric::{METRICS, Metric};
use braid_lab::settings::Value;
use braid_lab::tool::Effort;

/// Most subjects across, beside the baselines.
const MOST_SUBJECTS: usize = 12;
/// Most tests across.
const MOST_TESTS: usize = 6;
/// Rows of a table of all that a tool said; the samples have the rest.
const MOST_ROWS: usize = 400;

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
    let mut metrics = vec![work.headline];
    metrics.extend((is_fixed && work.headline != Metric::Seconds).then_some(Metric::Seconds));
    let key = |metric| Key {
        tool: (metric != Metric::Seconds).then(|| work.workload.tool.clone()),
        metric,
        processes: setup.processes,
    };
    metrics.into_iter().map(key).collect()
}

/// The main numbers of the campaign.
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
        groups.iter().flat_map(|(key, workloads)| of_key(context, key, workloads)).collect();
    let is_detail = context.factors.iter().any(is_asked) || !context.phases.is_empty();
    section("numbers", "Numbers", lead, is_detail, blocks)
}

fn of_key(context: &Context<'_>, key: &Key, workloads: &[usize]) -> Vec<Block> {
    let measured = workloads.iter().flat_map(|work| context.analysis.row(*work));
    let scale = cells::scale_of(measured, key.metric);
    let filesystem = shared_filesystem(context);
    let lines = workloads.iter().map(|work| {
        // Processes are in the heading, and so is the file system where all have the same.
        let workload = &context.analysis.workloads[*work].workload;
        let mut setup = Setup { processes: Setup::default().processes, ..workload.setup.clone() };
        if filesystem.is_some() {
            setup.filesystem = Setup::default().filesystem;
        }
        let name = Workload { setup, ..workload.clone() }.label();
        Line { work: *work, metric: key.metric, scale, name, what: String::new() }
    });
    let lines: Vec<Line> = lines.collect();
    let works = &context.analysis.workloads;
    let differ = works.iter().any(|work| work.workload.setup.processes != key.processes);
    let processes = match key.processes {
        1 if differ => ", one process".to_owned(),
        1 => String::new(),
        many => format!(", {many} processes at once"),
    };
    let what = match &key.tool {
        Some(tool) => format!("{tool}: {}{processes}", title(key.metric)),
        None => format!("Times of the tests{processes}"),
    };
    let mut note = cells::note_on_better(key.metric);
    if let Some(filesystem) = filesystem {
        note += &format!(" All on {filesystem}.");
    }
    let heading = Table {
        id: "percent".to_owned(),
        title: cells::in_unit(&what, scale.unit),
        note,
        ..Table::default()
    };
    Sheet { context, lines }.tables(&heading, true)
}

/// The file system that every workload is on; `None` when they differ, or use none.
fn shared_filesystem(context: &Context<'_>) -> Option<String> {
    let works = &context.analysis.workloads;
    let mut all = works.iter().map(|work| work.dimensions.get("filesystem"));
    match all.next()?? {
        first @ Value::Word(word) if word != "none" => {
            all.all(|other| other == Some(first)).then(|| word.clone())
        }
        _ => None,
    }
}

/// Everything else that tools said.
pub(super) fn further(context: &Context<'_>) -> Vec<Section> {
    let works = &context.analysis.workloads;
    let mut tools: Vec<&str> = Vec::new();
    for work in works {
        if !tools.contains(&work.workload.tool.as_str()) {
            tools.push(&work.workload.tool);
        }
    }
    let blocks = tools.into_iter().flat_map(|tool| {
        let of_tool = (0..works.len()).filter(|work| works[*work].workload.tool == tool);
        let mut lines: Vec<Line> = of_tool.flat_map(|work| lines_of(context, work)).collect();
        let left_out = lines.len().saturating_sub(MOST_ROWS);
        lines.truncate(MOST_ROWS);
        let mut note = match left_out {
            0 => String::new(),
            more => format!("{more} further rows are left out here; the samples have them. "),
        };
        let is_unsupported = |line: &Line| {
            let row = context.analysis.row(line.work).iter();
            row.into_iter().any(|cell| cell.unsupported.contains(&line.metric))
        };
        if lines.iter().any(is_unsupported) {
            note += cells::UNSUPPORTED;
        }
        let id = "further-table".to_owned();
        let heading = Table { id, title: tool.to_owned(), note, ..Table::default() };
        Sheet { context, lines }.tables(&heading, false)
    });
    let title = "Everything else that was measured";
    section("further", title, String::new(), true, blocks.collect())
}

/// The numbers of a workload that no other table has.
fn lines_of(context: &Context<'_>, work: usize) -> Vec<Line> {
    let of_work = &context.analysis.workloads[work];
    let shown = keys_of(of_work);
    let row = context.analysis.row(work);
    let is_left = |metric: &&Metric| {
        shown.iter().all(|key| key.metric != **metric)
            && row.iter().any(|cell| cell.get(**metric).is_some())
    };
    let line = |metric: &Metric| {
        let scale = cells::scale_of(row, *metric);
        let what = cells::in_unit(title(*metric), scale.unit);
        Line { work, metric: *metric, scale, name: of_work.label.clone(), what }
    };
    METRICS.iter().filter(is_left).map(line).collect()
}

/// One number of one workload.
struct Line {
    work: usize,
    metric: Metric,
    scale: Scale,
    /// The test.
    name: String,
    /// The metric with its unit, where a table has several.
    what: String,
}

/// A table in the making.
struct Sheet<'a> {
    context: &'a Context<'a>,
    lines: Vec<Line>,
}

impl Sheet<'_> {
    /// The tables, if there is anything measured; with what sums them up if it `is_summed`.
    fn tables(&self, heading: &Table, is_summed: bool) -> Vec<Block> {
        let analysis = self.context.analysis;
        let cell = |line: &Line, subject: usize| analysis.cell(line.work, subject);
        let is_measured = |line: &Line| {
            (0..analysis.subjects).any(|subject| cell(line, subject).get(line.metric).is_some())
        };
        if !self.lines.iter().any(is_measured) {
            return Vec::new();
        }
        let is_planned = |subject: &usize| {
            self.lines.iter().any(|line| cell(line, *subject).state != State::NotPlanned)
        };
        let (baselines, others): (Vec<usize>, Vec<usize>) =
            (0..analysis.subjects).filter(is_planned).partition(|s| analysis.is_baseline(*s));
        let is_turned = others.len() > MOST_SUBJECTS;
        let subjects = [baselines, others].concat();
        let tables = match is_turned {
            true => {
                let parts = self.lines.chunks(cells::evenly(self.lines.len(), MOST_TESTS));
                parts.map(|part| self.subjects_down(&subjects, part)).collect()
            }
            false => vec![self.tests_down(&subjects, is_summed)],
        };
        let with_heading =
            |(columns, rows)| Block::Table(Table { columns, rows, ..heading.clone() });
        tables.into_iter().map(with_heading).collect()
    }

    fn tests_down(&self, subjects: &[usize], is_summed: bool) -> (Vec<Column>, Vec<Row>) {
        let mut columns = vec![cells::column("test")];
        for subject in subjects {
            columns.extend(self.columns(self.context.subject(*subject), *subject));
        }
        let row = |line: &Line| {
            let first = cells::words_with(line.name.clone(), line.what.clone());
            let values = subjects.iter().flat_map(|subject| self.cells(line, *subject));
            cells::row(std::iter::once(first).chain(values).collect())
        };
        let mut rows: Vec<Row> = self.lines.iter().map(row).collect();
        if is_summed && rows.len() > 1 && !self.context.analysis.baselines.is_empty() {
            rows.push(self.total(&columns, &rows));
        }
        (columns, rows)
    }

    fn subjects_down(&self, subjects: &[usize], lines: &[Line]) -> (Vec<Column>, Vec<Row>) {
        let has_percent = !self.context.analysis.baselines.is_empty();
        let mut columns = vec![cells::column("subject")];
        for line in lines {
            columns.push(cells::numbers(format!("{} {}", line.name, line.what).trim_end()));
            columns.extend(has_percent.then(|| cells::numbers("[%]")));
        }
        let row = |subject: &usize| {
            let mut row = vec![cells::words(self.context.subject(*subject))];
            for line in lines {
                let mut values = self.cells(line, *subject);
                values.resize(1 + usize::from(has_percent), Cell::default());
                row.extend(values);
            }
            cells::row(row)
        };
        (columns, subjects.iter().map(row).collect())
    }

    /// True if a subject has a column of percentages: a lone baseline is always 100.
    fn has_percent(&self, subject: usize) -> bool {
        let baselines = &self.context.analysis.baselines;
        !baselines.is_empty() && *baselines != [subject]
    }

    fn columns(&self, name: &str, subject: usize) -> Vec<Column> {
        let mut columns = vec![cells::numbers(name)];
        columns.extend(self.has_percent(subject).then(|| cells::numbers(format!("{name} [%]"))));
        columns
    }

    /// The median, and its percent of the baseline.
    fn cells(&self, line: &Line, subject: usize) -> Vec<Cell> {
        let analysis = self.context.analysis;
        let measured = analysis.cell(line.work, subject);
        let as_baseline = |shown: Cell| match shown.tone {
            Tone::Plain | Tone::Better | Tone::Worse | Tone::Same
                if analysis.is_baseline(subject) =>
            {
                Cell { tone: Tone::Baseline, ..shown }
            }
            _ => shown,
        };
        let mut shown = vec![as_baseline(cells::median(measured, line.metric, line.scale))];
        if self.has_percent(subject) {
            shown.push(match analysis.compare(measured, line.metric) {
                Some(ratio) => {
                    let standing = analysis.standing_against_baseline(measured);
                    let said = measured.outlook.filter(|_| line.what.is_empty());
                    as_baseline(cells::ratio(&ratio, 100.0, said, standing))
                }
                None => cells::missing(self.why_no_percent(line, measured)),
            });
        }
        shown
    }

    fn why_no_percent(&self, line: &Line, cell: &Measured) -> String {
        let baselines = &self.context.analysis.baselines;
        let of_baseline = |subject: &usize| self.context.analysis.cell(line.work, *subject);
        let without = baselines.iter().map(of_baseline).find(|cell| !cell.is_usable());
        match (cells::why_missing(cell), without) {
            (why, _) if !why.is_empty() => why,
            _ if !cell.is_usable() => "invalid".to_owned(),
            (_, Some(baseline)) => match cells::why_missing(baseline) {
                why if why.is_empty() => "the baseline cannot be believed".to_owned(),
                why => format!("of the baseline: {why}"),
            },
            _ => String::new(),
        }
    }

    /// The mean of the percents above, and the sum of times; each of those that are there.
    fn total(&self, columns: &[Column], rows: &[Row]) -> Row {
        let is_time = self.lines.iter().all(|line| line.metric == Metric::Seconds);
        let name =
            if is_time { "mean of the percents, sum of the times" } else { "mean of the percents" };
        let mut total = vec![cells::words(name)];
        for (place, column) in columns.iter().enumerate().skip(1) {
            let is_percent = column.heading.ends_with(" [%]");
            let used =
                || rows.iter().map(|row| &row.cells[place]).filter(|cell| cell.number.is_some());
            let count = used().count();
            if count == 0 || !(is_percent || is_time) {
                total.push(Cell::default());
                continue;
            }
            let sum: f64 = used().filter_map(|cell| cell.number).sum();
            let value = if is_percent { sum / count as f64 } else { sum };
            let suspect = used().any(|cell| cell.tone == Tone::Suspect);
            let partly = format!("of {count} of {} tests", rows.len());
            total.push(Cell {
                detail: if count < rows.len() { partly } else { String::new() },
                tone: if suspect { Tone::Suspect } else { Tone::Plain },
                ..cells::number(digits(value), value)
            });
        }
        Row { cells: total, total: true }
    }
}
