//! Programs that are started, and what is undone when they or we end.
//!
//! ```text
//!  this process ──pipe──▶ keeper (sh, in a process group of its own)
//!      │ "add 1 kill 4711"  "add 2 losetup -d /dev/loop3"  "forget 2"
//!      ▼ ends, in whatever way: the pipe closes, and the keeper undoes what is left, last first
//! ```
//!
//! Invariants: everything started here ends with its guard, also when a measurement fails or
//! panics; if this process is killed or interrupted, the keeper does the same. Only what was
//! started here is ended, by its id. Children are in process groups of their own, so that an
//! interrupt at the terminal reaches this process alone.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::{Error, Result};

/// The time in which a program must be ready, and must end after SIGTERM.
const GRACE: Duration = Duration::from_secs(20);
const ASK_EVERY: Duration = Duration::from_millis(5);

const KEEPER: &str = r#"
trap '' INT TERM HUP
top=0
while read -r verb number command; do
    case $verb in
        add) eval "undo_$number=\$command"; top=$number ;;
        forget) eval "undo_$number=:" ;;
    esac
done
while [ "$top" -gt 0 ]; do
    eval "command=\$undo_$top"
    sh -c "$command" >/dev/null 2>&1
    top=$((top - 1))
done
"#;

struct Keeper {
    input: ChildStdin,
    last: u32,
}

static KEEPER_OF_THIS_PROCESS: Mutex<Option<Keeper>> = Mutex::new(None);

/// A promise to undo something should this process end before it did so itself.
#[derive(Debug)]
pub struct Undo {
    number: u32,
}

impl Undo {
    /// Has `command` (one line of shell) run when this process ends before the value is dropped.
    ///
    /// # Errors
    /// If there is no `sh`.
    pub fn with(command: &str) -> Result<Undo> {
        let mut keeper = KEEPER_OF_THIS_PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
        if keeper.is_none() {
            let mut child = Command::new("sh")
                .args(["-c", KEEPER])
                .stdin(Stdio::piped())
                .process_group(0)
                .spawn()
                .map_err(Error::io("sh"))?;
            let input = child.stdin.take();
            *keeper = input.map(|input| Keeper { input, last: 0 });
        }
        let keeper = keeper.as_mut().ok_or_else(|| Error::Unexpected("no pipe to sh".into()))?;
        keeper.last += 1;
        let number = keeper.last;
        writeln!(keeper.input, "add {number} {command}").map_err(Error::io("the keeper"))?;
        Ok(Undo { number })
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        let mut keeper = KEEPER_OF_THIS_PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keeper) = keeper.as_mut() {
            // A keeper that has gone undoes nothing, which is what is wanted here.
            let _ = writeln!(keeper.input, "forget {}", self.number);
        }
    }
}

/// A program that runs until the value is dropped.
#[derive(Debug)]
pub struct Service {
    child: Child,
    command: String,
    output: File,
    may_end: bool,
    _undo: Undo,
}

impl Service {
    /// Starts `command`; what it says is kept for error messages.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(mut command: Command) -> Result<Service> {
        let line = line_of(&command);
        let output = tempfile::tempfile().map_err(Error::io("temporary file"))?;
        let clone = || output.try_clone().map_err(Error::io("temporary file"));
        command.stdin(Stdio::null()).stdout(clone()?).stderr(clone()?).process_group(0);
        let child = command.spawn().map_err(Error::io(&line))?;
        // The number could be another process's only if it wrapped around in between.
        let undo = Undo::with(&format!("kill {}", child.id()))?;
        Ok(Service { child, command: line, output, may_end: false, _undo: undo })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until something listens at `socket`.
    ///
    /// # Errors
    /// If it ends or takes too long.
    pub fn wait_for_socket(&mut self, socket: &Path) -> Result<()> {
        self.wait_until("listens", || UnixStream::connect(socket).is_ok())
    }

