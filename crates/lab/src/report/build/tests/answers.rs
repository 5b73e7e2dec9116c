//! What is said, and what is not.

use super::*;
use crate::report::model::{Gap, Spread};

#[test]
fn a_small_campaign_reads_well() {
    let results = results(&campaign(SMALL), |subject, workload, repetition| {
        let reads = workload.settings.word("op") == "read";
        let factor = if subject.name == "stripe" && reads { 1.9 } else { 1.0 };
        let seed = [u64::from(repetition), subject.name.len() as u64];
        headline(workload, 100e6 * factor * noise(0.02, &seed))
    });
    let report = report_of(&results);
    check(&report);
    insta::assert_snapshot!(text_of(&report));
}

#[test]
fn a_winner_is_named_with_its_merits() {
    let mut plan = campaign(SMALL);
    plan.repetitions = 8;
    let results = results(&plan, |subject, workload, repetition| {
        let factor = match (subject.name.as_str(), workload.settings.word("op")) {
            ("stripe", "read") => 3.1,
            ("stripe", _) => 0.5,
            _ => 1.0,
        };
        headline(
            workload,
            100e6 * factor * noise(0.01, &[subject.name.len() as u64, repetition.into()]),
        )
    });
    let report = report_of(&results);
    assert!(
        report.answer[0].starts_with("Take stripe: 3.1")
            && report.answer[0]
                .contains(" times as fast as single in sequential reads (95 % interval: 3."),
        "{}",
        report.answer[0]
    );
    assert!(report.answer[0].contains("but slower in sequential writes: "), "{}", report.answer[0]);
}

#[test]
fn numbers_that_are_all_doubtful_are_a_hint() {
    let results = results(&campaign(SMALL), |_, workload, _| headline(workload, 100e6));
    let mut analysis = analyse_without_rules(&results, &[]);
    let said = |analysis: &Analysis| {
        build_report(analysis, &results, Path::new("results")).answer[1].contains("hint at most")
    };
    assert!(!said(&analysis));
    let (last, others) = analysis.cells.split_last_mut().unwrap();
    others.iter_mut().for_each(|cell| cell.standing = Standing::Suspect);
    assert_eq!(last.standing, Standing::Ok);
    assert!(!said(&analysis), "one is believed");
    analysis.cells.iter_mut().for_each(|cell| cell.standing = Standing::Suspect);
    assert!(said(&analysis));
}

#[test]
fn a_baseline_may_win() {
    let mut plan = campaign(SMALL);
    plan.repetitions = 8;
    let results = results(&plan, |subject, workload, repetition| {
        let factor = if subject.baseline { 1.0 } else { 0.5 };
        headline(workload, 100e6 * factor * noise(0.01, &[repetition.into()]))
    });
    let report = report_of(&results);
    assert!(report.answer[0].starts_with("Stay with single: "), "{}", report.answer[0]);
}

#[test]
fn equal_subjects_are_not_told_apart() {
    let mut plan = campaign(SMALL);
    plan.repetitions = 8;
    let results = results(&plan, |subject, workload, repetition| {
        let seed = [subject.name.len() as u64, repetition.into()];
        headline(workload, 100e6 * noise(0.05, &seed))
    });
    let report = report_of(&results);
    assert!(report.answer[0].contains("cannot be told apart"), "{:?}", report.answer);
    assert!(!report.answer.iter().any(|sentence| sentence.starts_with("Take ")));
}

