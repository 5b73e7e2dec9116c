//! Who is compared with whom, at which level, and what a proof takes.

use super::*;

/// a alone, both, b alone.
const PARTLY: &str = r#"
name = "partly"
repetitions = 6
[[subject]]
name = "a"
path = "/dev/sda"
baseline = true
[[subject]]
name = "b"
path = "/dev/sdb"
[[job]]
tool = "meter"
block_size = "4K"
subjects = ["a"]
[[job]]
tool = "meter"
block_size = ["8K", "16K"]
[[job]]
tool = "meter"
block_size = "32K"
subjects = ["b"]
"#;

fn twice_as_fast() -> Results {
    results(&campaign(PARTLY), |subject, workload, repetition| {
        let noise = noise(0.01, &[u64::from(repetition), subject.name.as_bytes()[0].into()]);
        headline(workload, 100e6 * noise * if subject.name == "b" { 2.0 } else { 1.0 })
    })
}

/// Neither has all that the other has, and two workloads are of both.
#[test]
fn what_two_subjects_share_is_compared() {
    let report = report_of(&twice_as_fast());
    check(&report);
    let said = report.answer.join(" ");
    assert!(said.starts_with("Take b: "), "{said}");
    assert!(said.contains("over the 2 of 4 workloads that they share"), "{said}");
    assert!(!said.contains("nothing to compare"), "{said}");
}

/// The same where each has one number that cannot be believed.
#[test]
fn invalid_numbers_on_both_sides_leave_the_others() {
    let plan = PARTLY.replace("subjects = [\"a\"]\n", "").replace("subjects = [\"b\"]\n", "");
    let results = results(&campaign(&plan), |subject, workload, repetition| {
        let noise = noise(0.01, &[u64::from(repetition), subject.name.as_bytes()[0].into()]);
        headline(workload, 100e6 * noise * if subject.name == "b" { 2.0 } else { 1.0 })
    });
    let invalid = [("a", "sequential read 4K"), ("b", "sequential read 32K")];
    let report =
        build_report(&analyse_without_rules(&results, &invalid), &results, Path::new("results"));
    check(&report);
    assert!(report.answer[0].starts_with("Take b: "), "{:?}", report.answer);
    let said = report.answer.join(" ");
    assert!(said.contains("over the 2 of 4 workloads that they share"), "{said}");
}

/// Why there is no contest, in each case.
#[test]
fn the_reason_for_no_contest_is_the_true_one() {
    let why = |results: &Results, invalid: &[(&str, &str)]| {
        let analysis = analyse_without_rules(results, invalid);
        let report = build_report(&analysis, results, Path::new("results"));
        let said = report.answer.join(" ");
        let (_, why) = said.split_once("There is nothing to compare it with: ").unwrap();
        why.split('.').next().unwrap().to_owned()
    };
    let both = twice_as_fast();
    let invalid = [("a", "sequential read 8K"), ("a", "sequential read 16K")];
    assert_eq!(
        why(&both, &invalid),
        "no two subjects have a number of the same workload that can be believed"
    );
    let apart = results(&campaign(PARTLY), |subject, workload, repetition| {
        match (repetition % 2 == 0) == (subject.name == "a") {
            true => headline(workload, 100e6),
            false => Given::Failed("gone"),
        }
    });
    assert_eq!(
        why(&apart, &[]),
        "no two subjects have a number above 0 of the same workload in the same repetition"
    );
    let plan = PARTLY.replace("[\"8K\", \"16K\"]", "\"8K\"\nsubjects = [\"a\"]");
    let alone = results(&campaign(&plan), |_, workload, _| headline(workload, 100e6));
    assert_eq!(why(&alone, &[]), "no two subjects have the same workload");
}

fn note_of_best(report: &Report) -> &str {
    &report.tables().find(|table| table.id == "best").unwrap().note
}