    /// Waits until `ready` says so.
    ///
    /// # Errors
    /// If it ends or takes too long.
    pub fn wait_until(&mut self, what: &str, mut ready: impl FnMut() -> bool) -> Result<()> {
        let start = Instant::now();
        while !ready() {
            if let Ok(Some(status)) = self.child.try_wait() {
                let (command, output) = (self.command.clone(), self.said());
                return Err(Error::Command { command, status, output });
            }
            if start.elapsed() > GRACE {
                let said = self.said();
                let command = &self.command;
                return Err(Error::Unexpected(format!("{command} never {what}\n{said}")));
            }
            std::thread::sleep(ASK_EVERY);
        }
        Ok(())
    }

    /// From now on it may end by itself: what it serves was taken away.
    pub fn may_end(&mut self) {
        self.may_end = true;
    }

    /// Its output so far.
    pub fn said(&mut self) -> String {
        let mut said = Vec::new();
        // The text is only for messages: unreadable parts are left out.
        let _ = self.output.rewind();
        let _ = self.output.read_to_end(&mut said);
        String::from_utf8_lossy(&said).trim().to_owned()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Ok(Some(status)) = self.child.try_wait() {
            // Not what was asked of it, and perhaps why a measurement failed.
            if !self.may_end {
                let said = self.said();
                eprintln!("{} ended by itself: {status}\n{said}", self.command);
            }
            return;
        }
        if let Some(pid) = Pid::from_raw(self.child.id() as i32) {
            let _ = kill_process(pid, Signal::TERM);
            let start = Instant::now();
            while matches!(self.child.try_wait(), Ok(None)) {
                if start.elapsed() > GRACE {
                    eprintln!("{} does not end: killed", self.command);
                    let _ = self.child.kill();
                    let _ = self.child.wait();
                    return;
                }
                std::thread::sleep(ASK_EVERY);
            }
        }
    }
}

/// Runs a program to its end and answers what it wrote on standard output.
///
/// # Errors
/// If it cannot be started or fails.
pub fn run(command: &mut Command) -> Result<String> {
    let line = line_of(command);
    let output = command.stdin(Stdio::null()).output().map_err(Error::io(&line))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !output.status.success() {
        // A report that goes with a message only hides it.
        let said = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
        return Err(Error::Command { command: line, status: output.status, output: text(said) });
    }
    Ok(text(&output.stdout))
}

/// Checks that a program is installed, and answers where.
///
/// # Errors
/// With the Debian package that has it, if it is not.
pub fn require(tool: &'static str, package: &'static str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        // Administrators' tools, which a user's PATH may leave out.
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|folder| folder.join(tool))
        .find(|file| file.is_file())
        .ok_or(Error::MissingTool { tool, package })
}

fn line_of(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_ends_with_its_guard() {
        let mut sleep = Command::new("sleep");
        sleep.arg("1000");
        let service = Service::start(sleep).unwrap();
        let proc = PathBuf::from(format!("/proc/{}", service.pid()));
        assert!(proc.exists());
        drop(service);
        assert!(!proc.exists());
    }

    #[test]
    fn a_service_that_ends_early_says_why() {
        let mut sh = Command::new("sh");
        sh.args(["-c", "echo no such thing >&2; exit 3"]);
        let mut service = Service::start(sh).unwrap();
        let error = service.wait_for_socket(Path::new("/nonexistent")).unwrap_err();
        assert!(error.to_string().contains("no such thing"), "{error}");
    }

    #[test]
    fn the_keeper_undoes_what_is_left_last_first() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let input = ["first", "second", "third"]
            .iter()
            .zip(1..)
            .map(|(word, number)| format!("add {number} echo {word} >> {}\n", log.display()))
            .collect::<String>();
        let mut keeper =
            Command::new("sh").args(["-c", KEEPER]).stdin(Stdio::piped()).spawn().unwrap();
        let mut pipe = keeper.stdin.take().unwrap();
        pipe.write_all((input + "forget 2\n").as_bytes()).unwrap();
        drop(pipe);
        assert!(keeper.wait().unwrap().success());
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "third\nfirst\n");
    }

    #[test]
    fn a_missing_tool_is_named_with_its_package() {
        let error = require("no-such-tool", "its-package").unwrap_err();
        assert!(error.to_string().contains("apt-get install its-package"));
        require("sh", "dash").unwrap();
    }
}
