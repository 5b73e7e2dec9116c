//! Volumes of the real binary, as guards: what was started ends with its value.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::client::Client;
use super::scratch::Scratch;
use super::tool::{LIMIT, Output, Tool, start, wait_until};

/// Sends a signal to one process; one that is gone is fine.
pub(crate) fn send_signal(pid: u32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
        let _ = kill_process(pid, signal);
    }
}

/// The process of a volume that is stopped for as long as this is there.
pub(crate) struct Stopped {
    pid: u32,
    /// Has the process go on if that of the test is killed: a device whose process stands still holds up every
    /// `sync` of the machine.
    guard: Child,
}

impl Stopped {
    #[track_caller]
    pub(crate) fn stop(pid: u32) -> Stopped {
        let mut guard = Command::new("sh");
        guard.args(["-c", &format!("cat; kill -CONT {pid}")]).stdin(Stdio::piped());
        let guard = start(&mut guard).expect("a shell can be started");
        send_signal(pid, Signal::STOP);
        wait_until("the volume to stop", || state_of(pid) == Some('T'));
        Stopped { pid, guard }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = self.guard.kill();
        let _ = self.guard.wait();
        send_signal(self.pid, Signal::CONT);
    }
}

/// The fields of `/proc/PID/stat` behind the name, which is in parentheses.
fn stat_of(pid: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(stat.rsplit_once(')')?.1.trim().to_owned())
}

/// The state of a process, as in `/proc/PID/stat`.
pub(crate) fn state_of(pid: u32) -> Option<char> {
    stat_of(pid)?.chars().next()
}

/// Nanoseconds of a processor that a process has taken, in steps of a hundredth of a second.
pub(crate) fn cpu_ns_of(pid: u32) -> Option<u64> {
    let stat = stat_of(pid)?;
    // Hundredths of a second in user and in system mode.
    let ticks = stat.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
    ticks.sum::<Result<u64, _>>().ok().map(|ticks| ticks * 10_000_000)
}

/// True if there is a process with this number that has not ended. A zombie has ended, unless some of its
/// threads still run: they keep its files open.
pub(crate) fn is_alive(pid: u32) -> bool {
    let there = Pid::from_raw(pid.cast_signed()).is_some_and(|pid| test_kill_process(pid).is_ok());
    let zombie = state_of(pid) == Some('Z');
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    there && (!zombie || threads > 1)
}

/// `braid serve`: killed when dropped.
pub(crate) struct Volume<'a> {
    child: Child,
    socket: PathBuf,
    uri: String,
    log: PathBuf,
    _scratch: &'a Scratch,
}

impl<'a> Volume<'a> {
    /// Starts it and waits until it is ready, or has ended saying why.
    #[track_caller]
    pub(crate) fn start(
        scratch: &'a Scratch,
        stack: &str,
        options: &[&str],
    ) -> Result<Volume<'a>, Output> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let socket = scratch.join(&format!("{number}.nbd"));
        let log = scratch.join(&format!("{number}.log"));
        let errors = std::fs::File::create(&log).expect("a log can be made");
        let tool = scratch.braid().args(["serve", stack, "--nbd"]);
        let tool = tool.arg(format!("unix:{}", socket.display())).args(options);
        let mut command = tool.into_command();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
        let mut child = start(&mut command).expect("braid can be started");
        let stdout = child.stdout.take().expect("it is piped");
        let (send, receive) = mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            let _ = BufReader::new(stdout).read_line(&mut line);
            let _ = send.send(line);
        });
        let line = receive.recv_timeout(LIMIT).unwrap_or_default();
        let uri = line.trim().to_owned();
        let mut volume = Volume { child, socket, uri, log, _scratch: scratch };
        if volume.uri.is_empty() {
            let (status, err) = (volume.wait(), volume.errors());
            return Err(Output { command: format!("{command:?}"), status, out: line, err });
        }
        Ok(volume)
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    pub(crate) fn uri(&self) -> &str {
        &self.uri
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// One that was started by other means, and listens on `socket`.
    pub(crate) fn adopt(scratch: &'a Scratch, child: Child, socket: &Path) -> Volume<'a> {
        let (uri, log) = (String::new(), scratch.join("adopted.log"));
        Volume { child, socket: socket.to_owned(), uri, log, _scratch: scratch }
    }

    /// Its standard error so far.
    pub(crate) fn errors(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// A client of our own.
    #[track_caller]
    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.socket).expect("a volume takes clients")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send_signal(self.pid(), signal);
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If it goes on.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                return status;
            }
            assert!(Instant::now() < deadline, "the volume does not end: {}", self.errors());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// SIGTERM, and its end.
    #[track_caller]
    pub(crate) fn stop(mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// Checks that it lives and serves: a byte pattern written, read and put back.
    #[track_caller]
    pub(crate) fn assert_serves(&mut self) {
        let ended = self.child.try_wait().expect("a child can be waited for");
        assert!(ended.is_none(), "the volume has ended: {ended:?} {}", self.errors());
        let mut client = Client::connect_patiently(&self.socket);
        let before = client.read(0, 4096).expect("a read is answered");
        if !client.is_read_only() {
            client.write(0, &[0x5a; 4096], true).expect("a write is answered");
            assert_eq!(client.read(0, 4096).expect("a read is answered"), [0x5a; 4096]);
            client.write(0, &before, false).expect("a write is answered");
        }
    }
}

impl Drop for Volume<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- the volume's errors\n{}", self.errors());
        }
    }
}

