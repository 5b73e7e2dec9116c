//! A volume on another server, and TLS, beside others' programs that do the same.
//!
//! ```text
//!  fio ──▶ braid: nbd(…) ─────┐
//!  fio ──▶ nbdkit's nbd plugin ┼──▶ nbdkit, 1 GiB of memory       nbdcopy ══TLS══▶ braid, ram(256M)
//!  fio ────────────────────────┘                                  nbdcopy ══TLS══▶ nbdkit, memory
//!
//!  one write at a time ──▶ braid: raid1 ──┬──▶ a modelled disk of 200 us
//!                                         └──▶ nbdkit, 20 ms later     (write-mostly, write-behind)
//!  one write at a time ──▶ braid ───────────▶ a modelled disk of 200 us
//!
//!  fio ──▶ braid: rbd(…) ──┐
//!  fio ──▶ qemu-nbd, rbd: ─┴──▶ a Ceph cluster that runs already
//! ```
//!
//! A round runs the workload at each side in turn; the next round starts with the next side. The processor time is that
//! of the side's own server, without the one behind it. fio may not read certificates, so nbdcopy is the client of TLS: it
//! reads all there is once, whatever `--runtime` says.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use braid_bench::args::{Args, finish};
use braid_bench::attached::BraidUp;
use braid_bench::fio::{self, Subject, Workload};
use braid_bench::peer::Folder;
use braid_bench::process::{self, Service, require};
use braid_bench::stats::{Estimate, Target, median};
use braid_bench::table::Table;
use braid_bench::{Error, Result, cpu, load};

const USAGE: &str = "\
remote [--rounds N] [--runtime SECONDS] [--only NAME] [--braid PATH] [--ceph FILE]
  --rounds   rounds of each workload (7)
  --runtime  seconds at each side in a round (2)
  --only     groups whose name contains NAME: nbd, TLS, mirror, rbd
  --braid    the braid binary (the one beside this program)
  --ceph     the ceph.conf of a cluster with a pool called rbd, as scripts/ceph-loopback.sh makes it";

const SMALL: [Workload; 2] = [
    Workload { name: "4 KiB random read", rw: "randread", block: 4 << 10, depth: 32, jobs: 1 },
    Workload { name: "4 KiB random write", rw: "randwrite", block: 4 << 10, depth: 32, jobs: 1 },
];
const LARGE: [Workload; 2] = [
    Workload { name: "1 MiB read", rw: "read", block: 1 << 20, depth: 8, jobs: 1 },
    Workload { name: "1 MiB write", rw: "write", block: 1 << 20, depth: 8, jobs: 1 },
];

/// nbdcopy's, over TLS.
const COPIED: [Workload; 2] = [
    Workload { name: "4 KiB read", rw: "read", block: 4 << 10, depth: 32, jobs: 1 },
    Workload { name: "1 MiB read", rw: "read", block: 1 << 20, depth: 8, jobs: 1 },
];
/// Bytes of the volumes that nbdcopy reads.
const COPIED_BYTES: u64 = 256 << 20;

/// A way to the data.
struct Side {
    name: &'static str,
    uri: String,
    /// Its server; none for the way without one in between.
    server: Option<Service>,
}

impl Side {
    fn start(name: &'static str, command: Command, socket: &Path, uri: String) -> Result<Side> {
        let mut server = Service::start(command)?;
        server.wait_for_socket(socket)?;
        Ok(Side { name, uri, server: Some(server) })
    }

    /// Runs the workload; answers bytes a second, and the number of requests.
    fn run(&self, workload: &Workload, seconds: f64) -> Result<(f64, f64)> {
        if !self.uri.starts_with("nbds") {
            let outcome = fio::run(Subject::Uri(&self.uri), workload, seconds)?;
            return Ok((outcome.rate(), outcome.requests));
        }
        let mut nbdcopy = Command::new(require("nbdcopy", "libnbd-bin")?);
        nbdcopy.args(["--no-extents", "--connections=1", "--threads=1"]);
        nbdcopy.arg(format!("--request-size={}", workload.block));
        nbdcopy.arg(format!("--requests={}", workload.depth));
        let begun = Instant::now();
        process::run(nbdcopy.args([&self.uri, "null:"]))?;
        let rate = COPIED_BYTES as f64 / begun.elapsed().as_secs_f64();
        Ok((rate, (COPIED_BYTES / workload.block) as f64))
    }
}

