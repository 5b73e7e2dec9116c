//! Reads of an array on two shards beside reads on the one that it lives on: random requests of 4 KiB, RAM members, two
//! threads.
//!
//! `cargo run --release -p braid-bench --bin shards`
//!
//! ```text
//!   one    thread 1 ──▶ the array
//!   two    thread 1 ──▶ the array          beside each other: the sum counts
//!          thread 2 ──▶ a reader, by the array's view
//! ```
//!
//! Rates are by each thread's own processor time, so that others may have the cores in between. The sum is of two cores
//! that share caches and memory.

use std::process::ExitCode;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use braid_array::Role;
use braid_array::geometry::{Raid1, Raid10, Raid456};
use braid_bench::args::{Args, finish};
use braid_bench::mirrored::NoTimers;
use braid_bench::stats::{Estimate, Target, median};
use braid_bench::table::Table;
use braid_bench::{Error, Result, cpu};
use braid_block::{Flags, Io, Op, Span};
use braid_device::Ram;
use braid_engine::redundant::{
    Home, Layout, NewMember, Reader, Redundant, STRIPE_CACHE, Setup, Speed, View,
};
use braid_engine::{Dev, Pending};
use braid_level::{ParityLayout, ParityLevel, Raid10Layout};
use braid_md::Resync;
use braid_mem::Pool;
use braid_seed::Rng;

const USAGE: &str = "\
shards [--rounds N] [--runtime SECONDS] [--member MIB] [--only NAME]
  --rounds   rounds (15)
  --runtime  seconds of each subject in a round (0.2)
  --member   size of each member in MiB (64)
  --only     rows with this in their name";

const BLOCK: u64 = 4096;
const CHUNK: u64 = 64 << 10;
/// Requests between two looks at the clock.
const BATCH: u64 = 2048;

type MakeLayout = fn(u64) -> Result<Layout>;

const ROWS: [(&str, MakeLayout, Target); 3] = [
    ("raid1 of 2, read: two shards / one", raid1, Target::AtLeast(1.8)),
    ("raid10 of 4, read: two shards / one", raid10, Target::AtLeast(1.8)),
    ("raid5 of 4, read: two shards / one", raid5, Target::AtLeast(1.8)),
];

fn main() -> ExitCode {
    finish(run())
}

fn run() -> Result<()> {
    let known = ["--rounds", "--runtime", "--member", "--only"];
    let args = Args::from_command_line(&known, USAGE)?;
    let rounds = args.value("--rounds", 15usize)?.max(1);
    let runtime = Duration::from_secs_f64(args.value("--runtime", 0.2)?);
    let member = args.value("--member", 64u64)?.max(4) << 20;
    let columns = ["array", "one, 1/s", "two, 1/s", "ratio [95 %]", "target", ""];
    let mut table = Table::new(columns);
    for (name, layout, target) in ROWS.iter().filter(|(name, ..)| args.wants(name)) {
        let (one, two) = measure(&layout(member)?, member, rounds, runtime)?;
        let estimate = Estimate::of_ratio(&two, &one);
        table.row([
            (*name).to_owned(),
            format!("{:.0}", median(&mut one.clone())),
            format!("{:.0}", median(&mut two.clone())),
            estimate.to_string(),
            target.to_string(),
            target.verdict(estimate),
        ]);
    }
    println!("4 KiB at random, RAM members of {} MiB\n\n{table}", member >> 20);
    Ok(())
}

/// Returns the rates of one shard alone and of two together, one a round.
fn measure(
    layout: &Layout,
    member: u64,
    rounds: usize,
    runtime: Duration,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let rams: Vec<Ram> = (0..layout.members())
        .map(|_| Ram::new(member).map_err(|error| Error::Unexpected(error.to_string())))
        .collect::<Result<_>>()?;
    fill(&rams)?;
    let array = Redundant::new(setup(layout, &rams)).map_err(Error::io("an array"))?;
    let (send, views) = channel();
    let (seen, sees) = channel();
    // The receiver goes with the other shard.
    array.add_reader(move |_, view| drop(send.send(view)));
    let (is_over, barrier) = (AtomicBool::new(false), Barrier::new(2));
    let shared = Shared { is_over: &is_over, barrier: &barrier, runtime };
    std::thread::scope(|scope| {
        let (layout, rams) = (layout, &rams);
        let other = scope.spawn(move || other_shard(layout, rams, &views, &seen, shared));
        let measured = first_shard(Dev::new(array), rounds, &sees, shared);
        other.join().expect("the other shard")?;
        measured
    })
}

/// The common parts of both shards.
#[derive(Clone, Copy)]
struct Shared<'a> {
    is_over: &'a AtomicBool,
    /// Passed at the start and at the end of what both do at once.
    barrier: &'a Barrier,
    runtime: Duration,
}

