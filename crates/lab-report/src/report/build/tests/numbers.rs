//! One comparison is one number, wherever it stands, and no better than its worse side; and the
//! published study of two disks: our tables from its times, against its percents.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::*;

/// A machine that slows down, and a stripe that does not quite.
fn drifting() -> Results {
    results(&campaign(SMALL), |subject, workload, repetition| {
        let reads = workload.settings.word("op") == "read";
        let rates: [f64; 3] = match (subject.baseline, reads) {
            (true, true) => [100.0, 80.0, 10.0],
            (false, true) => [50.0, 40.0, 5.0],
            (true, false) => [100.0; 3],
            (false, false) => [200.0; 3],
        };
        headline(workload, rates[repetition as usize - 1] * 1e6)
    })
}

#[test]
fn a_comparison_is_the_same_number_everywhere() {
    let results = drifting();
    let report = build_report(&analyse_as(&results, &[]), &results, Path::new("results"));
    check(&report);
    let numbers = cell(&report, "percent", "sequential read", "stripe [%]");
    assert_eq!((numbers.text.as_str(), numbers.detail.as_str()), ("50.0", "49.9 to 50.1"));
    assert_eq!(cell(&report, "answer", "stripe", "sequential reads").text, "0.50");
    assert!((report.picture.as_ref().unwrap().series[0].points[0].y - 0.5).abs() < 1e-9);
    // The mean of the percents is that of the percents above it: 50 and 200.
    assert_eq!(cell(&report, "percent", "mean of the percents", "stripe [%]").text, "125");
}

#[test]
fn what_is_made_of_a_doubtful_number_is_doubtful() {
    let results = drifting();
    for doubtful in ["stripe", "single"] {
        let judged = [(doubtful, "sequential read 1M", Standing::Suspect)];
        let report = build_report(&analyse_as(&results, &judged), &results, Path::new("results"));
        let tone = |table, first, column| cell(&report, table, first, column).tone;
        assert_eq!(tone("percent", "sequential read", "stripe [%]"), Tone::Suspect);
        assert_eq!(tone("percent", "mean of the percents", "stripe [%]"), Tone::Suspect);
        assert_eq!(tone("percent", "sequential write", "stripe [%]"), Tone::Better);
        assert_eq!(tone("answer", "stripe", "sequential reads"), Tone::Suspect);
        assert_eq!(tone("answer", "stripe", "sequential writes"), Tone::Better);
    }
}

#[test]
fn a_percentile_of_doubtful_requests_is_doubtful() {
    let results = sticks();
    let label = analyse(&results).workloads[0].label.clone();
    let judged = [("single", label.as_str(), Standing::Suspect)];
    let report = build_report(&analyse_as(&results, &judged), &results, Path::new("results"));
    let table = report.tables().find(|table| table.id == "percentiles").unwrap();
    let tones = |row: usize| -> Vec<Tone> {
        table.rows[row].cells[2..].iter().map(|cell| cell.tone).collect()
    };
    assert_eq!(table.rows[0].cells[1].text, "single");
    let (suspect, none, plain) = (Tone::Suspect, Tone::Missing, Tone::Plain);
    assert_eq!(tones(0), [suspect, suspect, suspect, suspect, none]);
    assert_eq!(tones(1), [plain, plain, plain, plain, none]);
}

/// One subject has a request too few for its 99 %.
#[test]
fn what_a_percentile_takes_is_said_once() {
    let of = |requests: u64| {
        report_of(&results(&campaign(SMALL), |subject, _, _| {
            let requests = if subject.name == "single" { requests } else { 1_000 };
            let numbers = [(Metric::Throughput, 1e8), (Metric::LatencyP99, 2e6)];
            let measured = fixture::measured(&numbers);
            let bins = [(2_000_000, requests)];
            Given::All(fixture::with_course(measured, &bins, 1e8, 3), Vec::new())
        }))
    };
    let (short, enough) = (of(999), of(1_000));
    let missing = |report: &Report, id: &str| {
        let table = report.tables().find(|table| table.id == id).unwrap();
        let cells = table.rows.iter().flat_map(|row| &row.cells);
        let missing: Vec<&Cell> = cells.filter(|cell| cell.tone == Tone::Missing).collect();
        assert!(missing.iter().all(|cell| cell.detail.is_empty()), "{id}: {missing:?}");
        (missing.len(), table.note.contains("99 % 1,000"))
    };
    // Two kinds of work; 99.9 % is missing of both subjects.
    assert_eq!(missing(&short, "percentiles"), (2 + 4, true));
    assert_eq!(missing(&enough, "percentiles"), (4, true));
    // A value, and its percent of the other.
    assert_eq!(missing(&short, "further-table"), (2 + 2, true));
    assert_eq!(missing(&enough, "further-table"), (0, false));
}

#[derive(Deserialize)]
struct Study {
    resolution_s: f64,
    columns: Vec<String>,
    baseline: Vec<String>,
    table: Vec<Times>,
    published: Vec<Published>,
}

#[derive(Deserialize)]
struct Times {
    processes: u32,
    times_s: BTreeMap<String, BTreeMap<String, f64>>,
}

#[derive(Deserialize)]
struct Published {
    printed: String,
    processes: u32,
    subject: String,
    what: String,
    tests: Vec<String>,
    least: f64,
    most: f64,
}