/// Sides that do the same, braid first.
struct Group {
    name: &'static str,
    sides: Vec<Side>,
    /// For each other side, the targets: throughput of small requests, and of large ones; processor time of small ones.
    targets: Vec<[Target; 3]>,
}

fn main() -> ExitCode {
    finish(run())
}

fn run() -> Result<()> {
    let known = ["--rounds", "--runtime", "--only", "--braid", "--ceph"];
    let args = Args::from_command_line(&known, USAGE)?;
    let rounds = args.value("--rounds", 7usize)?.max(1);
    let seconds: f64 = args.value("--runtime", 2.0)?;
    fio::require()?;
    let braid = args.braid()?;
    let mut table = Table::new(["workload", "braid's", "ratio to", "median [95 %]", "target", ""]);
    if args.wants("nbd") {
        let folder = Folder::new()?;
        let (_origin, group) = nbd(&braid, folder.path())?;
        measure(&group, rounds, seconds, &mut table)?;
    }
    if args.wants("TLS") {
        let folder = Folder::new()?;
        let certificates = tempfile::tempdir().map_err(Error::io("a folder"))?;
        measure(&tls(&braid, folder.path(), certificates.path())?, rounds, seconds, &mut table)?;
    }
    if args.wants("mirror") {
        mirror(&braid, rounds, &mut table)?;
    }
    if args.wants("rbd") {
        match args.text("--ceph") {
            None => println!("rbd: left out, because no --ceph names a cluster\n"),
            Some(conf) => {
                let folder = Folder::new()?;
                let group = rbd(&braid, folder.path(), conf)?;
                measure(&group, rounds, seconds, &mut table)?;
            }
        }
    }
    println!("Ratios within a round; {rounds} rounds of {seconds} s\n\n{table}");
    Ok(())
}

/// The address of the server at a Unix socket.
fn at(socket: &Path) -> String {
    format!("nbd+unix:///?socket={}", socket.display())
}

fn nbdkit(socket: &Path) -> Result<Command> {
    let mut command = Command::new(require("nbdkit", "nbdkit")?);
    command.arg("--foreground").arg("--unix").arg(socket);
    Ok(command)
}

fn serve(braid: &Path, stack: &str, socket: &Path) -> Command {
    let mut command = Command::new(braid);
    command.args(["serve", stack, "--nbd"]).arg(format!("unix:{}", socket.display()));
    command
}

fn nbd(braid: &Path, folder: &Path) -> Result<(Service, Group)> {
    let [own, plugin, behind] =
        ["braid.sock", "plugin.sock", "origin.sock"].map(|name| folder.join(name));
    let mut origin = nbdkit(&behind)?;
    origin.args(["memory", "1G"]);
    let mut origin = Service::start(origin)?;
    origin.wait_for_socket(&behind)?;
    fio::fill(Subject::Uri(&at(&behind)))?;
    let by_braid = serve(braid, &format!("nbd({})", at(&behind)), &own);
    let mut by_plugin = nbdkit(&plugin)?;
    by_plugin.arg("nbd").arg(format!("socket={}", behind.display()));
    let sides = vec![
        Side::start("braid", by_braid, &own, at(&own))?,
        Side { name: "the bare client", uri: at(&behind), server: None },
        Side::start("nbdkit's nbd plugin", by_plugin, &plugin, at(&plugin))?,
    ];
    let targets = vec![
        [Target::AtLeast(0.9), Target::AtLeast(0.9), Target::None],
        [Target::None, Target::None, Target::AtMost(1.3)],
    ];
    Ok((origin, Group { name: "nbd", sides, targets }))
}

