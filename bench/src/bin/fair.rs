//! The 99th percentile of latency at a fixed rate: beside a client that floods, beside a slow member, and beside nbdkit.
//!
//! `cargo run --release -p braid-bench --bin fair`
//!
//! ```text
//!   paced client, 4 KiB, one at a time ──▶ braid: ram(…)                    alone, and beside 32 reads in flight
//!                                      ──▶ braid: raid1(ram(…), a slow one) when it is known to be slow
//!                                      ──▶ braid: raid1, raid5 of RAM;  nbdkit's memory
//! ```
//!
//! `recovery` has the same beside a recovery.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use braid_bench::args::{Args, finish};
use braid_bench::fio::{self, Subject};
use braid_bench::peer::{Folder, Server};
use braid_bench::stats::{Estimate, Target, median, percentile};
use braid_bench::table::Table;
use braid_bench::{Error, Result, load};

const USAGE: &str = "\
fair [--rounds N] [--runtime SECONDS] [--only NAME] [--braid PATH]
  --rounds   rounds of each row (9)
  --runtime  seconds of each side in a round (1)
  --only     rows whose name contains NAME: flood, slow, raid1, raid5
  --braid    the braid binary (the one beside this program)";

/// Requests a second of the rows beside a flood and beside a slow member, and of those beside nbdkit.
const CALM: u32 = 1_000;
const BUSY: u32 = 20_000;

/// Requests in flight of the client that floods.
const FLOOD: u32 = 32;

/// A member whose requests take 5 ms, and the time after which the volume reads elsewhere (docs/members.md).
const SLOW: &str =
    "raid1(ram(64M), model(usb-flash, size=64M, read=1G/s, write=1G/s, latency=5ms))";
const KNOWN_AFTER: f64 = 25.0;

fn main() -> ExitCode {
    finish(run())
}

/// A measurement, and its table.
struct Bench {
    rounds: usize,
    seconds: f64,
    table: Table,
}

fn run() -> Result<()> {
    let args = Args::from_command_line(&["--rounds", "--runtime", "--only", "--braid"], USAGE)?;
    let rounds = args.value("--rounds", 9usize)?.max(1);
    let seconds: f64 = args.value("--runtime", 1.0)?;
    let braid = args.braid()?;
    fio::require()?;
    let what = "99th percentile of 4 KiB requests";
    let table = Table::new([what, "µs", "in units of", "µs", "[95 %]", "target", ""]);
    let mut bench = Bench { rounds, seconds, table };
    let folder = Folder::new()?;
    let serve = |name, stack: &str| -> Result<Server> {
        let server = Server::braid(&braid, name, stack, folder.path())?;
        fio::fill(Subject::Nbd(server.socket())).map(|()| server)
    };
    if args.wants("flood") {
        let ram = serve("ram", "ram(256M)")?;
        let socket = ram.socket();
        bench.compare(
            ("reads, 1,000 a second, beside a flood", "alone", Target::AtMost(3.0)),
            &|seconds| beside_a_flood(socket, seconds),
            &|seconds| p99(socket, true, CALM, seconds),
        )?;
    }
    if args.wants("slow") {
        let (slow, ram) = (serve("slow", SLOW)?, serve("fast", "ram(64M)")?);
        p99(slow.socket(), true, CALM, KNOWN_AFTER)?;
        bench.compare(
            ("reads of a raid1, 1,000 a second, one member slow", "RAM alone", Target::None),
            &|seconds| p99(slow.socket(), true, CALM, seconds),
            &|seconds| p99(ram.socket(), true, CALM, seconds),
        )?;
    }
    for (name, row, stack) in [
        ("raid1", "writes to a raid1, 20,000 a second", "raid1(ram(256M), ram(256M))"),
        ("raid5", "writes to a raid5, 20,000 a second", "raid5(ram(128M), ram(128M), ram(128M))"),
    ] {
        if args.wants(name) {
            let folder = Folder::new()?;
            let (own, theirs) = (serve(name, stack)?, Server::nbdkit("256M", folder.path())?);
            fio::fill(Subject::Nbd(theirs.socket()))?;
            bench.compare(
                (row, "nbdkit's memory", Target::AtMost(1.0)),
                &|seconds| p99(own.socket(), false, BUSY, seconds),
                &|seconds| p99(theirs.socket(), false, BUSY, seconds),
            )?;
        }
    }
    println!("{rounds} rounds of {seconds} s\n\n{}", bench.table);
    Ok(())
}

type Side<'a> = &'a dyn Fn(f64) -> Result<f64>;

impl Bench {
    fn compare(
        &mut self,
        (row, other, target): (&str, &str, Target),
        ours: Side<'_>,
        theirs: Side<'_>,
    ) -> Result<()> {
        eprintln!("{row} ...");
        let mut samples = [Vec::new(), Vec::new()];
        for round in 0..self.rounds {
            for turn in 0..2 {
                let index = (round + turn) % 2;
                samples[index].push([ours, theirs][index](self.seconds)?);
            }
        }
        let estimate = Estimate::of_ratio(&samples[0], &samples[1]);
        let [own, alone] = samples.map(|mut values| format!("{:.0}", median(&mut values)));
        self.table.row([
            row.to_owned(),
            own,
            other.to_owned(),
            alone,
            estimate.to_string(),
            target.to_string(),
            target.verdict(estimate),
        ]);
        Ok(())
    }
}

/// Returns the 99th percentile of latency at `rate` requests a second, in µs.
fn p99(socket: &Path, is_read: bool, rate: u32, seconds: f64) -> Result<f64> {
    let count = (f64::from(rate) * seconds) as u32;
    let every = Duration::from_secs(1) / rate;
    load::paced(socket, is_read, count, every).map(|mut times| percentile(&mut times, 0.99))
}

/// The same of reads while another client keeps reads in flight.
fn beside_a_flood(socket: &Path, seconds: f64) -> Result<f64> {
    std::thread::scope(|scope| {
        let flood = || load::random_reads(socket, FLOOD, Duration::from_secs_f64(seconds));
        let flooding = scope.spawn(flood);
        let found = p99(socket, true, CALM, seconds);
        let flooded = flooding.join().map_err(|_| Error::Unexpected("the flood panicked".into()));
        flooded??;
        found
    })
}
