//! scripts/nightly.sh with programs in place of make and cargo: the table has each step, however the run ends.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Some targets fail, one is skipped in part, one never ends.
const MAKE: &str = "#!/bin/sh
echo \"make $*\"
case \"$*\" in
'test') printf 'skipped: no fio (p t a)\\n7 passed, 0 failed\\n' ;;
'sim SEEDS=3') echo 'test result: ok. 5 passed; 0 failed; 1 ignored' ;;
'foreign') printf '2 passed, 1 failed\\n'; exit 2 ;;
'guest') [ ! -e hangs ] || { echo $$ >pid; mv pid began; exec sleep 1000; } ;;
esac
";
const CARGO: &str =
    "#!/bin/sh\ncase \"$*\" in *fuzz*) exit 101 ;; *'fetch db') exit 1 ;; *) exit 0 ;; esac\n";
/// Only its first order fails.
const SIM: &str = "#!/bin/sh\n[ \"$1\" != failing ]\n";

/// A folder that the script takes for the repository.
fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let put = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, text).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a script's mode");
    };
    put("scripts/nightly.sh", include_str!("../../../scripts/nightly.sh"));
    put("bin/make", MAKE);
    put("bin/cargo", CARGO);
    put("target/release/braid-sim", SIM);
    folder
}

fn start(folder: &Path, steps: &[&str]) -> Child {
    let path = std::env::var("PATH").expect("a search path");
    Command::new(folder.join("scripts/nightly.sh"))
        .args(steps)
        .env("PATH", format!("{}:{path}", folder.join("bin").display()))
        .env("SEEDS", "3")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the script starts")
}

fn ended(child: Child) -> (Option<i32>, String) {
    let Output { status, stdout, stderr } = child.wait_with_output().expect("it ends");
    let text = [stdout, stderr].concat();
    (status.code(), String::from_utf8_lossy(&text).into_owned())
}

/// The result of a step and its tests, as the table has them.
#[track_caller]
fn row<'a>(said: &'a str, step: &str) -> (&'a str, &'a str) {
    let rows = said.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    let mut rows = rows.filter(|row| row.len() == 6 && row[1] == step);
    let row = rows.next().unwrap_or_else(|| panic!("no {step}: {said}"));
    (row[2], row[4])
}

#[test]
fn a_step_that_fails_ends_no_other_and_all_are_in_the_table() {
    let folder = repository();
    let (code, said) = ended(start(folder.path(), &[]));
    assert_eq!(code, Some(1), "{said}");
    for step in ["inputs", "hostile", "members", "soak", "guest", "memory", "cuts", "deny"] {
        assert_eq!(row(&said, step).0, "ok", "{step}: {said}");
    }
    assert_eq!(row(&said, "test"), ("ok", "7 passed, 0 failed"));
    assert_eq!(row(&said, "seeds"), ("ok", "5 passed, 0 failed"));
    assert_eq!(row(&said, "fuzz").0, "skipped");
    assert_eq!(row(&said, "foreign"), ("FAILED", "2 passed, 1 failed"));
    assert_eq!(row(&said, "crashes").0, "FAILED", "its first command failed: {said}");
    let skipped = said.split_once("\nskipped:\n").expect("reasons").1;
    for reason in ["test: no fio (p t a)", "fuzz: cargo +nightly fuzz", "deny: the advisories"] {
        assert!(skipped.contains(reason), "{reason} in {skipped}");
    }
    let (code, said) = ended(start(folder.path(), &["test", "seeds"]));
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("foreign"), "{said}");
}

#[test]
fn a_run_that_is_ended_has_its_table() {
    let folder = repository();
    fs::write(folder.path().join("hangs"), "").expect("a file");
    let child = start(folder.path(), &["test", "guest", "deny"]);
    let limit = Instant::now() + Duration::from_secs(60);
    while !folder.path().join("began").exists() {
        assert!(Instant::now() < limit, "it does not begin");
        std::thread::yield_now();
    }
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    let pid = pid.expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    let (code, said) = ended(child);
    assert_eq!(code, Some(1), "{said}");
    assert_eq!(row(&said, "test").0, "ok");
    assert_eq!(row(&said, "guest").0, "ended");
    assert_eq!(row(&said, "deny").0, "none");
    let step = fs::read_to_string(folder.path().join("began")).expect("a number");
    let usage = braid_runner::procfs::usage(step.trim().parse().expect("a number"));
    assert!(usage.is_none_or(|usage| usage.has_ended), "the step goes on");
}

#[test]
fn a_step_that_is_none_is_refused() {
    let folder = repository();
    let (code, said) = ended(start(folder.path(), &["tests"]));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("tests is no step") && said.contains(" foreign "), "{said}");
}
