//! This same program, run as it would be typed: the only way by which something is changed.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use axum::http::StatusCode;
use serde_json::Value;

use crate::answer::Refusal;
use crate::command::Line;

/// Runs a command to its end, and answers what it said: JSON, or a text.
///
/// # Errors
/// It refused (409), took it for nonsense (400), or failed (502 if that is the volume's doing).
pub(crate) fn run(program: &Path, line: &Line) -> Result<Value, Refusal> {
    let mut command = Command::new(program);
    command.args(line.arguments()).env("NO_COLOR", "1").stdin(Stdio::null());
    // What was begun goes on when this server is interrupted from its terminal.
    command.process_group(0);
    let started: io::Result<_> = command.output();
    let output =
        started.map_err(|error| Refusal::broken(format!("cannot start the program: {error}")))?;
    let out = String::from_utf8_lossy(&output.stdout);
    if output.status.success() {
        let text = || Value::String(out.trim().to_owned());
        return Ok(serde_json::from_str(out.trim()).unwrap_or_else(|_| text()));
    }
    let err = String::from_utf8_lossy(&output.stderr);
    Err(refusal(output.status.code(), &err))
}

/// What a program that did not do it says: its exit status is part of what it promises.
fn refusal(code: Option<i32>, err: &str) -> Refusal {
    let status = match code {
        Some(2) => StatusCode::BAD_REQUEST,
        Some(3) => StatusCode::CONFLICT,
        _ => StatusCode::BAD_GATEWAY,
    };
    let (error, next) = match err.split_once("\n  next: ") {
        Some((error, next)) => (error, Some(next)),
        None => (err, None),
    };
    let error = error.trim().trim_start_matches("braid: ").trim_start_matches("error: ");
    let error = if error.is_empty() { "the program ended without a word" } else { error };
    let refusal = Refusal::new(status, error);
    match next {
        Some(next) => refusal.next(next.trim()),
        None => refusal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_says_is_passed_on() {
        let said = refusal(Some(3), "braid: a is in use:\n  x\n  next: close it\n");
        assert_eq!(said, Refusal::conflict("a is in use:\n  x").next("close it"));
        assert_eq!(refusal(Some(2), "error: what?\n").status, StatusCode::BAD_REQUEST);
        assert_eq!(refusal(None, "").error, "the program ended without a word");
    }

    #[test]
    fn words_go_through_unchanged() {
        let line = Line::new(&["a"]).name("$(id) '").name("--x").without_json();
        let said = run(Path::new("/bin/echo"), &line).unwrap();
        assert_eq!(said, Value::String("a -- $(id) ' --x".into()));
        let error = run(Path::new("/bin/false"), &line).unwrap_err();
        assert_eq!(error.status, StatusCode::BAD_GATEWAY);
        assert!(run(Path::new("/nowhere"), &line).is_err());
    }
}
