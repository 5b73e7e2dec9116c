//! Requests to an array on two shards beside those on the one that it lives on: random, 4 KiB, RAM members, two threads.
//!
//! `cargo run --release -p braid-bench --bin shards`
//!
//! ```text
//!   one    thread 1 ──▶ the array, of which no other shard knows
//!   two    thread 1 ──▶ the array          beside each other: the sum counts
//!          thread 2 ──▶ a branch, by the array's view
//! ```
//!
//! A write of the branch to a block that the other shard has leased would go to the array's shard. Here it is refused and
//! left out of the rate; the table says how many are.
//!
//! Rates are by each thread's own processor time, so that others may have the cores in between. The sum is of two cores
//! that share caches and memory.

use std::pin::Pin;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use braid_array::Role;
use braid_array::geometry::{Raid1, Raid10, Raid456};
use braid_bench::args::{Args, finish};
use braid_bench::mirrored::NoTimers;
use braid_bench::stats::{Estimate, Target, median};
use braid_bench::table::Table;
use braid_bench::{Error, Result, cpu};
use braid_block::{Errno, Flags, Io, Op, Payload, Span};
use braid_device::Ram;
use braid_engine::redundant::{
    Branch, BranchId, Cause, Home, Layout, NewMember, Redundant, STRIPE_CACHE, Setup, Speed, View,
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

const ROWS: [(&str, Op, MakeLayout, Target); 7] = [
    ("raid1 of 2, read: two shards / one", Op::Read, raid1, Target::AtLeast(1.8)),
    ("raid10 of 4, read: two shards / one", Op::Read, raid10, Target::AtLeast(1.8)),
    ("raid5 of 4, read: two shards / one", Op::Read, raid5, Target::AtLeast(1.8)),
    ("raid1 of 2, write: two shards / one", Op::Write, raid1, Target::AtLeast(1.7)),
    ("raid10 of 4, write: two shards / one", Op::Write, raid10, Target::AtLeast(1.7)),
    ("raid5 of 4, write: two shards / one", Op::Write, raid5, Target::AtLeast(1.7)),
    ("raid6 of 6, write: two shards / one", Op::Write, raid6, Target::AtLeast(1.7)),
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
    let columns = ["array", "one, 1/s", "two, 1/s", "ratio [95 %]", "target", "", "refused"];
    let mut table = Table::new(columns);
    for (name, op, layout, target) in ROWS.iter().filter(|(name, ..)| args.wants(name)) {
        let Rates { one, two, refused } = measure(*op, &layout(member)?, member, rounds, runtime)?;
        let estimate = Estimate::of_ratio(&two, &one);
        table.row([
            (*name).to_owned(),
            format!("{:.0}", median(&mut one.clone())),
            format!("{:.0}", median(&mut two.clone())),
            estimate.to_string(),
            target.to_string(),
            target.verdict(estimate),
            format!("{:.3} %", 100.0 * refused),
        ]);
    }
    println!("4 KiB at random, RAM members of {} MiB\n\n{table}", member >> 20);
    Ok(())
}

/// Rates of one shard alone and of two together, one a round, and the share of the branch's requests that were refused.
struct Rates {
    one: Vec<f64>,
    two: Vec<f64>,
    refused: f64,
}

fn measure(
    op: Op,
    layout: &Layout,
    member: u64,
    rounds: usize,
    runtime: Duration,
) -> Result<Rates> {
    let rams: Vec<Ram> = (0..layout.members())
        .map(|_| Ram::new(member).map_err(|error| Error::Unexpected(error.to_string())))
        .collect::<Result<_>>()?;
    fill(&rams)?;
    let array = Redundant::new(setup(layout, &rams)).map_err(Error::io("an array"))?;
    let (send, views) = channel();
    let (seen, sees) = channel();
    // The receiver goes with the other shard.
    array.add_branch(move |branch, view| drop(send.send((branch, view))));
    let (is_over, barrier) = (AtomicBool::new(false), Barrier::new(2));
    let shared = Shared { op, is_over: &is_over, barrier: &barrier, runtime };
    std::thread::scope(|scope| {
        let (layout, rams) = (layout, &rams);
        let other = scope.spawn(move || other_shard(layout, rams, &views, &seen, shared));
        let alone = Redundant::new(setup(layout, rams)).map_err(Error::io("an array"));
        let measured = alone.and_then(|alone| first_shard([alone, array], rounds, &sees, shared));
        other.join().expect("the other shard")?;
        measured
    })
}

/// The common parts of both shards.
#[derive(Clone, Copy)]
struct Shared<'a> {
    op: Op,
    is_over: &'a AtomicBool,
    /// Passed at the start and at the end of what both do at once.
    barrier: &'a Barrier,
    runtime: Duration,
}

/// A message of the other shard.
enum Told {
    Taken(BranchId, u64),
    /// Its rate, and the share that was refused.
    Rate(f64, f64),
}

