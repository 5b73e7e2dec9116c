//! The rate at which a new member is filled, and the slowdown of clients by the recovery.
//!
//! `cargo run --release -p braid-bench --bin recovery`
//!
//! ```text
//!   alone            source ══▶ new member        compared with the slower of the two by itself
//!   with parity      3 or 5 ══▶ new member        the same
//!   beside clients   source ──▶ new member        99th percentile beside that without a recovery,
//!                       ▲ 4 KiB, one at a time    with a target for it and without
//!                    clients
//! ```
//!
//! The array is the engine's, with superblocks and a bitmap, on the executor of volumes; each member takes the
//! time of its model, on a bus of its own. So the figures describe braid's scheduling, and depend very little
//! on this machine.

mod world;

use std::cell::RefCell;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

use braid_bench::args::{Args, finish};
use braid_bench::parity::{DATA_OFFSET, Kind};
use braid_bench::stats::{Estimate, Target, median, percentile};
use braid_bench::table::Table;
use braid_bench::{Error, Result, cpu};
use braid_engine::Dev;
use braid_engine::redundant::Speed;
use braid_model::Plain;

use world::{World, on_executor};

const USAGE: &str = "\
recovery [--rounds N] [--runtime SECONDS] [--only NAME]
  --rounds   rounds (3)
  --runtime  seconds of clients without a recovery, and beside one without a target; beside one
             with a target they run twice as long (1.6)
  --only     rows with this in their name";

const MIB: u64 = 1 << 20;
/// The highest permitted latency beside a recovery, in units of the latency without one.
const LATENCY: f64 = 3.0;

fn main() -> ExitCode {
    finish(run())
}

fn run() -> Result<()> {
    let args = Args::from_command_line(&["--rounds", "--runtime", "--only"], USAGE)?;
    let rounds = args.value("--rounds", 3usize)?.max(1);
    let runtime = Duration::from_secs_f64(args.value("--runtime", 1.6)?);
    // If the process is woken late, the members are slower than their models.
    cpu::go_first();
    alone(&args, rounds)?;
    beside_clients(&args, rounds, runtime)
}

const STICK: Plain =
    Plain { read_rate: 23_380_000, write_rate: 14_000_000, latency_ns: 3_790_000, bus_rate: 0 };
/// A disk with a seek and a rotation of 8 ms.
const DISK: Plain =
    Plain { read_rate: 150_000_000, write_rate: 150_000_000, latency_ns: 8_000_000, bus_rate: 0 };
const SLOW_DISK: Plain = Plain { read_rate: 90_000_000, write_rate: 90_000_000, ..DISK };

/// A recovery without clients.
struct Fill {
    name: &'static str,
    /// The profile of the members that are in sync.
    source: Plain,
    target: Plain,
    how: How,
    size: u64,
}

/// The source of a new member's content.
#[derive(Clone, Copy)]
enum How {
    /// The other member of a raid1.
    Copied,
    /// The member that it replaces, which works.
    Replaced,
    /// This number of other members, by their parity.
    Recovered(Kind, usize),
}

const FILLS: [Fill; 8] = [
    fill("alone: stick to stick", STICK, STICK, How::Copied, 64 * MIB),
    fill("alone: disk to slower disk", DISK, SLOW_DISK, How::Copied, 480 * MIB),
    fill("alone: slower disk to disk", SLOW_DISK, DISK, How::Copied, 480 * MIB),
    fill("alone: disk replaced by slower disk", DISK, SLOW_DISK, How::Replaced, 480 * MIB),
    fill("alone: raid5 of 4 sticks", STICK, STICK, RAID5, 64 * MIB),
    fill("alone: raid6 of 6 sticks", STICK, STICK, RAID6, 64 * MIB),
    fill("alone: raid5 of 4 disks", DISK, DISK, RAID5, 480 * MIB),
    fill("alone: raid6 of 6 disks", DISK, DISK, RAID6, 480 * MIB),
];
const RAID5: How = How::Recovered(Kind::Raid5, 3);
const RAID6: How = How::Recovered(Kind::Raid6, 5);

const fn fill(name: &'static str, source: Plain, target: Plain, how: How, size: u64) -> Fill {
    Fill { name, source, target, how, size }
}

fn alone(args: &Args, rounds: usize) -> Result<()> {
    let columns = ["recovery", "MB/s", "slower member, MB/s", "ratio [95 %]", "target", ""];
    let mut table = Table::new(columns);
    for fill in FILLS.iter().filter(|fill| args.wants(fill.name)) {
        eprintln!("{} ...", fill.name);
        let (mut filled, mut slower) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            filled.push(on_executor(|world| fill_once(world, fill))?);
            slower.push(on_executor(|world| slower_member(world, fill))?);
        }
        let estimate = Estimate::of_ratio(&filled, &slower);
        let target = Target::AtLeast(0.95);
        table.row([
            fill.name.to_owned(),
            format!("{:.1}", median(&mut filled) / 1e6),
            format!("{:.1}", median(&mut slower) / 1e6),
            format!("{estimate:.3}"),
            target.to_string(),
            target.verdict(estimate),
        ]);
    }
    println!("{table}");
    Ok(())
}

