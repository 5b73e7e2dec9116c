use super::*;
use crate::campaign::Campaign;
use crate::evidence::Moved;
use crate::fixture::{Given, campaign, headline, noise, results};
use crate::matrix::Workload;

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
    compare_runs(a, b, &CompareOptions::default())
}

#[test]
fn a_planted_regression_is_found_and_is_the_only_one() {
    for repetitions in [3, 7] {
        let plan = plan(repetitions);
        let found = compare(&run(&plan, 1, 0.02, 1.0), &run(&plan, 2, 0.02, 0.8));
        assert!(found.has_regression());
        assert_eq!(found.count(Change::Regression), 4, "of {repetitions}");
        let worse = |cell: &&CellChange| cell.change == Change::Regression;
        assert!(found.cells.iter().filter(worse).all(|cell| cell.subject == "stripe"));
        assert!((found.cells[0].percent - 80.0).abs() < 4.0, "{:?}", found.cells[0]);
        let rule = if repetitions == 3 { Rule::Ranges } else { Rule::Test };
        assert!(found.cells.iter().all(|cell| cell.rule == rule));
    }
}

/// Eight cells: the gap must be more than 1.5 · ∛8 = 3 times the wider range, and the medians more
/// than 10 % apart. `docs/statistics.md` has the first of these.
#[test]
fn ranges_decide_by_their_gap() {
    let plan = plan(3);
    let of = |second: [f64; 3], first: [f64; 3]| {
        let given = |values: [f64; 3]| {
            results(&plan, |subject, workload, repetition| {
                let is_it = subject.name == "stripe" && workload.label() == "sequential read 1M";
                let value = if is_it { values[repetition as usize - 1] } else { 100.0 };
                headline(workload, value * 1e6)
            })
        };
        let found = compare(&given(first), &given(second));
        assert!(found.cells.iter().all(|cell| cell.rule == Rule::Ranges));
        assert_eq!(found.cells.len(), 8);
        (found.count(Change::Regression), found.count(Change::Improvement))
    };
    let first = [100.0, 101.0, 102.0];
    assert_eq!(of([90.0, 90.5, 91.0], first), (1, 0));
    assert_eq!(of(first, [90.0, 90.5, 91.0]), (0, 1));
    // Gaps of 9 and of 9.1, wider ranges of 3 each.
    assert_eq!(of([88.0, 89.0, 91.0], [100.0, 101.0, 103.0]), (0, 0));
    assert_eq!(of([87.9, 88.9, 90.9], [100.0, 101.0, 103.0]), (1, 0));
    // Far apart for their ranges, and by less than 10 %.
    assert_eq!(of([91.0, 91.0, 91.1], [101.0, 101.0, 101.1]), (0, 0));
    assert_eq!(of([90.0, 90.0, 90.1], [101.0, 101.0, 101.1]), (1, 0));
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
                compare(&first, &run(&plan, 9000 + pair, part, 1.0)).has_regression()
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

#[test]
fn what_is_proven_but_small_is_no_regression() {
    let plan = plan(12);
    let (first, second) = (run(&plan, 1, 0.001, 1.0), run(&plan, 2, 0.001, 0.97));
    let found = compare(&first, &second);
    assert!(!found.has_regression());
    let stripe = found.cells.iter().find(|cell| cell.subject == "stripe").unwrap();
    assert!(stripe.adjusted_p < 0.001 && stripe.interval.1 < 98.0, "{stripe:?}");
    let strict = CompareOptions { threshold: 0.02, ..CompareOptions::default() };
    assert!(compare_runs(&first, &second, &strict).has_regression());
}

#[test]
fn two_repetitions_say_nothing() {
    let plan = plan(2);
    let found = compare(&run(&plan, 1, 0.001, 1.0), &run(&plan, 2, 0.001, 0.1));
    assert_eq!(found.count(Change::TooFew), 8);
    assert!(!found.has_regression());
    let text = found.render_text(false);
    assert!(text.contains("it takes at least 3 repetitions on both sides"), "{text}");
}

#[test]
fn differing_systems_are_named() {
    let plan = plan(3);
    let first = run(&plan, 1, 0.02, 1.0);
    let mut second = run(&plan, 1, 0.02, 1.0);
    second.sessions[0].environment.kernel = "Linux 6.12.0 x86_64".to_owned();
    second.planned.campaign.runtime_s = 99.0;
    let found = compare(&first, &second);
    assert!(!found.has_regression());
    assert!(found.environment[0].starts_with("kernel"), "{:?}", found.environment);
    assert_eq!(found.settings, ["runtime: 10 s and 99 s"]);
    let report = found.to_report();
    assert!(report.answer[0].contains("a change may come from that alone"), "{:?}", report.answer);
    let back: serde_json::Value = serde_json::from_str(&found.render_json().unwrap()).unwrap();
    assert_eq!(back["output_version"], 2);
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

/// What works no more is no "no regression": each such cell is named with its own reason.
#[test]
fn what_has_no_number_any_more_is_worse() {
    let plan = plan(3);
    let works = run(&plan, 1, 0.02, 1.0);
    let crashed = broken(&plan, |_, _| Given::Failed("it crashed"));
    let found = compare(&works, &crashed);
    assert!(found.has_regression() && found.only_first.is_empty());
    assert_eq!((found.lost.len(), found.cells.len()), (4, 4));
    let (cell, why) = &found.lost[0];
    assert!(cell.starts_with("stripe: ") && why == "failed in the second run: it crashed");
    let text = found.render_text(false);
    assert!(!text.contains("No regression"), "{text}");
    assert!(text.contains("4 numbers are there no more: stripe: "), "{text}");
    assert!(text.contains("failed in the second run: it crashed"), "{text}");
    let back: serde_json::Value = serde_json::from_str(&found.render_json().unwrap()).unwrap();
    assert_eq!((&back["regression"], &back["lost"][0][1]), (&true.into(), &why.as_str().into()));

    let why = |second: &Results| {
        let found = compare(&works, second);
        assert!(found.has_regression());
        found.lost[0].1.clone()
    };
    assert_eq!(
        why(&broken(&plan, |_, _| Given::Impossible("no xfs"))),
        "impossible in the second run: no xfs"
    );
    assert_eq!(why(&broken(&plan, |_, _| Given::Nothing)), "not measured yet in the second run");
    assert_eq!(
        why(&broken(&plan, |_, _| Given::Numbers(vec![(Metric::Seconds, 1.0)]))),
        "without a number in the second run"
    );
    let nothing = why(&broken(&plan, |workload, _| headline(workload, 0.0)));
    assert!(nothing.starts_with("without a ratio in the second run: "), "{nothing}");
    // One repetition of three is still a number.
    let once = broken(&plan, |workload, repetition| match repetition {
        1 => headline(workload, 100e6),
        _ => Given::Failed("it crashed"),
    });
    assert!(compare(&works, &once).lost.is_empty());
    // The other way round nothing got worse, and the reason is the true one.
    let mended = compare(&crashed, &works);
    assert!(!mended.has_regression() && mended.only_second.is_empty());
    assert_eq!(mended.left_out[0].1, "failed in the first run: it crashed");
    assert!(mended.to_report().answer[0].starts_with("No regression"));
}

/// Bytes that never reached the device: the second run's reads came out of memory.
#[test]
fn a_number_that_cannot_be_believed_any_more_is_lost() {
    let plan = plan(3);
    let first = run(&plan, 1, 0.02, 1.0);
    let mut second = run(&plan, 1, 0.02, 1.0);
    let stripe = |trial: &&mut crate::store::StoredTrial| trial.subject == "stripe";
    for trial in second.trials.iter_mut().filter(stripe) {
        let bytes = crate::metric::Sample { metric: Metric::BytesRead, value: 1e10 };
        trial.measured.samples.push(bytes);
        trial.evidence.target = Some(Moved { read_bytes: 1 << 20, ..Moved::default() });
    }
    let found = compare(&first, &second);
    assert_eq!(found.lost.len(), 4, "{found:?}");
    assert!(found.has_regression());
    assert!(found.lost[0].1.starts_with("invalid in the second run: "), "{:?}", found.lost);
    let found = compare(&second, &first);
    assert!(!found.has_regression());
    assert!(found.left_out[0].1.starts_with("invalid in the first run: "), "{:?}", found.left_out);
    let found = compare(&second, &second);
    assert_eq!((found.lost.len(), found.left_out.len()), (0, 4));
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
    assert_eq!((found.only_first.len(), found.lost.len()), (4, 0));
    assert!(!found.has_regression());
    assert_eq!(compare(&one, &both).only_second.len(), 4);
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
        vec![crate::settings::Value::Size(braid_stack::ByteSize(4096))],
    );
    let found = compare(&run(&plan, 1, 0.02, 1.0), &run(&other, 2, 0.02, 1.0));
    assert!(found.cells.is_empty() && !found.has_regression());
    assert_eq!((found.only_first.len(), found.only_second.len()), (8, 8));
    assert!(found.to_report().answer[0].contains("no number in common"));
}
