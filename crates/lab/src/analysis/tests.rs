use super::*;
use crate::environment::read_environment;
use crate::matrix::plan_trials;
use crate::preset::quick_campaign;
use crate::stats::Verdict;

fn campaign() -> Campaign {
    quick_campaign("ram(1G)", &[("two".to_owned(), "raid0(ram(1G), ram(1G))".to_owned())]).unwrap()
}

/// Throughput is 100 x repetition on the baseline and `factor` times that on the other.
fn trials(campaign: &Campaign, factor: f64) -> Vec<(StoredTrial, Vec<Sample>)> {
    plan_trials(campaign)
        .into_iter()
        .map(|trial| {
            let subject = &campaign.subjects[trial.cell.subject];
            let value =
                f64::from(trial.repetition) * 100.0 * if subject.baseline { 1.0 } else { factor };
            let kept = StoredTrial {
                number: trial.number,
                repetition: trial.repetition,
                subject: subject.name.clone(),
                workload: trial.cell.workload.label(),
                command: "fio".into(),
                started_unix_s: 0,
                duration_s: 1.0,
                region_bytes: 1,
                outcome: Outcome::Ok,
                raw: String::new(),
            };
            (kept, vec![Sample { metric: Metric::Throughput, value }])
        })
        .collect()
}

fn analysis(trials: &[(StoredTrial, Vec<Sample>)]) -> Analysis {
    let session = Session { started_unix_s: 5, environment: read_environment(Vec::new()) };
    let facts = SubjectFacts {
        name: "two".into(),
        size_bytes: None,
        members: crate::facts::place_members(&campaign().subjects[1].source),
        serve_command: None,
    };
    analyse(&campaign(), trials, &[session], &[facts])
}

#[test]
fn the_comparison_is_paired_by_repetition() {
    let analysis = analysis(&trials(&campaign(), 1.5));
    assert_eq!(analysis.groups.len(), 8);
    for group in &analysis.groups {
        let [baseline, two] = group.rows.as_slice() else { panic!("two subjects") };
        assert_eq!(baseline.ratio, None);
        let ratio = two.ratio.unwrap();
        assert_eq!((ratio.percent.low, ratio.percent.high), (150.0, 150.0));
        assert_eq!(ratio.verdict(), Verdict::Above);
        assert_eq!(two.get(Metric::Throughput).unwrap().median, 300.0);
        assert_eq!(two.throughputs, [150.0, 300.0, 450.0]);
    }
    assert_eq!(analysis.progress, (48, 48));
}

#[test]
fn a_failed_repetition_leaves_its_pair_out() {
    let mut trials = trials(&campaign(), 2.0);
    let (failed, samples) = &mut trials[0];
    failed.outcome = Outcome::Failed("broken".into());
    samples.clear();
    let (subject, workload) = (failed.subject.clone(), failed.workload.clone());
    let analysis = analysis(&trials);
    assert_eq!(analysis.failures.len(), 1);
    let group = analysis.groups.iter().find(|group| group.workload.label() == workload).unwrap();
    let row = group.rows.iter().find(|row| row.subject == subject).unwrap();
    assert_eq!(row.throughputs.len(), 2);
    assert_eq!(group.rows[1].ratio.unwrap().percent.median, 200.0);
    assert!(analysis.caveats[0].starts_with("1 of 48 trials are missing"));
}

#[test]
fn three_repetitions_are_called_what_they_are() {
    let caveats = analysis(&trials(&campaign(), 1.0)).caveats.join("\n");
    assert!(
        caveats.contains("the interval is the range")
            || caveats.contains("an interval is the range")
    );
    assert!(caveats.contains("chance of 25 %"), "{caveats}");
}

#[test]
fn members_in_memory_are_noted_in_table_and_page() {
    let analysis = analysis(&trials(&campaign(), 1.0));
    assert!(analysis.sharing[0].1.starts_with("Both members lie in this machine's memory"));
    let table = crate::report::render_table(&analysis, false);
    assert!(table.contains("! two: Both members lie"), "{table}");
    assert!(!table.contains('\u{1b}'), "no colour was asked for");
    let page = crate::report::render_html(&analysis, std::path::Path::new("/r")).unwrap();
    assert!(
        page.contains("Both members lie in this machine&#x27;s memory"),
        "the page has no note"
    );
}

#[test]
fn nothing_measured_is_no_reason_to_fail() {
    let analysis = analysis(&[]);
    let table = crate::report::render_table(&analysis, false);
    assert!(table.contains("not measured"), "{table}");
    crate::report::render_html(&analysis, std::path::Path::new("/r")).unwrap();
}

#[test]
fn the_page_needs_nothing_from_elsewhere_and_escapes_names() {
    let mut campaign = campaign();
    campaign.subjects[1].name = "<script>alert(1)</script>".into();
    let trials = trials(&campaign, 1.5);
    let analysis = analyse(&campaign, &trials, &[], &[]);
    let page = crate::report::render_html(&analysis, std::path::Path::new("/r")).unwrap();
    assert!(!page.contains("<script"));
    for foreign in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(foreign), "{foreign} in the page");
    }
}

#[test]
fn json_and_csv_hold_the_same_numbers() {
    let trials = trials(&campaign(), 1.5);
    let json = crate::report::render_json(&analysis(&trials)).unwrap();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["output_version"], 1);
    let two = &value["workloads"][0]["subjects"][1];
    assert_eq!(two["metrics"]["throughput"]["median"], 300.0);
    assert_eq!(two["throughput_of_baseline_percent"]["verdict"], "above");
    let csv = crate::report::render_csv(&trials);
    assert_eq!(csv.lines().count(), 1 + trials.len());
}

#[test]
fn differing_regions_are_told() {
    let mut trials = trials(&campaign(), 1.0);
    assert!(!analysis(&trials).caveats.join(" ").contains("differing extents"));
    for (trial, _) in trials.iter_mut().filter(|(trial, _)| trial.subject == "two") {
        trial.region_bytes = 1 << 20;
    }
    let caveats = analysis(&trials).caveats.join(" ");
    assert!(caveats.contains("single 1 B, two 1 MiB"), "{caveats}");
}
