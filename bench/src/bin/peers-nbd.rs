//! braid's RAM volume beside nbdkit's and qemu-nbd's, on the same Unix-socket workloads; and two concatenated files on
//! tmpfs beside those of nbdkit's split plugin.
//!
//! `cargo run --release -p braid-bench --bin peers-nbd`, with all of the crate's programs and the
//! braid binary built in release mode. `--only NAME` runs the workloads whose name contains NAME.
//!
//! All servers are up all the time, each over 1 GiB that was written once. A round runs the
//! workload at each server in turn; the next round starts with the next server.

use std::process::ExitCode;
use std::time::Duration;

use braid_bench::args::{Args, beside_this_program, finish};
use braid_bench::fio::{self, Subject, Workload};
use braid_bench::peer::{FileInMemory, Folder, Server};
use braid_bench::stats::{Estimate, Target, median};
use braid_bench::table::Table;
use braid_bench::{Error, Result, cpu, load};

const USAGE: &str = "\
peers-nbd [--rounds N] [--runtime SECONDS] [--only NAME] [--cores all|one] [--braid PATH]
  --rounds   rounds of each workload (7)
  --runtime  seconds at each server in a round (2)
  --only     workloads whose name contains NAME
  --cores    one: clients and servers share one core, so that their placement is no luck (all)
  --braid    the braid binary (the one beside this program)";

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

const BATCHED: &str = "4 KiB random read, depth 32, batched";

/// The purpose of a workload.
#[derive(Clone, Copy, PartialEq)]
enum Aim {
    /// braid's server CPU per request, as a share of nbdkit's.
    Cpu(Target),
    /// braid's throughput, in units of the better peer's.
    Rate(Target),
}

const WORKLOADS: [(Workload, Aim); 6] = [
    (
        Workload {
            name: "4 KiB random read, depth 1",
            rw: "randread",
            block: 4 * KIB,
            depth: 1,
            jobs: 1,
        },
        Aim::Cpu(Target::AtMost(0.65)),
    ),
    (
        Workload {
            name: "4 KiB random read, depth 32",
            rw: "randread",
            block: 4 * KIB,
            depth: 32,
            jobs: 1,
        },
        Aim::Cpu(Target::AtMost(0.8)),
    ),
    (
        Workload {
            name: "4 KiB random read, depth 32, 4 connections",
            rw: "randread",
            block: 4 * KIB,
            depth: 32,
            jobs: 4,
        },
        Aim::Cpu(Target::AtMost(0.5)),
    ),
    (
        Workload {
            name: "4 KiB random write, depth 32",
            rw: "randwrite",
            block: 4 * KIB,
            depth: 32,
            jobs: 1,
        },
        Aim::Cpu(Target::None),
    ),
    (
        Workload {
            name: "1 MiB sequential read, depth 8",
            rw: "read",
            block: MIB,
            depth: 8,
            jobs: 1,
        },
        Aim::Rate(Target::AtLeast(1.0)),
    ),
    (
        Workload {
            name: "1 MiB sequential write, depth 8",
            rw: "write",
            block: MIB,
            depth: 8,
            jobs: 1,
        },
        Aim::Rate(Target::AtLeast(1.0)),
    ),
];

/// Workloads at servers over two files on tmpfs.
const ON_FILES: [(Workload, Aim); 2] = [
    (
        Workload {
            name: "files on tmpfs, 4 KiB random read, depth 32",
            rw: "randread",
            block: 4 * KIB,
            depth: 32,
            jobs: 1,
        },
        Aim::Cpu(Target::None),
    ),
    (
        Workload {
            name: "files on tmpfs, 4 KiB random write, depth 32",
            rw: "randwrite",
            block: 4 * KIB,
            depth: 32,
            jobs: 1,
        },
        Aim::Cpu(Target::AtMost(1.06)),
    ),
];

