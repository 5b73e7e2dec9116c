//! The slowdown of clients by scraping: the 99th percentile of their latency while `/metrics` is read ten
//! times a second at the control socket, compared with the same load without scrapes, in turn.
//!
//! It also measures the volume's processor time for a scrape without other load.
//!
//! `cargo run --release -p braid-bench --bin scraped`. The volume is a raid1 over two RAM disks behind a cache,
//! so that the volume's own work is as small as possible, and the work for a scrape as large as possible.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use braid_bench::args::{Args, finish};
use braid_bench::process::{self, Undo};
use braid_bench::stats::{Estimate, Target, median};
use braid_bench::table::Table;
use braid_bench::{Error, Result, cpu, fio};
use serde_json::Value;

const USAGE: &str = "\
scraped [--rounds N] [--runtime SECONDS] [--braid PATH]
  --rounds   rounds (30)
  --runtime  seconds with, and without, in a round (4)
  --braid    the braid binary (the one beside this program)";

const STACK: &str = "cache(size=32M, raid1(ram(256M), ram(256M)))";
const EVERY: Duration = Duration::from_millis(100);
/// Scrapes without any other load, one after the other.
const ALONE: u32 = 500;

fn main() -> ExitCode {
    finish(run())
}

fn run() -> Result<()> {
    let args = Args::from_command_line(&["--rounds", "--runtime", "--braid"], USAGE)?;
    let rounds = args.value("--rounds", 30usize)?.max(1);
    let seconds: u64 = args.value("--runtime", 4)?;
    fio::require()?;
    let volume = Volume::up(&args.braid()?)?;
    fio::fill(fio::Subject::Nbd(&volume.nbd()))?;
    // The load runs with and without scrapes; and twice without, which shows the difference between two equal
    // runs.
    let (mut with, mut without, mut again) = (Vec::new(), Vec::new(), Vec::new());
    let mut scrapes = Vec::new();
    for round in 0..rounds {
        eprintln!("round {} of {rounds} ...", round + 1);
        for turn in 0..3 {
            match (round + turn) % 3 {
                0 => without.push(load(&volume, seconds)?),
                1 => again.push(load(&volume, seconds)?),
                _ => {
                    let ended = AtomicBool::new(false);
                    let (p99, times) = std::thread::scope(|scope| {
                        let scraping = scope.spawn(|| scrape(&volume, &ended));
                        let p99 = load(&volume, seconds);
                        ended.store(true, Ordering::Relaxed);
                        let times = scraping
                            .join()
                            .map_err(|_| Error::Unexpected("the scraping thread panicked".into()));
                        Ok::<_, Error>((p99?, times??))
                    })?;
                    with.push(p99);
                    scrapes.extend(times);
                }
            }
        }
    }
    println!("a scrape takes {:.2} ms of processor time", volume.scrape_ns()? / 1e6);
    let count = scrapes.len();
    println!(
        "{count} scrapes in {} s, {:.2} ms each in the median; p99 without {:.1} µs, with {:.1} µs\n",
        seconds * rounds as u64,
        median(&mut scrapes) * 1e3,
        median(&mut without.clone()),
        median(&mut with.clone())
    );
    let mut table = Table::new(["p99 of 4 KiB random reads and writes", "median [95 %]"]);
    for (name, numerators) in [("scraped, in units of not", &with), ("not, twice", &again)] {
        let estimate = Estimate::of_ratio(numerators, &without);
        table.row([name.to_owned(), estimate.to_string()]);
    }
    println!("{table}");
    let target = Target::AtMost(1.05);
    let estimate = Estimate::of_ratio(&with, &without);
    println!("target {target}: {}", target.verdict(estimate));
    Ok(())
}