/// Bytes a second from the order to the moment when the new member is in sync.
async fn fill_once(world: World, fill: &'static Fill) -> Result<f64> {
    let device = |profile| world.device(profile, fill.size);
    let count = match fill.how {
        How::Copied => 1,
        How::Replaced => 2,
        How::Recovered(_, others) => others,
    };
    let sources = (0..count).map(|_| device(fill.source)).collect::<Result<Vec<Dev>>>()?;
    let array = match fill.how {
        How::Copied | How::Replaced => world.raid1(fill.size, sources, Speed::default())?,
        How::Recovered(kind, _) => world.parity(kind, fill.size, sources)?,
    };
    let target = device(fill.target)?;
    let start = Instant::now();
    let ordered = match fill.how {
        How::Replaced => array.mirror.replace("member 1", array.third(target)).await,
        How::Copied | How::Recovered(..) => array.mirror.add(array.newcomer(target)).await,
    };
    ordered.map_err(|error| Error::Unexpected(error.to_string()))?;
    let done = || {
        let status = array.mirror.status();
        status.job.is_none() && status.in_sync.iter().all(|in_sync| *in_sync)
    };
    // A job exists once the array's own work was polled.
    world.handle.sleep(Duration::from_millis(50)).await;
    while !done() {
        world.handle.sleep(Duration::from_millis(1)).await;
    }
    Ok(fill.size as f64 / start.elapsed().as_secs_f64())
}

/// Bytes a second of the slower of source and target, alone.
async fn slower_member(world: World, fill: &'static Fill) -> Result<f64> {
    let write = fill.target.write_rate <= fill.source.read_rate;
    let profile = if write { fill.target } else { fill.source };
    let dev = world.device(profile, fill.size)?;
    // A part suffices: the rate is the same everywhere on the device.
    world.alone(&dev, write, DATA_OFFSET, fill.size / 2).await
}

/// A recovery beside clients.
struct Load {
    name: &'static str,
    profile: Plain,
    clients: u64,
    /// Writes in a hundred requests.
    writes: u64,
}

const LOADS: [Load; 3] = [
    Load { name: "beside: stick, 1 client", profile: STICK, clients: 1, writes: 30 },
    Load { name: "beside: disk, 1 client", profile: DISK, clients: 1, writes: 30 },
    Load { name: "beside: disk, 4 clients", profile: DISK, clients: 4, writes: 30 },
];

/// The measured figures of the clients and of the recovery.
struct Felt {
    /// Seconds; `longest` is the time of the slowest request.
    p99: f64,
    longest: f64,
    /// Bytes a second, in the second half of the time.
    recovery: f64,
}

fn beside_clients(args: &Args, rounds: usize, runtime: Duration) -> Result<()> {
    let columns = [
        "beside clients",
        "longest, ms",
        "p99, ms",
        "recovery, MB/s",
        "p99 / without [95 %]",
        "target",
        "",
    ];
    let mut table = Table::new(columns);
    for load in LOADS.iter().filter(|load| args.wants(load.name)) {
        eprintln!("{} ...", load.name);
        let mut felt: [Vec<Felt>; 3] = Default::default();
        for round in 0..rounds as u64 {
            let once =
                |speed, runtime| on_executor(|world| feel(world, load, round, speed, runtime));
            let without = once(None, runtime)?;
            let latency = Duration::from_secs_f64(without.p99 * LATENCY);
            let target = Speed { min: MIB / 4, max: None, latency: Some(latency) };
            felt[1].push(once(Some(target), runtime * 2)?);
            felt[2].push(once(Some(Speed::default()), runtime)?);
            felt[0].push(without);
        }
        let p99 = |felt: &[Felt]| felt.iter().map(|one| one.p99).collect::<Vec<f64>>();
        let without = p99(&felt[0]);
        let rows = [
            ("no recovery", &felt[0], Target::None),
            ("target", &felt[1], Target::AtMost(LATENCY)),
            ("no target", &felt[2], Target::None),
        ];
        for (name, felt, target) in rows {
            let estimate = Estimate::of_ratio(&p99(felt), &without);
            let mut longest: Vec<f64> = felt.iter().map(|one| one.longest).collect();
            let mut recovery: Vec<f64> = felt.iter().map(|one| one.recovery).collect();
            table.row([
                format!("{}, {name}", load.name),
                format!("{:.1}", median(&mut longest) * 1e3),
                format!("{:.1}", median(&mut p99(felt)) * 1e3),
                format!("{:.2}", median(&mut recovery) / 1e6),
                estimate.to_string(),
                target.to_string(),
                target.verdict(estimate),
            ]);
        }
    }
    println!("{table}");
    Ok(())
}

/// Runs the clients beside a recovery of the given speed, or without one.
async fn feel(
    world: World,
    load: &'static Load,
    seed: u64,
    speed: Option<Speed>,
    runtime: Duration,
) -> Result<Felt> {
    // Larger than the part that can be filled in the measured time.
    let size = 1024 * MIB;
    let source = world.device(load.profile, size)?;
    let array = world.raid1(size, vec![source], speed.unwrap_or_default())?;
    world.set_bits(&array.dev).await?;
    let latencies = Rc::new(RefCell::new(Vec::new()));
    for client in 0..load.clients {
        let (world, dev) = (world.clone(), array.dev.clone());
        let latencies = Rc::clone(&latencies);
        let handle = world.handle.clone();
        handle.spawn(async move {
            let seed = seed * load.clients + client;
            let result = world.client(dev, seed, load.writes, runtime).await;
            latencies.borrow_mut().push(result);
        });
    }
    if speed.is_some() {
        let target = world.device(load.profile, size)?;
        let added = array.mirror.add(array.newcomer(target)).await;
        added.map_err(|error| Error::Unexpected(error.to_string()))?;
    }
    world.handle.sleep(runtime / 2).await;
    let (half, then) = (array.recovered(), Instant::now());
    while latencies.borrow().len() < load.clients as usize {
        world.handle.sleep(Duration::from_millis(1)).await;
    }
    let recovery = (array.recovered() - half) as f64 / then.elapsed().as_secs_f64();
    let mut all = Vec::new();
    for result in latencies.take() {
        all.extend(result?);
    }
    let (p99, longest) = (percentile(&mut all, 0.99), percentile(&mut all, 1.0));
    Ok(Felt { p99, longest, recovery })
}
