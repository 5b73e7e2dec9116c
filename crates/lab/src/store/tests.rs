use super::*;
use crate::environment::read_environment;
use crate::matrix::plan_trials;
use crate::preset::quick_campaign;

fn campaign() -> Campaign {
    quick_campaign("ram(1G)", &[("two".to_owned(), "raid0(ram(1G), ram(1G))".to_owned())]).unwrap()
}

fn kept(trial: &Trial, outcome: Outcome) -> StoredTrial {
    StoredTrial {
        number: trial.number,
        repetition: trial.repetition,
        subject: "two".into(),
        workload: trial.cell.workload.label(),
        command: "fio".into(),
        started_unix_s: 1,
        duration_s: 1.5,
        region_bytes: 1 << 28,
        outcome,
        raw: format!("raw/{:04}.txt", trial.number),
    }
}

#[test]
fn what_was_saved_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let campaign = Campaign { seed: u64::MAX, ..campaign() };
    let mut store = Store::create(dir.path(), &campaign).unwrap();
    let environment = read_environment(vec![("fio".into(), "fio-3.33".into())]);
    let session = store.begin_session(77, &environment).unwrap();
    let trial = &plan_trials(&campaign)[0];
    let samples = [Sample { metric: Metric::Iops, value: 12.5 }];
    store.save_trial(session, trial, &kept(trial, Outcome::Ok), "words", &samples).unwrap();
    drop(store);

    let store = Store::open(dir.path()).unwrap();
    assert_eq!(store.campaign().unwrap(), campaign);
    assert_eq!(store.trials().unwrap(), [(kept(trial, Outcome::Ok), samples.to_vec())]);
    assert_eq!(store.sessions().unwrap(), [Session { started_unix_s: 77, environment }]);
    assert_eq!(fs::read_to_string(dir.path().join("raw/0001.txt")).unwrap(), "words");
    let copy = fs::read_to_string(dir.path().join("campaign.toml")).unwrap();
    assert_eq!(parse_campaign(&copy, "copy").unwrap(), campaign);
}

#[test]
fn a_failed_trial_is_not_finished_and_may_be_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(dir.path(), &campaign()).unwrap();
    let session = store.begin_session(1, &read_environment(Vec::new())).unwrap();
    let trial = &plan_trials(&campaign())[0];
    let failed = kept(trial, Outcome::Failed("no".into()));
    store.save_trial(session, trial, &failed, "", &[]).unwrap();
    assert!(store.finished_trials().unwrap().is_empty());
    store.save_trial(session, trial, &kept(trial, Outcome::Ok), "", &[]).unwrap();
    assert_eq!(store.finished_trials().unwrap().into_iter().collect::<Vec<_>>(), [1]);
    assert_eq!(store.trials().unwrap().len(), 1);
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
fn a_directory_without_results_says_so() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(Store::open(dir.path()), Err(LabError::NoResults { .. })));
}

#[test]
fn a_newer_schema_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path(), &campaign()).unwrap();
    store.db.execute_batch("PRAGMA user_version = 99").unwrap();
    drop(store);
    assert!(matches!(Store::open(dir.path()), Err(LabError::SchemaVersion { found: 99, .. })));
}
