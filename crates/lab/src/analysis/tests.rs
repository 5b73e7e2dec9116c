use super::*;
use crate::fixture::{Given, campaign, headline, noise, results};
use crate::stats::IntervalKind;

const PLAN: &str = r#"
name = "plan"
repetitions = 6
[[subject]]
name = "disk 1"
path = "/dev/sda"
baseline = true
[[subject]]
name = "disk 2"
path = "/dev/sdb"
baseline = true
[[subject]]
name = "stripe"
stack = "raid0(chunk=64K, /dev/sda, /dev/sdb)"
[[job]]
tool = "meter"
unit = ["rate", "seconds"]
"#;

/// Disk 1 does 100, disk 2 does 200, the stripe does 300; in seconds as well as in rates.
fn plan() -> Results {
    results(&campaign(PLAN), |subject, workload, _| {
        let value = match subject.name.as_str() {
            "disk 1" => 100.0,
            "disk 2" => 200.0,
            _ => 300.0,
        };
        headline(workload, value)
    })
}

/// Judged by hand: these cells are invalid.
fn judged(results: &Results, invalid: &[(&str, &str)]) -> Analysis {
    let mut judgement = Judgement::default();
    for (subject, workload) in invalid {
        let finding = Finding {
            rule: "page-cache",
            standing: Standing::Invalid,
            why: "the tool read 10 GiB and the disk 1 MiB".to_owned(),
            action: "set direct".to_owned(),
        };
        let verdict = TrustVerdict { standing: Standing::Invalid, findings: vec![finding] };
        judgement.cells.insert(((*subject).to_owned(), (*workload).to_owned()), verdict);
    }
    analyse_judged(results, plan_workloads(&results.campaign), judgement)
}

#[test]
fn the_baseline_is_the_average_and_seconds_are_better_when_less() {
    let analysis = analyse(&plan());
    assert_eq!(analysis.baselines, [0, 1]);
    let (rate, seconds) = (analysis.cell(0, 2), analysis.cell(1, 2));
    assert_eq!(rate.ratio.unwrap().paired.median, 200.0);
    assert_eq!((rate.outlook(), seconds.outlook()), (Some(Outlook::Better), Some(Outlook::Worse)));
    assert_eq!(rate.gain().unwrap().median, 2.0);
    assert_eq!(seconds.gain().unwrap().median, 0.5);
    assert!((analysis.cell(0, 0).ratio.unwrap().paired.median - 100.0 / 1.5).abs() < 1e-9);
    assert_eq!((analysis.done, analysis.planned), (36, 36));
}

#[test]
fn an_invalid_number_takes_no_part() {
    let results = plan();
    let label = plan_workloads(&results.campaign)[0].label();
    let of_stripe = judged(&results, &[("stripe", &label)]);
    let cell = of_stripe.cell(0, 2);
    assert!(cell.main().is_some() && cell.ratio.is_none() && !cell.is_usable());
    assert!(of_stripe.cell(1, 2).ratio.is_some());
    // Without one of its disks the average is another baseline.
    let of_baseline = judged(&results, &[("disk 2", &label)]);
    assert!(of_baseline.row(0).iter().all(|cell| cell.ratio.is_none()));
    assert!(of_baseline.row(1).iter().all(|cell| cell.ratio.is_some()));
    let overall = find_overall(&of_baseline).unwrap();
    assert_eq!(overall.workloads, [1]);
}

#[test]
fn states_say_why_there_is_nothing() {
    let mut campaign = campaign(PLAN);
    campaign.jobs[0].health = vec![crate::campaign::Health::Degraded];
    let results = results(&campaign, |_, workload, repetition| match repetition {
        1 if workload.headline() == Metric::Seconds => Given::Failed("gone"),
        2 if workload.headline() == Metric::Throughput => headline(workload, 5.0),
        _ => Given::Nothing,
    });
    let analysis = analyse(&results);
    assert!(matches!(&analysis.cell(0, 0).state, State::Impossible(_)));
    assert_eq!(analysis.cell(0, 2).state, State::Measured);
    assert_eq!(analysis.cell(1, 2).state, State::Failed("gone".to_owned()));
    assert_eq!((analysis.done, analysis.planned), (1, 12));
    assert!(analysis.is_unfinished());
    assert!(find_overall(&analysis).is_none());
}