fn tls(braid: &Path, folder: &Path, certificates: &Path) -> Result<Group> {
    make_certificates(certificates)?;
    let sockets = ["braid.sock", "nbdkit.sock"].map(|name| folder.join(name));
    let uri = |socket: &PathBuf| {
        let (socket, certificates) = (socket.display(), certificates.display());
        format!("nbds+unix://localhost/?socket={socket}&tls-certificates={certificates}")
    };
    // Offered, so that fio can fill them.
    let size = COPIED_BYTES.to_string();
    let mut own = serve(braid, &format!("ram({size})"), &sockets[0]);
    own.args(["--tls", "on", "--tls-certificates"]).arg(certificates);
    let mut theirs = nbdkit(&sockets[1])?;
    theirs.arg("--tls=on").arg(format!("--tls-certificates={}", certificates.display()));
    theirs.args(["memory", &size]);
    let sides = vec![
        Side::start("braid", own, &sockets[0], uri(&sockets[0]))?,
        Side::start("nbdkit", theirs, &sockets[1], uri(&sockets[1]))?,
    ];
    for socket in &sockets {
        fio::fill(Subject::Uri(&at(socket)))?;
    }
    let targets = vec![[Target::None, Target::AtLeast(1.3), Target::AtMost(0.7)]];
    Ok(Group { name: "TLS", sides, targets })
}

/// Makes a certificate that signs itself, under the names that servers and clients look for.
fn make_certificates(folder: &Path) -> Result<()> {
    let mut openssl = Command::new(require("openssl", "openssl")?);
    openssl.current_dir(folder).args(["req", "-x509", "-days", "2", "-subj", "/CN=localhost"]);
    openssl.args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
    openssl.args(["-addext", "subjectAltName=DNS:localhost"]);
    process::run(openssl.args(["-keyout", "server-key.pem", "-out", "server-cert.pem"]))?;
    let [from, to] = ["server-cert.pem", "ca-cert.pem"].map(|name| folder.join(name));
    std::fs::copy(from, to).map(drop).map_err(Error::io("a certificate"))
}

/// The disk of each side: its writes take much longer than a hop between processes, and less than the way.
const NEAR: &str = "model(usb-flash, size=64M, read=1GB/s, write=1GB/s, latency=200us)";
/// Writes of a round, and the time between two.
const PACED: (u32, Duration) = (500, Duration::from_millis(2));

/// A mirror with write-behind over a way of 20 ms, beside one disk.
fn mirror(braid: &Path, rounds: usize, table: &mut Table) -> Result<()> {
    let folder = Folder::new()?;
    let sockets = ["near", "far", "alone", "mirror", "single"];
    let [near, far, alone, up, single] =
        sockets.map(|name| folder.path().join(format!("{name}.sock")));
    let mut started = Vec::new();
    let mut start = |command: Command, socket: &Path| -> Result<()> {
        let mut service = Service::start(command)?;
        service.wait_for_socket(socket)?;
        started.push(service);
        Ok(())
    };
    start(serve(braid, NEAR, &near), &near)?;
    start(serve(braid, NEAR, &alone), &alone)?;
    let mut late = nbdkit(&far)?;
    late.args(["--filter=delay", "--threads=256", "memory", "64M", "wdelay=20ms"]);
    start(late, &far)?;
    start(serve(braid, &format!("nbd({})", at(&alone)), &single), &single)?;
    let [here, there] = [&near, &far].map(|socket| format!("nbd({})", at(socket)));
    let name = format!("bench-{}", std::process::id());
    let create = ["create", &name, "--level=1", "--bitmap=64M", "--assume-clean"];
    let mostly = ["--write-behind=256", "--write-mostly", &there, &here, &there];
    let volume = BraidUp::created(braid, &name, &[&create[..], &mostly].concat(), &up)?;
    let mut samples = [Vec::new(), Vec::new()];
    eprintln!("mirror ...");
    for round in 0..rounds {
        for turn in 0..2 {
            let index = (round + turn) % 2;
            let socket = [&up, &single][index];
            let mut times = load::paced(socket, false, PACED.0, PACED.1)?;
            samples[index].push(median(&mut times));
        }
    }
    drop(volume);
    // Each before the server behind it.
    started.into_iter().rev().for_each(drop);
    let estimate = Estimate::of_ratio(&samples[0], &samples[1]);
    let target = Target::AtMost(1.1);
    table.row([
        "mirror: 4 KiB write, one at a time, 20 ms to the far member".to_owned(),
        "latency, with write-behind".to_owned(),
        "the near disk alone".to_owned(),
        estimate.to_string(),
        target.to_string(),
        target.verdict(estimate),
    ]);
    Ok(())
}

