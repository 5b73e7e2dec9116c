use super::*;
use std::collections::BTreeMap;

use crate::command::{Exit, ToolOutput};
use crate::environment::read_environment;
use crate::evidence::{Evidence, Moved};
use crate::metric::{LatencyBins, Measured, Metric, Sample, TimeSeries};
use crate::preset::quick_campaign;
use crate::settings::Value;
use crate::tool::RunOutput;

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
    let campaign = Campaign { seed: Some(i64::MAX as u64), ..campaign() };
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
    let other = Campaign { seed: Some(7), ..campaign() };
    assert!(matches!(Store::create(dir.path(), &other), Err(LabError::OtherCampaign { .. })));
}

/// A campaign can be extended, and never becomes shorter than its measurements.
#[test]
fn a_campaign_may_get_more_repetitions() {
    let dir = tempfile::tempdir().unwrap();
    let more = |repetitions| Campaign { repetitions, ..campaign() };
    Store::create(dir.path(), &campaign()).unwrap();
    let shown = dir.path().join("campaign.toml");
    Store::create(dir.path(), &more(40)).unwrap();
    assert_eq!(Store::open(dir.path()).unwrap().campaign().unwrap(), more(40));
    assert!(std::fs::read_to_string(&shown).unwrap().contains("repetitions = 40"));
    let fewer = Store::create(dir.path(), &more(39));
    assert!(matches!(fewer, Err(LabError::OtherCampaign { .. })));
    // A user's edits of the copy stay.
    std::fs::write(&shown, "# mine").unwrap();
    Store::create(dir.path(), &more(41)).unwrap();
    assert_eq!(std::fs::read_to_string(&shown).unwrap(), "# mine");
}

/// Returns a campaign on a file with a relative path.
fn relative() -> Campaign {
    quick_campaign("./x.img", &[("two".to_owned(), "raid0(./x.img, ram(1G))".to_owned())]).unwrap()
}

#[test]
fn a_directory_holds_one_campaign_on_the_same_files() {
    let dir = tempfile::tempdir().unwrap();
    let (c1, c2) = (Path::new("/c1"), Path::new("/c2"));
    drop(Store::create(dir.path(), &relative().rooted_in(c1)).unwrap());
    let held = Store::open(dir.path()).unwrap().campaign().unwrap();
    // Continuing from the stored campaign continues on its own files.
    Store::create(dir.path(), &held.rooted_in(c2)).unwrap();
    let error = Store::create(dir.path(), &relative().rooted_in(c2)).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, LabError::OtherWorkingDir { .. }), "{text}");
    assert!(text.contains("/c1") && text.contains("/c2") && text.contains("resume"), "{text}");
    let other = Campaign { seed: Some(7), ..relative() };
    let error = Store::create(dir.path(), &other.rooted_in(c2)).unwrap_err();
    assert!(matches!(error, LabError::OtherCampaign { .. }), "{error}");
}

/// Makes a directory of an earlier version: without a mark, without a working directory.
fn of_an_earlier_version(dir: &Path, campaign: &Campaign) {
    let mut store = Store::create(dir, campaign).unwrap();
    let session = store.begin_session(1, &read_environment(Vec::new())).unwrap();
    store.save_trial(session, &kept(1, Outcome::Ok), None).unwrap();
    store.db.execute_batch("PRAGMA application_id = 0").unwrap();
}

#[test]
fn results_of_an_earlier_version_are_read() {
    let dir = tempfile::tempdir().unwrap();
    of_an_earlier_version(dir.path(), &relative());
    let results = Store::open(dir.path()).unwrap().results().unwrap();
    assert_eq!((results.planned.campaign, results.trials.len()), (relative(), 1));
    // But it cannot be continued, since its files are unknown.
    let error = Store::create(dir.path(), &relative().rooted_in(Path::new("/c1"))).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, LabError::NoWorkingDir { .. }), "{text}");
    assert!(text.contains("./x.img") && text.contains("--out"), "{text}");

    let dir = tempfile::tempdir().unwrap();
    of_an_earlier_version(dir.path(), &campaign());
    let store = Store::create(dir.path(), &campaign()).unwrap();
    assert_eq!(store.measured_trials().unwrap().len(), 1, "it knows which, and goes on");
}