fn study() -> Study {
    toml::from_str(include_str!("../../../../testdata/stats/raid-levels-2hdd.toml")).unwrap()
}

impl Study {
    /// The report of a campaign with these times, each test a size of a request; where the baselines
    /// took so much longer and the others so much shorter than printed.
    fn report(&self, processes: u32, longer_s: f64) -> Report {
        let times = self.table.iter().find(|times| times.processes == processes).unwrap();
        let mut plan = "name = \"study\"\nrepetitions = 1\n".to_owned();
        for name in &self.columns {
            let baseline = self.baseline.contains(name);
            plan += &format!("[[subject]]\nname = \"{name}\"\npath = \"/dev/{name}\"\n");
            plan += &format!("baseline = {baseline}\n");
        }
        let sizes: Vec<String> = (1..=times.times_s.len()).map(|n| format!("\"{n}K\"")).collect();
        plan += &format!(
            "[[job]]\ntool = \"meter\"\nunit = \"seconds\"\nblock_size = [{}]\n",
            sizes.join(", ")
        );
        let results = results(&campaign(&plan), |subject, workload, _| {
            let place = workload.settings.size("block_size").unwrap() / 1024 - 1;
            let cells = times.times_s.values().nth(place as usize).unwrap();
            let longer = if self.baseline.contains(&subject.name) { longer_s } else { -longer_s };
            match cells.get(&subject.name) {
                Some(time) => headline(workload, time + longer),
                None => Given::Failed("not among the figures"),
            }
        });
        build_report(&analyse_as(&results, &[]), &results, Path::new("results"))
    }

    /// The row of a test.
    fn row(&self, processes: u32, test: &str) -> String {
        let times = self.table.iter().find(|times| times.processes == processes).unwrap();
        let place = times.times_s.keys().position(|name| name == test).unwrap();
        format!("sequential read {}K", place + 1)
    }

    fn percent(&self, report: &Report, processes: u32, test: &str, subject: &str) -> f64 {
        let row = self.row(processes, test);
        cell(report, "percent", &row, &format!("{subject} [%]")).number.unwrap()
    }
}

/// Percent slower, cut off to a whole number as the study does.
fn cut_off(percent: f64) -> f64 {
    (percent - 100.0).trunc()
}

fn mean(report: &Report, subject: &str) -> f64 {
    cell(report, "percent", "mean of the percents", &format!("{subject} [%]")).number.unwrap()
}

/// All five published percents. Four follow from the times as they stand; the mean of 17.5 lies
/// within what whole seconds leave open (the next test says where).
#[test]
fn reproduces_every_published_percent() {
    let study = study();
    assert_eq!(study.published.len(), 5);
    for published in &study.published {
        let report = study.report(published.processes, 0.0);
        let of =
            |test: &String| study.percent(&report, published.processes, test, &published.subject);
        let percents = || published.tests.iter().map(of);
        let printed = published.least..=published.most;
        match published.what.as_str() {
            "each" => {
                for percent in percents() {
                    let ours = cut_off(percent);
                    assert!(printed.contains(&ours), "{}: {ours}", published.printed);
                }
            }
            "fastest" => {
                let ours = cut_off(percents().fold(f64::INFINITY, f64::min));
                assert!(printed.contains(&ours), "{}: {ours}", published.printed);
            }
            "mean" => {
                let half = study.resolution_s / 2.0;
                let open = [half, -half].map(|longer| {
                    mean(&study.report(published.processes, longer), &published.subject)
                });
                for end in [published.least, published.most] {
                    assert!((open[0]..=open[1]).contains(&(100.0 + end)), "{open:?}");
                }
            }
            other => panic!("{other} is not known"),
        }
    }
}

/// The exact mean of the percents is 15.6 and not 17.5. The gap is the small copy: 5 s against
/// 4.5 s is 11 %, but both are known to half a second, which leaves 90 % to 138 % open and moves
/// the mean of six by 8. Against 4 s it is 25 %, and the mean of the percents as the study cuts
/// them off, 6, 51, 7, 25, 10 and 6, is 17.5 exactly. That this is how the figure came about is
/// likely, not known; so our own mean stays 15.6.
#[test]
fn the_mean_of_17_5_is_a_matter_of_half_a_second() {
    let study = study();
    let report = study.report(1, 0.0);
    // (455/427 + 241/159 + 212/197 + 5/4.5 + 31/28 + 61/57.5) / 6
    assert!((mean(&report, "raid1") - 115.609_378).abs() < 1e-6, "{}", mean(&report, "raid1"));
    let tests = ["bonnie", "dd-write", "cp-read", "untar", "cp-tree"];
    let cut: f64 = tests.iter().map(|test| cut_off(study.percent(&report, 1, test, "raid1"))).sum();
    assert_eq!((cut + cut_off(5.0 / 4.0 * 100.0)) / 6.0, 17.5);
}

/// 455 + 241 + 212 + 5 + 31 + 61 = 1005 s.
#[test]
fn times_have_a_sum() {
    let study = study();
    let report = study.report(1, 0.0);
    let sum = cell(&report, "percent", "mean of the percents, sum of the times", "raid1");
    assert_eq!(sum.number, Some(1005.0));
    // The two disks are the baseline, so theirs add up to 200.
    assert!((mean(&report, "disk1") + mean(&report, "disk2") - 200.0).abs() < 1e-9);
}
