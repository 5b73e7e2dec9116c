//! Programs: found, run within a time limit, their output captured.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::volume::{cpu_ns_of, state_of};

/// Held for writing while a process is started, and for reading while a file is open here that another process
/// must find closed afterwards.
static STARTING: RwLock<()> = RwLock::new(());

/// Does something with members, or with files on a mounted volume, while no other test of this
/// process starts a program.
///
/// A new process has all of our descriptors until it executes its program. For that moment a
/// member that was open here is open in a process that braid does not know, and refused; and a
/// file system cannot be unmounted.
pub(crate) fn with_files_open<T>(work: impl FnOnce() -> T) -> T {
    // A test that failed meanwhile has spoilt nothing that this guards.
    let _reading = STARTING.read().unwrap_or_else(PoisonError::into_inner);
    work()
}

/// Starts a process, while no such file is open here.
pub(crate) fn start(command: &mut Command) -> std::io::Result<Child> {
    let _writing = STARTING.write().unwrap_or_else(PoisonError::into_inner);
    command.spawn()
}

/// The longest time of any operation. It is generous: it ends operations that hang, and judges nothing.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// The greatest length of a program's output. A program that writes more gets a closed pipe.
const MOST_OUTPUT: u64 = 64 << 20;

/// The system's programs come first: one that was built for another Python lacks its modules.
const SYSTEM_FOLDERS: &str = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin";

/// The folders in which programs are searched.
fn search_path() -> String {
    let inherited = std::env::var("PATH").unwrap_or_default();
    format!("{SYSTEM_FOLDERS}:{inherited}")
}

/// A program's path, if it is installed.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = search_path();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// A program's output and exit status.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) command: String,
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Output {
    /// The exit status; -1 after a signal.
    pub(crate) fn code(&self) -> i32 {
        self.status.code().unwrap_or(-1)
    }

    /// Itself, if all went well.
    #[track_caller]
    pub(crate) fn ok(self) -> Output {
        assert!(self.status.success(), "{self}");
        self
    }

    /// Checks the exit status and that the message has each of `parts`, whatever stands between.
    #[track_caller]
    pub(crate) fn fails(self, code: i32, parts: &[&str]) -> Output {
        assert_eq!(self.code(), code, "{self}");
        for part in parts {
            assert!(self.err.contains(part), "{part:?} is not in the message of {self}");
        }
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in {self}"))
    }
}

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Output { command, status, out, err } = self;
        write!(f, "{command}\n{status}\n--- output\n{out}\n--- errors\n{err}")
    }
}

/// A program about to be run.
pub(crate) struct Tool {
    command: Command,
    limit: Duration,
    input: Vec<u8>,
}

impl Tool {
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Tool {
        let mut command = Command::new(program);
        // A group of its own, so that its children end with it.
        command.env("PATH", search_path()).env("LC_ALL", "C").process_group(0);
        Tool { command, limit: LIMIT, input: Vec::new() }
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Tool {
        self.command.arg(arg);
        self
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Tool {
        self.command.args(args);
        self
    }

    pub(crate) fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Tool {
        self.command.env(key, value);
        self
    }

    pub(crate) fn folder(mut self, folder: &Path) -> Tool {
        self.command.current_dir(folder);
        self
    }

    /// Has it run as another user, which needs root.
    pub(crate) fn user(mut self, id: u32) -> Tool {
        self.command.uid(id).gid(id);
        self
    }

    /// The text that it gets on standard input.
    pub(crate) fn input(mut self, input: impl Into<Vec<u8>>) -> Tool {
        self.input = input.into();
        self
    }

    pub(crate) fn limit(mut self, limit: Duration) -> Tool {
        self.limit = limit;
        self
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// If it cannot be started or does not end within the limit.
    #[track_caller]
    pub(crate) fn run(mut self) -> Output {
        let command = format!("{:?}", self.command);
        let mut running = self.spawn();
        let deadline = Instant::now() + self.limit;
        let status = loop {
            if let Some(status) = running.child.try_wait().expect("a child can be waited for") {
                break status;
            }
            if Instant::now() >= deadline {
                let limit = self.limit;
                let doing = doing(running.child.id());
                assert!(running.kill_group(), "{command}\nwaits in the kernel for ever");
                let (out, err) = running.texts();
                panic!(
                    "{command}\ndid not end within {limit:?}: {doing}\n--- output\n{out}\n--- errors\n{err}"
                );
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let (out, err) = running.texts();
        Output { command, status, out, err }
    }

    #[track_caller]
    fn spawn(&mut self) -> Running {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = match start(&mut self.command) {
            Ok(child) => child,
            Err(error) => panic!("{:?}: {error}", self.command),
        };
        let input = std::mem::take(&mut self.input);
        if let Some(mut stdin) = child.stdin.take() {
            // A program that does not read its input closes it, which is no failure.
            std::thread::spawn(move || stdin.write_all(&input));
        }
        let readers = [collect(child.stdout.take()), collect(child.stderr.take())];
        Running { child, readers }
    }

    /// The command, to be started by other means.
    pub(crate) fn into_command(self) -> Command {
        self.command
    }
}

struct Running {
    child: Child,
    readers: [JoinHandle<String>; 2],
}

impl Running {
    /// Ends it and its children; false if it does not even end so.
    fn kill_group(&mut self) -> bool {
        if let Some(pid) = rustix::process::Pid::from_raw(self.child.id().cast_signed()) {
            // It may have ended by itself this moment.
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }

    fn texts(self) -> (String, String) {
        let [out, err] = self.readers.map(|reader| reader.join().unwrap_or_default());
        (out, err)
    }
}

/// Returns the state of a process, its wait in the kernel and its processor time, which tell a hang from a process that
/// was stopped or that a loaded machine gave no processor.
fn doing(pid: u32) -> String {
    let waits = std::fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
    let (state, cpu_ns) = (state_of(pid).unwrap_or('?'), cpu_ns_of(pid).unwrap_or(0));
    format!("state {state}, waits in {waits:?}, took {} ms of a processor", cpu_ns / 1_000_000)
}

/// Reads a stream to its end, or [`MOST_OUTPUT`], beside the program that writes it.
fn collect(stream: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(stream) = stream {
            let _ = stream.take(MOST_OUTPUT).read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Waits until `condition` holds.
///
/// # Panics
/// If it does not within [`LIMIT`].
#[track_caller]
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < deadline, "waited {LIMIT:?} in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