/// Returns names, bytes and times of all files in a folder.
fn picture(dir: &Path) -> BTreeMap<String, (Vec<u8>, std::time::SystemTime)> {
    let entries = fs::read_dir(dir).unwrap().map(Result::unwrap);
    let look = |entry: fs::DirEntry| {
        let (name, meta) = (entry.file_name().into_string().unwrap(), entry.metadata().unwrap());
        let bytes = if meta.is_file() { fs::read(entry.path()).unwrap() } else { Vec::new() };
        (name, (bytes, meta.modified().unwrap()))
    };
    entries.map(look).collect()
}

fn foreign_database(dir: &Path, more: &str) {
    let db = Connection::open(dir.join("results.sqlite")).unwrap();
    db.execute_batch(&format!("CREATE TABLE trial (mine); {more}")).unwrap();
}

#[test]
fn what_is_in_a_folder_stays() {
    for name in ["campaign.toml", "report.md", "samples.csv", "raw", ".hidden"] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(name), "# mine\n").unwrap();
        let before = picture(dir.path());
        let error = Store::create(dir.path(), &campaign()).unwrap_err();
        assert!(matches!(error, LabError::Occupied { .. }), "{error}");
        assert!(error.to_string().contains(name), "{error}");
        assert_eq!(picture(dir.path()), before);
    }
    // The same beside an empty database.
    let dir = tempfile::tempdir().unwrap();
    for name in ["results.sqlite", "notes"] {
        fs::write(dir.path().join(name), "").unwrap();
    }
    let before = picture(dir.path());
    assert!(matches!(Store::create(dir.path(), &campaign()), Err(LabError::Occupied { .. })));
    assert_eq!(picture(dir.path()), before);
}

#[test]
fn a_database_of_another_program_stays_as_it_is() {
    for more in
        ["", "PRAGMA user_version = 2", "PRAGMA application_id = 7", "PRAGMA journal_mode = WAL"]
    {
        let dir = tempfile::tempdir().unwrap();
        foreign_database(dir.path(), more);
        let before = picture(dir.path());
        for result in [Store::create(dir.path(), &campaign()), Store::open(dir.path())] {
            assert!(matches!(result, Err(LabError::ForeignDatabase { .. })), "{more}: {result:?}");
        }
        assert_eq!(picture(dir.path()), before, "{more}");
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("results.sqlite"), "no database at all").unwrap();
    let before = picture(dir.path());
    Store::create(dir.path(), &campaign()).unwrap_err();
    assert_eq!(picture(dir.path()), before);
}

#[test]
fn a_making_that_was_cut_off_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("results.sqlite"), "").unwrap();
    assert!(matches!(Store::open(dir.path()), Err(LabError::NoResults { .. })));
    Store::create(dir.path(), &campaign()).unwrap();
    assert_eq!(Store::open(dir.path()).unwrap().campaign().unwrap(), campaign());
}

#[test]
fn what_a_user_wrote_into_the_copy_stays() {
    let dir = tempfile::tempdir().unwrap();
    drop(Store::create(dir.path(), &campaign()).unwrap());
    let copy = dir.path().join("campaign.toml");
    fs::write(&copy, "# measured in the cellar\n").unwrap();
    drop(Store::create(dir.path(), &campaign()).unwrap());
    assert_eq!(fs::read_to_string(&copy).unwrap(), "# measured in the cellar\n");
    fs::remove_file(&copy).unwrap();
    drop(Store::create(dir.path(), &campaign()).unwrap());
    assert_eq!(parse_campaign(&fs::read_to_string(&copy).unwrap(), "copy").unwrap(), campaign());
}

fn run_into(dir: &Path) -> Store {
    let mut store = Store::create(dir, &campaign()).unwrap();
    store.lock().unwrap();
    let session = store.begin_session(1, &read_environment(Vec::new())).unwrap();
    store.save_trial(session, &kept(1, Outcome::Ok), None).unwrap();
    store
}

/// Also with names that have a meaning in a URI.
#[test]
fn reading_leaves_no_trace() {
    let parent = tempfile::tempdir().unwrap();
    for name in ["plain", "a?mode=rw#b %41"] {
        let dir = parent.path().join(name);
        drop(run_into(&dir));
        let before = picture(&dir);
        assert!(!before.keys().any(|name| name.starts_with("results.sqlite-")), "{before:?}");
        assert_eq!(Store::open(&dir).unwrap().results().unwrap().trials.len(), 1);
        assert_eq!(picture(&dir), before);
    }
}

