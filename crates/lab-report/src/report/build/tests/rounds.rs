//! Campaigns whose repetitions are rounds: what counts, and what is said of the rest.

use super::*;
use crate::listing::{Shown, show_results};

const ROUNDS: &str = r#"
name = "long run"
repetitions = 15
rounds = true
[[subject]]
name = "a"
path = "/dev/sda"
baseline = true
[[subject]]
name = "b"
path = "/dev/sdb"
[[job]]
tool = "meter"
unit = "requests"
op = "write"
pattern = "rand"
"#;

/// A typical new flash disk: from 400,000 down to 120,000 in ten rounds, then 100,000.
fn fresh(round: u32) -> f64 {
    match round {
        1..=10 => 400e3 - 280e3 / 9.0 * f64::from(round - 1),
        _ => 100e3,
    }
}

fn measured(rounds: u32, rate: impl Fn(&str, u32) -> Option<f64>) -> Results {
    let plan = Campaign { repetitions: rounds, ..campaign(ROUNDS) };
    results(&plan, |subject, workload, round| match rate(&subject.name, round) {
        Some(rate) => headline(workload, rate),
        None => Given::Failed("gone"),
    })
}

fn verdicts(report: &Report) -> Vec<&str> {
    let table = report.tables().find(|table| table.id == "steady").unwrap();
    table.rows.iter().map(|row| row.cells[2].text.as_str()).collect()
}

/// Over all rounds a is faster than b in 10 of 15; settled it is 10 % slower.
#[test]
fn the_fast_rounds_of_a_fresh_device_win_nothing() {
    let results = measured(15, |name, round| Some(if name == "a" { fresh(round) } else { 110e3 }));
    let report = report_of(&results);
    check(&report);
    assert_eq!(verdicts(&report), ["settled in rounds 11 to 15", "settled in rounds 1 to 15"]);
    let said = report.answer.join(" ");
    assert!(said.starts_with("Take b: 1.10 times a in random writes"), "{said}");
    let number = |column| cell(&report, "percent", "random write", column).text.as_str();
    assert_eq!([number("a"), number("b"), number("b [%]")], ["100000", "110000", "110"]);
    // All rounds are drawn, including those that do not count.
    let chart = report.charts().find(|chart| chart.id == "rounds").unwrap();
    assert_eq!(chart.series[0].points.len(), 15);
    // And every sample is written out, with its verdict.
    let samples = tidy_rows(&analyse(&results), &results);
    let of_a = samples.iter().filter(|row| row.dimensions[0].1 == "a");
    let (early, late): (Vec<_>, Vec<_>) = of_a.partition(|row| row.repetition <= 10);
    assert_eq!((early.len(), late.len()), (10, 5));
    assert!(early.iter().all(|row| row.verdict == "unsettled"));
    assert!(late.iter().all(|row| row.verdict != "unsettled"));
    let Shown::Cells(shown) = show_results(&results, "a: random") else { panic!("none") };
    assert!(shown.contains("400000") && shown.contains("100000"), "{shown}");
    assert!(shown.contains("settled in rounds 11 to 15; only they count"), "{shown}");
}

/// The same with rounds enough: six in which both have settled.
#[test]
fn settled_rounds_can_prove() {
    let results = measured(16, |name, round| {
        let noise = noise(0.01, &[name.len() as u64, name.as_bytes()[0].into(), round.into()]);
        Some(noise * if name == "a" { fresh(round) } else { 110e3 })
    });
    let report = report_of(&results);
    assert!(report.answer[0].starts_with("Take b: 1.1"), "{:?}", report.answer);
}

#[test]
fn who_has_not_settled_has_no_number() {
    let results = measured(10, |name, round| Some(if name == "a" { fresh(round) } else { 110e3 }));
    let report = report_of(&results);
    check(&report);
    let unsettled = "not settled; measure more rounds";
    assert_eq!(verdicts(&report), [unsettled, "settled in rounds 1 to 10"]);
    let said = report.answer.join(" ");
    assert!(said.contains("on b: 110000 1/s"), "{said}");
    assert!(said.contains("Not settled, and so without a number: a (random write"), "{said}");
    let table = report.tables().find(|table| table.id == "percent").unwrap();
    let (value, percent) = (&table.rows[0].cells[1], &table.rows[0].cells[3]);
    let why = "not settled: the last five rounds still change";
    assert_eq!((value.text.as_str(), value.detail.as_str(), value.number), ("—", why, None));
    assert_eq!(percent.detail, format!("of the baseline: {why}"));
    assert_eq!((report.trust.ok, report.trust.missing), (1, 1));
    assert!(report.trust.reasons.iter().any(|reason| reason.rule == "not-settled"));
    // With neither there is no answer, and it is said why.
    let report = report_of(&measured(10, |_, round| Some(fresh(round))));
    check(&report);
    assert!(report.answer[0].starts_with("Nothing has settled"), "{:?}", report.answer);
}