#[test]
fn the_odd_repetition_is_named_and_counts() {
    let results = results(&campaign(PLAN), |_, workload, repetition| {
        let near = 100.0 + f64::from(repetition);
        headline(workload, if repetition == 4 { 20.0 } else { near })
    });
    let analysis = analyse(&results);
    let odd = &analysis.cell(0, 0).odd;
    assert_eq!(odd.iter().map(|odd| odd.repetition).collect::<Vec<_>>(), [4]);
    assert_eq!(analysis.cell(0, 0).values[&Metric::Throughput].len(), 6);
}

#[test]
fn a_value_of_zero_has_no_ratio_and_no_rank() {
    let results = results(&campaign(PLAN), |subject, workload, _| {
        headline(workload, if subject.name == "stripe" { 0.0 } else { 100.0 })
    });
    let analysis = analyse(&results);
    assert!(speeds(analysis.cell(0, 2)).is_none());
    let overall = find_overall(&analysis).unwrap();
    assert_eq!(
        (overall.contenders.as_slice(), overall.left_out.as_slice()),
        (&[0, 1][..], &[2][..])
    );
}

#[test]
fn pooling_is_geometric_and_by_repetition() {
    let results = results(&campaign(PLAN), |_, workload, repetition| {
        match (workload.headline(), repetition) {
            (Metric::Seconds, 6) => Given::Failed("gone"),
            (Metric::Seconds, _) => headline(workload, 25.0),
            _ => headline(workload, 100.0),
        }
    });
    let pooled = pooled_speed(&analyse(&results), 2, &[0, 1]);
    assert_eq!(pooled.keys().copied().collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert!(pooled.values().all(|speed| (speed - 2.0).abs() < 1e-9), "{pooled:?}");
}

/// Seven repetitions of three subjects are the fewest for a winner: 3 comparisons · 2 · ½⁷ = 4.7 %.
#[test]
fn a_winner_takes_repetitions() {
    for (repetitions, proven) in [(6, false), (7, true)] {
        let mut campaign = campaign(PLAN);
        campaign.repetitions = repetitions;
        campaign.jobs[0].settings.insert("unit".to_owned(), vec![Value::Word("rate".to_owned())]);
        let results = results(&campaign, |subject, workload, repetition| {
            let value = if subject.name == "stripe" { 300.0 } else { 100.0 };
            headline(workload, value * noise(0.01, &[repetition.into(), subject.name.len() as u64]))
        });
        let overall = find_overall(&analyse(&results)).unwrap();
        assert_eq!(overall.contest.can_decide(), proven);
        let winner = crate::stats::Standing::Winner(2);
        assert_eq!(overall.contest.standing == winner, proven);
        assert_eq!(overall.front_runners(), [(2, repetitions as usize)]);
    }
}

#[test]
fn estimates_are_of_every_metric() {
    let results = results(&campaign(PLAN), |_, _, repetition| {
        let value = f64::from(repetition);
        Given::Numbers(vec![
            (Metric::Throughput, value),
            (Metric::Seconds, value),
            (Metric::LatencyP99, 10.0 * value),
        ])
    });
    let analysis = analyse(&results);
    let latency = analysis.cell(0, 0).get(Metric::LatencyP99).unwrap();
    assert_eq!((latency.median, latency.kind), (35.0, IntervalKind::Bootstrap95));
    assert_eq!(analysis.cell(0, 2).latency_ratio.unwrap().paired.median, 100.0);
}

/// 90, 100, 110, 100, 100, 100: the median deviation is 0, the standard deviation √40.
#[test]
fn the_spread_is_the_headlines() {
    let results = results(&campaign(PLAN), |_, workload, repetition| {
        headline(workload, [90.0, 100.0, 110.0, 100.0, 100.0, 100.0][repetition as usize - 1])
    });
    let spread = analyse(&results).cell(0, 0).spread.unwrap();
    assert_eq!((spread.mean, spread.median_absolute_deviation), (100.0, 0.0));
    assert!((spread.standard_deviation.unwrap() - 40_f64.sqrt()).abs() < 1e-9);
}
