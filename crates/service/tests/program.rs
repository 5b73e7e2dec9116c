//! The program `braid-volume`, as something else than `braid` would start it.

use std::io::Write as _;
use std::process::{Command, Stdio};

fn start_with(text: &str) -> (Option<i32>, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_braid-volume"))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn it_is_not_started_by_hand() {
    for text in ["", "{}", "{\"version\": 3}", "--help\n"] {
        let (code, said) = start_with(text);
        assert_eq!(code, Some(2), "{text:?}: {said}");
        assert!(
            said.starts_with("braid: `braid up` and `braid serve` start this program: "),
            "{said}"
        );
        assert!(said.ends_with("\n  next: braid help up\n"), "{said}");
    }
}

#[test]
fn a_start_of_another_version_is_refused() {
    let (code, said) = start_with("{\"version\": \"0.0.1\", \"what\": \"it had then\"}");
    let own = env!("CARGO_PKG_VERSION");
    assert_eq!(code, Some(1));
    assert_eq!(
        said,
        format!(
            "braid: braid 0.0.1 started braid-volume {own}\n  next: install braid's package again: both programs \
             are of one version\n"
        )
    );
}
