//! One list of doubts, the gravest first.

use super::*;

fn rules(report: &Report) -> Vec<&str> {
    report.trust.reasons.iter().map(|reason| reason.rule.as_str()).collect()
}

#[test]
fn one_missing_trial_of_many_is_a_footnote() {
    let mut plan = campaign(SMALL);
    plan.repetitions = 40;
    let with_missing = |missing: u32| {
        let results = results(&plan, |subject, workload, repetition| match repetition {
            round if round <= missing && subject.name == "stripe" => Given::Failed("gone"),
            _ => headline(workload, 1e8 * noise(0.01, &[repetition.into()])),
        });
        report_of(&results)
    };
    let one = with_missing(1);
    let unfinished = |report: &Report| {
        report.trust.reasons.iter().find(|one| one.rule == "unfinished").map(|one| one.tone)
    };
    assert_eq!(unfinished(&one), Some(Tone::Plain), "{:?}", one.trust);
    assert!(!one.answer[0].contains("finished"), "{:?}", one.answer);
    assert_eq!(unfinished(&with_missing(20)), Some(Tone::Suspect));
}

#[test]
fn numbers_of_models_are_marked_and_a_busy_machine_does_not_doubt_them() {
    let plan = SMALL
        .replace("/dev/sda", "model(usb-flash, size=1G)")
        .replace("/dev/sdb", "model(usb-flash, size=1G, bus=b)");
    let mut modelled = results(&campaign(&plan), |_, workload, _| headline(workload, 1e7));
    let mut real = results(&campaign(SMALL), |_, workload, _| headline(workload, 1e7));
    for trial in modelled.trials.iter_mut().chain(&mut real.trials) {
        trial.evidence.cpu_count = Some(2);
        trial.evidence.cpu_busy = Some(1.0);
        trial.evidence.tool_cores = Some(1.0);
    }
    let report = report_of(&modelled);
    assert!(rules(&report).contains(&"modelled"), "{:?}", report.trust);
    assert!(!rules(&report).contains(&"cpu-bound-client"), "{:?}", report.trust);
    let real = report_of(&real);
    assert!(rules(&real).contains(&"cpu-bound-client") && !rules(&real).contains(&"modelled"));
}

#[test]
fn what_is_impossible_is_called_so() {
    let results = results(&campaign(SMALL), |subject, workload, _| match subject.baseline {
        true => Given::Impossible("no room"),
        false => headline(workload, 1e8),
    });
    let report = report_of(&results);
    let percent = cell(&report, "percent", "sequential read", "stripe [%]");
    assert_eq!(percent.detail, "of the baseline: impossible: no room");
    assert!(rules(&report).contains(&"impossible"), "{:?}", report.trust);
}

#[test]
fn the_gravest_doubt_comes_first() {
    let results = results(&campaign(SMALL), |_, workload, _| headline(workload, 1e8));
    let judged = [
        ("single", "sequential read 1M", Standing::Suspect),
        ("stripe", "sequential read 1M", Standing::Invalid),
    ];
    let report = build_report(&analyse_as(&results, &judged), &results, Path::new("results"));
    let tones: Vec<Tone> = report.trust.reasons.iter().map(|reason| reason.tone).collect();
    assert_eq!(tones[..2], [Tone::Invalid, Tone::Suspect]);
}