/// `braid up`: taken down by force when dropped.
pub(crate) struct UpVolume<'a> {
    pub(crate) name: String,
    /// The block device, if it is attached.
    pub(crate) device: Option<PathBuf>,
    pub(crate) uris: Vec<String>,
    pub(crate) pid: u32,
    scratch: &'a Scratch,
}

impl<'a> UpVolume<'a> {
    pub(crate) fn start(
        scratch: &'a Scratch,
        target: &str,
        options: &[&str],
    ) -> Result<UpVolume<'a>, Output> {
        UpVolume::start_by(scratch, scratch.braid().args(["up", target]).args(options))
    }

    /// By a `braid up` with arguments, and an environment.
    pub(crate) fn start_by(scratch: &'a Scratch, up: Tool) -> Result<UpVolume<'a>, Output> {
        let output = up.arg("--json").run();
        if !output.status.success() {
            return Err(output);
        }
        let ready = output.json();
        let text = |value: &serde_json::Value| value.as_str().map(ToOwned::to_owned);
        let mut volume = UpVolume {
            name: text(&ready["name"]).expect("a volume has a name"),
            device: text(&ready["device"]).map(PathBuf::from),
            uris: ready["nbd"].as_array().into_iter().flatten().filter_map(text).collect(),
            pid: 0,
            scratch,
        };
        volume.pid = volume.status()["pid"].as_u64().expect("a volume is a process") as u32;
        Ok(volume)
    }

    /// Its part of `braid status --json`.
    #[track_caller]
    pub(crate) fn status(&self) -> serde_json::Value {
        let output = self.scratch.run(&["status", &self.name, "--json"]).ok();
        output.json()["volumes"][0].clone()
    }

    #[track_caller]
    pub(crate) fn device(&self) -> &Path {
        self.device.as_deref().expect("it is attached")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.scratch.run_folder().join(format!("{}.nbd", self.name))
    }

    #[track_caller]
    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.socket()).expect("a volume takes clients")
    }

    /// `braid down`, whatever comes of it; the guard goes on.
    #[track_caller]
    pub(crate) fn try_down(&self, options: &[&str]) -> Output {
        self.scratch.braid().args(["down", &self.name]).args(options).run()
    }

    /// `braid down`, which must work, and the end of the process.
    #[track_caller]
    pub(crate) fn down(self) {
        self.try_down(&[]).ok();
        wait_until("the end of the volume's process", || !is_alive(self.pid));
    }

    /// SIGKILL, as by the kernel when memory is short.
    #[track_caller]
    pub(crate) fn kill(&self) {
        send_signal(self.pid, Signal::KILL);
        wait_until("the end of a killed process", || !is_alive(self.pid));
    }
}

impl Drop for UpVolume<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.scratch.run_folder().join(format!("{}.log", self.name));
            eprintln!("--- {}\n{}", self.name, std::fs::read_to_string(log).unwrap_or_default());
        }
        let traces = ["sock", "json", "mount"]
            .map(|what| self.scratch.run_folder().join(format!("{}.{what}", self.name)));
        if is_alive(self.pid) || traces.iter().any(|trace| trace.exists()) {
            // Bounded by the tool's limit; a panic inside a panic would end all tests.
            let down: Tool = self.scratch.braid().args(["down", &self.name, "--force"]);
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| down.run()));
        }
        if self.pid != 0 && is_alive(self.pid) {
            send_signal(self.pid, Signal::KILL);
        }
    }
}
