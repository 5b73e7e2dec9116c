//! Idle volumes: memory of one, of a hundred at once, and the time until one serves.
//!
//! `cargo run --release -p braid-bench --bin idle`, with the braid binary built in release mode. Memory is that of the
//! volumes' processes after they had time to give back what their start took. Without root nothing is attached, and the
//! rows of attached volumes are left out. The time is that from the start of a program to a socket that takes clients,
//! beside nbdkit's.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use braid_bench::args::{Args, finish};
use braid_bench::peer::{Folder, Server};
use braid_bench::process::{self, Undo};
use braid_bench::stats::{Estimate, Target};
use braid_bench::table::Table;
use braid_bench::{Error, Result};

const USAGE: &str = "\
idle [--volumes N] [--rounds N] [--only NAME] [--braid PATH]
  --volumes  volumes at once (100)
  --rounds   starts of each program (15)
  --only     rows whose name contains NAME
  --braid    the braid binary (the one beside this program)";

/// Time in which a volume gives back what it does not need: two of its looks at that.
const SETTLES: Duration = Duration::from_secs(22);
const MIB: f64 = 1024.0 * 1024.0;

/// Rows of one volume: name, stack with FILE for each file, attached or not, the most MiB.
const ALONE: [(&str, &str, bool, f64); 4] = [
    ("RAM, served", "ram(64M)", false, 15.0),
    ("linear of two files, served", "linear(FILE, FILE)", false, 15.0),
    ("raid1 of two files, attached", "raid1(FILE, FILE)", true, 32.0),
    ("raid5 of four files, attached", "raid5(FILE, FILE, FILE, FILE)", true, 32.0),
];

fn main() -> ExitCode {
    finish(run())
}

fn run() -> Result<()> {
    let known = ["--volumes", "--rounds", "--only", "--braid"];
    let args = Args::from_command_line(&known, USAGE)?;
    let braid = args.braid()?;
    let mut table = Table::new(["idle", "MiB", "at most", ""]);
    let mut row = |name: &str, bytes: u64, most: f64| {
        let mib = bytes as f64 / MIB;
        let verdict = if mib <= most { "met" } else { "MISSED" };
        table.row([name.to_owned(), format!("{mib:.1}"), format!("{most}"), verdict.to_owned()]);
    };
    for (name, stack, is_attached, most) in ALONE {
        if !args.wants(name) || is_attached && !rustix::process::geteuid().is_root() {
            continue;
        }
        eprintln!("{name} ...");
        let mut volumes = Volumes::new(&braid)?;
        volumes.up(stack, is_attached)?;
        std::thread::sleep(SETTLES);
        row(name, volumes.sum("Rss:")?, most);
    }
    let count = args.value("--volumes", 100usize)?.max(1);
    for (kind, is_attached) in [("served", false), ("attached", true)] {
        let name = format!("{count} of raid1 of two files, {kind} (PSS)");
        if !args.wants(&name) || is_attached && !rustix::process::geteuid().is_root() {
            continue;
        }
        eprintln!("{name} ...");
        let mut volumes = Volumes::new(&braid)?;
        (0..count).try_for_each(|_| volumes.up("raid1(FILE, FILE)", is_attached))?;
        std::thread::sleep(SETTLES);
        row(&name, volumes.sum("Pss:")?, 2048.0);
    }
    println!("{table}");
    if args.wants("start") {
        println!("{}", starts(&braid, args.value("--rounds", 15usize)?.max(1))?);
    }
    Ok(())
}

/// Times from the start of a server until it takes clients, braid's and nbdkit's in turn.
fn starts(braid: &Path, rounds: usize) -> Result<Table> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let timed = |start: &dyn Fn(&Path) -> Result<Server>| -> Result<f64> {
        let folder = Folder::new()?;
        let since = Instant::now();
        let server = start(folder.path())?;
        let seconds = since.elapsed().as_secs_f64();
        drop(server);
        Ok(seconds)
    };
    for _ in 0..rounds {
        ours.push(timed(&|folder| Server::braid(braid, "braid", "ram(64M)", folder))?);
        theirs.push(timed(&|folder| Server::nbdkit("64M", folder))?);
    }
    let (ratio, target) = (Estimate::of_ratio(&ours, &theirs), Target::AtMost(1.5));
    let mut table = Table::new(["start", "in units of nbdkit's time", "target", ""]);
    table.row([
        "RAM, served, until the socket takes clients".to_owned(),
        ratio.to_string(),
        target.to_string(),
        target.verdict(ratio),
    ]);
    Ok(table)
}

/// Volumes that are up, in folders of their own.
struct Volumes {
    braid: PathBuf,
    folder: tempfile::TempDir,
    names: Vec<String>,
    files: usize,
    _undo: Vec<Undo>,
}

impl Volumes {
    fn new(braid: &Path) -> Result<Volumes> {
        let folder = tempfile::tempdir().map_err(Error::io("temporary folder"))?;
        let (braid, names) = (braid.to_owned(), Vec::new());
        Ok(Volumes { braid, folder, names, files: 0, _undo: Vec::new() })
    }

    /// Brings one more up, with a new file for each FILE of `stack`.
    fn up(&mut self, stack: &str, is_attached: bool) -> Result<()> {
        let mut text = stack.to_owned();
        while text.contains("FILE") {
            self.files += 1;
            let path = self.folder.path().join(format!("{}.img", self.files));
            let file = File::create(&path).map_err(Error::io("a file"))?;
            file.set_len(16 << 20).map_err(Error::io("a file"))?;
            text = text.replacen("FILE", &path.display().to_string(), 1);
        }
        let name = format!("idle-{}-{}", std::process::id(), self.names.len());
        let at = self.folder.path().display();
        let down = format!("BRAID_RUN_DIR={at} {} down {name} --force", self.braid.display());
        self._undo.push(Undo::with(&down)?);
        let attach = if is_attached { "fuse" } else { "none" };
        let words = ["up", &text, "--name", &name, "--attach", attach];
        process::run(self.command().args(words))?;
        self.names.push(name);
        Ok(())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.braid);
        for folder in ["BRAID_RUN_DIR", "BRAID_CONFIG_DIR", "BRAID_STATE_DIR"] {
            command.env(folder, self.folder.path());
        }
        command
    }

    /// The sum of a line of `/proc/PID/smaps_rollup`, in bytes.
    fn sum(&self, line: &str) -> Result<u64> {
        let status = process::run(self.command().args(["status", "--json"]))?;
        let unexpected = || Error::Unexpected(format!("braid status: {status}"));
        let pids: Vec<&str> = status.split("\"pid\":").skip(1).collect();
        if pids.len() != self.names.len() {
            return Err(unexpected());
        }
        pids.into_iter().try_fold(0, |sum, text| {
            let pid = text.split(',').next().ok_or_else(unexpected)?.trim();
            let path = format!("/proc/{pid}/smaps_rollup");
            let text = std::fs::read_to_string(&path).map_err(Error::io(&path))?;
            let value = text.lines().find_map(|one| one.strip_prefix(line)?.strip_suffix("kB"));
            let kib = value.and_then(|kib| kib.trim().parse::<u64>().ok());
            kib.map(|kib| sum + (kib << 10)).ok_or(Error::Unexpected(text))
        })
    }
}

impl Drop for Volumes {
    fn drop(&mut self) {
        for name in &self.names {
            if let Err(error) = process::run(self.command().args(["down", name])) {
                eprintln!("{error}");
            }
        }
    }
}
