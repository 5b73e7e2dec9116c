use super::*;
use crate::fixture::{Given, campaign, headline, noise, predicted, results};
use braid_lab::campaign::Campaign;
use braid_lab::evidence::Moved;
use braid_lab::matrix::Workload;

const PLAN: &str = r#"
name = "plan"
repetitions = 7
[[subject]]
name = "single"
path = "/dev/sda"
baseline = true
[[subject]]
name = "stripe"
stack = "raid0(chunk=64K, /dev/sda, /dev/sdb)"
[[job]]
tool = "meter"
op = ["read", "write"]
pattern = ["seq", "rand"]
"#;

fn plan(repetitions: u32) -> Campaign {
    Campaign { repetitions, ..campaign(PLAN) }
}

/// A run whose numbers scatter by `part`, and whose stripe is multiplied by `stripe`.
fn run(campaign: &Campaign, seed: u64, part: f64, stripe: f64) -> Results {
    let mut counter = 0;
    results(campaign, |subject, workload, _| {
        counter += 1;
        let factor = if subject.name == "stripe" { stripe } else { 1.0 };
        headline(workload, 100e6 * factor * noise(part, &[seed, counter]))
    })
}

fn compare(a: &Results, b: &Results) -> Comparison {
    compare_runs(a, b, 0.05)
}

#[test]
fn a_planted_regression_is_found_and_is_the_only_one() {
    for repetitions in [3, 7] {
        let plan = plan(repetitions);
        let found = compare(&run(&plan, 1, 0.02, 1.0), &run(&plan, 2, 0.02, 0.8));
        assert!(found.regression);
        assert_eq!(found.count(Change::Regression), 4, "of {repetitions}");
        let worse = |cell: &&CellChange| cell.change == Change::Regression;
        assert!(found.cells.iter().filter(worse).all(|cell| cell.subject == "stripe"));
        assert!((found.cells[0].percent - 80.0).abs() < 4.0, "{:?}", found.cells[0]);
        assert!(found.cells.iter().filter(worse).all(|cell| cell.against_baseline));
    }
}

/// A run in which the whole machine is at `machine`, and each cell drifts by some of its own.
fn drifting(campaign: &Campaign, seed: u64, machine: f64, drift: f64) -> Results {
    let mut counter = 0;
    results(campaign, |subject, workload, _| {
        counter += 1;
        let of_cell = [seed, subject.name.len() as u64, braid_seed::mix(&text(&workload.label()))];
        let factor = machine * noise(drift, &of_cell);
        headline(workload, 100e6 * factor * noise(0.02, &[seed, counter]))
    })
}

fn text(label: &str) -> Vec<u64> {
    label.bytes().map(u64::from).collect()
}

/// The same thing on a machine that is a fifth slower, and whose cells drift by up to 10 % each:
/// repetitions of one run are alike, and the runs differ.
#[test]
fn a_machine_that_drifts_is_no_regression() {
    for repetitions in [3, 7] {
        let plan = plan(repetitions);
        let mut alarms = 0;
        for pair in 0..200 {
            let first = drifting(&plan, 100 + pair, 1.0, 0.1);
            let found = compare(&first, &drifting(&plan, 7_000 + pair, 0.8, 0.1));
            alarms += usize::from(found.regression);
            assert!((60.0..105.0).contains(&found.baseline_percent.unwrap()), "{found:?}");
        }
        assert!(alarms <= 14, "{alarms} of 200 with {repetitions} repetitions");
    }
}

/// Without its baseline nothing tells a machine from what it measures.
#[test]
fn without_its_baseline_a_number_is_compared_as_it_is() {
    let without = |seed, stripe: f64| {
        let mut counter = 0;
        results(&plan(7), |subject, workload, _| {
            counter += 1;
            match subject.baseline {
                true => Given::Failed("gone"),
                false => headline(workload, 1e8 * stripe * noise(0.02, &[seed, counter])),
            }
        })
    };
    let found = compare(&without(1, 1.0), &without(2, 0.5));
    assert_eq!((found.count(Change::Regression), found.baseline_percent), (4, None));
    assert!(found.cells.iter().all(|cell| !cell.against_baseline));
}

/// 200 pairs of equal runs of 8 cells; noise far above the threshold, so that only the tests keep
/// them apart.
#[test]
fn equal_runs_rarely_differ() {
    for (repetitions, part) in [(7, 0.2), (3, 0.2), (3, 0.03)] {
        let plan = plan(repetitions);
        let alarms = (0..200)
            .filter(|pair| {
                let first = run(&plan, 1000 + pair, part, 1.0);
                compare(&first, &run(&plan, 9000 + pair, part, 1.0)).regression
            })
            .count();
        assert!(alarms <= 10, "{alarms} of 200 with {repetitions} repetitions and noise {part}");
    }
}

