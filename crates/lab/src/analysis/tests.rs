use super::*;
use crate::campaign::Campaign;
use crate::fixture::{Given, campaign, headline, noise, results};
use crate::metric::LatencyBins;
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
    analyse_judged(results, results.workloads.clone(), judgement)
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
    let label = results.workloads[0].label();
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
    let mut campaign = campaign(&PLAN.replace("raid0(chunk=64K, ", "raid1("));
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
    let mut plan = campaign(PLAN);
    plan.repetitions = 8;
    let results = results(&plan, |_, workload, repetition| {
        let near = 100.0 + f64::from(repetition);
        headline(workload, if repetition == 4 { 20.0 } else { near })
    });
    let analysis = analyse(&results);
    let odd = &analysis.cell(0, 0).odd;
    assert_eq!(odd.iter().map(|odd| odd.repetition).collect::<Vec<_>>(), [4]);
    assert_eq!(analysis.cell(0, 0).values[&Metric::Throughput].len(), 8);
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
            (Metric::LatencyMean, 10.0 * value),
        ])
    });
    let analysis = analyse(&results);
    let latency = analysis.cell(0, 0).get(Metric::LatencyMean).unwrap();
    assert_eq!((latency.median, latency.kind), (35.0, IntervalKind::Bootstrap95));
    let cell = analysis.cell(0, 2);
    assert_eq!(analysis.compare(cell, Metric::LatencyMean).unwrap().paired.median, 100.0);
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

/// a has workloads 1 to 3, b has 2 to 4, c has 2, 3 and 5: all three share 2 and 3, which nobody
/// has alone.
#[test]
fn blocks_are_found_where_nobody_has_just_the_shared() {
    let plan = r#"
name = "plan"
repetitions = 6
subject = [
  { name = "a", path = "/dev/sda", baseline = true },
  { name = "b", path = "/dev/sdb" },
  { name = "c", path = "/dev/sdc" },
]
job = [
  { tool = "meter", block_size = "1K", subjects = ["a"] },
  { tool = "meter", block_size = "2K" },
  { tool = "meter", block_size = "3K" },
  { tool = "meter", block_size = "4K", subjects = ["b"] },
  { tool = "meter", block_size = "5K", subjects = ["c"] },
]
"#;
    let results = results(&campaign(plan), |_, workload, _| headline(workload, 100.0));
    let overall = find_overall(&analyse(&results)).unwrap();
    assert_eq!((overall.contenders, overall.workloads), (vec![0, 1, 2], vec![1, 2]));
}

/// Three subjects that share one workload, each two of them another: with subjects counted twice
/// 1 · 3² is more than 2 · 2². No single subject and no pair has just that one.
#[test]
fn what_three_share_is_found_beyond_pairs() {
    let mut plan = String::from("name = \"plan\"\nrepetitions = 6\n");
    for name in ["a", "b", "c"] {
        plan += &format!("[[subject]]\nname = \"{name}\"\npath = \"/dev/sd{name}\"\n");
        plan += &format!("baseline = {}\n", name == "a");
    }
    for (size, subjects) in [("1K", "\"a\", \"b\", \"c\""), ("2K", "\"a\", \"b\"")] {
        plan += &format!("[[job]]\ntool = \"meter\"\nblock_size = \"{size}\"\n");
        plan += &format!("subjects = [{subjects}]\n");
    }
    for (size, subjects) in [("3K", "\"b\", \"c\""), ("4K", "\"a\", \"c\"")] {
        plan += &format!("[[job]]\ntool = \"meter\"\nblock_size = \"{size}\"\n");
        plan += &format!("subjects = [{subjects}]\n");
    }
    let results = results(&campaign(&plan), |_, workload, _| headline(workload, 100.0));
    let overall = find_overall(&analyse(&results)).unwrap();
    assert_eq!((overall.contenders, overall.workloads), (vec![0, 1, 2], vec![0]));
}

