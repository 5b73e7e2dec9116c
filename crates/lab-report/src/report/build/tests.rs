//! Helpers and made-up campaigns; the tests are in the files below.

use std::fmt::Write as _;
use std::path::Path;

use super::*;
use crate::analysis::analyse;
use crate::analysis::{Finding, Judgement, Standing};
use crate::fixture::{self, Given, campaign, headline, noise, results};
use crate::report::model::{Axis, Cell, Chart, Shape, Table, Tone};
use braid_lab::campaign::{Campaign, Health};
use braid_lab::matrix::Planned;
use braid_lab::metric::Metric;
use braid_lab::settings::Value;

mod answers;
mod any;
mod doubts;
mod health;
mod numbers;
mod predicted;
mod rounds;
mod studies;

fn report_of(results: &Results) -> Report {
    build_report(&analyse(results), results, Path::new("results"))
}

/// The report as text: every sentence and table, and of the charts what is drawn.
fn text_of(report: &Report) -> String {
    let mut text = format!("# {}\n{}\n\n", report.title, report.subtitle);
    for sentence in &report.answer {
        writeln!(text, "> {sentence}").unwrap();
    }
    if let Some(chart) = &report.picture {
        writeln!(text, "picture: {} ({})", chart.title, drawn(chart)).unwrap();
    }
    text += &table_of(&report.table);
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
                    writeln!(text, "chart {}: {} ({})", chart.id, chart.title, drawn(chart))
                        .unwrap();
                }
            }
        }
    }
    text
}

fn drawn(chart: &Chart) -> String {
    let points: Vec<usize> = chart.series.iter().map(|one| one.points.len()).collect();
    match chart.shape {
        Shape::Bars => format!("bars in {} groups, {points:?}", chart.x.ticks.len()),
        Shape::Lines => format!("lines of {points:?}, {} events", chart.events.len()),
        Shape::Marks => format!("marks of {points:?}"),
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

/// Checks the rules for every report, and that every renderer accepts it.
fn check(report: &Report) {
    let mut ids: Vec<&str> = Vec::new();
    for section in &report.sections {
        ids.push(&section.id);
        assert!(!section.blocks.is_empty(), "{} is empty", section.id);
    }
    ids.extend(report.tables().map(|table| table.id.as_str()));
    ids.extend(report.charts().map(|chart| chart.id.as_str()));
    for id in &ids {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(!id.is_empty() && id.len() <= 31 && id.chars().all(fits), "{id:?}");
    }
    let unique: std::collections::BTreeSet<&&str> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len(), "{ids:?}");
    for table in report.tables() {
        for row in &table.rows {
            assert_eq!(row.cells.len(), table.columns.len(), "{}", table.title);
            for cell in &row.cells {
                assert!(cell.number.is_none_or(f64::is_finite), "{}: {cell:?}", table.title);
                assert!(cell.ends.is_none_or(|(low, high)| low <= high), "{cell:?}");
                assert!(!(cell.tone == Tone::Invalid && cell.number.is_some()), "{cell:?}");
            }
        }
    }
    report.charts().for_each(check_chart);
    crate::report::render::render_html(report).unwrap();
    crate::report::render::render_markdown(report).unwrap();
    crate::report::render::render_terminal(report, true, "report.html");
}

fn check_chart(chart: &Chart) {
    let fits = |value: f64, axis: &Axis| value.is_finite() && (!axis.log || value > 0.0);
    assert!(chart.series.len() <= charts::MOST_SERIES && !chart.series.is_empty(), "{chart:?}");
    for point in chart.points() {
        let [value, low, high] = point.reach();
        assert!(low <= value && value <= high, "{}: {point:?}", chart.title);
        assert!(fits(low, &chart.y) && fits(high, &chart.y), "{}: {point:?}", chart.title);
        let is_group = chart.x.ticks.iter().any(|(place, _)| *place == point.x);
        assert!(is_group || chart.shape == Shape::Lines, "{}: {point:?}", chart.title);
        assert!(fits(point.x, &chart.x), "{}: {point:?}", chart.title);
    }
}

/// A cell of the first table of this id, by how its row begins and by its column.
fn cell<'r>(report: &'r Report, table: &str, first: &str, column: &str) -> &'r Cell {
    let table = report.tables().find(|one| one.id == table).unwrap_or_else(|| {
        let ids: Vec<&str> = report.tables().map(|table| table.id.as_str()).collect();
        panic!("no table {table}, only {ids:?}")
    });
    let columns: Vec<&str> = table.columns.iter().map(|c| c.heading.as_str()).collect();
    let at = columns.iter().position(|heading| *heading == column);
    let at = at.unwrap_or_else(|| panic!("no {column} in {columns:?}"));
    let row = table.rows.iter().find(|row| row.cells[0].text.starts_with(first));
    &row.unwrap_or_else(|| panic!("no {first} in {table:?}")).cells[at]
}

/// Standing and findings of some cells made up, so that the rules of trust have no say.
fn analyse_as(results: &Results, judged: &[(&str, &str, Standing)]) -> Analysis {
    let mut judgement = Judgement::default();
    for (subject, workload, standing) in judged {
        let finding = Finding {
            rule: "page-cache",
            standing: *standing,
            why: "the tool read 10 GiB and the disk 1 MiB".to_owned(),
            action: "set direct".to_owned(),
        };
        let findings = vec![finding];
        let verdict = crate::trust::Verdict { standing: *standing, findings, ..Default::default() };
        judgement.cells.insert(((*subject).to_owned(), (*workload).to_owned()), verdict);
    }
    crate::analysis::analyse_judged(results, Planned::of(&results.campaign).workloads, judgement)
}