#[test]
fn times_are_better_when_they_are_less() {
    let timed = PLAN.replace("pattern =", "unit = \"seconds\"\npattern =");
    let plan = campaign(&timed);
    let found = compare(&run(&plan, 1, 0.02, 1.0), &run(&plan, 2, 0.02, 0.8));
    assert_eq!((found.count(Change::Regression), found.count(Change::Improvement)), (0, 4));
    let found = compare(&run(&plan, 1, 0.02, 1.0), &run(&plan, 2, 0.02, 1.25));
    assert_eq!((found.count(Change::Regression), found.count(Change::Improvement)), (4, 0));
}

/// The usual difference between two runs of the same subject, and differences below the threshold.
#[test]
fn what_is_small_is_no_regression() {
    let plan = plan(12);
    let run_at = |factor| compare(&run(&plan, 1, 0.001, 1.0), &run(&plan, 2, 0.001, factor));
    assert!(!run_at(0.97).regression);
    assert!(!run_at(0.90).regression, "within the drift from run to run");
    assert!(run_at(0.80).regression);
    let (first, second) = (run(&plan, 1, 0.001, 1.0), run(&plan, 2, 0.001, 0.90));
    assert!(!compare(&first, &second).regression);
    assert!(compare_runs(&first, &second, 0.0).regression);
}

#[test]
fn one_repetition_says_nothing() {
    let plan = plan(1);
    let found = compare(&run(&plan, 1, 0.001, 1.0), &run(&plan, 2, 0.001, 0.1));
    assert_eq!(found.count(Change::TooFew), 8);
    assert!(!found.regression);
    let text = found.render_text(false);
    assert!(text.contains("it takes at least two repetitions on both sides"), "{text}");
}

#[test]
fn differing_systems_are_named() {
    let plan = plan(3);
    let first = run(&plan, 1, 0.02, 1.0);
    let mut second = run(&plan, 1, 0.02, 1.0);
    second.sessions[0].environment.kernel = "Linux 6.12.0 x86_64".to_owned();
    second.planned.campaign.runtime_s = 99.0;
    let found = compare(&first, &second);
    assert!(!found.regression);
    assert!(found.environment[0].starts_with("kernel"), "{:?}", found.environment);
    assert_eq!(found.settings, ["runtime: 10 s and 99 s"]);
    let report = found.to_report();
    assert!(report.answer[0].contains("a change may come from that alone"), "{:?}", report.answer);
    let back: serde_json::Value = serde_json::from_str(&found.render_json().unwrap()).unwrap();
    assert_eq!(back["output_version"], 4);
    assert_eq!(back["cells"].as_array().unwrap().len(), 8);
    assert_eq!(back["cells"][0]["change"], "same");
}

/// A run in which the stripe is given something else than numbers.
fn broken(campaign: &Campaign, given: impl Fn(&Workload, u32) -> Given) -> Results {
    results(campaign, |subject, workload, repetition| match subject.name.as_str() {
        "stripe" => given(workload, repetition),
        _ => headline(workload, 100e6),
    })
}

/// A cell that no longer works is not "no regression": each such cell is named with its own reason.
#[test]
fn what_has_no_number_any_more_is_worse() {
    let plan = plan(3);
    let works = run(&plan, 1, 0.02, 1.0);
    let crashed = broken(&plan, |_, _| Given::Failed("it crashed"));
    let found = compare(&works, &crashed);
    assert!(found.regression && found.not_compared.is_empty());
    assert_eq!((found.lost.len(), found.cells.len()), (4, 4));
    let (cell, why) = &found.lost[0];
    assert!(cell.starts_with("stripe: ") && why == "failed in the second run: it crashed");
    let text = found.render_text(false);
    assert!(!text.contains("No regression"), "{text}");
    assert!(text.contains("No longer there: 4 numbers, such as stripe: "), "{text}");
    assert!(text.contains("failed in the second run: it crashed"), "{text}");
    let back: serde_json::Value = serde_json::from_str(&found.render_json().unwrap()).unwrap();
    assert_eq!((&back["regression"], &back["lost"][0][1]), (&true.into(), &why.as_str().into()));

    let why = |second: &Results| {
        let found = compare(&works, second);
        assert!(found.regression);
        found.lost[0].1.clone()
    };
    assert_eq!(
        why(&broken(&plan, |_, _| Given::Impossible("no xfs"))),
        "impossible in the second run: no xfs"
    );
    assert_eq!(why(&broken(&plan, |_, _| Given::Nothing)), "not measured yet in the second run");
    assert_eq!(
        why(&broken(&plan, |_, _| Given::Numbers(vec![(Metric::Seconds, 1.0)]))),
        "without a number above 0 in the second run"
    );
    let nothing = why(&broken(&plan, |workload, _| headline(workload, 0.0)));
    assert_eq!(nothing, "without a number above 0 in the second run");
    // One repetition of three is still a number.
    let once = broken(&plan, |workload, repetition| match repetition {
        1 => headline(workload, 100e6),
        _ => Given::Failed("it crashed"),
    });
    assert!(compare(&works, &once).lost.is_empty());
    // The other way round nothing got worse, and the reason is the true one.
    let mended = compare(&crashed, &works);
    assert!(!mended.regression);
    assert_eq!(mended.not_compared[0].1, "failed in the first run: it crashed");
    assert!(mended.to_report().answer[0].starts_with("No regression"));
}

