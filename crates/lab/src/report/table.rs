//! The table for the terminal.

use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Table, presets};

use super::units;
use crate::analysis::{Analysis, Group, Row};
use crate::stats::Verdict;
use crate::tool::Metric;

/// The table with its notes; with terminal colours if `colour`.
pub fn render_table(analysis: &Analysis, colour: bool) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header([
            "workload",
            "subject",
            "MiB/s",
            "requests/s",
            "latency p50",
            "latency p99",
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
    let median = |metric| row.get(metric).map_or_else(|| "—".to_owned(), |e| units::time(e.median));
    let (percent, verdict) = match &row.ratio {
        Some(ratio) => (Cell::new(units::percent(ratio)), verdict_cell(ratio.verdict())),
        None if row.baseline && !row.throughputs.is_empty() => {
            (Cell::new("100 %"), Cell::new("baseline"))
        }
        None => (Cell::new("—"), Cell::new("not measured")),
    };
    vec![
        Cell::new(if first { group.workload.label() } else { String::new() }),
        Cell::new(&row.subject),
        Cell::new(estimate(Metric::Throughput, units::mib_per_s)),
        Cell::new(estimate(Metric::Iops, units::count)),
        Cell::new(median(Metric::LatencyP50)),
        Cell::new(median(Metric::LatencyP99)),
        percent,
        verdict,
    ]
}

fn verdict_cell(verdict: Verdict) -> Cell {
    let cell = Cell::new(units::verdict(verdict));
    match verdict {
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
    text += "\nmedian [interval] over the repetitions; more is better but for latency\n";
    for caveat in &analysis.caveats {
        text += &format!("- {caveat}\n");
    }
    text
}
