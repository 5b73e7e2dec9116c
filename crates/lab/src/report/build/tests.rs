use std::fmt::Write as _;
use std::path::Path;

use super::*;
use crate::analysis::analyse;
use crate::campaign::Campaign;
use crate::fixture::{self, Given, campaign, headline, noise, results};
use crate::metric::Metric;
use crate::report::model::{Plot, Table};

fn report_of(results: &Results) -> Report {
    build_report(&analyse(results), results, Path::new("results"))
}

/// The report as text: every sentence and table, and of the charts what is drawn.
fn text_of(report: &Report) -> String {
    let mut text = format!("# {}\n{}\n\n", report.title, report.subtitle);
    for sentence in &report.answer {
        writeln!(text, "> {sentence}").unwrap();
    }
    let trust = &report.trust;
    writeln!(
        text,
        "\ntrust: {} ok, {} suspect, {} invalid, {} missing",
        trust.ok, trust.suspect, trust.invalid, trust.missing
    )
    .unwrap();
    for reason in &trust.reasons {
        writeln!(text, "  {:?} {}: {} ({:?})", reason.tone, reason.rule, reason.why, reason.cells)
            .unwrap();
    }
    for section in &report.sections {
        writeln!(text, "\n## {} [{}]", section.title, section.id).unwrap();
        for block in &section.blocks {
            match block {
                Block::Table(table) => text += &table_of(table),
                Block::Chart(chart) => {
                    writeln!(text, "chart {}: {} ({})", chart.id, chart.title, drawn(&chart.plot))
                        .unwrap();
                }
            }
        }
    }
    for note in &report.notes {
        writeln!(text, "- {note}").unwrap();
    }
    text
}

fn drawn(plot: &Plot) -> String {
    match plot {
        Plot::Bars { categories, series, .. } => {
            format!("bars, {} x {}", categories.len(), series.len())
        }
        Plot::Lines { series, events, .. } => {
            let points: Vec<usize> = series.iter().map(|line| line.points.len()).collect();
            format!("lines, points {points:?}, {} events", events.len())
        }
        Plot::HeatMap { columns, rows, .. } => {
            format!("heat map, {} x {}", rows.len(), columns.len())
        }
    }
}

fn table_of(table: &Table) -> String {
    let mut text = format!("table {}: {}\n", table.id, table.title);
    let heads: Vec<&str> = table.columns.iter().map(|column| column.heading.as_str()).collect();
    writeln!(text, "  {}", heads.join(" | ")).unwrap();
    for row in &table.rows {
        assert_eq!(row.cells.len(), table.columns.len(), "{}", table.title);
        let cells: Vec<String> = row
            .cells
            .iter()
            .map(|cell| match cell.detail.as_str() {
                "" => cell.text.clone(),
                detail => format!("{} ({detail})", cell.text),
            })
            .collect();
        writeln!(text, "  {}{}", if row.total { "= " } else { "" }, cells.join(" | ")).unwrap();
    }
    text
}

const SMALL: &str = r#"
name = "stripes"
repetitions = 3
[[member]]
name = "a"
device = "/dev/sda"
[[member]]
name = "b"
device = "/dev/sdb"
[[subject]]
name = "single"
stack = "{a}"
baseline = true
[[subject]]
name = "stripe"
stack = "raid0(chunk=64K, {members})"
[[job]]
tool = "meter"
op = ["read", "write"]
"#;

#[test]
fn show() {
    let campaign = campaign(SMALL);
    let results = results(&campaign, |subject, workload, repetition| {
        let factor = if subject.name == "stripe" && workload.settings.word("op") == "read" {
            1.9
        } else {
            1.0
        };
        let seed = [u64::from(repetition), subject.name.len() as u64];
        headline(workload, 100e6 * factor * noise(0.02, &seed))
    });
    println!("{}", text_of(&report_of(&results)));
}
