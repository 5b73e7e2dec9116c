//! Programs that pretend to be smartctl.

use std::os::unix::fs::PermissionsExt;

use super::*;

const LONG: Duration = Duration::from_secs(60);

/// A `smartctl` of this shell script.
fn pretender(folder: &Path, script: &str) -> PathBuf {
    let path = folder.join("smartctl");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a script");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("its mode");
    path
}

/// Returns the answer of a disk. A process that another test forks holds the script open for writing for a moment, in which
/// it cannot be run.
fn asked(program: &Path, limit: Duration) -> Result<SmartStatus, String> {
    loop {
        match ask(program, "sdx", limit, &Hanging::default()) {
            Err(why) if why.contains("Text file busy") => {
                std::thread::sleep(Duration::from_millis(5))
            }
            answer => return answer,
        }
    }
}

#[test]
fn smartctl_is_asked_for_json_and_not_to_wake_the_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let note = folder.path().join("asked");
    let well = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/smart/ata-well.json");
    let script = format!("echo \"$*\" > {}; cat {well}", note.display());
    let answer = asked(&pretender(folder.path(), &script), LONG).expect("an answer");
    assert_eq!((answer.passed, answer.power_on_hours), (Some(true), Some(26_733)));
    let said = std::fs::read_to_string(note).expect("a note");
    assert!(said.starts_with("--json --nocheck=standby "), "{said}");
    assert!(said.ends_with(" /dev/sdx\n"), "{said}");
}

#[test]
fn one_that_hangs_talks_nonsense_or_without_end_is_no_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let refusal = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/smart/usb-bridge.json");
    for (script, limit, why) in [
        ("exec sleep 600".to_owned(), Duration::from_secs(1), "did not end within 1 s"),
        ("echo smartctl 6.6".to_owned(), LONG, "is not understood"),
        ("cat /dev/zero".to_owned(), LONG, "wrote more than 1048576 bytes"),
        ("kill -9 $$".to_owned(), LONG, "ended by a signal"),
        (format!("cat {refusal}; exit 1"), LONG, "Unknown USB bridge"),
    ] {
        let answer = asked(&pretender(folder.path(), &script), limit).expect_err("none");
        assert!(answer.contains(why), "{script}: {answer}");
    }
    assert!(asked(&folder.path().join("none"), LONG).is_err_and(|why| why.contains("cannot run")));
}

#[test]
fn a_disk_that_smartctl_hangs_with_is_not_asked_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let hanging = Hanging::default();
    // It keeps nothing of this process open, should the test fail before its end.
    let sleeps = Command::new("sleep")
        .arg("60")
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("a process");
    hanging.lock().expect("no test panicked").insert("sdx".to_owned(), sleeps);
    let program = folder.path().join("none");
    let answer = ask(&program, "sdx", LONG, &hanging).expect_err("it hangs");
    assert!(answer.contains("hangs with it"), "{answer}");
    let answer = ask(&program, "sdy", LONG, &hanging).expect_err("there is no program");
    assert!(answer.contains("cannot run"), "{answer}");
    hanging
        .lock()
        .expect("no test panicked")
        .get_mut("sdx")
        .expect("it is there")
        .kill()
        .expect("it ends");
    let deadline = Instant::now() + LONG;
    while ask(&program, "sdx", LONG, &hanging).is_err_and(|why| why.contains("hangs")) {
        assert!(Instant::now() < deadline, "it is over");
    }
    assert!(hanging.lock().expect("no test panicked").is_empty());
}

fn disk(name: Option<&str>, seen: Option<u64>) -> DiskStatus {
    let smart = seen.map(|seen| SmartStatus { seen, ..SmartStatus::default() });
    DiskStatus { disk: name.map(ToOwned::to_owned), smart, ..DiskStatus::default() }
}

#[test]
fn what_a_disk_does_not_say_now_stands_unless_it_is_another_disk() {
    let known: ByMember = [
        ("/dev/a".to_owned(), disk(Some("sda"), Some(1))),
        ("/dev/b".to_owned(), disk(Some("sdb"), Some(1))),
        ("/dev/c".to_owned(), disk(Some("sdc"), Some(1))),
    ]
    .into();
    let new: ByMember = [
        ("/dev/a".to_owned(), disk(Some("sda"), None)),
        ("/dev/b".to_owned(), disk(Some("sdx"), None)),
        ("/dev/c".to_owned(), disk(Some("sdc"), Some(2))),
        ("/dev/d".to_owned(), disk(None, None)),
    ]
    .into();
    let found = merged(&known, new);
    let seen = |member: &str| found[member].smart.as_ref().map(|smart| smart.seen);
    assert_eq!(["/dev/a", "/dev/b", "/dev/c", "/dev/d"].map(seen), [Some(1), None, Some(2), None]);
}

