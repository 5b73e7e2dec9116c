//! One comparison is one number, wherever it stands, and no better than its worse side.

use super::*;
use crate::report::model::Cell;

/// A machine that slows down, and a stripe that does not quite: the ratio of the medians (62 %)
/// is not the median of the ratios (50 %).
fn drifting() -> Results {
    results(&campaign(SMALL), |subject, workload, repetition| {
        let reads = workload.settings.word("op") == "read";
        let rates: [f64; 3] = match (subject.baseline, reads) {
            (true, true) => [100.0, 80.0, 10.0],
            (false, true) => [50.0, 70.0, 5.0],
            (true, false) => [100.0; 3],
            (false, false) => [200.0; 3],
        };
        headline(workload, rates[repetition as usize - 1] * 1e6)
    })
}

fn cell<'r>(report: &'r Report, table: &str, first: &str, column: &str) -> &'r Cell {
    let table = report.tables().find(|one| one.id == table).unwrap();
    let columns: Vec<&str> = table.columns.iter().map(|c| c.heading.as_str()).collect();
    let at = columns.iter().position(|heading| *heading == column);
    let at = at.unwrap_or_else(|| panic!("no {column} in {columns:?}"));
    let row = table.rows.iter().find(|row| row.cells[0].text.starts_with(first));
    &row.unwrap_or_else(|| panic!("no {first} in {table:?}")).cells[at]
}

#[test]
fn a_comparison_is_the_same_number_everywhere() {
    let results = drifting();
    let report = build_report(&analyse_as(&results, &[]), &results, Path::new("results"));
    check(&report);
    let numbers = cell(&report, "percent", "sequential read", "stripe [%]");
    assert_eq!((numbers.text.as_str(), numbers.detail.as_str()), ("50.0", "50.0 to 87.5"));
    assert_eq!(cell(&report, "against-baseline", "stripe", "worst [%]").text, "50");
    assert_eq!(cell(&report, "details-table", "sequential read", "stripe").detail, "50.0 %");
    let bars = report.charts().find(|chart| chart.id == "percent-bars").unwrap();
    let Plot::Bars { series, .. } = &bars.plot else { panic!("{bars:?}") };
    let bar = series[0].values[0].value().unwrap();
    assert_eq!((bar.value, bar.low, bar.high), (50.0, 50.0, 87.5));
    // The mean of the percents is that of the percents above it: 50 and 200.
    assert_eq!(cell(&report, "percent", "mean of the percents", "stripe [%]").text, "125");
}

#[test]
fn what_is_made_of_a_doubtful_number_is_doubtful() {
    let results = drifting();
    for doubtful in ["stripe", "single"] {
        let judged = [(doubtful, "sequential read 1M", Standing::Suspect)];
        let report = build_report(&analyse_as(&results, &judged), &results, Path::new("results"));
        let tone = |table, first, column| cell(&report, table, first, column).tone;
        assert_eq!(tone("percent", "sequential read", "stripe [%]"), Tone::Suspect);
        assert_eq!(tone("percent", "mean of the percents", "stripe [%]"), Tone::Suspect);
        assert_eq!(tone("percent", "sequential write", "stripe [%]"), Tone::Better);
        assert_eq!(tone("against-baseline", "stripe", "worst [%]"), Tone::Suspect);
        assert_eq!(tone("against-baseline", "stripe", "best [%]"), Tone::Plain);
        assert_eq!(tone("against-baseline", "stripe", "speed over all [%]"), Tone::Suspect);
        assert_eq!(tone("best", "sequential reads", "times the next"), Tone::Suspect);
        assert_eq!(tone("best", "sequential writes", "times the next"), Tone::Plain);
        // The stripe's own number is as good as it is; only its percent is doubtful.
        let own = cell(&report, "details-table", "sequential read", "stripe");
        let expected = match doubtful {
            "stripe" => (Tone::Suspect, "50.0 %"),
            _ => (Tone::Plain, "50.0 % of a suspect baseline"),
        };
        assert_eq!((own.tone, own.detail.as_str()), expected);
    }
}

#[test]
fn a_percentile_of_doubtful_requests_is_doubtful() {
    let results = sticks();
    let label = analyse(&results).workloads[0].label.clone();
    let judged = [("single", label.as_str(), Standing::Suspect)];
    let report = build_report(&analyse_as(&results, &judged), &results, Path::new("results"));
    let table = report.tables().find(|table| table.id == "percentiles").unwrap();
    let tones = |row: usize| -> Vec<Tone> {
        table.rows[row].cells[2..].iter().map(|cell| cell.tone).collect()
    };
    assert_eq!(table.rows[0].cells[1].text, "single");
    let (suspect, none, plain) = (Tone::Suspect, Tone::Missing, Tone::Plain);
    assert_eq!(tones(0), [suspect, suspect, suspect, suspect, none, none, suspect]);
    assert_eq!(tones(1), [plain, plain, plain, plain, none, none, plain]);
}

const MANY_SUBJECTS: &str = r#"
name = "many"
repetitions = 3
[[subject]]
name = "single"
path = "/dev/sda"
baseline = true
[[subject]]
name = "stripe"
stack = "raid0(chunk={chunk}, /dev/sdb, /dev/sdc)"
chunk = ["4K", "8K", "16K", "32K", "64K", "128K", "256K", "512K", "1M", "2M", "4M", "8M", "16M"]
[[job]]
tool = "meter"
op = ["read", "write"]
"#;

/// With so many subjects they stand down the table and tests across.
#[test]
fn a_lone_baseline_is_100_only_where_it_has_a_number() {
    let results = results(&campaign(MANY_SUBJECTS), |_, workload, _| headline(workload, 1e8));
    let judged = [("single", "sequential read 1M", Standing::Invalid)];
    let report = build_report(&analyse_as(&results, &judged), &results, Path::new("results"));
    check(&report);
    let of_single = |column| cell(&report, "percent", "single", column);
    assert_eq!(of_single("sequential write 1M [%]").text, "100");
    let invalid = of_single("sequential read 1M [%]");
    assert_eq!((invalid.text.as_str(), invalid.number), ("—", None));
    assert_eq!((invalid.detail.as_str(), invalid.tone), ("invalid", Tone::Missing));
    let mean = of_single("mean of the percents");
    assert_eq!((mean.text.as_str(), mean.detail.as_str()), ("100", "of 1 of 2 tests"));
}
