//! The table for the terminal.

use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ContentArrangement, LineStyle, Table, TableStyle,
};

use super::units;
use crate::analysis::{Analysis, Group, Row};
use crate::stats::{Ratio, Verdict};
use crate::tool::Metric;

/// A line under the header and none between rows.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// The table with its notes; with terminal colours if `colour`.
pub fn render_table(analysis: &Analysis, colour: bool) -> String {
    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Disabled).set_header([
        "workload",
        "subject",
        "MiB/s",
        "requests/s",
        "p50",
        "p99",
        "of baseline",
        "",
    ]);
    if colour {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    for column in 2..=6 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for group in &analysis.groups {
        for (index, row) in group.rows.iter().enumerate() {
            table.add_row(cells_of(group, row, index == 0));
        }
    }
    let mut text = table.trim_fmt();
    text.push('\n');
    text += &notes_of(analysis);
    text
}

fn cells_of(group: &Group, row: &Row, first: bool) -> Vec<Cell> {
    let estimate = |metric, write: fn(f64) -> String| {
        row.get(metric).map_or_else(|| "—".to_owned(), |e| units::interval(&e, write))
    };
    let median = |metric, write: fn(f64) -> String| {
        row.get(metric).map_or_else(|| "—".to_owned(), |e| write(e.median))
    };
    let (percent, verdict) = match &row.ratio {
        Some(ratio) => (Cell::new(units::percent(ratio)), verdict_cell(ratio)),
        None if row.baseline && !row.throughputs.is_empty() => {
            (Cell::new("100 %"), Cell::new("baseline"))
        }
        None => (Cell::new("—"), Cell::new("not measured")),
    };
    vec![
        Cell::new(if first { group.workload.label() } else { String::new() }),
        Cell::new(&row.subject),
        Cell::new(estimate(Metric::Throughput, units::mib_per_s)),
        Cell::new(median(Metric::Iops, units::count)),
        Cell::new(median(Metric::LatencyP50, units::time)),
        Cell::new(median(Metric::LatencyP99, units::time)),
        percent,
        verdict,
    ]
}

fn verdict_cell(ratio: &Ratio) -> Cell {
    let cell = Cell::new(units::verdict(ratio));
    match ratio.verdict() {
        Verdict::Above => cell.fg(Color::Green).add_attribute(Attribute::Bold),
        Verdict::Below => cell.fg(Color::Red).add_attribute(Attribute::Bold),
        Verdict::NotDistinguishable => cell.add_attribute(Attribute::Dim),
    }
}

fn notes_of(analysis: &Analysis) -> String {
    let mut text = String::new();
    for (subject, note) in &analysis.sharing {
        text += &format!("\n! {subject}: {note}\n");
    }
    for (number, subject, workload, reason) in &analysis.failures {
        text += &format!("\n! trial {number} failed ({subject}: {workload}): {reason}\n");
    }
    text += "\nmedian [interval] over the repetitions; p50 and p99 are latencies: less is better\n";
    for caveat in &analysis.caveats {
        text += &format!("- {caveat}\n");
    }
    text
}