#[test]
fn what_is_no_disk_says_so_and_asks_nobody() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let path = file.path().display().to_string();
    let asked: Asked =
        [(path.clone(), true), ("ram(1M)".to_owned(), false), ("/none/x".to_owned(), true)].into();
    let found = look(asked, &Hanging::default());
    let why = |member: &str| found[member].absent.clone().expect("a reason");
    assert!(why(&path).contains("no disk"));
    assert!(why("ram(1M)").contains("in memory"));
    assert!(why("/none/x").contains("No such file"));
    assert!(found.values().all(|status| status.disk.is_none() && status.smart.is_none()));
}

#[test]
fn what_is_known_is_kept_and_read_by_others() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(known_disks(folder.path()).expect("nothing is there"), ByMember::new());
    let mut disks = Disks::open(folder.path(), 60);
    let found: ByMember = [("/dev/a".to_owned(), disk(Some("sda"), Some(1)))].into();
    let given = found.clone();
    disks.looking = Some(std::thread::spawn(move || given));
    disks.wait();
    disks.collect();
    assert_eq!(disks.known, found);
    assert_eq!(known_disks(folder.path()).expect("it was kept"), found);
    assert_eq!(Disks::open(folder.path(), 60).known, found);
    std::fs::write(folder.path().join(FILE), "[").expect("written");
    assert!(known_disks(folder.path()).is_err());
    assert_eq!(Disks::open(folder.path(), 60).known, ByMember::new(), "it is asked for anew");
}

/// From what is found in a thread to what is told, without a disk: a look that finds nothing new ends nothing.
#[test]
fn what_disks_say_is_told_with_the_volumes_they_are_below() {
    let folder = tempfile::tempdir().expect("a folder");
    let status = serde_json::json!({
        "output_version": 1, "name": "home", "state": "online", "why": null, "next": null, "stack": "/dev/a",
        "device": {"size_bytes": 1, "logical_block_bytes": 512, "physical_block_bytes": 512,
            "optimal_io_bytes": 512, "read_only": false, "volatile": false},
        "warnings": [], "pid": 1, "uptime_seconds": 1, "io": "threads",
        "members": [{"member": "/dev/none-of-this-name", "size_bytes": 1, "direct": true, "failures": 0,
            "last_failure": null}],
        "shards": 1, "cpu_ns": 1,
    });
    let status: braid_control::Status = serde_json::from_value(status).expect("a status");
    let seen = || Observation {
        volumes: [("home".to_owned(), Seen::Up(Box::new(status.clone())))].into(),
        memory: None,
    };
    let config: crate::config::Config = toml::from_str("settle = \"0\"").expect("a configuration");
    let policy = config.policy();
    let mut known = crate::watch::Known::default();
    let mut disks = Disks::open(folder.path(), 3_600);
    let mut look = |smart: Option<SmartStatus>, now| {
        // As if it had been looked for, and found.
        disks.due = Instant::now() + LONG;
        let status = DiskStatus { smart, ..disk(Some("sdx"), None) };
        let found: ByMember = [("/dev/none-of-this-name".to_owned(), status)].into();
        disks.looking = Some(std::thread::spawn(move || found));
        disks.wait();
        let mut seen = seen();
        disks.turn(&mut seen);
        let told = known.step(&seen, &policy, now);
        told.into_iter()
            .map(|event| event.name)
            .filter(|name| name != "NewArray")
            .collect::<Vec<_>>()
    };
    let failing = SmartStatus { failing: vec!["it is worn".to_owned()], ..SmartStatus::default() };
    assert_eq!(look(Some(SmartStatus::default()), 10), [""; 0]);
    assert_eq!(look(Some(failing), 20), ["DiskFailing"]);
    assert_eq!(look(None, 30), [""; 0], "it sleeps, and is as it was");
    assert_eq!(look(Some(SmartStatus::default()), 40), ["WellAgain"]);
}
