//! The world outside: processes, clocks, files' sizes. The runner sees only [`World`], so a mock
//! can play a whole campaign without a tool, a server or time.
//!
//! Invariants of [`SystemWorld`]:
//!
//! * every child is in a process group of its own, so Ctrl-C at the terminal reaches only this
//!   process, which then stops its children in order;
//! * a child that was started is waited for, on every way out.
//!
//! Deliberately absent: shells. A [`CommandLine`] is a program and its arguments.

use std::fmt;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::error::LabError;

mod service;
use service::SystemService;

/// How often a running tool is looked at. The wait costs 50 wake-ups a second beside the
/// measurement and at most this much time after it.
const POLL: Duration = Duration::from_millis(20);

/// How long a tool may take to end after SIGTERM.
const TOOL_GRACE: Duration = Duration::from_secs(5);

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// Name (looked up on PATH) or path.
    pub program: String,
    /// Arguments.
    pub args: Vec<String>,
    /// The folder it runs in; `None`: this process's.
    pub cwd: Option<String>,
}

impl CommandLine {
    /// A command without arguments.
    pub fn new(program: impl Into<String>) -> Self {
        Self { program: program.into(), args: Vec::new(), cwd: None }
    }

    /// With one more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Run in a folder, for programs that know no other way to be told where.
    #[must_use]
    pub fn in_folder(mut self, folder: impl Into<String>) -> Self {
        self.cwd = Some(folder.into());
        self
    }

    fn to_command(&self) -> Command {
        let mut command = Command::new(&self.program);
        if let Some(folder) = &self.cwd {
            command.current_dir(folder);
        }
        command
            // Tools write for people in the user's language and with its decimal sign; parsers
            // read English and a point.
            .env("LC_ALL", "C")
            .args(&self.args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        command
    }
}

impl fmt::Display for CommandLine {
    /// As a shell would read it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(folder) = &self.cwd {
            write!(f, "cd {} && ", shell_word(folder))?;
        }
        f.write_str(&shell_word(&self.program))?;
        for arg in &self.args {
            write!(f, " {}", shell_word(arg))?;
        }
        Ok(())
    }
}

/// A word quoted for a POSIX shell where it needs it.
pub(crate) fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// How a tool ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exit {
    /// With this status.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It was killed because it took longer than it was allowed to.
    TimedOut,
    /// It was killed because the user wants to stop.
    Stopped,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit status {code}"),
            Self::Signal(signal) => write!(f, "killed by signal {signal}"),
            Self::TimedOut => f.write_str("killed after its time limit"),
            Self::Stopped => f.write_str("stopped by the user"),
        }
    }
}

/// A tool's run from start to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub exit: Exit,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// A server that is running.
pub trait Service {
    /// How it ended and what it said on standard error, if it has ended.
    ///
    /// # Errors
    ///
    /// When the process cannot be watched.
    fn poll_exit(&mut self) -> Result<Option<(Exit, String)>, LabError>;

    /// Processor time it has used so far, if the system tells.
    fn cpu_time(&self) -> Option<Duration>;

    /// Asks it to end (SIGTERM), waits, and kills it after `grace`. Returns how it ended and what
    /// it said on standard error.
    ///
    /// # Errors
    ///
    /// When the process can be neither signalled nor waited for.
    fn stop(&mut self, grace: Duration) -> Result<(Exit, String), LabError>;
}

/// Everything that the runner needs from outside.
pub trait World {
    /// Time since some fixed moment; never goes back.
    fn monotonic(&self) -> Duration;
    /// Seconds since 1970.
    fn unix_time_s(&self) -> u64;
    /// Waits.
    fn sleep(&mut self, time: Duration);
    /// Runs a tool to its end, at most `limit`, less if `stop` is set.
    ///
    /// # Errors
    ///
    /// When it cannot be started or watched; a tool that fails is not an error here.
    fn run(
        &mut self,
        command: &CommandLine,
        limit: Duration,
        stop: &StopFlag,
    ) -> Result<Finished, LabError>;
    /// Starts a server.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    fn start(&mut self, command: &CommandLine) -> Result<Box<dyn Service>, LabError>;
    /// Size in bytes of the export of an NBD server that is ready; an error while it is not.
    ///
    /// # Errors
    ///
    /// When nothing listens there or it does not speak NBD.
    fn nbd_size(&mut self, uri: &str) -> Result<u64, LabError>;
    /// Size in bytes of a file or block device.
    ///
    /// # Errors
    ///
    /// When it cannot be opened for reading.
    fn path_size(&mut self, path: &Path) -> Result<u64, LabError>;
}

