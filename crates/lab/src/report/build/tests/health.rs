//! What a lost member costs is the first thing that is said.

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
fn each_state_is_told_in_percent_of_the_healthy_one() {
    let results = states();
    let report = build_report(&analyse_as(&results, &[]), &results, Path::new("results"));
    check(&report);
    assert_eq!(
        report.answer[0],
        "five does 50.0 % of its healthy speed while degraded (range of 3 repetitions: 50.0 to \
         50.0), 25.0 % while rebuilding (range of 3 repetitions: 25.0 to 25.0) and 80.0 % while \
         scrubbing (range of 3 repetitions: 80.0 to 80.0)."
    );
    assert!(report.answer[1].starts_with("ten does 50.0 % of its healthy speed"), "{report:?}");
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
    let said = &report.answer[0];
    assert!(!said.contains("25.0"), "{said}");
    assert!(said.contains("; rebuilding has no number that can be believed"), "{said}");
    assert!(said.ends_with(", but something speaks against these numbers."), "{said}");
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
    let label = &analyse(&results).workloads[0].label;
    let start = format!("In \"{label}\" five did 40.0 % of its healthy speed while degraded (");
    assert!(said.starts_with(&start), "{said}");
    for part in ["20.0 % while rebuilding", "80.0 % while scrubbing", "100 % while whole again"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!report.answer.iter().any(|said| said.starts_with("The best ")), "{:?}", report.answer);
}