fn rbd(braid: &Path, folder: &Path, conf: &str) -> Result<Group> {
    let sockets = ["braid.sock", "qemu.sock"].map(|name| folder.join(name));
    let images = ["braid-bench-own", "braid-bench-peer"];
    for image in images {
        let rbd = || Command::new("rbd");
        // One of an earlier run that was killed.
        let _ = process::run(rbd().args(["-c", conf, "rm", "--no-progress", image]));
        process::run(rbd().args(["-c", conf, "create", "--size", "256M", image]))?;
    }
    let stack = format!("rbd(rbd/{}, conf={conf})", images[0]);
    let mut qemu = Command::new(require("qemu-nbd", "qemu-utils and qemu-block-extra")?);
    qemu.args(["-f", "raw", "--shared=0", "-t", "--cache=none", "-k"]).arg(&sockets[1]);
    qemu.arg(format!("rbd:rbd/{}:conf={conf}", images[1]));
    let own = serve(braid, &stack, &sockets[0]);
    let sides = vec![
        Side::start("braid", own, &sockets[0], at(&sockets[0]))?,
        Side::start("qemu-nbd's rbd driver", qemu, &sockets[1], at(&sockets[1]))?,
    ];
    for side in &sides {
        fio::fill(Subject::Uri(&side.uri))?;
    }
    let targets = vec![[Target::AtLeast(1.0), Target::AtLeast(1.0), Target::AtMost(0.5)]];
    Ok(Group { name: "rbd", sides, targets })
}

/// The figures of one side, one for each round.
#[derive(Default)]
struct Samples {
    rate: Vec<f64>,
    server_us: Vec<f64>,
}

fn measure(group: &Group, rounds: usize, seconds: f64, table: &mut Table) -> Result<()> {
    let is_copied = group.sides[0].uri.starts_with("nbds");
    let all = if is_copied { COPIED.to_vec() } else { [SMALL, LARGE].concat() };
    for workload in &all {
        let is_small = workload.block == 4 << 10;
        eprintln!("{}, {} ...", group.name, workload.name);
        let mut samples: Vec<Samples> = group.sides.iter().map(|_| Samples::default()).collect();
        for round in 0..rounds {
            for turn in 0..group.sides.len() {
                let index = (round + turn) % group.sides.len();
                let side = &group.sides[index];
                let clock =
                    || side.server.as_ref().map(|one| cpu::process_ns(one.pid())).transpose();
                let before = clock()?;
                let (rate, requests) = side.run(workload, seconds)?;
                let used = clock()?.zip(before).map(|(after, before)| (after - before) as f64);
                samples[index].rate.push(rate);
                let us = used.map(|ns| ns / 1000.0 / requests);
                samples[index].server_us.extend(us);
            }
        }
        let name = format!("{}: {}", group.name, workload.name);
        for (peer, (targets, theirs)) in group.targets.iter().zip(&samples[1..]).enumerate() {
            let [small, large, cpu] = *targets;
            let (rate, cpu) = if is_small { (small, cpu) } else { (large, Target::None) };
            let peer = group.sides[peer + 1].name;
            let mut row = |what: &str, ours: &[f64], theirs: &[f64], target: Target| {
                let estimate = Estimate::of_ratio(ours, theirs);
                let (target, verdict) = (target.to_string(), target.verdict(estimate));
                let words = [name.clone(), what.to_owned(), peer.to_owned()];
                let [name, what, peer] = words;
                table.row([name, what, peer, estimate.to_string(), target, verdict]);
            };
            row("throughput", &samples[0].rate, &theirs.rate, rate);
            if !theirs.server_us.is_empty() {
                row("server CPU", &samples[0].server_us, &theirs.server_us, cpu);
            }
        }
    }
    Ok(())
}
