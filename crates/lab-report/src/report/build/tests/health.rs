//! The cost of a lost member stands first in the answer.

use super::*;

const STATES: &str = r#"
name = "states"
repetitions = 3
[[subject]]
name = "five"
stack = "raid5(/dev/sda, /dev/sdb, /dev/sdc)"
baseline = true
[[subject]]
name = "ten"
stack = "raid10(/dev/sdd, /dev/sde)"
[[job]]
tool = "meter"
op = ["read", "write"]
health = ["healthy", "degraded", "rebuilding", "scrubbing"]
"#;

fn states() -> Results {
    results(&campaign(STATES), |subject, workload, repetition| {
        let of_healthy = match workload.setup.health {
            // A mirror writes as before.
            Health::Degraded if workload.settings.word("op") == "write" => 1.0,
            Health::Degraded => 0.5,
            Health::Rebuilding => 0.25,
            Health::Scrubbing => 0.8,
            _ => 1.0,
        };
        let rate = if subject.name == "five" { 3e8 } else { 1e8 };
        headline(workload, rate * of_healthy * noise(0.05, &[repetition.into()]))
    })
}

#[test]
fn each_state_is_told_against_the_healthy_one_reads_and_writes_apart() {
    let results = states();
    let report = build_report(&analyse_as(&results, &[]), &results, Path::new("results"));
    check(&report);
    assert_eq!(
        report.answer[0],
        "Of its healthy speed five does, degraded reads 0.50 (0.50 to 0.50) and writes 1.00 (1.00 to \
         1.00); rebuilding reads 0.25 (0.25 to 0.25) and writes 0.25 (0.25 to 0.25); scrubbing reads \
         0.80 (0.80 to 0.80) and writes 0.80 (0.80 to 0.80)."
    );
    assert!(report.answer[1].starts_with("Of its healthy speed ten does, degraded"), "{report:?}");
    let picture = report.picture.as_ref().unwrap();
    assert_eq!(picture.title, "Times the healthy speed");
    assert_eq!((picture.series.len(), picture.x.ticks.len()), (4, 3));
    assert_eq!(cell(&report, "health", "five", "degraded").text, "0.50");
    // Numbers that are not believed say nothing; doubtful ones are marked.
    let labels: Vec<String> = analyse(&results).workloads.iter().map(|w| w.label.clone()).collect();
    let judged: Vec<(&str, &str, Standing)> = labels
        .iter()
        .filter_map(|label| {
            match label {
                label if label.contains("rebuilding") => Some(Standing::Invalid),
                label if label.contains("degraded") => Some(Standing::Suspect),
                _ => None,
            }
            .map(|standing| ("five", label.as_str(), standing))
        })
        .collect();
    let report = build_report(&analyse_as(&results, &judged), &results, Path::new("results"));
    assert!(!report.answer[0].contains("rebuilding"), "{:?}", report.answer);
    assert_eq!(cell(&report, "health", "five", "degraded").tone, Tone::Suspect);
}

const STORY: &str = r#"
name = "story"
repetitions = 2
[[subject]]
name = "five"
stack = "raid5(/dev/sda, /dev/sdb, /dev/sdc)"
[[job]]
tool = "meter"
health = "story"
"#;

/// 4 s each at 100, 40, 20, 100, 80 and 100 MB/s.
#[test]
fn a_story_is_told_by_its_phases() {
    let results = results(&campaign(STORY), |_, _, repetition| {
        let rates = [100.0, 40.0, 20.0, 100.0, 80.0, 100.0];
        let scale = f64::from(repetition) * 1e6;
        let mut measured = fixture::measured(&[(Metric::Throughput, 73.0 * scale)]);
        measured = fixture::with_course(measured, &[], 0.0, 24);
        for series in &mut measured.series {
            for (place, point) in series.points.iter_mut().enumerate() {
                *point = ((place as u64 + 1) * 1000, rates[place / 4] * scale);
            }
        }
        let events = [
            (4.0, "member 2 failed"),
            (8.0, "recovery began"),
            (12.0, "recovery ended"),
            (16.0, "check began"),
            (20.0, "check ended"),
        ];
        Given::All(measured, events.map(|(at, what)| (at, what.to_owned())).to_vec())
    });
    let report = build_report(&analyse_as(&results, &[]), &results, Path::new("results"));
    check(&report);
    let said = &report.answer[0];
    assert!(said.starts_with("Of its healthy speed five does, degraded reads 0.40"), "{said}");
    for part in ["rebuilding reads 0.20", "scrubbing reads 0.80", "a recovery took 4.00 s"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(
        cell(&report, "rebuilds", "five", "recovery").text.starts_with("a recovery took 4.00 s")
    );
}

/// A trial that ends before its recovery says so, and gives no time.
#[test]
fn a_recovery_that_has_not_ended_is_told() {
    let results = results(
        &campaign(&STATES.replace("raid10(/dev/sdd, /dev/sde)", "raid1(/dev/sdd, /dev/sde)")),
        |_, workload, _| {
            let events = match workload.setup.health {
                Health::Rebuilding => vec![(1.0, "recovery began".to_owned())],
                _ => Vec::new(),
            };
            Given::All(fixture::measured(&[(Metric::Throughput, 1e8)]), events)
        },
    );
    let report = build_report(&analyse_as(&results, &[]), &results, Path::new("results"));
    let said = &report.answer[0];
    assert!(said.ends_with("; no recovery had ended after 9.00 s."), "{said}");
}
