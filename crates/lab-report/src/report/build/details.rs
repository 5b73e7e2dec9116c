//! Everything else that tools said: a table for each tool, a row for each number.

use super::cells;
use super::{Context, section};
use crate::report::model::{Block, Cell, Row, Section, Table};
use crate::report::units::digits;
use crate::report::units::{Scale, title};
use braid_lab::metric::{METRICS, Metric};

/// Rows of a table at most; the samples have the rest.
const MOST_ROWS: usize = 400;

/// The tables.
pub(super) fn sections(context: &Context<'_>) -> Vec<Section> {
    let mut tools: Vec<&str> = Vec::new();
    for work in &context.analysis.workloads {
        if !tools.contains(&work.workload.tool.as_str()) {
            tools.push(&work.workload.tool);
        }
    }
    let tables = tools.into_iter().filter_map(|tool| table(context, tool)).map(Block::Table);
    let lead = "Medians of everything that was measured; under them what they are in percent of \
                the baseline.";
    section("details", "Everything that was measured", lead.to_owned(), true, tables.collect())
}

fn table(context: &Context<'_>, tool: &str) -> Option<Table> {
    let analysis = context.analysis;
    let mut columns = vec![cells::column("workload"), cells::column("number")];
    columns.extend((0..analysis.subjects).map(|subject| cells::numbers(context.subject(subject))));
    let works = analysis.workloads.iter().enumerate();
    let of_tool = works.filter(|(_, work)| work.workload.tool == tool).map(|(index, _)| index);
    let measured = |work: usize, metric: &Metric| {
        analysis.row(work).iter().any(|cell| cell.get(*metric).is_some())
    };
    let all: Vec<(usize, Metric)> = of_tool
        .flat_map(|work| {
            METRICS.iter().filter(move |metric| measured(work, metric)).map(move |m| (work, *m))
        })
        .collect();
    let (shown, left_out) = all.split_at(all.len().min(MOST_ROWS));
    let rows: Vec<Row> = shown.iter().map(|(work, metric)| row(context, *work, *metric)).collect();
    let is_unsupported = |(work, metric): &(usize, Metric)| {
        analysis.row(*work).iter().any(|cell| cell.unsupported.contains(metric))
    };
    let mut note = match left_out.len() {
        0 => String::new(),
        more => format!("{more} further rows are left out here; the samples have them. "),
    };
    if shown.iter().any(is_unsupported) {
        note += cells::UNSUPPORTED;
    }
    (!rows.is_empty()).then(|| Table {
        id: "details-table".to_owned(),
        title: tool.to_owned(),
        note: note.trim_end().to_owned(),
        columns,
        rows,
    })
}

fn row(context: &Context<'_>, work: usize, metric: Metric) -> Row {
    let row = context.analysis.row(work);
    let scale: Scale = cells::scale_of(row, metric);
    let mut line = vec![
        cells::words(context.label(work)),
        // Under its name, so that on a phone the values begin where they can be seen.
        cells::words_with(title(metric), scale.unit),
    ];
    line.extend(row.iter().map(|cell| {
        let value = cells::median(cell, metric, scale);
        match context.analysis.compare(cell, metric) {
            Some(ratio) => Cell { detail: format!("{} %", digits(ratio.ratio * 100.0)), ..value },
            None => value,
        }
    }));
    cells::row(line)
}
