use super::*;
use crate::campaign::Campaign;
use crate::fixture::{Given, campaign, headline, noise, results};

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
fn cells_of_one_run_and_differing_systems_are_named() {
    let plan = plan(3);
    let first = run(&plan, 1, 0.02, 1.0);
    let mut second = results(&plan, |subject, workload, _| match subject.name.as_str() {
        "stripe" => Given::Failed("no such device"),
        _ => headline(workload, 100e6),
    });
    second.sessions[0].environment.kernel = "Linux 6.12.0 x86_64".to_owned();
    second.campaign.runtime_s = 99.0;
    let found = compare(&first, &second);
    assert_eq!(found.only_first.len(), 4);
    assert!(found.only_second.is_empty());
    assert!(found.environment[0].starts_with("kernel"), "{:?}", found.environment);
    assert_eq!(found.settings, ["runtime: 10 s and 99 s"]);
    let report = found.to_report();
    assert!(report.answer[0].contains("a change may come from that alone"), "{:?}", report.answer);
    let back: serde_json::Value = serde_json::from_str(&found.render_json().unwrap()).unwrap();
    assert_eq!(back["output_version"], 1);
    assert_eq!(back["cells"].as_array().unwrap().len(), 4);
    assert_eq!(back["cells"][0]["change"], "same");
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