/// Bytes that never reached the device: the second run's reads came out of memory.
#[test]
fn a_number_that_cannot_be_believed_any_more_is_lost() {
    let plan = plan(3);
    let first = run(&plan, 1, 0.02, 1.0);
    let mut second = run(&plan, 1, 0.02, 1.0);
    let stripe = |trial: &&mut braid_lab::store::StoredTrial| trial.subject == "stripe";
    for trial in second.trials.iter_mut().filter(stripe) {
        let bytes = braid_lab::metric::Sample { metric: Metric::BytesRead, value: 1e10 };
        trial.measured.samples.push(bytes);
        trial.evidence.target = Some(Moved { read_bytes: 1 << 20, ..Moved::default() });
    }
    let found = compare(&first, &second);
    assert_eq!(found.lost.len(), 4, "{found:?}");
    assert!(found.regression);
    assert!(found.lost[0].1.starts_with("invalid in the second run: "), "{:?}", found.lost);
    let found = compare(&second, &first);
    assert!(!found.regression);
    let (_, why) = &found.not_compared[0];
    assert!(why.starts_with("invalid in the first run: "), "{why}");
    let found = compare(&second, &second);
    assert_eq!((found.lost.len(), found.not_compared.len()), (0, 4));
}

/// A campaign that no longer has the stripe has not lost it.
#[test]
fn what_is_not_in_the_other_campaign_is_only_in_one() {
    let one = PLAN.replace(
        "[[subject]]\nname = \"stripe\"\nstack = \"raid0(chunk=64K, /dev/sda, /dev/sdb)\"\n",
        "",
    );
    let (both, one) = (run(&plan(3), 1, 0.02, 1.0), run(&campaign(&one), 1, 0.02, 1.0));
    let found = compare(&both, &one);
    assert_eq!((found.not_compared.len(), found.lost.len()), (4, 0));
    assert!(!found.regression && found.not_compared[0].1 == "only in the first run");
    assert_eq!(compare(&one, &both).not_compared[3].1, "only in the second run");
}

#[test]
fn the_order_of_the_runs_matters() {
    let plan = plan(7);
    let (slow, fast) = (run(&plan, 1, 0.01, 0.5), run(&plan, 2, 0.01, 1.0));
    assert_eq!(compare(&slow, &fast).count(Change::Improvement), 4);
    assert_eq!(compare(&fast, &slow).count(Change::Regression), 4);
}

#[test]
fn nothing_in_common_is_said() {
    let plan = plan(3);
    let mut other = plan.clone();
    other.jobs[0].settings.insert(
        "block_size".to_owned(),
        vec![braid_lab::settings::Value::Size(braid_stack::ByteSize(4096))],
    );
    let found = compare(&run(&plan, 1, 0.02, 1.0), &run(&other, 2, 0.02, 1.0));
    assert!(found.cells.is_empty() && !found.regression);
    assert_eq!(found.not_compared.len(), 16);
    assert!(found.to_report().answer[0].contains("no number in common"));
}

/// A prediction beside a measurement: which is which is said, and nothing has become worse.
#[test]
fn a_prediction_is_no_earlier_run() {
    let once = predicted(run(&plan(1), 1, 0.001, 1.0));
    let found = compare(&once, &run(&plan(5), 2, 0.001, 0.7));
    assert_eq!(found.predicted, [true, false]);
    assert!(!found.regression && found.cells.iter().all(|cell| !cell.against_baseline));
    let beyond: Vec<&CellChange> =
        found.cells.iter().filter(|cell| cell.change == Change::Regression).collect();
    assert_eq!(beyond.len(), 4, "{beyond:?}");
    assert!(beyond.iter().all(|cell| cell.subject == "stripe"));
    let text = found.render_text(false);
    for part in ["plan against plan (predicted)", "first, predicted", "second, measured"] {
        assert!(text.contains(part), "{part:?} is missing in {text}");
    }
    assert!(text.contains("Further apart: 4 of 8 numbers") && !text.contains("95 %"), "{text}");
    let near = compare(&once, &run(&plan(5), 2, 0.001, 0.9));
    assert!(near.render_text(false).contains("All 8 numbers are within that."));
}

/// A number that was only measured is not lost if it could not be predicted.
#[test]
fn a_prediction_loses_nothing() {
    let less = predicted(results(&plan(1), |subject, workload, _| match subject.name.as_str() {
        "single" => headline(workload, 1e6),
        _ => Given::Impossible("not predicted: too hard"),
    }));
    let found = compare(&run(&plan(5), 2, 0.001, 1.0), &less);
    assert!(found.lost.is_empty() && !found.regression);
    assert!(found.not_compared.iter().all(|(_, why)| why.contains("too hard")));
}