fn first_shard(
    [alone, array]: [Redundant; 2],
    rounds: usize,
    other: &Receiver<Told>,
    shared: Shared<'_>,
) -> Result<Rates> {
    let failed = || Error::Unexpected("the other shard failed".to_owned());
    match other.recv() {
        Ok(Told::Taken(branch, number)) => array.has_seen(branch, Some(number)),
        _ => return Err(failed()),
    }
    let mut loads = [Load::new(Dev::new(alone))?, Load::new(Dev::new(array))?];
    // From the first write on an array is active, and the other shard may write.
    for load in &mut loads {
        load.ask(Op::Write, 0)?;
    }
    let [one, two] = &mut loads;
    let mut rates = Rates { one: Vec::new(), two: Vec::new(), refused: 0.0 };
    for round in 0..rounds {
        let alone = one.rate(shared.op, round as u64, shared.runtime);
        shared.barrier.wait();
        let beside = two.rate(shared.op, round as u64, shared.runtime);
        let is_over = round + 1 == rounds || alone.is_err() || beside.is_err();
        shared.is_over.store(is_over, Ordering::SeqCst);
        shared.barrier.wait();
        let ((alone, _), (beside, _)) = (alone?, beside?);
        let Ok(Told::Rate(others, refused)) = other.recv() else { return Err(failed()) };
        rates.one.push(alone);
        rates.two.push(beside + others);
        rates.refused += refused / rounds as f64;
    }
    Ok(rates)
}

fn other_shard(
    layout: &Layout,
    rams: &[Ram],
    views: &Receiver<(BranchId, Arc<View>)>,
    first: &Sender<Told>,
    shared: Shared<'_>,
) -> Result<()> {
    let branch =
        Branch::new(setup(layout, rams), Box::new(NoHome)).map_err(Error::io("a branch"))?;
    let (id, view) = views.recv().map_err(|_| Error::Unexpected("there is no view".to_owned()))?;
    branch.take(id, &view);
    // The first shard fails with what it lacks, here and below.
    let _ = first.send(Told::Taken(id, view.number()));
    let mut load = Load::new(Dev::new(branch))?;
    for round in 0.. {
        shared.barrier.wait();
        let rate = load.rate(shared.op, !round, shared.runtime);
        shared.barrier.wait();
        let (rate, refused) = rate?;
        let _ = first.send(Told::Rate(rate, refused));
        if shared.is_over.load(Ordering::SeqCst) {
            break;
        }
    }
    Ok(())
}

/// Refuses what goes home.
struct NoHome;

impl Home for NoHome {
    fn start(&self, io: Io, _cause: Cause) -> Pending {
        Pending::ready(io.complete(Err(Errno::PERM)))
    }

    fn left(&self) {}
}

/// Requests on one shard.
struct Load {
    dev: Dev,
    payload: Payload,
    _pool: Pool,
}

impl Load {
    fn new(dev: Dev) -> Result<Load> {
        let pool = Pool::new(1 << 20).map_err(Error::io("buffers"))?;
        let buf = pool.get(BLOCK as usize).expect("memory");
        Ok(Load { dev, payload: buf.into(), _pool: pool })
    }

    /// Asks once. Returns true if that was done, and not refused.
    fn ask(&mut self, op: Op, offset: u64) -> Result<bool> {
        let (span, payload) = (Span::new(offset, BLOCK), std::mem::take(&mut self.payload));
        let mut pending = self.dev.start(Io { op, span, flags: Flags::NONE, payload });
        // A write to a block that the other shard has leased waits for it.
        let completion = loop {
            match Pin::new(&mut pending).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(completion) => break completion,
                Poll::Pending => std::hint::spin_loop(),
            }
        };
        self.payload = completion.payload;
        match completion.result {
            Ok(()) => Ok(true),
            Err(Errno::PERM) => Ok(false),
            Err(error) => Err(Error::Unexpected(error.to_string())),
        }
    }

    /// Asks for `runtime` of this thread's own time. Returns the requests a second, and the share that was refused.
    fn rate(&mut self, op: Op, seed: u64, runtime: Duration) -> Result<(f64, f64)> {
        let mut rng = Rng::new(seed);
        let places = self.dev.limits().size / BLOCK;
        let start_ns = cpu::thread_ns()?;
        let (mut asked, mut done, mut used_ns) = (0, 0, 0);
        while u128::from(used_ns) < runtime.as_nanos() {
            for _ in 0..BATCH {
                done += u64::from(self.ask(op, rng.below(places) * BLOCK)?);
            }
            asked += BATCH;
            used_ns = cpu::thread_ns()? - start_ns;
        }
        Ok((done as f64 * 1e9 / used_ns as f64, (asked - done) as f64 / asked as f64))
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
    parity(member, 4, ParityLevel::Raid5)
}

fn raid6(member: u64) -> Result<Layout> {
    parity(member, 6, ParityLevel::Raid6)
}

fn parity(member: u64, members: usize, level: ParityLevel) -> Result<Layout> {
    let layout = ParityLayout::LeftSymmetric;
    let parity = Raid456::new(member, members, CHUNK, level, layout)
        .map_err(|error| Error::Unexpected(error.to_string()))?;
    Ok(Layout::Parity(parity))
}