/// The 99th percentile of latency of a load, in µs.
fn load(volume: &Volume, seconds: u64) -> Result<f64> {
    let mut command = Command::new("fio");
    command
        .args(["--name=bench", "--output-format=json", "--eta=never", "--ioengine=nbd"])
        .args(["--rw=randrw", "--rwmixread=70", "--bs=4k", "--iodepth=8", "--norandommap=1"])
        .args(["--time_based=1", "--unified_rw_reporting=1"])
        .arg(format!("--runtime={seconds}"))
        .arg(format!("--uri=nbd+unix:///?socket={}", volume.nbd().display()));
    let output = process::run(&mut command)?;
    let start = output.find('{').unwrap_or(0);
    let report: Value = serde_json::from_str(&output[start..])
        .map_err(|error| Error::Unexpected(format!("fio's report: {error}\n{output}")))?;
    let p99 = &report["jobs"][0]["mixed"]["clat_ns"]["percentile"]["99.000000"];
    let ns = p99.as_f64().ok_or_else(|| Error::Unexpected(format!("no percentile:\n{output}")))?;
    Ok(ns / 1e3)
}

/// Scrapes until `ended`; returns the seconds that each scrape took.
fn scrape(volume: &Volume, ended: &AtomicBool) -> Result<Vec<f64>> {
    let mut times = Vec::new();
    let mut due = Instant::now();
    while !ended.load(Ordering::Relaxed) {
        let start = Instant::now();
        volume.get("/metrics", "\nbraid_volume_up{")?;
        times.push(start.elapsed().as_secs_f64());
        due += EVERY;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    Ok(times)
}

/// A volume that is up, in its own folders.
struct Volume {
    braid: PathBuf,
    folder: tempfile::TempDir,
    _undo: Undo,
}

impl Volume {
    fn up(braid: &Path) -> Result<Volume> {
        let folder = tempfile::tempdir().map_err(Error::io("temporary folder"))?;
        let at = folder.path().display();
        let down = format!("BRAID_RUN_DIR={at} {} down v", braid.display());
        let undo = Undo::with(&down)?;
        let volume = Volume { braid: braid.to_owned(), folder, _undo: undo };
        process::run(volume.command().args(["up", STACK, "--name", "v", "--attach", "none"]))?;
        Ok(volume)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.braid);
        for folder in ["BRAID_RUN_DIR", "BRAID_CONFIG_DIR", "BRAID_STATE_DIR"] {
            command.env(folder, self.folder.path());
        }
        command
    }

    /// Reads `path` at the control socket, and checks that the answer contains `part`.
    fn get(&self, path: &str, part: &str) -> Result<String> {
        let failed = || Error::io(path.to_owned());
        let mut stream = UnixStream::connect(self.control()).map_err(failed())?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: braid\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).map_err(failed())?;
        let mut text = String::new();
        stream.read_to_string(&mut text).map_err(failed())?;
        match text.contains(part) {
            true => Ok(text),
            false => Err(Error::Unexpected(format!("no {part} in {text}"))),
        }
    }

    /// Processor time of the volume for one scrape, in nanoseconds.
    fn scrape_ns(&self) -> Result<f64> {
        let status = process::run(self.command().args(["status", "v", "--json"]))?;
        let status: Value = serde_json::from_str(&status)
            .map_err(|error| Error::Unexpected(format!("a status: {error}")))?;
        let pid = status.pointer("/volumes/0/pid").and_then(Value::as_u64);
        let pid = pid.and_then(|pid| u32::try_from(pid).ok());
        let pid = pid.ok_or_else(|| Error::Unexpected(format!("no process in {status}")))?;
        let before = cpu::process_ns(pid)?;
        for _ in 0..ALONE {
            self.get("/metrics", "\nbraid_volume_up{")?;
        }
        Ok((cpu::process_ns(pid)? - before) as f64 / f64::from(ALONE))
    }

    fn control(&self) -> PathBuf {
        self.folder.path().join("v.sock")
    }

    fn nbd(&self) -> PathBuf {
        self.folder.path().join("v.nbd")
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        if let Err(error) = process::run(self.command().args(["down", "v"])) {
            eprintln!("{error}");
        }
    }
}