/// The results of one server with a workload, one figure for each round.
#[derive(Default)]
struct Samples {
    requests_per_second: Vec<f64>,
    bytes_per_second: Vec<f64>,
    server_us: Vec<f64>,
    client_us: Vec<f64>,
}

fn main() -> ExitCode {
    finish(run())
}

fn run() -> Result<()> {
    let known = ["--rounds", "--runtime", "--only", "--cores", "--braid"];
    let args = Args::from_command_line(&known, USAGE)?;
    let rounds = args.value("--rounds", 7usize)?.max(1);
    let seconds: f64 = args.value("--runtime", 2.0)?;
    match args.text("--cores") {
        None | Some("all") => {}
        Some("one") => cpu::stay_on_one_core()?,
        Some(_) => return Err(Error::Usage(USAGE.to_owned())),
    }
    fio::require()?;
    let folder = Folder::new()?;
    let braid = Server::braid(&args.braid()?, "braid", "ram(1G)", folder.path())?;
    fio::fill(Subject::Nbd(braid.socket()))?;
    let mut ratios = Table::new(["workload", "braid's", "ratio to", "median [95 %]", "target", ""]);
    let mut absolute = absolute_table();
    let wanted = WORKLOADS.iter().filter(|(workload, _)| args.wants(workload.name));
    let wanted: Vec<_> = wanted.collect();
    let mut servers = vec![braid];
    if !wanted.is_empty() {
        servers.push(Server::nbdkit("1G", folder.path())?);
        servers.push(Server::qemu(GIB, folder.path())?);
        for peer in &servers[1..] {
            fio::fill(Subject::Nbd(peer.socket()))?;
        }
    }
    for (workload, aim) in wanted {
        let samples = run_fio(&servers, rounds, workload, seconds)?;
        add_absolute(&mut absolute, workload.name, &servers, &samples);
        add_ratios(&mut ratios, workload.name, *aim, &servers, &samples);
    }
    if args.wants(BATCHED) {
        eprintln!("{BATCHED} ...");
        servers.truncate(1);
        servers.push(Server::bare(&beside_this_program("bare-nbd")?, folder.path())?);
        let duration = Duration::from_secs_f64(seconds);
        let samples = measure(&servers, rounds, |server| {
            let outcome = load::random_reads(server.socket(), 32, duration)?;
            Ok(Figures {
                requests: outcome.requests as f64,
                bytes: outcome.requests as f64 * 4096.0,
                seconds: outcome.seconds,
                client_us: outcome.cpu_ns as f64 / 1000.0,
            })
        })?;
        add_absolute(&mut absolute, BATCHED, &servers, &samples);
        add_ratios(&mut ratios, BATCHED, Aim::Cpu(Target::AtMost(1.5)), &servers, &samples);
    }
    drop(servers);
    let wanted: Vec<_> = ON_FILES.iter().filter(|(one, _)| args.wants(one.name)).collect();
    if !wanted.is_empty() {
        // Each server has files of its own.
        let files = || [GIB / 2; 2].into_iter().map(FileInMemory::new).collect::<Result<Vec<_>>>();
        let (own, others) = (files()?, files()?);
        let stack = format!("linear({}, {})", own[0].path().display(), own[1].path().display());
        let braid = Server::braid(&args.braid()?, "braid", &stack, folder.path())?;
        let servers = [braid, Server::split(&others, folder.path())?];
        servers.iter().try_for_each(|server| fio::fill(Subject::Nbd(server.socket())))?;
        for (workload, aim) in wanted {
            let samples = run_fio(&servers, rounds, workload, seconds)?;
            add_absolute(&mut absolute, workload.name, &servers, &samples);
            add_ratios(&mut ratios, workload.name, *aim, &servers, &samples);
        }
    }
    println!("Medians of {rounds} rounds of {seconds} s (for orientation)\n\n{absolute}");
    println!("Ratios within a round\n\n{ratios}");
    Ok(())
}

