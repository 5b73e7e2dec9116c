use super::kinds::pooled_speed;
use super::*;
use crate::fixture::{Given, campaign, headline, noise, results};
use crate::trust::Verdict as TrustVerdict;
use braid_lab::campaign::Campaign;
use braid_lab::metric::{LatencyBins, Sample};

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
        let verdict = TrustVerdict {
            standing: Standing::Invalid,
            findings: vec![finding],
            ..TrustVerdict::default()
        };
        judgement.cells.insert(((*subject).to_owned(), (*workload).to_owned()), verdict);
    }
    analyse_judged(results, results.workloads.clone(), judgement)
}

#[test]
fn the_baseline_is_the_average_and_seconds_are_better_when_less() {
    let analysis = analyse(&plan());
    assert_eq!(analysis.baselines, [0, 1]);
    let (rate, seconds) = (analysis.cell(0, 2), analysis.cell(1, 2));
    let times = |cell: &Cell| cell.effect.unwrap().ratio;
    assert!((times(rate) - 2.0).abs() < 1e-9 && (times(seconds) - 0.5).abs() < 1e-9);
    assert_eq!((rate.outlook, seconds.outlook), (Some(Outlook::Better), Some(Outlook::Worse)));
    assert!((times(analysis.cell(0, 0)) - 1.0 / 1.5).abs() < 1e-9);
    assert_eq!((analysis.done, analysis.planned), (36, 36));
}

#[test]
fn an_invalid_number_takes_no_part() {
    let results = plan();
    let label = results.workloads[0].label();
    let of_stripe = judged(&results, &[("stripe", &label)]);
    let cell = of_stripe.cell(0, 2);
    assert!(cell.main().is_some() && cell.effect.is_none() && !cell.is_usable());
    assert!(of_stripe.cell(1, 2).effect.is_some());
    // Without one of its disks the average is another baseline.
    let of_baseline = judged(&results, &[("disk 2", &label)]);
    assert!(of_baseline.row(0).iter().all(|cell| cell.effect.is_none()));
    assert!(of_baseline.row(1).iter().all(|cell| cell.effect.is_some()));
}

#[test]
fn states_say_why_there_is_nothing() {
    let mut campaign = campaign(&PLAN.replace("raid0(chunk=64K, ", "raid1("));
    campaign.jobs[0].settings.insert("health".into(), vec![Value::Word("degraded".into())]);
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
    assert!(find_contests(&analysis, &find_kinds(&analysis)).is_empty());
}

