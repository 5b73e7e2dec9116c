//! The cost of watching: processor time and memory of `braid monitor` beside idle volumes.
//!
//! `cargo run --release -p braid-bench --bin watching`. The volumes are small mirrors in memory; a look asks
//! each of them for its whole status, even if nothing has happened.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use braid_bench::args::{Args, finish};
use braid_bench::cpu::process_ns;
use braid_bench::process::{self, Service, Undo};
use braid_bench::stats::{Estimate, Target};
use braid_bench::table::Table;
use braid_bench::{Error, Result};

const USAGE: &str = "\
watching [--volumes N] [--rounds N] [--runtime SECONDS] [--braid PATH]
  --volumes  volumes (50)
  --rounds   rounds (8)
  --runtime  seconds of each (15)
  --braid    the braid binary (the one beside this program)";

const STACK: &str = "raid1(ram(1M), ram(1M))";
/// Looks before anything is measured: what is new is told, and memory is taken.
const BEFORE: Duration = Duration::from_secs(12);
const MIB: f64 = 1024.0 * 1024.0;

fn main() -> ExitCode {
    finish(run())
}

fn run() -> Result<()> {
    let known = ["--volumes", "--rounds", "--runtime", "--braid"];
    let args = Args::from_command_line(&known, USAGE)?;
    let count = args.value("--volumes", 50usize)?.max(1);
    let rounds = args.value("--rounds", 8usize)?.max(1);
    let length = Duration::from_secs(args.value("--runtime", 15u64)?.max(1));
    let volumes = Volumes::up(&args.braid()?, count)?;
    let mut command = volumes.command();
    command.args(["monitor", "--json"]);
    let mut monitor = Service::start(command)?;
    let state = volumes.folder.path().join("monitor.json");
    monitor.wait_until("looked", || state.is_file())?;
    std::thread::sleep(BEFORE);
    let mut shares = Vec::new();
    let mut memory = Memory::default();
    for round in 0..rounds {
        eprintln!("round {} of {rounds} ...", round + 1);
        let (start, before) = (Instant::now(), process_ns(monitor.pid())?);
        std::thread::sleep(length);
        let used = process_ns(monitor.pid())? - before;
        shares.push(used as f64 / start.elapsed().as_nanos() as f64 * 100.0);
        memory = memory.or_more(Memory::of(monitor.pid())?);
    }
    let seconds = length.as_secs() * rounds as u64;
    println!("{count} volumes, looked at every 5 s, for {seconds} s\n");
    let share = Estimate::of(&shares);
    let mut table = Table::new(["of the monitor", "it takes", "target"]);
    let verdict = |target: Target, value: Estimate| format!("{target}: {}", target.verdict(value));
    table.row(["% of one core".to_owned(), share.to_string(), verdict(Target::AtMost(1.0), share)]);
    for (what, bytes, target) in [
        ("resident, MiB", memory.resident, Some(20.0)),
        ("of it its own share (PSS), MiB", memory.proportional, None),
        ("of it anonymous, MiB", memory.anonymous, None),
    ] {
        let mib = bytes as f64 / MIB;
        let verdict = match target {
            Some(target) if mib <= target => format!("≤ {target}: met"),
            Some(target) => format!("≤ {target}: missed"),
            None => String::new(),
        };
        table.row([what.to_owned(), format!("{mib:.1}"), verdict]);
    }
    println!("{table}");
    Ok(())
}

/// Memory of a process, in bytes.
#[derive(Clone, Copy, Default)]
struct Memory {
    resident: u64,
    proportional: u64,
    anonymous: u64,
}

impl Memory {
    /// By `/proc/PID/smaps_rollup`.
    fn of(pid: u32) -> Result<Memory> {
        let path = format!("/proc/{pid}/smaps_rollup");
        let text = std::fs::read_to_string(&path).map_err(Error::io(&path))?;
        let bytes = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_suffix("kB"));
            let kib = line.and_then(|line| line.trim().parse::<u64>().ok());
            kib.map(|kib| kib * 1024).ok_or_else(|| Error::Unexpected(format!("{path}:\n{text}")))
        };
        let (resident, proportional) = (bytes("Rss:")?, bytes("Pss:")?);
        Ok(Memory { resident, proportional, anonymous: bytes("Anonymous:")? })
    }

    /// The most of each.
    fn or_more(self, other: Memory) -> Memory {
        Memory {
            resident: self.resident.max(other.resident),
            proportional: self.proportional.max(other.proportional),
            anonymous: self.anonymous.max(other.anonymous),
        }
    }
}

/// Volumes that are up, in folders of their own.
struct Volumes {
    braid: PathBuf,
    folder: tempfile::TempDir,
    names: Vec<String>,
    _undo: Vec<Undo>,
}

impl Volumes {
    fn up(braid: &Path, count: usize) -> Result<Volumes> {
        let folder = tempfile::tempdir().map_err(Error::io("temporary folder"))?;
        let (names, undo) = (Vec::new(), Vec::new());
        let mut volumes = Volumes { braid: braid.to_owned(), folder, names, _undo: undo };
        for number in 0..count {
            let name = format!("v{number}");
            let at = volumes.folder.path().display();
            let down = format!("BRAID_RUN_DIR={at} {} down {name}", braid.display());
            volumes._undo.push(Undo::with(&down)?);
            let up = ["up", STACK, "--name", &name, "--attach", "none"];
            process::run(volumes.command().args(up))?;
            volumes.names.push(name);
        }
        Ok(volumes)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.braid);
        for folder in ["BRAID_RUN_DIR", "BRAID_CONFIG_DIR", "BRAID_STATE_DIR"] {
            command.env(folder, self.folder.path());
        }
        command
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