/// The largest block has no repetition that both subjects have; the next one has.
#[test]
fn a_block_without_a_shared_repetition_is_passed_over() {
    let results = results(&campaign(PLAN), |subject, workload, repetition| {
        let seconds = workload.headline() == Metric::Seconds;
        // In seconds nobody meets anybody.
        let place = ["disk 1", "disk 2", "stripe"].iter().position(|n| *n == subject.name);
        match seconds && place != Some(repetition as usize % 3) {
            true => Given::Failed("gone"),
            false => headline(workload, 100.0),
        }
    });
    let overall = find_overall(&analyse(&results)).unwrap();
    assert_eq!((overall.contenders, overall.workloads), (vec![0, 1, 2], vec![0]));
}

/// Sixteen distributions of 130 requests, of which two are slow: no trial's 99 % is known, and
/// that of all 2,080 is slow. Without bins the tool's count of requests decides.
#[test]
fn a_percentile_is_of_all_requests_and_only_with_support() {
    let mut plan = campaign(PLAN);
    plan.repetitions = 16;
    let bins = vec![(1_000, 128), (9_000, 2)];
    let measured = |bins: &[(u64, u64)], requests: Option<f64>| crate::metric::Measured {
        samples: [(Metric::LatencyP99, 5_000.0), (Metric::Throughput, 1e6), (Metric::Seconds, 1.0)]
            .into_iter()
            .chain(requests.map(|requests| (Metric::Requests, requests)))
            .map(|(metric, value)| crate::metric::Sample { metric, value })
            .collect(),
        latencies: vec![LatencyBins { op: "read", bins: bins.to_vec() }],
        ..Default::default()
    };
    let of = |repetitions: u32, bins: &[(u64, u64)], requests| {
        let plan = Campaign { repetitions, ..plan.clone() };
        let given = results(&plan, |_, _, _| Given::All(measured(bins, requests), Vec::new()));
        let cell = analyse(&given).cell(0, 0).clone();
        let known = cell.get(Metric::LatencyP99).map(|found| (found.median, found.kind));
        let own = cell.values.contains_key(&Metric::LatencyP99);
        (known, own, cell.unsupported.get(&Metric::LatencyP99).copied())
    };
    let ranks = IntervalKind::OrderStatistics95;
    assert_eq!(of(16, &bins, None), (Some((9_000.0, ranks)), false, None));
    assert_eq!(of(7, &bins, None), (None, false, Some(1_000)), "910 requests");
    // The bins count, whatever the tool says of its requests.
    assert_eq!(of(7, &bins, Some(1e6)), (None, false, Some(1_000)));
    let thousand = [(1_000, 998), (9_000, 2)];
    assert_eq!(of(1, &thousand, None), (Some((1_000.0, ranks)), true, None));
    let medians = IntervalKind::Bootstrap95;
    assert_eq!(of(6, &[], Some(1_000.0)), (Some((5_000.0, medians)), true, None));
    assert_eq!(of(6, &[], Some(999.0)), (None, false, Some(1_000)));
    assert_eq!(of(6, &[], None), (None, false, Some(1_000)));
}

/// Of few repetitions one lies far from the others by chance, and what cannot be used is not looked
/// at.
#[test]
fn repetitions_stand_out_only_of_enough_that_can_be_used() {
    let odd = |repetitions: u32, standing: Standing| {
        let mut plan = campaign(PLAN);
        plan.repetitions = repetitions;
        let results = results(&plan, |_, workload, repetition| match repetition {
            2 => headline(workload, 300.0),
            other => headline(workload, 100.0 + f64::from(other)),
        });
        let workloads = results.workloads.clone();
        let mut judgement = Judgement::default();
        for subject in &results.subjects {
            for workload in &workloads {
                let verdict = TrustVerdict { standing, findings: Vec::new() };
                judgement.cells.insert((subject.name.clone(), workload.label()), verdict);
            }
        }
        let analysis = analyse_judged(&results, workloads, judgement);
        analysis.cell(0, 0).odd.iter().map(|odd| odd.repetition).collect::<Vec<u32>>()
    };
    assert!(odd(7, Standing::Ok).is_empty());
    assert_eq!(odd(8, Standing::Ok), [2]);
    assert_eq!(odd(8, Standing::Suspect), [2]);
    assert!(odd(8, Standing::Invalid).is_empty());
}