fn first_shard(
    dev: Dev,
    rounds: usize,
    other: &Receiver<f64>,
    shared: Shared<'_>,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let mut load = Load::new(dev)?;
    let (mut one, mut two) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let alone = load.rate(round as u64, shared.runtime);
        shared.barrier.wait();
        let beside = load.rate(round as u64, shared.runtime);
        let is_over = round + 1 == rounds || alone.is_err() || beside.is_err();
        shared.is_over.store(is_over, Ordering::SeqCst);
        shared.barrier.wait();
        match (alone, beside, other.recv()) {
            (Ok(alone), Ok(beside), Ok(others)) => {
                one.push(alone);
                two.push(beside + others);
            }
            (Err(error), ..) | (_, Err(error), _) => return Err(error),
            (.., Err(_)) => return Err(Error::Unexpected("the other shard failed".to_owned())),
        }
    }
    Ok((one, two))
}

fn other_shard(
    layout: &Layout,
    rams: &[Ram],
    views: &Receiver<Arc<View>>,
    rates: &Sender<f64>,
    shared: Shared<'_>,
) -> Result<()> {
    let reader = Reader::new(setup(layout, rams), Box::new(NoHome));
    let view = views.recv().map_err(|_| Error::Unexpected("there is no view".to_owned()))?;
    reader.take(&view);
    let mut load = Load::new(Dev::new(reader))?;
    for round in 0.. {
        shared.barrier.wait();
        let rate = load.rate(!round, shared.runtime);
        shared.barrier.wait();
        // The first shard fails with what it lacks.
        let _ = rates.send(rate?);
        if shared.is_over.load(Ordering::SeqCst) {
            break;
        }
    }
    Ok(())
}

/// No read of a healthy array goes home.
struct NoHome;

impl Home for NoHome {
    fn start(&self, io: Io, _failed: Option<u32>) -> Pending {
        panic!("{:?} of {} is not read here", io.op, io.span)
    }
}

/// Reads on one shard.
struct Load {
    dev: Dev,
    io: Option<Io>,
    _pool: Pool,
}

impl Load {
    fn new(dev: Dev) -> Result<Load> {
        let pool = Pool::new(1 << 20).map_err(Error::io("buffers"))?;
        let buf = pool.get(BLOCK as usize).expect("memory");
        Ok(Load { dev, io: Some(Io::read(0, buf)), _pool: pool })
    }

    /// Reads for `runtime` of this thread's own time; returns the requests a second.
    fn rate(&mut self, seed: u64, runtime: Duration) -> Result<f64> {
        let mut rng = Rng::new(seed);
        let places = self.dev.limits().size / BLOCK;
        let start_ns = cpu::thread_ns()?;
        let (mut done, mut used_ns) = (0, 0);
        while u128::from(used_ns) < runtime.as_nanos() {
            for _ in 0..BATCH {
                let mut io = self.io.take().expect("it comes back");
                io.span.offset = rng.below(places) * BLOCK;
                let Pending::Ready(Some(completion)) = self.dev.start(io) else {
                    return Err(Error::Unexpected("a read of memory takes time".to_owned()));
                };
                let span = Span::new(0, BLOCK);
                let flags = Flags::NONE;
                let payload = completion.payload;
                self.io = Some(Io { op: Op::Read, span, flags, payload });
                completion.result.map_err(|error| Error::Unexpected(error.to_string()))?;
            }
            done += BATCH;
            used_ns = cpu::thread_ns()? - start_ns;
        }
        Ok(done as f64 * 1e9 / used_ns as f64)
    }
}

/// Writes to all members, so that their memory is there.
fn fill(rams: &[Ram]) -> Result<()> {
    let pool = Pool::new(2 << 20).map_err(Error::io("buffers"))?;
    for ram in rams {
        let dev = Dev::new(ram.device());
        for offset in (0..ram.size()).step_by(1 << 20) {
            let mut buf = pool.get(1 << 20).expect("memory");
            buf.fill(1);
            let Pending::Ready(Some(_)) = dev.start(Io::write(offset, buf, Flags::NONE)) else {
                return Err(Error::Unexpected("a write to memory takes time".to_owned()));
            };
        }
    }
    Ok(())
}

fn setup(layout: &Layout, rams: &[Ram]) -> Setup {
    let member = |(number, ram): (u16, &Ram)| {
        NewMember::unrecorded(format!("member {number}"), Dev::new(ram.device()), Role::new(number))
    };
    Setup {
        layout: layout.clone(),
        members: (0..).zip(rams).map(member).collect(),
        array: None,
        bitmap: None,
        resync: Resync::Clean,
        log: None,
        stripe_cache: STRIPE_CACHE,
        read_only: false,
        clock: Rc::new(NoTimers),
        speed: Speed::default(),
    }
}

fn raid1(member: u64) -> Result<Layout> {
    let raid1 = Raid1::new(member, 2).map_err(|error| Error::Unexpected(error.to_string()))?;
    Ok(Layout::Copies(Arc::new(raid1)))
}

fn raid10(member: u64) -> Result<Layout> {
    let raid10 = Raid10::new(member, 4, CHUNK, Raid10Layout::default())
        .map_err(|error| Error::Unexpected(error.to_string()))?;
    Ok(Layout::Copies(Arc::new(raid10)))
}

fn raid5(member: u64) -> Result<Layout> {
    let layout = ParityLayout::LeftSymmetric;
    let raid5 = Raid456::new(member, 4, CHUNK, ParityLevel::Raid5, layout)
        .map_err(|error| Error::Unexpected(error.to_string()))?;
    Ok(Layout::Parity(raid5))
}
