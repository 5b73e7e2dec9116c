use std::fmt::Write as _;
use std::path::Path;

use super::*;
use crate::analysis::analyse;
use crate::campaign::Campaign;
use crate::fixture::{self, Given, campaign, headline, noise, results};
use crate::metric::Metric;
use crate::report::model::{Plot, Table};
use crate::settings::Value;

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

/// The two-disk study: times of tests by one and by two processes.
const TWO_DISKS: &str = r#"
name = "two disks"
repetitions = 6
[[subject]]
name = "disk 1"
path = "/dev/sda"
baseline = true
[[subject]]
name = "disk 2"
path = "/dev/sdb"
baseline = true
[[subject]]
name = "stripe"
stack = "raid0(chunk=64K, /dev/sda, /dev/sdb)"
[[job]]
tool = "meter"
unit = "seconds"
op = ["read", "write"]
processes = [1, 2]
"#;

fn two_disks() -> Results {
    results(&campaign(TWO_DISKS), |subject, workload, repetition| {
        let of_one = if workload.settings.word("op") == "read" { 100.0 } else { 200.0 };
        let factor = match subject.name.as_str() {
            "disk 1" => 0.9,
            "disk 2" => 1.1,
            _ => 0.5,
        };
        let drift = 1.0 + 0.01 * f64::from(repetition);
        headline(workload, of_one * factor * drift * f64::from(workload.setup.processes))
    })
}

/// One to three sticks, two chunks, one or two buses, two depths, latencies.
const STICKS: &str = r#"
name = "sticks"
repetitions = 2
[[member]]
name = "a"
device = "/dev/sda"
bus = "front"
[[member]]
name = "b"
device = "/dev/sdb"
bus = "back"
[[member]]
name = "c"
device = "/dev/sdc"
bus = "front"
[[subject]]
name = "single"
stack = "{a}"
baseline = true
[[subject]]
name = "stripe"
stack = "raid0(chunk={chunk}, {members})"
members = [1, 2, 3]
chunk = ["64K", "128K"]
[[subject]]
name = "bus"
stack = "raid0(chunk=64K, {members})"
members = 2
buses = [1, 2]
[[job]]
tool = "meter"
pattern = "rand"
unit = "requests"
block_size = "4K"
iodepth = [1, 8]
[[job]]
tool = "meter"
block_size = ["64K", "1M"]
"#;

fn sticks() -> Results {
    results(&campaign(STICKS), |subject, workload, repetition| {
        let members = match subject.dimensions.get("members") {
            Some(Value::Count(members)) => *members as f64,
            _ => 1.0,
        };
        let depth = workload.settings.count("iodepth").unwrap_or(1) as f64;
        let rate = 20e6 * members * depth.sqrt() * noise(0.01, &[u64::from(repetition)]);
        let latency = 1e9 * depth / rate;
        let mut measured = fixture::measured(&[
            (Metric::Throughput, rate),
            (Metric::Iops, rate / 4096.0),
            (Metric::LatencyP99, latency * 4096.0),
        ]);
        measured = fixture::with_course(measured, &[(100_000, 980), (2_000_000, 40)], rate, 3);
        Given::All(measured, Vec::new())
    })
}

#[test]
fn show() {
    println!("{}", text_of(&report_of(&two_disks())));
    println!("{}", text_of(&report_of(&sticks())));
}