/// Round 4 failed: rounds 1 to 3 and 5 to 8 are not five in a row.
#[test]
fn a_failed_round_is_a_gap() {
    let even =
        |last: u32| measured(last, |name, round| (name == "b" || round != 4).then_some(100e3));
    let (eight, nine) = (report_of(&even(8)), report_of(&even(9)));
    assert_eq!(
        verdicts(&eight),
        ["too few rounds: it takes 5 in a row, and there are 4", "settled in rounds 1 to 8"]
    );
    assert_eq!(verdicts(&nine), ["settled in rounds 5 to 9", "settled in rounds 1 to 9"]);
}

/// a settles in rounds 1 to 8, and was not measured after that; b only later.
#[test]
fn who_never_met_is_not_compared() {
    let results = measured(15, |name, round| match name {
        "a" => (round <= 8).then_some(100e3),
        _ => Some(fresh(round)),
    });
    let report = report_of(&results);
    check(&report);
    assert!(report.answer[0].starts_with("Nothing is compared here."), "{:?}", report.answer);
}

/// Only rounds that count are in the latencies and in the verdict.
#[test]
fn latencies_and_findings_are_of_the_rounds_that_count() {
    let plan = campaign(ROUNDS);
    let mut results = results(&plan, |_, _, round| {
        let slow = if round <= 10 { 9_000_000 } else { 1_000_000 };
        let rate = fresh(round);
        let measured = fixture::measured(&[(Metric::Iops, rate), (Metric::LatencyP99, 5e6)]);
        Given::All(fixture::with_course(measured, &[(slow, 1_000)], rate, 20), Vec::new())
    });
    let analysis = analyse(&results);
    let cell = analysis.cell(0, 0);
    assert_eq!(cell.get(Metric::LatencyP99).unwrap().count, 5);
    assert_eq!((cell.counts(10), cell.counts(11)), (false, true));
    // Falling by 300 % over all rounds, and by nothing over those that count.
    assert!(!cell.findings.iter().any(|found| found.rule == "unsteady-repetitions"), "{cell:?}");
    let table = report_of(&results);
    let table = table.tables().find(|table| table.id == "percentiles").unwrap();
    assert_eq!(table.rows[0].cells[2].text, "5000");
    // In a campaign without rounds all repetitions count, whatever its name, and the fall is a
    // finding.
    results.planned.campaign.rounds = false;
    results.planned.campaign.name = "steady".to_owned();
    let analysis = analyse(&results);
    let cell = analysis.cell(0, 0);
    assert!(cell.rounds.is_none() && cell.counts(1));
    assert!(cell.findings.iter().any(|found| found.rule == "unsteady-repetitions"), "{cell:?}");
}

/// Flash with a full cache: what was kept up for seven rounds is not what it does.
#[test]
fn a_fall_at_the_end_settles_nothing() {
    let rates = [53e3, 57e3, 57e3, 60e3, 55e3, 59e3, 52e3, 33e3];
    let results = measured(8, |name, round| {
        Some(if name == "a" { rates[round as usize - 1] } else { 100e3 })
    });
    let report = report_of(&results);
    check(&report);
    let left = "settled in rounds 1 to 7, then fell in round 8";
    assert_eq!(verdicts(&report), [left, "settled in rounds 1 to 8"]);
    let table = report.tables().find(|table| table.id == "steady").unwrap();
    let cell = |row: usize, column: &str| {
        let at = table.columns.iter().position(|c| c.heading == column).unwrap();
        &table.rows[row].cells[at]
    };
    assert_eq!((cell(0, "verdict").tone, cell(1, "verdict").tone), (Tone::Suspect, Tone::Better));
    let numbers = report.tables().find(|table| table.id == "percent").unwrap();
    let why = "not settled: it held in rounds 1 to 7 and fell in round 8";
    assert_eq!(
        (numbers.rows[0].cells[1].detail.as_str(), numbers.rows[0].cells[1].number),
        (why, None)
    );
}
