//! Devices, mounts, programs and files of this machine, given back also by a test that fails.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use braid_lab::campaign::Source;
use braid_lab::evidence::Watch;
use braid_lab::facts::place_members;

pub(crate) const MIB: u64 = 1 << 20;

/// Trials of one process see each other's children, so they take turns.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True if a program answers to `--version`; prints a message if not.
pub(crate) fn has(program: &str, package: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    let found = command.status().is_ok();
    if !found {
        println!("skipped: {program} is not installed (apt install {package})");
    }
    found
}

pub(crate) fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}: {stderr}", output.status);
    output
}

pub(crate) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A loop device that is given back.
pub(crate) struct Loop(pub(crate) PathBuf, PathBuf);

impl Loop {
    /// Over a file; past the page cache below or through it. `None`, saying why, where there are
    /// no loop devices.
    pub(crate) fn attach(file: &Path, direct: bool) -> Option<Self> {
        let direct = format!("--direct-io={}", if direct { "on" } else { "off" });
        let output = Command::new("losetup").args(["--find", "--show", &direct]).arg(file).output();
        match output {
            Ok(output) if output.status.success() => {
                Some(Self(text(&output).into(), file.to_path_buf()))
            }
            Ok(output) => {
                println!("skipped: losetup: {}", String::from_utf8_lossy(&output.stderr).trim());
                None
            }
            Err(error) => {
                println!("skipped: losetup: {error} (apt install mount)");
                None
            }
        }
    }

    pub(crate) fn name(&self) -> String {
        self.0.file_name().unwrap().to_string_lossy().into_owned()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // If this device was detached meanwhile, its name may belong to another program's file.
        let backing = Path::new("/sys/block").join(self.name()).join("loop/backing_file");
        let backing = fs::read_to_string(backing).unwrap_or_default();
        if Path::new(backing.trim_end()) != self.1 {
            eprintln!("{} was detached by somebody else", self.0.display());
            return;
        }
        let status = Command::new("losetup").arg("--detach").arg(&self.0).status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("{} is still attached", self.0.display());
        }
    }
}

/// A mount that is given back.
pub(crate) struct Mounted(pub(crate) PathBuf);

impl Mounted {
    pub(crate) fn mount(kind: &str, options: &str, device: &Loop, place: &Path) -> Self {
        let mut mkfs = Command::new(format!("mkfs.{kind}"));
        run(mkfs.arg(if kind == "btrfs" { "-f" } else { "-F" }).arg("-q").arg(&device.0));
        fs::create_dir_all(place).unwrap();
        let options = if options.is_empty() { "defaults" } else { options };
        run(Command::new("mount").args(["-t", kind, "-o", options]).arg(&device.0).arg(place));
        Self(place.to_path_buf())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let status = Command::new("umount").arg(&self.0).status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("{} is still mounted", self.0.display());
        }
    }
}

/// A session of processes, none of them this one's child, that is ended.
pub(crate) struct Stranger(rustix::process::Pid);

impl Stranger {
    /// Runs a script for the shell.
    pub(crate) fn start(dir: &Path, script: &str) -> Self {
        let number = dir.join("stranger.pid");
        let script = format!("echo $$ > {0}.new; mv {0}.new {0}; {script}", number.display());
        // Nothing of it may keep a pipe to this process open.
        let mut command = Command::new("setsid");
        command.args(["--fork", "sh", "-c", &script]).stdin(Stdio::null());
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        assert!(status.success(), "{command:?}: {status}");
        let process = wait_for("the stranger's number", || fs::read_to_string(&number).ok());
        let process: i32 = process.trim().parse().unwrap();
        Self(rustix::process::Pid::from_raw(process).unwrap())
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let kill = rustix::process::Signal::KILL;
        if let Err(error) = rustix::process::kill_process_group(self.0, kill) {
            eprintln!("process group {:?} is still running: {error}", self.0);
        }
    }
}

/// Polls; two minutes are for a machine that is very busy.
pub(crate) fn wait_for<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        if let Some(value) = poll() {
            return value;
        }
        assert!(Instant::now() < deadline, "{what} did not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A file of incompressible bytes that is on its disk.
pub(crate) fn make_file(path: &Path, mib: u64) {
    let of = format!("of={}", path.display());
    let count = format!("count={mib}");
    run(Command::new("dd").args(["if=/dev/urandom", &of, "bs=1M", &count, "conv=fsync"]));
}

/// Fills a device's page cache. It is dropped after the last close of the device.
pub(crate) fn keep_cached(device: &Path) -> fs::File {
    let mut file = fs::File::open(device).unwrap();
    std::io::copy(&mut file, &mut std::io::sink()).unwrap();
    file
}

/// The result of a trial during which no other program emptied the page cache, as other measurements on the
/// machine do; it is tried again until then. `None`, with a message, if that does not happen.
pub(crate) fn with_cache_left_alone<T>(mut trial: impl FnMut() -> T) -> Option<T> {
    let drops = || {
        let counters = fs::read_to_string("/proc/vmstat").unwrap();
        counters.lines().find(|line| line.starts_with("drop_pagecache ")).map(str::to_owned)
    };
    for _ in 0..8 {
        let before = drops();
        let result = trial();
        if drops() == before {
            return Some(result);
        }
    }
    println!("skipped: somebody empties the page cache of this machine again and again");
    None
}

/// A server that is stopped.
pub(crate) struct Server(pub(crate) std::process::Child);

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(error) = self.0.kill().and_then(|()| self.0.wait()) {
            eprintln!("process {} is still running: {error}", self.0.id());
        }
    }
}

/// The whole disk that a file lies on, for a watch.
pub(crate) fn disk_of(file: &Path) -> Vec<String> {
    let placed = place_members(&Source::Path(file.display().to_string()));
    let disks = placed.into_iter().filter_map(|member| match member.place {
        braid_lab::facts::Place::Disk(disk) => Some(disk.name),
        _ => None,
    });
    disks.collect()
}

pub(crate) fn watch(device: &Loop, file: &Path) -> Watch {
    Watch { target: Some(device.name()), members: disk_of(file), ..Watch::default() }
}