#[test]
fn a_run_that_is_at_work_or_was_killed_can_be_read() {
    let parent = tempfile::tempdir().unwrap();
    let (dir, killed) = (parent.path().join("run"), parent.path().join("killed"));
    let store = run_into(&dir);
    assert_eq!(Store::open(&dir).unwrap().measured_trials().unwrap().len(), 1);
    // The state of a run that ends without closing anything.
    fs::create_dir(&killed).unwrap();
    for name in ["results.sqlite", "results.sqlite-wal", "results.sqlite-shm", "lock"] {
        fs::copy(dir.join(name), killed.join(name)).unwrap();
    }
    drop(store);
    let before = picture(&killed);
    assert_eq!(Store::open(&killed).unwrap().measured_trials().unwrap().len(), 1);
    let after = picture(&killed);
    assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    for name in ["results.sqlite", "results.sqlite-wal"] {
        assert_eq!(after[name], before[name]);
    }
    drop(Store::create(&killed, &campaign()).unwrap());
    assert!(!killed.join("results.sqlite-wal").exists(), "the next run puts it into the file");
    assert_eq!(Store::open(&killed).unwrap().measured_trials().unwrap().len(), 1);
}

#[test]
fn readers_do_not_keep_each_other_out_and_a_run_waits_for_them() {
    let dir = tempfile::tempdir().unwrap();
    drop(run_into(dir.path()));
    let (one, two) = (Store::open(dir.path()).unwrap(), Store::open(dir.path()).unwrap());
    let mut run = Store::create(dir.path(), &campaign()).unwrap();
    assert!(matches!(run.lock(), Err(LabError::Busy { .. })));
    drop((one, two));
    run.lock().unwrap();
}

#[test]
fn what_is_known_of_a_subject_outlives_its_declaration() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path(), &campaign()).unwrap();
    let declared = |name: &str| SubjectFacts {
        name: name.to_owned(),
        size_bytes: None,
        members: Vec::new(),
        commands: Vec::new(),
    };
    let found = |name: &str| SubjectFacts {
        size_bytes: Some(1 << 30),
        commands: vec!["braid serve".to_owned()],
        ..declared(name)
    };
    for (position, name) in ["a", "b"].into_iter().enumerate() {
        store.save_subject(position, &declared(name)).unwrap();
    }
    store.save_subject(1, &found("b")).unwrap();
    for (position, name) in ["a", "b"].into_iter().enumerate() {
        store.save_subject(position, &declared(name)).unwrap();
    }
    assert_eq!(store.results().unwrap().facts, [declared("a"), found("b")]);
    store.save_subject(1, &SubjectFacts { size_bytes: Some(1), ..found("b") }).unwrap();
    assert_eq!(store.results().unwrap().facts[1].size_bytes, Some(1));
}

#[test]
fn a_second_run_is_kept_out_until_the_first_is_over() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(dir.path(), &campaign()).unwrap();
    store.lock().unwrap();
    let mut second = Store::create(dir.path(), &campaign()).unwrap();
    assert!(matches!(second.lock(), Err(LabError::Busy { .. })));
    drop(store);
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
        let error = store.results().unwrap_err().to_string();
        assert!(error.contains("which this program does not know"), "{damage}: {error}");
        store.db.execute_batch("ROLLBACK TO s; RELEASE s").unwrap();
    }
    store.results().unwrap();
}

#[test]
fn what_is_made_to_keep_its_reader_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = |name: &str| {
        let path = dir.path().join(name);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &path, kind, 0o600.into(), 0).unwrap();
        path
    };
    let results = pipe("results.sqlite");
    let error = Store::open(dir.path()).unwrap_err();
    assert!(error.to_string().contains("it is no regular file"), "{error}");
    fs::remove_file(results).unwrap();
    drop(Store::create(dir.path(), &campaign()).unwrap());
    let lock = super::lock_in(dir.path());
    let _ = fs::remove_file(&lock);
    pipe(lock.file_name().unwrap().to_str().unwrap());
    Store::open(dir.path()).expect("a lock that is a pipe is none");
    let db = Connection::open(dir.path().join("results.sqlite")).unwrap();
    let endless = "ALTER TABLE trial RENAME TO t; CREATE VIEW trial AS WITH RECURSIVE r(x) AS \
                   (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT x FROM r";
    db.execute_batch(endless).unwrap();
    drop(db);
    assert!(matches!(Store::open(dir.path()), Err(LabError::ForeignDatabase { .. })));
}