/// Runs fio's workload at each server in turn.
fn run_fio(
    servers: &[Server],
    rounds: usize,
    workload: &Workload,
    seconds: f64,
) -> Result<Vec<Samples>> {
    eprintln!("{} ...", workload.name);
    measure(servers, rounds, |server| {
        let outcome = fio::run(Subject::Nbd(server.socket()), workload, seconds)?;
        Ok(Figures {
            requests: outcome.requests,
            bytes: outcome.bytes,
            seconds: outcome.seconds,
            client_us: outcome.cpu_seconds * 1e6,
        })
    })
}

/// One run at one server.
struct Figures {
    requests: f64,
    bytes: f64,
    seconds: f64,
    client_us: f64,
}

fn measure(
    servers: &[Server],
    rounds: usize,
    once: impl Fn(&Server) -> Result<Figures>,
) -> Result<Vec<Samples>> {
    let mut samples: Vec<Samples> = servers.iter().map(|_| Samples::default()).collect();
    for round in 0..rounds {
        for turn in 0..servers.len() {
            let index = (round + turn) % servers.len();
            let before = cpu::process_ns(servers[index].pid())?;
            let figures = once(&servers[index])?;
            let server_ns = cpu::process_ns(servers[index].pid())? - before;
            let sample = &mut samples[index];
            sample.requests_per_second.push(figures.requests / figures.seconds);
            sample.bytes_per_second.push(figures.bytes / figures.seconds);
            sample.server_us.push(server_ns as f64 / 1000.0 / figures.requests);
            sample.client_us.push(figures.client_us / figures.requests);
        }
    }
    Ok(samples)
}

fn absolute_table() -> Table {
    Table::new([
        "workload",
        "server",
        "requests/s",
        "MB/s",
        "server CPU, µs/request",
        "client CPU, µs/request",
        "server/client CPU",
    ])
}

fn add_absolute(table: &mut Table, workload: &str, servers: &[Server], samples: &[Samples]) {
    for (server, sample) in servers.iter().zip(samples) {
        let middle = |values: &[f64]| median(&mut values.to_vec());
        table.row([
            workload.to_owned(),
            server.name.to_owned(),
            format!("{:.0}", middle(&sample.requests_per_second)),
            format!("{:.0}", middle(&sample.bytes_per_second) / 1e6),
            format!("{:.2}", middle(&sample.server_us)),
            format!("{:.2}", middle(&sample.client_us)),
            Estimate::of_ratio(&sample.server_us, &sample.client_us).to_string(),
        ]);
    }
}

/// Compares braid (the first server) with each of the others: the ratio of the workload's purpose beside its target, and
/// the other ratio without one.
fn add_ratios(
    table: &mut Table,
    workload: &str,
    aim: Aim,
    servers: &[Server],
    samples: &[Samples],
) {
    let (cpu_target, rate_target) = match aim {
        Aim::Cpu(target) => (target, Target::None),
        Aim::Rate(target) => (Target::None, target),
    };
    let mut row = |what: &str, peer: &str, estimate: Estimate, target: Target| {
        table.row([
            workload.to_owned(),
            what.to_owned(),
            peer.to_owned(),
            estimate.to_string(),
            target.to_string(),
            target.verdict(estimate),
        ]);
    };
    let ours = &samples[0];
    let rate =
        |theirs: &Samples| Estimate::of_ratio(&ours.bytes_per_second, &theirs.bytes_per_second);
    let peers = || servers[1..].iter().zip(&samples[1..]);
    // The better peer is the one that leaves braid the lower ratio.
    let better = peers().map(|(_, theirs)| rate(theirs).median).fold(f64::INFINITY, f64::min);
    for (index, (peer, theirs)) in peers().enumerate() {
        let estimate = Estimate::of_ratio(&ours.server_us, &theirs.server_us);
        let target = if index == 0 { cpu_target } else { Target::None };
        row("server CPU", peer.name, estimate, target);
        let estimate = rate(theirs);
        let target = if estimate.median == better { rate_target } else { Target::None };
        row("throughput", peer.name, estimate, target);
    }
}
