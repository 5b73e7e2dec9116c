//! This same program, run as it would be typed: the only way by which something is changed.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use braid_control::{ErrorCode, Failure};
use braid_shell::CommandLine;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Resource, Rlimit};
use serde_json::Value;

use crate::answer::Refusal;

/// Runs a command to its end, and answers what it said: JSON, or a text.
///
/// # Errors
/// It refused (409), took it for nonsense (400), or failed (502 if that is the volume's doing).
pub(crate) fn run(program: &Path, line: &CommandLine) -> Result<Value, Refusal> {
    let mut command = Command::new(program);
    command.args(line.arguments()).env("NO_COLOR", "1").env("BRAID_ERRORS", "json");
    // A volume outlives this server, and has a sandbox of its own.
    command.env("BRAID_UP_BY", "service");
    command.stdin(Stdio::null());
    // What was begun goes on when this server is interrupted from its terminal.
    command.process_group(0);
    let started: io::Result<_> = command.output();
    let output =
        started.map_err(|error| Refusal::broken(format!("cannot start the program: {error}")))?;
    let out = String::from_utf8_lossy(&output.stdout);
    match (serde_json::from_str(out.trim()), output.status.success()) {
        (Ok(json), true) => return Ok(json),
        (Err(_), true) => return Ok(Value::String(out.trim().to_owned())),
        (Ok(json), false) if line.tells_failures() => return Ok(json),
        (_, false) => {}
    }
    let err = String::from_utf8_lossy(&output.stderr);
    Err(refusal(output.status.code(), &err))
}

/// Time and memory that the drawing of a page may take.
const DRAWS: Duration = Duration::from_secs(60);
const DRAWS_IN: u64 = 2 << 30;

/// The page of the results in `folder`, of at most `most` bytes, drawn by the program; nothing is written.
///
/// # Errors
/// There are none that can be read (502), or it takes too long, or gets too large.
pub(crate) fn draw(program: &Path, folder: &Path, most: usize) -> Result<Vec<u8>, Refusal> {
    let mut command = Command::new(program);
    command.args(["lab", "report", "--print-html", "--"]).arg(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = |error: io::Error| Refusal::broken(format!("cannot draw the page: {error}"));
    let mut child = command.spawn().map_err(failed)?;
    let limit = Rlimit { current: Some(DRAWS_IN), maximum: Some(DRAWS_IN) };
    // What it cannot be held to, the time and the length still are.
    let _ = rustix::process::prlimit(Some(Pid::from_child(&child)), Resource::As, limit);
    let read = child.stdout.take().map(|out| read_all(out, most, Instant::now() + DRAWS));
    let page = read.unwrap_or_else(|| Err(io::ErrorKind::BrokenPipe.into()));
    if page.is_err() {
        // It may have ended already.
        let _ = child.kill();
    }
    let ended = child.wait_with_output().map_err(failed)?;
    let page = page.map_err(failed)?;
    if ended.status.success() {
        return Ok(page);
    }
    Err(refusal(ended.status.code(), &String::from_utf8_lossy(&ended.stderr)))
}

/// All that comes until the other end closes it: at most `most` bytes, and before `due`.
fn read_all(mut from: ChildStdout, most: usize, due: Instant) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    let mut part = vec![0; 64 << 10];
    loop {
        let left = due.saturating_duration_since(Instant::now());
        let wait = Timespec::try_from(left).map_err(io::Error::other)?;
        let mut ready = [PollFd::new(&from, PollFlags::IN)];
        match poll(&mut ready, Some(&wait)) {
            Ok(0) => return Err(io::Error::other(format!("it takes longer than {DRAWS:?}"))),
            Err(rustix::io::Errno::INTR) => continue,
            other => other?,
        };
        match from.read(&mut part)? {
            0 => return Ok(all),
            count if all.len() + count > most => {
                return Err(io::Error::other(format!("it has more than {most} bytes")));
            }
            count => all.extend_from_slice(&part[..count]),
        }
    }
}

/// Returns the refusal of a program that failed: its exit status is a part of its interface.
fn refusal(code: Option<i32>, err: &str) -> Refusal {
    if let Some(failure) = Failure::said_last(err) {
        let mut refusal = Refusal::from(failure);
        if refusal.code == ErrorCode::NotFound {
            refusal.status = StatusCode::NOT_FOUND;
        }
        return refusal;
    }
    // Usage is refused before it can say so for a program.
    let status = match code {
        Some(2) => StatusCode::BAD_REQUEST,
        Some(3) => StatusCode::CONFLICT,
        _ => StatusCode::BAD_GATEWAY,
    };
    let why = err.trim().trim_start_matches("braid: ").trim_start_matches("error: ");
    Refusal::new(status, if why.is_empty() { "the program ended without a word" } else { why })
}

#[cfg(test)]
mod tests {
    use braid_control::ErrorCode;

    use super::*;

    #[test]
    fn what_a_program_says_is_passed_on() {
        let line =
            r#"{"outcome":"refused","code":"locked","why":"a is locked","next":"unlock it"}"#;
        let said = refusal(Some(3), &format!("braid: the volume is at it\n{line}\n"));
        let expected = Refusal::conflict("a is locked").next("unlock it").code(ErrorCode::Locked);
        assert_eq!(said, expected);
        assert_eq!(refusal(Some(2), "error: what?\n").status, StatusCode::BAD_REQUEST);
        assert_eq!(refusal(None, "").why, "the program ended without a word");
    }

    #[test]
    fn a_page_has_bounds() {
        let read = |script: &str, most, wait| {
            let mut command = Command::new("/bin/sh");
            let mut child = command.args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
            let read = read_all(child.stdout.take().unwrap(), most, Instant::now() + wait);
            let _ = child.kill();
            child.wait().unwrap();
            read.map_err(|error| error.to_string())
        };
        let long = Duration::from_secs(60);
        assert_eq!(read("echo page", 5, long), Ok(b"page\n".to_vec()));
        assert!(read("echo pages", 5, long).unwrap_err().contains("more than 5 bytes"));
        let late = read("echo page; exec sleep 600", 5, Duration::from_millis(200));
        assert!(late.unwrap_err().contains("it takes longer"));
        assert!(draw(Path::new("/bin/false"), Path::new("/"), 5).is_err());
    }

    #[test]
    fn words_go_through_unchanged() {
        let line = CommandLine::new(&["a"]).name("$(id) '").name("--x").without_json();
        let said = run(Path::new("/bin/echo"), &line).unwrap();
        assert_eq!(said, Value::String("a -- $(id) ' --x".into()));
        let error = run(Path::new("/bin/false"), &line).unwrap_err();
        assert_eq!(error.status, StatusCode::BAD_GATEWAY);
        assert!(run(Path::new("/nowhere"), &line).is_err());
    }
}