#[test]
fn a_value_of_zero_has_no_ratio_and_no_rank() {
    let results = results(&campaign(PLAN), |subject, workload, _| {
        headline(workload, if subject.name == "stripe" { 0.0 } else { 100.0 })
    });
    let analysis = analyse(&results);
    assert!(speeds(analysis.cell(0, 2)).is_none());
    let contests = find_contests(&analysis, &find_kinds(&analysis));
    assert_eq!((contests[0].ranking.len(), contests[0].left_out.as_slice()), (2, &[2][..]));
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

fn contests(results: &Results) -> Vec<Contest> {
    let analysis = analyse(results);
    find_contests(&analysis, &find_kinds(&analysis))
}

/// A plan of rates alone, whose subjects do what `rate` says, with noise of up to 2 %.
fn rated(repetitions: u32, rate: impl Fn(&str) -> f64) -> Results {
    scattered(repetitions, 0.02, rate)
}

/// The same with noise of up to `part`.
fn scattered(repetitions: u32, part: f64, rate: impl Fn(&str) -> f64) -> Results {
    let mut campaign = campaign(PLAN);
    campaign.repetitions = repetitions;
    campaign.jobs[0].settings.insert("unit".to_owned(), vec![Value::Word("rate".to_owned())]);
    results(&campaign, |subject, workload, repetition| {
        let seed = [
            repetition.into(),
            braid_seed::mix(&[subject.name.len() as u64, subject.name.as_bytes()[5].into()]),
        ];
        headline(workload, rate(&subject.name) * noise(part, &seed))
    })
}

#[test]
fn a_winner_is_better_than_each() {
    let of = |stripe: f64| move |name: &str| if name == "stripe" { stripe } else { 100.0 };
    let found = contests(&rated(5, of(150.0)));
    assert_eq!((found.len(), found[0].winner()), (1, Some(2)));
    // One repetition proves no winner, and does not show how many are needed.
    let alone = contests(&rated(1, of(150.0)));
    assert_eq!(alone[0].outcome, Outcome::Open(Unknown::Few));
    // Two repetitions never name a winner.
    assert_eq!(contests(&rated(2, of(150.0)))[0].outcome, Outcome::Open(Unknown::Few));
    // Within the noise of four repetitions: more repetitions would decide.
    let four = contests(&scattered(4, 0.1, of(110.0)));
    assert!(matches!(four[0].outcome, Outcome::Open(Unknown::Scatter(Some(5..)))), "{four:?}");
    // Ahead by less than what names a winner: no number of repetitions is promised, and none names it.
    for repetitions in [4, 30, 100] {
        let close = contests(&rated(repetitions, of(102.0)))[0].outcome;
        let is_close = matches!(close, Outcome::Open(Unknown::Close) | Outcome::Alike(_));
        assert!(is_close, "{repetitions}: {close:?}");
    }
    // Equal, and with enough repetitions that is known.
    let equal = contests(&rated(30, of(100.0)));
    assert!(matches!(equal[0].outcome, Outcome::Alike(apart) if apart < 0.03), "{equal:?}");
}

/// Statement of `docs/statistics.md`: for equal subjects a winner is named, or a cell coloured, in about 5 of
/// 100 campaigns, for any number of subjects and repetitions, if noise is bell-shaped; with three repetitions
/// of uniform noise in up to 11.
#[test]
fn equal_subjects_have_no_winner_and_no_colour() {
    const CAMPAIGNS: u64 = 300;
    let even: fn(&[u64]) -> f64 = |seed| noise(0.1, seed);
    let bell: fn(&[u64]) -> f64 =
        |seed| (0..12).map(|part| noise(0.1, &[seed, &[part]].concat())).sum::<f64>() / 12.0;
    for (name, noise, subjects, repetitions, most) in [
        ("bell", bell, 2, 3, 8),
        ("bell", bell, 2, 6, 8),
        ("bell", bell, 4, 5, 8),
        ("even", even, 2, 3, 12),
        ("even", even, 4, 6, 8),
    ] {
        let mut plan = format!("name = \"null\"\nrepetitions = {repetitions}\n");
        for subject in 0..subjects {
            plan += &format!("[[subject]]\nname = \"s{subject}\"\npath = \"/dev/sd{subject}\"\n");
            plan += &format!("baseline = {}\n", subject == 0);
        }
        plan += "[[job]]\ntool = \"meter\"\nop = [\"read\", \"write\"]\n";
        plan += "pattern = [\"seq\", \"rand\"]\n";
        let plan = campaign(&plan);
        let (mut winners, mut coloured) = (0, 0);
        for seed in 0..CAMPAIGNS {
            let mut counter = 0;
            let results = results(&plan, |_, workload, _| {
                counter += 1;
                headline(workload, 1e8 * noise(&[seed, counter]))
            });
            let analysis = analyse(&results);
            let found = find_contests(&analysis, &find_kinds(&analysis));
            winners += u64::from(found.iter().any(|contest| contest.winner().is_some()));
            let told = |cell: &Cell| cell.outlook.is_some_and(|outlook| outlook != Outlook::Same);
            coloured += u64::from(analysis.cells.iter().any(told));
        }
        println!(
            "{name}, {subjects} subjects, {repetitions} repetitions: {winners} winners, {coloured} \
             colours in {CAMPAIGNS} campaigns"
        );
        assert!(winners.max(coloured) * 100 <= most * CAMPAIGNS);
    }
}

/// About normal, with a standard deviation of 1; the same for the same numbers.
fn bell(numbers: &[u64]) -> f64 {
    (0..12).map(|part| (noise(1.0, &[numbers, &[part]].concat()) - 1.0) / 2.0).sum()
}

/// The error of a repetition of a subject at a kind of work, as a logarithm.
type Off = fn(seed: u64, subject: u64, kind: u64, repetition: u64) -> f64;

/// A lasting state: 0.8 of it remains in the next repetition, and its spread stays 5 %.
fn lasting(seed: u64, subject: u64, kind: u64, repetition: u64) -> f64 {
    (1..=repetition).fold(bell(&[seed, subject, kind, 0]), |state, one| {
        0.8 * state + 0.6 * bell(&[seed, subject, kind, one])
    }) * 0.05
}

/// Statement of `docs/statistics.md` about the control: a fixed or lasting property of a subject makes it a
/// winner in at most 7 of 100 campaigns. Without a control it does so in most.
#[test]
fn what_is_fixed_about_a_subject_makes_no_winner() {
    const CAMPAIGNS: u64 = 300;
    const FEW: u64 = 40;
    let cases: [(&str, Off); 5] = [
        ("fixed 3 %, noise 2 %", |seed, subject, kind, repetition| {
            0.03 * bell(&[seed, subject]) + 0.02 * bell(&[seed, subject, kind, repetition])
        }),
        ("fixed 3 % for each kind, noise 2 %", |seed, subject, kind, repetition| {
            0.03 * bell(&[seed, subject, kind]) + 0.02 * bell(&[seed, subject, kind, repetition, 1])
        }),
        ("fixed 10 %, noise 0.2 %", |seed, subject, kind, repetition| {
            0.1 * bell(&[seed, subject]) + 0.002 * bell(&[seed, subject, kind, repetition])
        }),
        ("AR(1) 0.8 for each kind", lasting),
        ("AR(1) 0.8", |seed, subject, kind, repetition| {
            lasting(seed, subject, 0, repetition) + 0.01 * bell(&[seed, subject, kind, repetition])
        }),
    ];
    let plan = |control: bool| {
        campaign(&format!(
            "name = \"null\"\nrepetitions = 5\n[[subject]]\nname = \"a\"\npath = \"/dev/sda\"\n\
             baseline = true\n[[subject]]\nname = \"b\"\npath = \"/dev/sdb\"\n[[subject]]\n\
             name = \"c\"\npath = \"/dev/sdc\"\ncontrol = {control}\n[[job]]\n\
             tool = \"meter\"\nop = [\"read\", \"write\"]\npattern = [\"seq\", \"rand\"]\n"
        ))
    };
    for (name, off) in cases {
        let wins = [(true, CAMPAIGNS), (false, FEW)].map(|(control, campaigns)| {
            let plan = plan(control);
            let winners = (0..campaigns).filter(|seed| {
                let results = results(&plan, |subject, workload, repetition| {
                    let kind = workload.label().bytes().map(u64::from).sum();
                    let subject = u64::from(subject.name.as_bytes()[0]);
                    headline(workload, 1e8 * off(*seed, subject, kind, repetition.into()).exp())
                });
                contests(&results).iter().any(|contest| contest.winner().is_some())
            });
            winners.count()
        });
        let [with, without] = wins;
        println!(
            "{name}: {with} winners in {CAMPAIGNS} campaigns, without control {without} in {FEW}"
        );
        assert!(with as u64 * 100 <= 7 * CAMPAIGNS, "{name}: {wins:?}");
        assert!(without as u64 * 100 >= 10 * FEW, "{name}: {wins:?}");
    }
}

/// A layout that is faster by far is named in spite of the control, and the control never is.
#[test]
fn a_winner_beats_the_control() {
    let text = PLAN.replace("/dev/sdb\"\nbaseline = true", "/dev/sdb\"\ncontrol = true");
    let mut plan = campaign(&text.replace("[\"rate\", \"seconds\"]", "\"rate\""));
    plan.repetitions = 5;
    let of = |control: f64, stripe: f64| {
        let results = results(&plan, |subject, workload, repetition| {
            let rate = match subject.name.as_str() {
                "disk 1" => 100.0,
                "disk 2" => control,
                _ => stripe,
            };
            let name = subject.name.as_bytes()[5].into();
            headline(workload, rate * noise(0.005, &[repetition.into(), name]))
        });
        let found = contests(&results).remove(0);
        assert_eq!(found.ranking.len(), 2, "{found:?}");
        found
    };
    assert_eq!(of(102.0, 180.0).winner(), Some(2));
    assert_eq!(of(102.0, 60.0).winner(), Some(0));
    let open = of(102.0, 110.0).outcome;
    let Outcome::Open(Unknown::Place(lead)) = open else { panic!("{open:?}") };
    assert!((1.15..1.20).contains(&lead), "{lead}");
    // Far ahead of all and still the baseline.
    assert_eq!(of(400.0, 110.0).winner(), None);
}

#[test]
fn factors_are_told_apart_by_what_is_alike() {
    let plan = r#"
name = "study"
repetitions = 4
[[member]]
name = "a"
device = "/dev/sda"
[[member]]
name = "b"
device = "/dev/sdb"
[[member]]
name = "c"
device = "/dev/sdc"
[[subject]]
name = "single"
stack = "{a}"
baseline = true
[[subject]]
name = "stripe"
stack = "raid0(chunk={chunk}, {members})"
members = [2, 3]
chunk = ["64K", "128K"]
[[job]]
tool = "meter"
op = ["read", "write"]
"#;
    let results = results(&campaign(plan), |subject, workload, repetition| {
        let members = match subject.dimensions.get("members") {
            Some(Value::Count(members)) => *members as f64,
            _ => 1.0,
        };
        let is_large =
            subject.dimensions.get("chunk").is_some_and(|chunk| chunk.to_string() == "128K");
        let writes = workload.settings.word("op") == "write";
        let chunk = if is_large && writes { 0.5 } else { 1.0 };
        headline(workload, 1e8 * members * chunk * noise(0.001, &[repetition.into()]))
    });
    let factors = find_factors(&analyse(&results), &results);
    let names: Vec<&str> = factors.iter().map(|factor| factor.dimension.as_str()).collect();
    assert_eq!(names, ["chunk", "members"]);
    let members = &factors[1];
    let values: Vec<String> = members.levels.iter().map(|level| level.value.to_string()).collect();
    assert_eq!((values, members.reference), (vec!["1".into(), "2".into(), "3".into()], 0));
    assert_eq!(members.directions, ["reads", "writes"]);
    let reads = members.levels[2].effects[0].unwrap();
    assert!((reads.effect.ratio - 3.0).abs() < 1e-6 && reads.outlook == Outlook::Better);
    // Writes of three with small chunks are 3 times a single member's, with large ones 1.5 times.
    let writes = members.levels[2].effects[1].unwrap();
    assert_eq!(writes.groups, 2);
    assert!((writes.lowest - 1.5).abs() < 0.01 && (writes.highest - 3.0).abs() < 0.01);
    let chunk = &factors[0].levels[1];
    assert!((chunk.effects[1].unwrap().effect.ratio - 0.5).abs() < 1e-6);
    assert_eq!(chunk.effects[0].unwrap().outlook, Outlook::Same);
}

/// One of five trials ran beside another program: the four others count, and the cell is believed.
#[test]
fn a_disturbed_repetition_is_left_out() {
    let mut given = rated(5, |_| 100e6);
    let disturb = |trial: &mut braid_lab::store::StoredTrial| {
        trial.evidence.throttled = Some(7);
        trial.measured.samples[0].value = 1.0;
    };
    let mut of_one = given.trials.iter_mut().filter(|trial| trial.subject == "disk 1");
    of_one.by_ref().take(1).for_each(disturb);
    let analysis = analyse(&given);
    let cell = analysis.cell(0, 0);
    assert_eq!((cell.standing, cell.disturbed.len()), (Standing::Ok, 1), "{cell:?}");
    assert_eq!((cell.values[&Metric::Throughput].len(), cell.main().unwrap().count), (4, 4));
    assert_eq!(cell.all[&Metric::Throughput].len(), 5);
    assert!(cell.main().unwrap().low > 90e6);
    // Three of five are too many to be left out.
    let of_one = given.trials.iter_mut().filter(|trial| trial.subject == "disk 1");
    of_one.skip(1).take(2).for_each(|trial| trial.evidence.throttled = Some(7));
    let analysis = analyse(&given);
    let cell = analysis.cell(0, 0);
    assert_eq!((cell.standing, cell.disturbed.len()), (Standing::Suspect, 0));
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
    assert_eq!((latency.median, latency.low, latency.high, latency.count), (35.0, 10.0, 60.0, 6));
    let cell = analysis.cell(0, 2);
    assert_eq!(analysis.compare(cell, Metric::LatencyMean).unwrap().ratio, 1.0);
}

/// a has workloads 1 to 3, b has 2 to 4, c has 2, 3 and 5: all three share 2 and 3, and no other pair of
/// workloads.
#[test]
fn subjects_are_compared_over_what_they_share() {
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
    let found = contests(&results);
    assert_eq!((found[0].ranking.len(), &found[0].kind.workloads), (3, &vec![1, 2]));
}

/// Distributions of 130 requests, of which two are slow: no trial's 99 % is known. Without bins the
/// tool's count of requests decides.
#[test]
fn a_percentile_is_there_only_with_support() {
    let bins = vec![(1_000, 128), (9_000, 2)];
    let measured = |bins: &[(u64, u64)], requests: Option<f64>| braid_lab::metric::Measured {
        samples: [(Metric::LatencyP99, 5_000.0), (Metric::Throughput, 1e6), (Metric::Seconds, 1.0)]
            .into_iter()
            .chain(requests.map(|requests| (Metric::Requests, requests)))
            .map(|(metric, value)| Sample { metric, value })
            .collect(),
        latencies: vec![LatencyBins { op: "read", bins: bins.to_vec() }],
        ..Default::default()
    };
    let of = |bins: &[(u64, u64)], requests| {
        let plan = Campaign { repetitions: 6, ..campaign(PLAN) };
        let given = results(&plan, |_, _, _| Given::All(measured(bins, requests), Vec::new()));
        let cell = analyse(&given).cell(0, 0).clone();
        let known = cell.get(Metric::LatencyP99).map(|found| (found.median, found.count));
        (known, cell.unsupported.contains(&Metric::LatencyP99))
    };
    assert_eq!(of(&bins, None), (None, true));
    // The bins count, whatever the tool says of its requests.
    assert_eq!(of(&bins, Some(1e6)), (None, true));
    let thousand = [(1_000, 998), (9_000, 2)];
    assert_eq!(of(&thousand, None), (Some((5_000.0, 6)), false));
    assert_eq!(of(&[], Some(1_000.0)), (Some((5_000.0, 6)), false));
    assert_eq!(of(&[], Some(999.0)), (None, true));
    assert_eq!(of(&[], None), (None, true));
    // One repetition of six has too few: those that have enough are the faster ones.
    let plan = Campaign { repetitions: 6, ..campaign(PLAN) };
    let given = results(&plan, |_, _, repetition| {
        let requests = if repetition == 4 { 999.0 } else { 1_000.0 };
        Given::All(measured(&[], Some(requests)), Vec::new())
    });
    let cell = analyse(&given).cell(0, 0).clone();
    assert_eq!((cell.get(Metric::LatencyP99), cell.all[&Metric::LatencyP99].len()), (None, 5));
    assert!(cell.unsupported.contains(&Metric::LatencyP99));
}

/// Statement of `docs/statistics.md` about percentiles: for identical subjects the interval of their ratio
/// excludes 1 in about 5 of 100 campaigns, although the requests of a repetition, one after another in a queue,
/// are fast or slow together.
#[test]
fn percentiles_of_identical_subjects_differ_as_rarely_as_other_numbers() {
    const CAMPAIGNS: u64 = 400;
    for repetitions in [3, 5] {
        let plan = format!(
            "name = \"null\"\nrepetitions = {repetitions}\n[[subject]]\nname = \"a\"\n\
             path = \"/dev/sda\"\nbaseline = true\n[[subject]]\nname = \"b\"\n\
             path = \"/dev/sdb\"\n[[job]]\ntool = \"meter\"\n"
        );
        let plan = campaign(&plan);
        let mut wrong = 0;
        for seed in 0..CAMPAIGNS {
            let mut trial = 0;
            let results = results(&plan, |_, _, _| {
                trial += 1;
                // 20,000 requests, all of them slower or faster by some of a normal 6 %.
                let parts = (0..12).map(|part| noise(0.06, &[seed, trial, part]));
                let slower = 1.0 + parts.map(|part| part - 1.0).sum::<f64>() / 2.0;
                let at = |ns: f64| (ns * slower) as u64;
                let bins = vec![(at(1e6), 19_700), (at(4e6), 300)];
                Given::All(
                    braid_lab::metric::Measured {
                        samples: vec![
                            Sample { metric: Metric::Throughput, value: 1e8 / slower },
                            Sample { metric: Metric::LatencyP99, value: 4e6 * slower },
                        ],
                        latencies: vec![LatencyBins { op: "read", bins }],
                        ..Default::default()
                    },
                    Vec::new(),
                )
            });
            let analysis = analyse(&results);
            let effect = analysis.compare(analysis.cell(0, 1), Metric::LatencyP99).unwrap();
            wrong += u64::from(effect.low > 1.0 || effect.high < 1.0);
        }
        println!("{repetitions} repetitions: {wrong} of {CAMPAIGNS} intervals leave 1 out");
        assert!(wrong * 100 <= 7 * CAMPAIGNS, "{wrong} with {repetitions} repetitions");
    }
}
