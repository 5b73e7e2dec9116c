//! The runner on programs that behave as libtest does, and badly.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

/// A program with one test for each thing that may happen.
const PROGRAM: &str = r#"#!/bin/bash
case "$*" in
*--ignored*) echo 'never: test' ;;
*--list*) printf '%s: test\n' good bad hangs leaves mounts skips never ;;
*'--exact good'*) [ "$(pwd)" = "$CARGO_MANIFEST_DIR" ] ;;
*'--exact bad'*) echo 'what it printed'; exit 101 ;;
*'--exact hangs'*) setsid sleep 1000 & echo $! >"$CARGO_MANIFEST_DIR/child"; sleep 1000 ;;
*'--exact leaves'*) setsid sleep 1001 & echo $! >"$CARGO_MANIFEST_DIR/left" ;;
*'--exact mounts'*) mount -t tmpfs none "$CARGO_MANIFEST_DIR" || echo 'skipped: no mounts here' ;;
*'--exact skips'*) echo 'skipped: no such thing here' ;;
*) exit 3 ;;
esac
"#;

const RULES: &str = "limit_seconds = 60\nat_most = 8\n[[group]]\nname = 'short'\ntests = ['p t hangs']\n\
                     limit_seconds = 1\nwhy = 'it hangs'\n";

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let program = folder.join("program");
    fs::write(&program, PROGRAM).expect("a script");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a script's mode");
    let manifest = folder.join("Cargo.toml");
    let message = format!(
        r#"{{"reason":"compiler-artifact","package_id":"path+file:///x#p@0.1.0","manifest_path":{manifest:?},"target":{{"kind":["test"],"name":"t"}},"profile":{{"test":true}},"executable":{program:?}}}"#
    );
    fs::write(folder.join("messages"), message).expect("messages");
    fs::write(folder.join("run.toml"), RULES).expect("rules");
    Command::new(env!("CARGO_BIN_EXE_braid-runner"))
        .args(["--messages", "messages", "--rules", "run.toml", "--times", "times"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the runner starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// True if the process whose number is in this file is alive.
fn is_alive(file: &Path) -> bool {
    let pid: u32 = fs::read_to_string(file).expect("a number").trim().parse().expect("a number");
    braid_runner::procfs::usage(pid).is_some_and(|usage| !usage.has_ended)
}

#[test]
fn each_way_to_end_is_told_and_nothing_is_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(folder.path(), &[]);
    let out = text(&output.stdout);
    assert!(!output.status.success(), "{out}");
    for part in [
        "what it printed",
        "FAILED: p t bad: it failed\n    make only TEST='p t bad'",
        "FAILED: p t hangs: it did not end within 1 s, and was killed",
        "FAILED: p t leaves: it left a process behind, which was killed: sleep 1001",
        "skipped: no such thing here (p t skips)",
        "\n3 passed, 3 failed\n",
    ] {
        assert!(out.contains(part), "{part:?} is not in {out}\n{}", text(&output.stderr));
    }
    // What a test mounts, others do not see.
    let mounts = fs::read_to_string("/proc/self/mounts").expect("the table of mounts");
    let is_mounted = mounts.contains(folder.path().to_str().expect("a path in UTF-8"));
    if is_mounted {
        let _ = Command::new("umount").arg(folder.path()).status();
    }
    assert!(!is_mounted, "{out}");
    assert!(!is_alive(&folder.path().join("child")) && !is_alive(&folder.path().join("left")));
    let slow = text(&run(folder.path(), &["--slow"]).stdout);
    assert!(slow.contains("6 tests in") && slow.contains(" p t hangs\n"), "{slow}");
}

#[test]
fn some_tests_are_run_as_often_as_wanted() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(folder.path(), &["--rounds", "2", "--skip", "skips", "good", "skips"]);
    let out = text(&output.stdout);
    assert!(output.status.success(), "{out}");
    assert_eq!(out.matches("\n1 passed, 0 failed\n").count(), 2, "{out}");
    let none = run(folder.path(), &["no such test"]);
    assert!(!none.status.success() && text(&none.stderr).contains("no test matches"));
}