#[test]
fn an_invalid_number_is_shown_and_counts_for_nothing() {
    let mut plan = campaign(SMALL);
    plan.repetitions = 8;
    let results = results(&plan, |subject, workload, repetition| {
        let reads = workload.settings.word("op") == "read";
        let factor = if subject.name == "stripe" && reads { 50.0 } else { 1.0 };
        headline(
            workload,
            100e6 * factor * noise(0.01, &[subject.name.len() as u64, repetition.into()]),
        )
    });
    let invalid = [("stripe", "sequential read 1M")];
    let report =
        build_report(&analyse_without_rules(&results, &invalid), &results, Path::new("results"));
    check(&report);
    assert!(report.answer.iter().all(|sentence| !sentence.contains("50")), "{:?}", report.answer);
    assert!(
        report.answer.iter().any(|said| said.contains("1 cannot be believed")),
        "{:?}",
        report.answer
    );
    let numbers = report.tables().find(|table| table.id == "percent").unwrap();
    let (value, percent) = (&numbers.rows[0].cells[2], &numbers.rows[0].cells[3]);
    assert_eq!((value.tone, value.number), (Tone::Invalid, None));
    assert!(value.text.starts_with("47"), "{value:?}");
    assert_eq!((percent.text.as_str(), percent.detail.as_str()), ("—", "invalid"));
    assert_eq!(report.trust.invalid, 1);
    assert_eq!(report.trust.reasons[0].cells, ["stripe: sequential read 1M"]);
    let bars = report.charts().find(|chart| chart.title.starts_with("sequential reads")).unwrap();
    let Plot::Bars { series, .. } = &bars.plot else { panic!("{bars:?}") };
    let drawn: Vec<Option<Gap>> = series.iter().map(|one| gap_of(&one.values[0])).collect();
    assert_eq!(drawn, [None, Some(Gap::Invalid)], "the invalid bar is not drawn and says why");
    // An invalid baseline leaves no percent at all.
    let invalid = [("single", "sequential read 1M")];
    let report =
        build_report(&analyse_without_rules(&results, &invalid), &results, Path::new("results"));
    check(&report);
    let numbers = report.tables().find(|table| table.id == "percent").unwrap();
    let percent = &numbers.rows[0].cells[3];
    assert_eq!(percent.detail, "the baseline has no number that can be believed");
}

#[test]
fn what_is_unfinished_says_so_first() {
    let results = results(&campaign(SMALL), |_, workload, repetition| match repetition {
        1 => headline(workload, 100e6),
        _ => Given::Nothing,
    });
    let report = report_of(&results);
    check(&report);
    assert!(report.answer[0].starts_with("This is not finished: 4 of 12 trials"));
    assert!(
        report.answer[1].contains("in one repetition")
            || report.answer[1].contains("cannot be told apart"),
        "{:?}",
        report.answer
    );
}

#[test]
fn without_numbers_there_is_no_answer_and_no_section() {
    let plan = campaign(SMALL);
    for given in [|| Given::Failed("no such device"), || Given::Nothing, || Given::Impossible("no")]
    {
        let report = report_of(&results(&plan, |_, _, _| given()));
        check(&report);
        assert!(report.sections.iter().all(|section| section.id == "overview"), "{report:?}");
        let said = report.answer.join(" ");
        assert!(said.contains("Nothing has been measured, so there is no answer."), "{said}");
    }
    let failed = report_of(&results(&plan, |_, _, _| Given::Failed("no such device")));
    assert!(failed.answer.last().unwrap().ends_with("no such device"), "{:?}", failed.answer);
    assert_eq!(failed.trust.missing, 4);
    let mut never = results(&plan, |_, _, _| Given::Nothing);
    never.sessions.clear();
    never.facts.clear();
    check(&report_of(&never));
}

#[test]
fn one_subject_alone_has_numbers_and_no_percents() {
    let alone = SMALL
        .replace("baseline = true", "")
        .replace("[[subject]]\nname = \"stripe\"\nstack = \"raid0(chunk=64K, {members})\"\n", "");
    let results = results(&campaign(&alone), |_, workload, repetition| {
        headline(workload, 100e6 + f64::from(repetition))
    });
    let report = report_of(&results);
    check(&report);
    assert!(
        report.answer[0].starts_with("The best throughput of single is 95.4 MiB/s"),
        "{:?}",
        report.answer
    );
    let numbers = report.tables().find(|table| table.id == "percent").unwrap();
    assert_eq!(numbers.columns.len(), 2);
    assert!(!report.sections.iter().any(|section| section.id == "overview"));
}

#[test]
fn it_says_how_to_run_it_again() {
    let results = results(&campaign(SMALL), |_, workload, _| headline(workload, 1e6));
    let report = build_report(&analyse(&results), &results, Path::new("my results"));
    assert_eq!(
        report.again[0],
        "braid lab resume 'my results' --destroy /dev/sda --destroy /dev/sdb"
    );
    let reading = SMALL.replace("op = [\"read\", \"write\"]", "op = \"read\"");
    let mut reading = campaign(&reading);
    reading.fill = false;
    let reading = fixture::results(&reading, |_, workload, _| headline(workload, 1e6));
    assert!(!report_of(&reading).again[0].contains("--destroy"));
}

fn gap_of(datum: &Datum<Spread>) -> Option<Gap> {
    match datum {
        Datum::Value(_) => None,
        Datum::Gap(gap) => Some(*gap),
    }
}
