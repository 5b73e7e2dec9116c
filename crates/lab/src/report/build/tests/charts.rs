//! What charts draw of numbers that are doubtful, and what they say where they draw nothing.

use super::*;
use crate::report::model::{BarSeries, Chart, Gap, Shade, Spread};

fn chart<'r>(report: &'r Report, id: &str, title: &str) -> &'r Chart {
    let charts = || report.charts().map(|chart| format!("{}: {}", chart.id, chart.title));
    let found = report.charts().find(|chart| chart.id.starts_with(id) && chart.title == title);
    found.unwrap_or_else(|| panic!("no {id}, {title}, only {:?}", charts().collect::<Vec<_>>()))
}

fn series_of<'r>(report: &'r Report, id: &str, title: &str) -> &'r [BarSeries] {
    match &chart(report, id, title).plot {
        Plot::Bars { series, .. } => series,
        other => panic!("{other:?}"),
    }
}

/// By subject: the value, with "?" where something speaks against it, or why there is none.
fn bars(series: &[BarSeries]) -> Vec<String> {
    let word = |datum: &Datum<Spread>| match datum {
        Datum::Value(spread) => {
            format!("{:.0}{}", spread.value, if spread.suspect { "?" } else { "" })
        }
        Datum::Gap(gap) => gap.words().to_owned(),
    };
    let line = |one: &BarSeries| {
        let words: Vec<String> = one.values.iter().map(word).collect();
        format!("{}: {}", one.name, words.join(", "))
    };
    series.iter().map(line).collect()
}

fn small() -> Results {
    results(&campaign(SMALL), |subject, workload, repetition| {
        let factor = if subject.baseline { 100.0 } else { 250.0 };
        headline(workload, factor * 1e6 * noise(0.001, &[u64::from(repetition)]))
    })
}

#[test]
fn a_gap_says_why_and_a_doubtful_value_that_it_is() {
    let results = small();
    let report = |judged: &[(&str, &str, Standing)]| {
        build_report(&analyse_as(&results, judged), &results, Path::new("results"))
    };
    let percent =
        |report: &Report| bars(series_of(report, "percent-bars", "Rate in percent of single"));
    let invalid = report(&[("stripe", "sequential read 1M", Standing::Invalid)]);
    check(&invalid);
    assert_eq!(percent(&invalid), ["stripe: invalid, 250"]);
    let reads = bars(series_of(&invalid, "bars", "sequential reads: throughput"));
    assert_eq!(reads, ["single: 95", "stripe: invalid"]);
    let baseline = report(&[("single", "sequential read 1M", Standing::Invalid)]);
    assert_eq!(percent(&baseline), ["stripe: the baseline has no number, 250"]);
    let suspect = report(&[("stripe", "sequential read 1M", Standing::Suspect)]);
    assert_eq!(percent(&suspect), ["stripe: 250?, 250"]);
    // A comparison with a doubtful baseline is as doubtful.
    let suspect = report(&[("single", "sequential read 1M", Standing::Suspect)]);
    assert_eq!(percent(&suspect), ["stripe: 250?, 250"]);
    let reads = bars(series_of(&suspect, "bars", "sequential reads: throughput"));
    assert_eq!(reads, ["single: 95?", "stripe: 238"]);
    // Nothing left of a subject: it stays in its place, and says so.
    let gone = report(&[
        ("stripe", "sequential read 1M", Standing::Invalid),
        ("stripe", "sequential write 1M", Standing::Invalid),
    ]);
    assert_eq!(
        bars(series_of(&gone, "bars", "sequential writes: throughput")),
        ["single: 95", "stripe: invalid"]
    );
}

#[test]
fn points_and_fields_say_that_they_are_doubtful() {
    let results = sticks();
    let labels: Vec<String> = analyse(&results).workloads.iter().map(|w| w.label.clone()).collect();
    let work = labels.iter().find(|label| label.contains("4K")).unwrap().as_str();
    let judged: Vec<(&str, &str, Standing)> = results
        .subjects
        .iter()
        .filter(|subject| subject.dimensions.contains_key("chunk"))
        .map(|subject| match subject.dimensions.get("members") {
            Some(Value::Count(3)) => (subject.name.as_str(), work, Standing::Invalid),
            _ => (subject.name.as_str(), work, Standing::Suspect),
        })
        .collect();
    let report = build_report(&analyse_as(&results, &judged), &results, Path::new("results"));
    check(&report);
    let map = report.charts().find(|chart| chart.id == "chunk-members").unwrap();
    let Plot::HeatMap { values, .. } = &map.plot else { panic!("{map:?}") };
    for row in values {
        let doubtful = |datum: &Datum<Shade>| datum.value().map(|shade| shade.suspect);
        assert_eq!(row.iter().map(doubtful).collect::<Vec<_>>(), [Some(true), Some(true), None]);
        assert_eq!(row[2], Datum::Gap(Gap::Invalid));
    }
    let lines = report.charts().find(|chart| chart.id == "scaling-lines").unwrap();
    let Plot::Lines { series, .. } = &lines.plot else { panic!("{lines:?}") };
    let points = || series.iter().flat_map(|line| &line.points);
    assert!(points().count() > 0 && points().all(|point| point.suspect), "{series:?}");
}
