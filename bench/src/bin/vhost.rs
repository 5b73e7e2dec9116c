//! Disks of virtual machines over vhost-user-blk, beside qemu-storage-daemon's export of the same.
//!
//! `cargo run --release -p braid-bench --bin vhost`
//!
//! ```text
//!   this program: a driver of virtqueues ──▶ braid:                RAM; a file in /dev/shm; a file on disk
//!                                        └─▶ qemu-storage-daemon:  a file in /dev/shm; the same; a file on disk
//! ```
//!
//! One queue, random requests of 4 KiB. The driver polls for answers, as a guest's processor would that has nothing else
//! to do, and kicks once for all requests that it offers together, if the server wants to be kicked.

#[path = "../../../crates/export-vhost/tests/guest/machine.rs"]
mod machine;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use braid_bench::args::{Args, finish};
use braid_bench::peer::{FileInMemory, Folder};
use braid_bench::process::{Service, require};
use braid_bench::stats::{Estimate, Target, median};
use braid_bench::table::Table;
use braid_bench::{Error, Result, cpu};
use braid_seed::Rng;
use machine::{BUFFERS, FEATURES, Machine, SIZE, WRITE};

const USAGE: &str = "\
vhost [--rounds N] [--runtime SECONDS] [--only NAME] [--braid PATH]
  --rounds   rounds of each workload (9)
  --runtime  seconds at each side in a round (1)
  --only     workloads whose name contains NAME: RAM, file in memory, file on disk
  --braid    the braid binary (the one beside this program)";

const BLOCK: usize = 4096;
/// Bytes of each disk.
const DISK: u64 = 256 << 20;
const IN: u32 = 0;
const OUT: u32 = 1;

/// Depths: one request at a time, and as many as the queue has room for with four descriptors each.
const DEPTHS: [u16; 2] = [1, SIZE / 4];

/// Goals of the rate, and of the processor time of a request, where many are in flight.
const TARGETS: [Target; 2] = [Target::AtLeast(2.0), Target::AtMost(0.5)];
const NO_TARGETS: [Target; 2] = [Target::None; 2];

/// The options of qemu-storage-daemon's file on a disk.
const DIRECT: &str = ",cache.direct=on,aio=io_uring";

/// A server of one disk.
struct Side {
    /// Dropped first: qemu-storage-daemon ends when its machine is gone.
    machine: Machine,
    service: Service,
    queue: u32,
    rng: Rng,
}

/// Requests a second, and the server's processor time of one in µs.
#[derive(Default)]
struct Samples {
    rate: Vec<f64>,
    server_us: Vec<f64>,
}

fn main() -> ExitCode {
    finish(run())
}

fn run() -> Result<()> {
    let args = Args::from_command_line(&["--rounds", "--runtime", "--only", "--braid"], USAGE)?;
    let rounds = args.value("--rounds", 9usize)?.max(1);
    let runtime = Duration::from_secs_f64(args.value("--runtime", 1.0)?);
    let braid = args.braid()?;
    let mut table = Table::new([
        "workload",
        "braid, 1/s",
        "µs",
        "qemu, 1/s",
        "µs",
        "ratio of",
        "[95 %]",
        "target",
        "",
    ]);
    let disk = tempfile::tempdir_in("/var/tmp").map_err(Error::io("a folder"))?;
    let memory = [FileInMemory::new(DISK)?, FileInMemory::new(DISK)?];
    let on_disk = ["own.img", "theirs.img"].map(|name| disk.path().join(name));
    for path in &on_disk {
        std::fs::write(path, vec![1; DISK as usize]).map_err(Error::io("a file"))?;
    }
    let [own, theirs] = memory.each_ref().map(FileInMemory::path);
    // On a disk, both wait for it: what it allows is no target.
    for (name, stack, file, how, targets) in [
        ("RAM", format!("ram({DISK})"), theirs, "", TARGETS),
        ("file in memory", own.display().to_string(), theirs, "", TARGETS),
        ("file on disk", on_disk[0].display().to_string(), &on_disk[1], DIRECT, NO_TARGETS),
    ] {
        if args.wants(name) {
            let folder = Folder::new()?;
            let sides = sides(&braid, folder.path(), &stack, file, how)?;
            measure((name, targets), sides, rounds, runtime, &mut table)?;
        }
    }
    println!("4 KiB at random, ratios within a round; {rounds} rounds of {runtime:?}\n\n{table}");
    Ok(())
}

