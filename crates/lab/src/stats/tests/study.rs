//! The published study of two disks: our tables from its times, against its percents.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::*;

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
    toml::from_str(include_str!("../../../testdata/stats/raid-levels-2hdd.toml")).unwrap()
}

impl Study {
    fn column(&self, name: &str) -> usize {
        self.columns.iter().position(|column| column == name).unwrap()
    }

    fn table(&self, processes: u32) -> PercentTable {
        self.table_if(processes, 0.0)
    }

    /// The table if the baselines took so much longer and the others so much shorter than printed.
    fn table_if(&self, processes: u32, longer_s: f64) -> PercentTable {
        let longer_s = |name: &String| match self.baseline.contains(name) {
            true => longer_s,
            false => -longer_s,
        };
        let time = |cells: &BTreeMap<String, f64>, name| Some(cells.get(name)? + longer_s(name));
        let times = self.table.iter().find(|times| times.processes == processes).unwrap();
        let rows: Vec<(String, Vec<Option<f64>>)> = times
            .times_s
            .iter()
            .map(|(test, cells)| {
                (test.clone(), self.columns.iter().map(|name| time(cells, name)).collect())
            })
            .collect();
        let baselines: Vec<usize> = self.baseline.iter().map(|name| self.column(name)).collect();
        percent_table(&self.columns, &rows, &baselines).unwrap()
    }

    /// Least and most percent that the printed times leave open: each may be off by half a step,
    /// and in the worst case all to one side.
    fn left_open(&self, processes: u32, of: impl Fn(&PercentTable) -> f64) -> (f64, f64) {
        let half = self.resolution_s / 2.0;
        (of(&self.table_if(processes, half)), of(&self.table_if(processes, -half)))
    }
}

fn cell(table: &PercentTable, test: &str, column: usize) -> Option<PercentCell> {
    table.rows.iter().find(|row| row.name == test).unwrap().cells[column]
}

/// Percent slower, cut off to a whole number as the study does.
fn cut_off(percent: f64) -> f64 {
    (percent - 100.0).trunc()
}

/// All five published percents. Four follow from the times as they stand; the mean of 17.5 lies
/// within what whole seconds leave open (the next test says where).
#[test]
fn reproduces_every_published_percent() {
    let study = study();
    assert_eq!(study.published.len(), 5);
    for published in &study.published {
        let table = study.table(published.processes);
        let column = study.column(&published.subject);
        let percents =
            published.tests.iter().map(|test| cell(&table, test, column).unwrap().percent);
        let printed = published.least..=published.most;
        match published.what.as_str() {
            "each" => {
                for percent in percents {
                    let ours = cut_off(percent);
                    assert!(printed.contains(&ours), "{}: {ours}", published.printed);
                }
            }
            "fastest" => {
                let ours = cut_off(percents.fold(f64::INFINITY, f64::min));
                assert!(printed.contains(&ours), "{}: {ours}", published.printed);
            }
            "mean" => {
                let summary = table.summaries[column].unwrap();
                assert_eq!(summary.rows, published.tests.len());
                let mean = |table: &PercentTable| table.summaries[column].unwrap().mean_percent;
                let (least, most) = study.left_open(published.processes, mean);
                let open = least..=most;
                assert!(open.contains(&(100.0 + published.least)), "{}", published.printed);
                assert!(open.contains(&(100.0 + published.most)), "{}", published.printed);
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
    let raid1 = study.column("raid1");
    let table = study.table(1);
    let summary = table.summaries[raid1].unwrap();
    // (455/427 + 241/159 + 212/197 + 5/4.5 + 31/28 + 61/57.5) / 6
    assert!((summary.mean_percent - 115.609_378).abs() < 1e-6, "{}", summary.mean_percent);
    let small = |table: &PercentTable| cell(table, "cp-small", raid1).unwrap().percent;
    assert_eq!(study.left_open(1, small), (90.0, 137.5));
    let mean = |table: &PercentTable| table.summaries[raid1].unwrap().mean_percent;
    let (least, most) = study.left_open(1, mean);
    assert!((least - 10.9 - 100.0).abs() < 0.05 && (most - 21.2 - 100.0).abs() < 0.05);

    let cut: f64 = table
        .rows
        .iter()
        .map(|row| match row.name.as_str() {
            "cp-small" => cut_off(5.0 / 4.0 * 100.0),
            _ => cut_off(row.cells[raid1].unwrap().percent),
        })
        .sum();
    assert_eq!(cut / 6.0, 17.5);
}

/// 455 + 241 + 212 + 5 + 31 + 61 = 1005 s, and both disks take 873 s in sum.
#[test]
fn sums_and_their_percent() {
    let study = study();
    let table = study.table(1);
    let summary = table.summaries[study.column("raid1")].unwrap();
    assert_eq!((summary.total.value, summary.baseline_total), (1005.0, 873.0));
    assert!((summary.total.percent - 115.120_275).abs() < 1e-6);
    // The two disks are the baseline, so theirs add up to 200.
    let disk = |name: &str| table.summaries[study.column(name)].unwrap().mean_percent;
    assert!((disk("disk1") + disk("disk2") - 200.0).abs() < 1e-9);
}

/// What the study did not measure stays empty, and a column without any percent has no summary.
#[test]
fn missing_times_stay_missing() {
    let study = study();
    let raid1 = study.column("raid1");
    let two = study.table(2);
    assert!(two.rows.iter().all(|row| row.cells[raid1].is_none() && row.baseline.is_some()));
    assert_eq!(two.summaries[raid1], None);
    assert!(two.summaries[study.column("raid0")].is_some());
    let four = study.table(4);
    assert_eq!(four.summaries.iter().flatten().count(), 2);
}
