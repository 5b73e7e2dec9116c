use super::*;
use crate::fixture::{Given, campaign, environment, headline, results};
use braid_lab::store::Results;

const PLAN: &str = r#"
name = "sticks"
repetitions = 2
[[subject]]
name = "single"
path = "/dev/sda"
baseline = true
[[subject]]
name = "stripe"
stack = "raid0(chunk=64K, /dev/sda, /dev/sdb)"
[[job]]
tool = "meter"
"#;

fn made_up() -> Results {
    results(&campaign(PLAN), |subject, workload, repetition| {
        match (subject.name.as_str(), repetition) {
            ("single", 2) => Given::Failed("the device \u{1b}[31mwent away"),
            ("single", _) => headline(workload, 100e6),
            _ => headline(workload, 190e6),
        }
    })
}

fn store(dir: &Path, results: &Results) {
    let mut store = Store::create(dir, &results.campaign).unwrap();
    let session = store.begin_session(1_800_000_000, &environment()).unwrap();
    for trial in &results.trials {
        store.save_trial(session, trial, None).unwrap();
    }
}

#[test]
fn results_are_found_in_a_folder_and_one_below() {
    let parent = tempfile::tempdir().unwrap();
    let made_up = made_up();
    store(&parent.path().join("b"), &made_up);
    store(&parent.path().join("year/a"), &made_up);
    store(&parent.path().join("too/deep/here"), &made_up);
    let broken = parent.path().join("broken");
    fs::create_dir(&broken).unwrap();
    fs::write(broken.join("results.sqlite"), b"no database").unwrap();
    let listed = find_results(parent.path()).unwrap();
    let names: Vec<String> = listed
        .iter()
        .map(|(dir, _)| dir.strip_prefix(parent.path()).unwrap().display().to_string())
        .collect();
    assert_eq!(names, ["b", "broken", "year/a"]);
    assert!(listed[1].1.is_err());
    let found = listed[0].1.as_ref().unwrap();
    assert_eq!((found.name.as_str(), found.done, found.planned), ("sticks", 3, 4));
    assert!(found.answer.contains("stripe"), "{}", found.answer);
    let text = list(parent.path(), false).unwrap();
    assert!(text.contains("3 of 4 trials"), "{text}");
    assert!(text.contains("2027-01-15 08:00 UTC"), "{text}");
    assert_eq!(text.lines().count(), 6, "{text}");
    assert_eq!(find_results(&parent.path().join("b")).unwrap().len(), 1);
    assert!(list(&parent.path().join("nowhere"), false).is_err());
    let json = list(parent.path(), true).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["output_version"], 1);
    assert_eq!(
        (&json["results"][0]["name"], &json["results"][0]["done"]),
        (&"sticks".into(), &3.into())
    );
    assert!(json["results"][1]["error"].is_string(), "{json}");
}

#[test]
fn a_cell_is_shown_with_all_its_repetitions() {
    let made_up = made_up();
    let text = shown(&made_up, "STRIPE:");
    assert!(text.starts_with("stripe: sequential read 1M\n"), "{text}");
    let numbers = text.lines().find(|line| line.contains("throughput [MiB/s]")).unwrap();
    assert_eq!(numbers.split_whitespace().skip(2).collect::<Vec<_>>(), ["181"; 3]);
    assert_eq!(text.matches("$ meter --of raid0").count(), 2);
    assert!(!text.contains("single"), "{text}");
    let failed = shown(&made_up, "single");
    assert!(failed.contains("failed: the device \u{fffd}[31mwent away"), "{failed}");
    let number = made_up.trials.iter().find(|trial| trial.subject == "single").unwrap().number;
    assert!(shown(&made_up, &number.to_string()).starts_with("single: "));
    assert!(shown(&made_up, "*stripe*read*").starts_with("stripe: "));
    for nothing in ["stripe*write", "tape"] {
        let Shown::Nothing(why) = show_results(&made_up, nothing) else { panic!("{nothing}") };
        assert!(why.starts_with(&format!("nothing matches {nothing:?}; there are:\n")), "{why}");
        assert!(why.contains("\n  stripe: seq") && !why.ends_with('\n'), "{why}");
    }
}

fn shown(results: &Results, filter: &str) -> String {
    match show_results(results, filter) {
        Shown::Cells(text) => text,
        Shown::Nothing(why) => panic!("{why}"),
    }
}

#[test]
fn a_folder_without_results_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let text = list(dir.path(), false).unwrap();
    assert!(text.starts_with("no results in ") && text.ends_with("below it\n"), "{text}");
    assert!(list(dir.path(), true).unwrap().contains("\"results\": []"));
}

#[test]
fn looking_writes_nothing_and_names_what_is_foreign() {
    let parent = tempfile::tempdir().unwrap();
    let (ours, theirs) = (parent.path().join("ours"), parent.path().join("theirs"));
    store(&ours, &made_up());
    fs::create_dir(&theirs).unwrap();
    let db = rusqlite::Connection::open(theirs.join("results.sqlite")).unwrap();
    db.execute_batch("CREATE TABLE trial (mine)").unwrap();
    drop(db);
    let files = |dir: &Path| -> Vec<(PathBuf, Vec<u8>)> {
        let paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = paths
            .filter(|path| path.is_file())
            .map(|path| (path.clone(), fs::read(&path).unwrap()))
            .collect();
        files.sort();
        files
    };
    let before = [files(&ours), files(&theirs)];
    let text = list(parent.path(), false).unwrap();
    assert!(text.contains("is a database of another program"), "{text}");
    show(&ours, None).unwrap();
    assert_eq!([files(&ours), files(&theirs)], before);
}