/// Tells the runner to stop. Clones share one flag.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// A flag that SIGINT and SIGTERM set. A second signal ends the process at once, as without
    /// a handler.
    ///
    /// # Errors
    ///
    /// When the handlers cannot be installed.
    pub fn on_signals() -> Result<Self, LabError> {
        let flag = Self::default();
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // The order matters: the second signal must find the flag set by the first.
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&flag.0))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag.0)))
                .map_err(|source| LabError::Process {
                    action: "catch signals of",
                    program: "this program".to_owned(),
                    source,
                })?;
        }
        Ok(flag)
    }

    /// Asks to stop.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked to stop.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The real world.
#[derive(Debug)]
pub struct SystemWorld {
    start: Instant,
}

impl SystemWorld {
    /// The world, with the monotonic clock at zero.
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for SystemWorld {
    fn default() -> Self {
        Self::new()
    }
}

impl World for SystemWorld {
    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn unix_time_s(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
    }

    fn sleep(&mut self, time: Duration) {
        std::thread::sleep(time);
    }

    fn run(
        &mut self,
        command: &CommandLine,
        limit: Duration,
        stop: &StopFlag,
    ) -> Result<Finished, LabError> {
        let mut child = spawn(command)?;
        let (stdout, stderr) = (drain(child.stdout.take()), drain(child.stderr.take()));
        let deadline = Instant::now() + limit;
        let exit = loop {
            if let Some(exit) = try_wait(&mut child, command)? {
                break exit;
            }
            let verdict = if stop.is_set() {
                Some(Exit::Stopped)
            } else {
                (Instant::now() >= deadline).then_some(Exit::TimedOut)
            };
            if let Some(exit) = verdict {
                end_tool(&mut child, command)?;
                break exit;
            }
            std::thread::sleep(POLL);
        };
        Ok(Finished { exit, stdout: collect(stdout), stderr: collect(stderr) })
    }

    fn start(&mut self, command: &CommandLine) -> Result<Box<dyn Service>, LabError> {
        let mut child = spawn(command)?;
        // A server's standard output is read too: a full pipe would stop it.
        let (stdout, stderr) = (drain(child.stdout.take()), drain(child.stderr.take()));
        Ok(Box::new(SystemService::new(command.clone(), child, stdout, stderr)))
    }

    fn nbd_size(&mut self, uri: &str) -> Result<u64, LabError> {
        crate::nbd::query_size(uri)
    }

    fn path_size(&mut self, path: &Path) -> Result<u64, LabError> {
        // Seeking to the end gives the size of a block device as well, without an ioctl.
        std::fs::File::open(path)
            .and_then(|mut file| file.seek(SeekFrom::End(0)))
            .map_err(LabError::file("find out the size of", path))
    }
}

fn spawn(command: &CommandLine) -> Result<Child, LabError> {
    command
        .to_command()
        .spawn()
        .map_err(|source| LabError::Spawn { program: command.program.clone(), source })
}

fn try_wait(child: &mut Child, command: &CommandLine) -> Result<Option<Exit>, LabError> {
    let status = child.try_wait().map_err(|source| LabError::Process {
        action: "wait for",
        program: command.program.clone(),
        source,
    })?;
    Ok(status.map(exit_of))
}

fn exit_of(status: std::process::ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Code(-1),
    }
}

/// Ends a tool: SIGTERM, so that it can take its own children along, then SIGKILL.
fn end_tool(child: &mut Child, command: &CommandLine) -> Result<(), LabError> {
    signal_group(child, command, rustix::process::Signal::TERM)?;
    let deadline = Instant::now() + TOOL_GRACE;
    while Instant::now() < deadline {
        if try_wait(child, command)?.is_some() {
            return Ok(());
        }
        std::thread::sleep(POLL);
    }
    kill_group(child, command)
}