/// Starts both servers, and a machine at each.
fn sides(braid: &Path, folder: &Path, stack: &str, file: &Path, how: &str) -> Result<[Side; 2]> {
    let [own, theirs] = ["braid.sock", "qemu.sock"].map(|name| folder.join(name));
    let mut serve = Command::new(braid);
    serve.args(["serve", stack, "--vhost"]).arg(&own);
    let mut qemu = Command::new(require("qemu-storage-daemon", "qemu-system-common")?);
    qemu.args(["--object", "iothread,id=t", "--blockdev"]);
    qemu.arg(format!("driver=file,node-name=f,filename={}{how}", file.display()));
    qemu.arg("--export").arg(format!(
        "type=vhost-user-blk,id=e,addr.type=unix,addr.path={},node-name=f,writable=on,iothread=t",
        theirs.display()
    ));
    Ok([Side::start(serve, own, 1)?, Side::start(qemu, theirs, 2)?])
}

impl Side {
    /// Starts a server, and fills its disk.
    fn start(command: Command, socket: PathBuf, seed: u64) -> Result<Side> {
        let mut service = Service::start(command)?;
        service.wait_until("its socket", || socket.exists())?;
        let mut machine = Machine::new(&socket, FEATURES);
        let queue = machine.start();
        for sector in (0..DISK / 512).step_by(BLOCK / 512) {
            machine.run(queue, (OUT, sector), (BUFFERS, BLOCK as u32, 0));
        }
        Ok(Side { machine, service, queue, rng: Rng::new(seed) })
    }

    /// Keeps `depth` requests in flight for `runtime`.
    fn load(&mut self, kind: u32, depth: u16, runtime: Duration, into: &mut Samples) -> Result<()> {
        let before = cpu::process_ns(self.service.pid())?;
        let begun = Instant::now();
        (0..depth).for_each(|index| self.offer(kind, index * 4));
        self.machine.kick(self.queue);
        let mut answered = 0u64;
        while begun.elapsed() < runtime {
            let mut ready = 0;
            loop {
                let (head, _) = self.machine.answer(self.queue);
                self.check(head)?;
                self.offer(kind, head);
                ready += 1;
                if !self.machine.has_answer(self.queue) {
                    break;
                }
            }
            answered += ready;
            if self.machine.wants_kicks(self.queue) {
                self.machine.kick(self.queue);
            }
        }
        for _ in 0..depth {
            let (head, _) = self.machine.answer(self.queue);
            self.check(head)?;
            answered += 1;
        }
        let seconds = begun.elapsed().as_secs_f64();
        let used = cpu::process_ns(self.service.pid())? - before;
        into.rate.push(answered as f64 / seconds);
        into.server_us.push(used as f64 / 1000.0 / answered as f64);
        Ok(())
    }

    fn offer(&mut self, kind: u32, head: u16) {
        let sector = self.rng.below(DISK / BLOCK as u64) * (BLOCK as u64 / 512);
        let data = BUFFERS + usize::from(head) * BLOCK;
        let flags = if kind == IN { WRITE } else { 0 };
        self.machine.request(self.queue, head, (kind, sector), (data, BLOCK as u32, flags));
        self.machine.offer(self.queue, head);
    }

    fn check(&self, head: u16) -> Result<()> {
        match self.machine.status(self.queue, head) {
            0 => Ok(()),
            status => Err(Error::Unexpected(format!("a request failed with status {status}"))),
        }
    }
}

fn measure(
    (what, targets): (&str, [Target; 2]),
    mut sides: [Side; 2],
    rounds: usize,
    runtime: Duration,
    table: &mut Table,
) -> Result<()> {
    for depth in DEPTHS {
        for (kind, verb) in [(IN, "read"), (OUT, "write")] {
            eprintln!("{what}, {verb}, {depth} at a time ...");
            let mut samples = [Samples::default(), Samples::default()];
            for round in 0..rounds {
                for turn in 0..2 {
                    let index = (round + turn) % 2;
                    sides[index].load(kind, depth, runtime, &mut samples[index])?;
                }
            }
            let [own, theirs] = samples;
            let middle = |values: &[f64]| median(&mut values.to_vec());
            let [rate, cpu] = if depth > 1 { targets } else { NO_TARGETS };
            let mut row = |ratio: &str, ours: &[f64], others: &[f64], target: Target| {
                let estimate = Estimate::of_ratio(ours, others);
                table.row([
                    format!("{what}, {verb}, {depth} at a time"),
                    format!("{:.0}", middle(&own.rate)),
                    format!("{:.1}", middle(&own.server_us)),
                    format!("{:.0}", middle(&theirs.rate)),
                    format!("{:.1}", middle(&theirs.server_us)),
                    ratio.to_owned(),
                    estimate.to_string(),
                    target.to_string(),
                    target.verdict(estimate),
                ]);
            };
            row("requests a second", &own.rate, &theirs.rate, rate);
            row("server CPU", &own.server_us, &theirs.server_us, cpu);
        }
    }
    Ok(())
}