/// Sequential reads and writes by both, random ones by one alone: two kinds share the level.
#[test]
fn only_kinds_with_a_contest_share_the_level() {
    let mut plan = SMALL.replace("repetitions = 3", "repetitions = 7");
    plan += "[[job]]\ntool = \"meter\"\npattern = \"rand\"\nop = [\"read\", \"write\"]\n";
    plan += "subjects = [\"stripe\"]\n";
    let measure = |plan: &str| {
        results(&campaign(plan), |subject, workload, repetition| {
            let noise = noise(0.01, &[u64::from(repetition), subject.name.len() as u64]);
            headline(workload, 100e6 * noise * if subject.name == "stripe" { 2.0 } else { 1.0 })
        })
    };
    let report = report_of(&measure(&plan));
    let note = note_of_best(&report);
    assert!(
        note.contains("at a level of 2.50 %, which is 5 % shared among the 2 kinds of workloads"),
        "{note}"
    );
    // 2 · ½⁷ = 1.56 % is within that, and not within the 1.25 % that all four kinds would leave.
    let best = report.tables().find(|table| table.id == "best").unwrap();
    assert_eq!(best.rows.len(), 2);
    assert!(best.rows.iter().all(|row| row.cells[2].text == "proven"), "{best:?}");
    // One kind has all of it, and shares nothing.
    let one = plan.replacen("op = [\"read\", \"write\"]", "op = \"read\"", 1);
    let report = report_of(&measure(&one));
    let note = note_of_best(&report);
    assert!(note.contains("than every other at a level of 5 %, with all comparisons"), "{note}");
}

/// Six repetitions of which one has the same number on both sides.
#[test]
fn a_tie_does_not_count_as_a_repetition() {
    let plan = SMALL.replace("repetitions = 3", "repetitions = 6");
    let plan = plan.replace("op = [\"read\", \"write\"]", "op = \"read\"");
    let results = results(&campaign(&plan), |subject, workload, repetition| {
        let faster = subject.name == "stripe" && repetition != 4;
        headline(workload, if faster { 200e6 } else { 100e6 })
    });
    let report = report_of(&results);
    let said = report.answer.join(" ");
    assert!(
        said.contains(
            "A proof takes at least 6 repetitions whose numbers differ: of 6, 1 of them with \
             equal numbers, even the clearest difference could be chance."
        ),
        "{said}"
    );
}

/// 130 requests in each of three trials: none knows its slowest percent, and neither do all 390.
#[test]
fn a_percentile_without_support_is_in_no_table() {
    let depths = |requests: u64, repetitions: u32| {
        let plan = Campaign { repetitions, ..campaign(STICKS) };
        let results = results(&plan, |_, workload, _| {
            let measured = fixture::measured(&[
                (Metric::Throughput, 20e6),
                (workload.headline(), 5e3),
                (Metric::Iops, 5e3),
                (Metric::LatencyP95, 9e6),
                (Metric::LatencyP99, 14.4e6),
            ]);
            let bins = [(1_000_000, requests - 2), (14_400_000, 2)];
            Given::All(fixture::with_course(measured, &bins, 20e6, 3), Vec::new())
        });
        (report_of(&results), results)
    };
    let (report, results) = depths(130, 3);
    check(&report);
    let cell = |report: &Report, title: &str| {
        let titles: Vec<&str> = report.tables().map(|table| table.title.as_str()).collect();
        let table = report.tables().find(|table| table.title == title);
        table.unwrap_or_else(|| panic!("{titles:?}")).rows[0].cells[1].clone()
    };
    let p99 = cell(&report, "random read, blocks of 4K, unit requests: 99 % latency");
    assert_eq!(
        (p99.text.as_str(), p99.detail.as_str()),
        ("—", "not supported: it takes 1000 requests")
    );
    assert!(!report.charts().any(|chart| chart.id == "latency-by-requests"));
    let text = text_of(&report);
    assert!(!text.contains("14.4 ms"), "{text}");
    // 390 requests are enough for 95 %, though no single trial's are: their own are 1 ms.
    let analysis = analyse(&results);
    let depth_one = analysis.cell(0, 0);
    assert_eq!(depth_one.get(Metric::LatencyP95).unwrap().median, 1e6);
    assert!(!depth_one.values.contains_key(&Metric::LatencyP95));
    assert_eq!(depth_one.unsupported[&Metric::LatencyP99], 1_000);
    // Eight trials have 1,040 together: 16 of them took 14.4 ms, more than one in a hundred.
    let (report, _) = depths(130, 8);
    let p99 = cell(&report, "random read, blocks of 4K, unit requests: 99 % latency");
    assert_eq!((p99.number, p99.text.as_str()), (Some(14.4), "14.4"));
    let knee = report.charts().find(|chart| chart.id == "latency-by-requests").unwrap();
    let Plot::Lines { series, .. } = &knee.plot else { panic!("{knee:?}") };
    assert_eq!(series[0].points[0].y, 14.4);
}
