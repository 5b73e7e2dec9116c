//! Scaling efficiency: one reference for all lines of a table.

use super::*;
use crate::report::model::LineSeries;

const CHUNKS: &str = r#"
name = "chunks"
repetitions = 3
[[member]]
name = "a"
device = "/dev/sda"
[[member]]
name = "b"
device = "/dev/sdb"
[[member]]
name = "c"
device = "/dev/sdc"
[[subject]]
name = "single"
stack = "{a}"
baseline = true
[[subject]]
name = "stripe"
stack = "raid0(chunk={chunk}, {members})"
members = [2, 3]
chunk = ["4K", "8K", "16K", "32K", "64K", "128K", "256K", "512K", "1M", "2M"]
[[job]]
tool = "meter"
"#;

/// The second member brings all of its speed, the third nothing.
fn chunks() -> Results {
    results(&campaign(CHUNKS), |subject, workload, _| match subject.dimensions.get("members") {
        Some(Value::Count(2 | 3)) => headline(workload, 60e6),
        _ => headline(workload, 30e6),
    })
}

fn stripe<'r>(results: &'r Results, chunk: &str, members: u64) -> &'r str {
    let is = |subject: &&crate::campaign::Subject| {
        let has = |name: &str, value: &str| {
            subject.dimensions.get(name).is_some_and(|found| found.to_string() == value)
        };
        has("chunk", chunk) && has("members", &members.to_string())
    };
    &results.subjects.iter().find(is).unwrap().name
}

fn lines(report: &Report) -> (Vec<&LineSeries>, Vec<&str>) {
    let charts = || report.charts().filter(|chart| chart.id.starts_with("efficiency-lines"));
    let series = charts().flat_map(|chart| match &chart.plot {
        Plot::Lines { series, .. } => series,
        other => panic!("{other:?}"),
    });
    (series.collect(), charts().map(|chart| chart.note.as_str()).collect())
}

#[test]
fn a_line_without_its_smallest_array_has_no_efficiency() {
    let results = chunks();
    let label = analyse(&results).workloads[0].label.clone();
    let invalid = (stripe(&results, "64K", 2), label.as_str(), Standing::Invalid);
    let suspect = (stripe(&results, "1M", 2), label.as_str(), Standing::Suspect);
    let analysis = analyse_as(&results, &[invalid, suspect]);
    let report = build_report(&analysis, &results, Path::new("results"));
    check(&report);
    let table = report.tables().find(|table| table.id == "efficiency").unwrap();
    assert_eq!(table.note, "100 % is as much for each member as with 2 members.");
    let column =
        |name: &str| table.columns.iter().position(|column| column.heading.contains(name)).unwrap();
    let cells = |name: &str| -> Vec<(&str, &str, Tone)> {
        let cells = table.rows.iter().map(|row| &row.cells[column(name)]);
        cells.map(|cell| (cell.text.as_str(), cell.detail.as_str(), cell.tone)).collect()
    };
    assert_eq!(cells("128K"), [("100", "", Tone::Plain), ("67", "", Tone::Plain)]);
    assert_eq!(
        cells(" 64K"),
        [("—", "invalid", Tone::Missing), ("—", "no number with 2 members", Tone::Missing)]
    );
    // What is in percent of a doubtful number is doubtful.
    assert_eq!(cells("1M"), [("100", "", Tone::Suspect), ("67", "", Tone::Suspect)]);
    // Nine lines are left, and none is dropped without a word.
    let (series, notes) = lines(&report);
    assert_eq!((series.len(), notes.len()), (9, 2));
    assert!(series.iter().all(|line| !line.name.contains(" 64K")), "{series:?}");
    let doubtful = series.iter().find(|line| line.name.contains("1M")).unwrap();
    assert!(doubtful.points.iter().all(|point| point.suspect), "{doubtful:?}");
    for note in notes {
        assert!(note.contains("Not drawn, with fewer than two numbers"), "{note}");
        assert!(note.ends_with("chunk 64K."), "{note}");
    }
}

/// Families that begin with other sizes have their 100 % at the smallest that all have.
#[test]
fn families_share_the_size_of_their_100_percent() {
    let plan = CHUNKS.replace(
        "[[job]]",
        "[[subject]]\nname = \"parity\"\nstack = \"raid5(chunk=64K, {members})\"\n\
         members = 3\n[[subject]]\nname = \"wide\"\nstack = \"raid0(chunk=64K, {members})\"\n\
         members = [1, 2, 3]\n[[job]]",
    );
    let results = results(&campaign(&plan), |subject, workload, _| {
        let members = match subject.dimensions.get("members") {
            Some(Value::Count(members)) => *members as f64,
            _ => 1.0,
        };
        headline(workload, 30e6 * members.sqrt())
    });
    let report = build_report(&analyse_as(&results, &[]), &results, Path::new("results"));
    check(&report);
    let table = report.tables().find(|table| table.id == "efficiency").unwrap();
    let wide = table.columns.iter().position(|c| c.heading.starts_with("wide")).unwrap();
    let of_wide: Vec<&str> = table.rows.iter().map(|row| row.cells[wide].text.as_str()).collect();
    assert_eq!(of_wide, ["141", "100", "82"]);
    assert!(table.note.ends_with("as with 2 members."), "{}", table.note);
}