/// Kills the child's whole process group and reaps the child.
fn kill_group(child: &mut Child, command: &CommandLine) -> Result<(), LabError> {
    signal_group(child, command, rustix::process::Signal::KILL)?;
    child.wait().map(|_| ()).map_err(|source| LabError::Process {
        action: "wait for",
        program: command.program.clone(),
        source,
    })
}

fn signal_group(
    child: &Child,
    command: &CommandLine,
    signal: rustix::process::Signal,
) -> Result<(), LabError> {
    let Some(group) = rustix::process::Pid::from_raw(child.id() as i32) else {
        return Ok(());
    };
    match rustix::process::kill_process_group(group, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(errno) => Err(LabError::Process {
            action: "stop",
            program: command.program.clone(),
            source: errno.into(),
        }),
    }
}

/// Reads a pipe to its end beside everything else.
fn drain(pipe: Option<impl Read + Send + 'static>) -> Option<JoinHandle<Vec<u8>>> {
    let mut pipe = pipe?;
    Some(std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Err(error) = pipe.read_to_end(&mut bytes) {
            bytes.extend_from_slice(format!("\n[the rest could not be read: {error}]").as_bytes());
        }
        bytes
    }))
}

fn collect(reader: Option<JoinHandle<Vec<u8>>>) -> String {
    let bytes = reader.map(|thread| thread.join().unwrap_or_default()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_prints_as_a_shell_reads_it() {
        let command = CommandLine::new("fio").arg("--uri=nbd+unix:///?socket=/x").arg("it's");
        assert_eq!(command.to_string(), "fio '--uri=nbd+unix:///?socket=/x' 'it'\\''s'");
        let there = CommandLine::new("ls").in_folder("/a b");
        assert_eq!(there.to_string(), "cd '/a b' && ls");
    }

    #[test]
    fn a_command_runs_in_its_folder_and_in_the_c_locale() {
        let shell = CommandLine::new("sh").arg("-c").arg("pwd; echo $LC_ALL").in_folder("/dev");
        let limit = Duration::from_secs(60);
        let done = SystemWorld::new().run(&shell, limit, &StopFlag::default()).unwrap();
        assert_eq!(done.stdout, "/dev\nC\n");
    }

    #[test]
    fn output_status_and_signals_come_back() {
        let mut world = SystemWorld::new();
        let shell = CommandLine::new("sh").arg("-c").arg("echo out; echo err >&2; exit 3");
        let done = world.run(&shell, Duration::from_secs(60), &StopFlag::default()).unwrap();
        assert_eq!(
            (done.exit, done.stdout.as_str(), done.stderr.as_str()),
            (Exit::Code(3), "out\n", "err\n")
        );
        let gone = CommandLine::new("/nonexistent/tool");
        let error = world.run(&gone, Duration::from_secs(1), &StopFlag::default()).unwrap_err();
        assert!(error.to_string().contains("/nonexistent/tool"));
    }

    #[test]
    fn a_set_flag_stops_a_tool_and_its_children() {
        let stop = StopFlag::default();
        stop.set();
        let sleeper = CommandLine::new("sh").arg("-c").arg("sleep 1000 & sleep 1000");
        let done = SystemWorld::new().run(&sleeper, Duration::from_secs(600), &stop).unwrap();
        assert_eq!(done.exit, Exit::Stopped);
    }

    #[test]
    fn a_server_ends_when_it_is_asked() {
        let sleeper = CommandLine::new("sleep").arg("1000");
        let mut service = SystemWorld::new().start(&sleeper).unwrap();
        assert!(service.poll_exit().unwrap().is_none());
        assert!(service.cpu_time().is_some());
        let (exit, _) = service.stop(Duration::from_secs(60)).unwrap();
        assert_eq!(exit, Exit::Signal(15));
        assert_eq!(service.poll_exit().unwrap().unwrap().0, Exit::Signal(15));
    }
}
