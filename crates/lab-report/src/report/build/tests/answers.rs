//! Answers that are given, and those that are not.

use super::*;

/// The stripe does so many times the single member's reads and writes, with noise of up to `part`.
fn small(repetitions: u32, part: f64, reads: f64, writes: f64) -> Results {
    let mut plan = campaign(SMALL);
    plan.repetitions = repetitions;
    results(&plan, |subject, workload, repetition| {
        let factor = match (subject.name.as_str(), workload.settings.word("op")) {
            ("stripe", "read") => reads,
            ("stripe", _) => writes,
            _ => 1.0,
        };
        let of_name = subject.name.as_bytes()[1].into();
        let seed = [of_name, workload.label().len() as u64, repetition.into()];
        headline(workload, 100e6 * factor * noise(part, &seed))
    })
}

fn answer(results: &Results) -> Vec<String> {
    let report = build_report(&analyse_as(results, &[]), results, Path::new("results"));
    check(&report);
    report.answer
}

#[test]
fn a_small_campaign_reads_well() {
    let text = text_of(&report_of(&small(5, 0.02, 1.9, 1.0)));
    assert!(text.trim() == include_str!("small.txt").trim(), "small.txt is to be:\n{text}");
}

#[test]
fn a_winner_is_named_with_its_merits_and_what_it_costs() {
    let said = answer(&small(5, 0.01, 3.1, 0.5));
    assert!(said[0].starts_with("It depends on the work. Take stripe: 3."), "{said:?}");
    assert!(said[0].contains(" times single in sequential reads (3."), "{said:?}");
    assert!(said[0].ends_with("; take single: the fastest in sequential writes."), "{said:?}");
    let said = answer(&small(5, 0.01, 3.1, 1.2));
    assert!(said[0].starts_with("Take stripe: 3.") && said[0].contains(" and 1."), "{said:?}");
    // Three repetitions are enough where the difference is far beyond the noise.
    assert!(answer(&small(3, 0.01, 1.9, 1.9))[0].starts_with("Take stripe: 1.9"));
}

#[test]
fn a_baseline_may_win() {
    let said = answer(&small(5, 0.01, 0.5, 0.5));
    let both = "sequential reads and sequential writes";
    assert_eq!(said[0], format!("Stay with single: the fastest in {both}."));
}

#[test]
fn what_would_tell_is_said_with_the_command() {
    let said = answer(&small(3, 0.1, 1.06, 1.07));
    let both = "The fastest in sequential reads and sequential writes is not decided: ";
    assert!(said[0].starts_with(both), "{said:?}");
    let of_two = [" % ahead of stripe in sequential ", " % ahead of single in sequential "];
    assert!(of_two.iter().any(|ahead| said[0].contains(ahead)), "{said:?}");
    assert!(said[0].contains(", and repetitions scatter by "), "{said:?}");
    assert!(said[0].contains("`braid lab resume results --repetitions "), "{said:?}");
    let alone = answer(&small(1, 0.1, 1.5, 1.5));
    assert!(alone[0].contains("1 repetition is there of at least 3"), "{alone:?}");
    assert!(alone[0].contains("--repetitions 4`"), "{alone:?}");
}

/// A run that ended early needs no more repetitions, and a lead without a winner none at all.
#[test]
fn no_repetitions_are_promised_in_vain() {
    let mut ended = small(5, 0.01, 1.9, 1.9);
    ended.trials.retain(|trial| trial.repetition < 3);
    let said = answer(&ended);
    assert!(said[0].contains("2 repetitions are there of at least 3 that name"), "{said:?}");
    assert!(said[0].ends_with("`braid lab resume results` goes on."), "{said:?}");
    let said = answer(&small(30, 0.02, 1.02, 1.02)).join(" ");
    assert!(!said.contains("--repetitions") && !said.contains("Take "), "{said:?}");
}

#[test]
fn equal_is_said_when_it_is_shown() {
    let said = answer(&small(8, 0.01, 1.0, 1.0));
    assert!(said[0].contains(" are alike, within ") && said[0].ends_with(" %."), "{said:?}");
}

