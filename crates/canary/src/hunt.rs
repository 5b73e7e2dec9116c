//! The search for planted faults, by the tests of a crate.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{Fault, PLANTED};

/// Time that a test with a fault may take.
const LIMIT: Duration = Duration::from_secs(60);

/// The document that lists the faults, in the folder of the repository.
const DOCUMENT: &str = "docs/durability.md";

/// Plants those of `faults` that tests of the calling program find: `file` is the caller's `file!()`. Each test runs
/// again, in a process with the fault.
///
/// # Panics
/// If a test passes, or does not end; if another test program has no hunt for its faults; if the document does not
/// list the same faults.
pub fn hunt(faults: &[Fault], file: &str) {
    // Tests run in the folder of their crate.
    let folder = std::env::current_dir().expect("a test runs in a folder");
    let of_crate = folder.file_name().and_then(|name| name.to_str()).expect("a folder of a crate");
    let document = folder.join("../..").join(DOCUMENT);
    let document = std::fs::read_to_string(document).expect("the document of the faults");
    check_document(faults, of_crate, &document);
    let own = file.split_once(&format!("{of_crate}/")).expect("a file of the crate").1;
    let mut survived = Vec::new();
    for fault in faults {
        let (of, test) = fault.found_by.split_once("::").expect("a file and a test");
        let (of, test) = place(of, test);
        if of != own {
            check_hunted(&folder, &of);
        } else if let Err(why) = find(fault, &test) {
            survived.push(format!("{}: {} {why}", fault.name, fault.found_by));
        }
    }
    assert!(survived.is_empty(), "planted faults that were not found: {survived:#?}");
}

/// Returns the file in which the test program of a file has its hunt, and the path of a test in the program.
///
/// ```text
///   src/session/blocks.rs::x     src/canary.rs          session::blocks::tests::x
///   tests/writes.rs::x           tests/writes.rs        x
///   tests/guest/hostile.rs::x    tests/guest/main.rs    hostile::x
/// ```
fn place(file: &str, test: &str) -> (String, String) {
    let name = file.strip_suffix(".rs").expect("a file of source text");
    if let Some(module) = name.strip_prefix("src/") {
        let module = module.strip_suffix("/mod").unwrap_or(module).replace('/', "::");
        return ("src/canary.rs".to_owned(), format!("{module}::tests::{test}"));
    }
    match name.rsplit_once('/') {
        Some((folder, module)) if folder != "tests" => {
            let module = if module == "main" { String::new() } else { format!("{module}::") };
            (format!("{folder}/main.rs"), format!("{module}{test}"))
        }
        _ => (file.to_owned(), test.to_owned()),
    }
}

/// Panics unless there is a hunt in `file` of the crate's folder.
fn check_hunted(folder: &Path, file: &str) {
    let text = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
    assert!(
        text.contains("braid_canary::hunt("),
        "{file} has no hunt for the faults that it finds"
    );
}

/// Panics unless the document has a line for each fault of the crate, and no others.
fn check_document(faults: &[Fault], of_crate: &str, document: &str) {
    let lines = |start: &str| document.lines().filter(|line| line.starts_with(start)).count();
    for Fault { name, found_by } in faults {
        let start = format!("| `{name}` |");
        let end = format!("| `crates/{of_crate}/{found_by}` |");
        let is_it = |line: &str| line.starts_with(&start) && line.ends_with(&end);
        assert!(document.lines().any(is_it), "{DOCUMENT} has no line {start} … {end}");
    }
    assert_eq!(
        lines(&format!("| `{of_crate}::")),
        faults.len(),
        "faults of {of_crate} in {DOCUMENT}"
    );
}

/// Runs `test` with the fault.
///
/// # Errors
/// It does not fail.
fn find(fault: &Fault, test: &str) -> Result<(), String> {
    let program = std::env::current_exe().expect("the test's program");
    let mut child = Command::new(program)
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(PLANTED, fault.name)
        .env("RUST_BACKTRACE", "0")
        .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the test's program again");
    let mut stdout = child.stdout.take().expect("its output is a pipe");
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        // What was read until then is what there is.
        let _ = stdout.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let ended = wait(&mut child);
    let text = reader.join().expect("a reader of a pipe");
    match ended {
        None => Err(format!("did not end within {LIMIT:?}")),
        Some(false) => Ok(()),
        Some(true) if text.contains("skipped") => {
            println!("{}: not planted, for its test was skipped: {text}", fault.name);
            Ok(())
        }
        Some(true) if text.contains("running 0 tests") => Err("is no test".to_owned()),
        Some(true) => Err("passes".to_owned()),
    }
}

/// Returns true if the process succeeded; `None`, and it is killed, if it does not end.
fn wait(child: &mut Child) -> Option<bool> {
    let end = Instant::now() + LIMIT;
    while Instant::now() < end {
        if let Some(status) = child.try_wait().expect("a process of our own") {
            return Some(status.success());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().expect("a process of our own");
    child.wait().expect("a process of our own");
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROBE: Fault = Fault { name: "canary::Probe", found_by: "src/hunt.rs::a_rule" };

    /// Stands for a test of a rule, which the fault breaks.
    #[test]
    fn a_rule() {
        assert!(!crate::is_planted(PROBE.name));
    }

    #[test]
    fn a_fault_is_found_by_a_test_that_fails_with_it() {
        assert_eq!(find(&PROBE, "hunt::tests::a_rule"), Ok(()));
        let passes = find(&PROBE, "hunt::tests::each_program_has_its_tests");
        assert_eq!(passes, Err("passes".to_owned()));
        assert_eq!(find(&PROBE, "hunt::tests::none"), Err("is no test".to_owned()));
    }

    #[test]
    fn each_program_has_its_tests() {
        for (file, expected) in [
            ("src/session/blocks.rs", ("src/canary.rs", "session::blocks::tests::x")),
            ("src/session/mod.rs", ("src/canary.rs", "session::tests::x")),
            ("tests/writes.rs", ("tests/writes.rs", "x")),
            ("tests/guest/hostile.rs", ("tests/guest/main.rs", "hostile::x")),
            ("tests/guest/main.rs", ("tests/guest/main.rs", "x")),
        ] {
            assert_eq!(place(file, "x"), (expected.0.to_owned(), expected.1.to_owned()), "{file}");
        }
    }

    #[test]
    fn a_document_lists_the_same_faults() {
        let line = "| `canary::Probe` | what it does | `crates/canary/src/hunt.rs::a_rule` |";
        check_document(&[PROBE], "canary", line);
        for other in ["", "| `canary::Probe` | what it does | `crates/canary/src/hunt.rs::b` |"] {
            assert!(
                std::panic::catch_unwind(|| check_document(&[PROBE], "canary", other)).is_err()
            );
        }
        assert!(std::panic::catch_unwind(|| check_document(&[], "canary", line)).is_err());
    }
}
