use super::*;
use std::collections::BTreeMap;

use crate::environment::read_environment;
use crate::evidence::{Evidence, Moved};
use crate::metric::{LatencyBins, Measured, Metric, Sample, TimeSeries};
use crate::preset::quick_campaign;
use crate::settings::Value;
use crate::tool::{RunOutput, ToolOutput};
use crate::world::Exit;

fn campaign() -> Campaign {
    quick_campaign("ram(1G)", &[("two".to_owned(), "raid0(ram(1G), ram(1G))".to_owned())]).unwrap()
}

fn kept(number: u32, outcome: Outcome) -> StoredTrial {
    let measured = Measured {
        samples: vec![Sample { metric: Metric::Iops, value: 12.5 }],
        latencies: vec![LatencyBins { op: "read", bins: vec![(100, 3), (200, 1)] }],
        series: vec![TimeSeries { metric: Metric::Throughput, points: vec![(100, 1.5)] }],
    };
    StoredTrial {
        number,
        repetition: 1,
        subject: "two".into(),
        workload: "random read".into(),
        dimensions: BTreeMap::from([("iodepth".to_owned(), Value::Count(32))]),
        seed: u64::MAX,
        region_bytes: 1 << 28,
        commands: vec!["mount".into(), "fio".into()],
        started_unix_s: 1,
        duration_s: 1.5,
        measured: if outcome == Outcome::Ok { measured } else { Measured::default() },
        outcome,
        evidence: Evidence {
            target: Some(Moved { read_bytes: 7, ..Moved::default() }),
            activities: vec!["rebuild 4 %".into()],
            ..Evidence::default()
        },
        events: vec![(0.5, "member 2 failed".into())],
        raw: Store::raw_folder(number),
    }
}

fn words(stdout: &str) -> RunOutput {
    let process =
        ToolOutput { exit: Exit::Code(0), stdout: stdout.into(), stderr: "hm".into(), wall_s: 1.0 };
    let files = BTreeMap::from([("bw.log".to_owned(), "1, 2".to_owned())]);
    RunOutput { processes: vec![process], wall_s: 1.0, files }
}

#[test]
fn what_was_saved_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let campaign = Campaign { seed: i64::MAX as u64, ..campaign() };
    let mut store = Store::create(dir.path(), &campaign).unwrap();
    let environment = read_environment(vec![("fio".into(), "fio-3.33".into())]);
    let session = store.begin_session(77, &environment).unwrap();
    store.save_trial(session, &kept(2, Outcome::Failed("no".into())), None).unwrap();
    store.save_trial(session, &kept(1, Outcome::Ok), Some(&words("out"))).unwrap();
    let times = Times { busy_s: 1.0, set_up_s: 2.0, overhead_s: 0.25 };
    store.save_times(session, &times, Some(99)).unwrap();
    drop(store);

    let results = Store::open(dir.path()).unwrap().results().unwrap();
    assert_eq!(results.campaign, campaign);
    assert_eq!(results.trials, [kept(1, Outcome::Ok), kept(2, Outcome::Failed("no".into()))]);
    let session = Session { started_unix_s: 77, ended_unix_s: Some(99), environment, times };
    assert_eq!(results.sessions, [session]);
    let raw = |name: &str| fs::read_to_string(dir.path().join("raw/00001").join(name)).unwrap();
    assert_eq!((raw("0.stdout").as_str(), raw("0.stderr").as_str()), ("out", "hm"));
    assert_eq!(raw("bw.log"), "1, 2");
    let copy = fs::read_to_string(dir.path().join("campaign.toml")).unwrap();
    assert_eq!(parse_campaign(&copy, "copy").unwrap(), campaign);
}

#[test]
fn trials_are_told_apart_by_what_became_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(dir.path(), &campaign()).unwrap();
    let session = store.begin_session(1, &read_environment(Vec::new())).unwrap();
    store.save_trial(session, &kept(1, Outcome::Failed("no".into())), None).unwrap();
    store.save_trial(session, &kept(2, Outcome::Impossible("no bus".into())), None).unwrap();
    assert_eq!(store.measured_trials().unwrap(), [].into());
    assert_eq!(store.impossible_trials().unwrap(), [2].into());
    store.save_trial(session, &kept(1, Outcome::Ok), Some(&words("again"))).unwrap();
    assert_eq!(store.measured_trials().unwrap(), [1].into());
    assert_eq!(store.impossible_trials().unwrap(), [2].into());
    assert_eq!(store.results().unwrap().trials.len(), 2);
}

#[test]
fn a_directory_holds_one_campaign() {
    let dir = tempfile::tempdir().unwrap();
    Store::create(dir.path(), &campaign()).unwrap();
    Store::create(dir.path(), &campaign()).unwrap();
    let other = Campaign { repetitions: 5, ..campaign() };
    assert!(matches!(Store::create(dir.path(), &other), Err(LabError::OtherCampaign { .. })));
}

#[test]
fn a_second_run_is_kept_out_until_the_first_is_over() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path(), &campaign()).unwrap();
    let lock = store.lock().unwrap();
    let second = Store::create(dir.path(), &campaign()).unwrap();
    assert!(matches!(second.lock(), Err(LabError::Busy { .. })));
    drop(lock);
    second.lock().unwrap();
}

#[test]
fn a_directory_without_results_says_so() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(Store::open(dir.path()), Err(LabError::NoResults { .. })));
}

#[test]
fn another_schema_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path(), &campaign()).unwrap();
    store.db.execute_batch("PRAGMA user_version = 99").unwrap();
    drop(store);
    assert!(matches!(Store::open(dir.path()), Err(LabError::SchemaVersion { found: 99, .. })));
}

#[test]
fn content_that_nobody_wrote_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(dir.path(), &campaign()).unwrap();
    let session = store.begin_session(1, &read_environment(Vec::new())).unwrap();
    store.save_trial(session, &kept(1, Outcome::Ok), None).unwrap();
    for damage in [
        "UPDATE sample SET metric = 'speed'",
        "UPDATE trial SET evidence = '{'",
        "UPDATE trial SET outcome = 'fine'",
        "UPDATE latency SET bins = '[1]'",
    ] {
        store.db.execute_batch(&format!("SAVEPOINT s; {damage}")).unwrap();
        assert!(matches!(store.results(), Err(LabError::StoreContent { .. })), "{damage}");
        store.db.execute_batch("ROLLBACK TO s; RELEASE s").unwrap();
    }
    store.results().unwrap();
}