#[test]
fn an_invalid_number_is_shown_and_counts_for_nothing() {
    let results = small(8, 0.01, 50.0, 1.0);
    let invalid = [("stripe", "sequential read 1M", Standing::Invalid)];
    let report = build_report(&analyse_as(&results, &invalid), &results, Path::new("results"));
    check(&report);
    assert!(report.answer.iter().all(|sentence| !sentence.contains("50")), "{:?}", report.answer);
    let value = cell(&report, "percent", "sequential read", "stripe");
    let percent = cell(&report, "percent", "sequential read", "stripe [%]");
    assert_eq!((value.tone, value.number, value.ends), (Tone::Invalid, None, None));
    assert!(value.text.starts_with("47"), "{value:?}");
    assert_eq!((percent.text.as_str(), percent.detail.as_str()), ("—", "invalid"));
    assert_eq!(report.trust.invalid, 1);
    assert_eq!(report.trust.reasons[0].cells, ["stripe: sequential read 1M"]);
    let places = report.picture.as_ref().unwrap().series[0].points.iter().map(|point| point.x);
    assert_eq!(places.collect::<Vec<_>>(), [1.0], "the first group has no bar");
    // An invalid baseline leaves no percent at all.
    let invalid = [("single", "sequential read 1M", Standing::Invalid)];
    let report = build_report(&analyse_as(&results, &invalid), &results, Path::new("results"));
    let percent = cell(&report, "percent", "sequential read", "stripe [%]");
    assert_eq!(percent.detail, "the baseline cannot be believed");
}

/// There is no winner where a faster one cannot be believed.
#[test]
fn nobody_is_named_beside_a_faster_one_that_is_not_believed() {
    let plan = SMALL.replace("[[job]]", "[[subject]]\nname = \"third\"\nstack = \"{b}\"\n[[job]]");
    let results = results(&campaign(&plan), |subject, workload, repetition| {
        let factor = match subject.name.as_str() {
            "third" => 9.0,
            "stripe" => 2.0,
            _ => 1.0,
        };
        headline(
            workload,
            factor * 1e8 * noise(0.01, &[repetition.into(), subject.name.len() as u64]),
        )
    });
    let judged = [("third", "sequential read 1M", Standing::Invalid)];
    let report = build_report(&analyse_as(&results, &judged), &results, Path::new("results"));
    let said = report.answer.join(" ");
    assert!(said.contains("No winner in sequential reads: one subject was faster than"), "{said}");
    assert!(said.contains("Take third: 9."), "writes are another matter: {said}");
}

#[test]
fn without_numbers_there_is_no_answer() {
    let plan = campaign(SMALL);
    for given in [|| Given::Failed("no such device"), || Given::Nothing, || Given::Impossible("no")]
    {
        let report = report_of(&results(&plan, |_, _, _| given()));
        check(&report);
        let said = report.answer.join(" ");
        assert!(said.contains("Nothing has been measured, so there is no answer."), "{said}");
    }
    let failed = report_of(&results(&plan, |_, _, _| Given::Failed("no such device")));
    assert!(failed.trust.doubts().any(|doubt| doubt.why == "no such device"), "{:?}", failed.trust);
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
    assert!(report.answer[0].contains("on single: 95.4 MiB/s"), "{:?}", report.answer);
    assert_eq!(cell(&report, "answer", "single", "sequential reads").text, "95.4 MiB/s");
    let numbers = report.tables().find(|table| table.id == "percent").unwrap();
    assert_eq!(numbers.columns.len(), 2);
}

#[test]
fn it_says_how_to_run_it_again() {
    let results = small(3, 0.01, 1.0, 1.0);
    let report = build_report(&analyse(&results), &results, Path::new("my results"));
    assert_eq!(
        cell(&report, "again", "go on", "command").text,
        "braid lab resume 'my results' --destroy /dev/sda --destroy /dev/sdb"
    );
    let reading = SMALL.replace("op = [\"read\", \"write\"]", "op = \"read\"");
    let mut reading = campaign(&reading);
    reading.fill = false;
    let reading = fixture::results(&reading, |_, workload, _| headline(workload, 1e6));
    assert!(!cell(&report_of(&reading), "again", "go on", "command").text.contains("--destroy"));
}

/// Programs get numbers with their units, and no texts of a page.
#[test]
fn data_is_data() {
    let results = small(5, 0.01, 1.9, 1.0);
    let analysis = analyse_as(&results, &[]);
    let report = build_report(&analysis, &results, Path::new("results"));
    let data = crate::report::report_data(&report, &analysis, &results, Path::new("results"));
    assert_eq!(data["output_version"], 4);
    assert_eq!(data["cells"].as_array().unwrap().len(), 4);
    let cell = &data["cells"][1];
    assert_eq!(
        (cell["subject"].as_str(), cell["verdict"].as_str()),
        (Some("stripe"), Some("better"))
    );
    assert_eq!(cell["metrics"]["throughput"]["unit"], "B/s");
    assert!((cell["against_baseline"]["times"].as_f64().unwrap() - 1.9).abs() < 0.05);
    assert_eq!(data["contests"][0]["outcome"]["winner"], "stripe");
    assert_eq!(data["kinds"][0]["against_baseline"][0]["subject"], "stripe");
}
