//! The engine beside bare loops of copies: random requests of 4 KiB at depth 32 on arrays of RAM
//! members, in one thread on one core.
//!
//! `cargo run --release -p braid-bench --bin engine`
//!
//! ```text
//! engine   32 buffers ─▶ Io ─▶ Dev::start ─▶ array ─▶ RAM ─▶ completion ─▶ the next request
//! bare     32 buffers ─▶ the members and offsets by arithmetic ─▶ copy, or copy twice
//! ```
//!
//! Both draw the same places from the same generator, in the same memory, with buffers of one
//! pool. The memory must be the same and not only alike: what backs a stretch of it (the size of
//! the host's pages, where it lies) moves the ratio by a third from run to run. As a
//! `braid_device::Ram` keeps its memory to itself, the members here are a device of their own that
//! works as it does; `engine_instructions` counts the real one. The driver does what a session of
//! an export does: what is completed when it starts is answered at once, the rest goes through the
//! table of requests in flight. Rows "in flight" send everything through that table.

mod memory;
mod parity;
mod stripes;
mod subject;

use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use braid_array::geometry::Raid0;
use braid_bench::args::{Args, finish};
use braid_bench::mirrored::{NoTimers, Raid1Plan};
use braid_bench::stats::{Estimate, Target, median};
use braid_bench::table::Table;
use braid_bench::{Error, Result, cpu, mirrored};
use braid_engine::redundant::Redundant;
use braid_engine::{Array, Dev};
use braid_level::Raid0Layout;
use braid_mem::{Advice, Pool, Region};
use braid_seed::Rng;

use memory::Member;
use subject::{BareReads, BareWrites, EngineLoop, Subject};

const USAGE: &str = "\
engine [--rounds N] [--runtime SECONDS] [--member MIB] [--only NAME]
  --rounds   rounds (15)
  --runtime  seconds of each subject in a round (0.2)
  --member   size of each of the four members in MiB (256)
  --only     rows with this in their name";

pub(crate) const BLOCK: u64 = 4096;
pub(crate) const CHUNK: u64 = 64 << 10;
const MEMBERS: usize = 4;
/// Bytes of requests between two looks at the clock.
const BATCH: u64 = 16 << 20;

/// Two subjects of one round.
struct Row {
    name: &'static str,
    /// Indices of the subjects.
    ours: usize,
    theirs: usize,
    target: Target,
}

/// The rows, by the order of the subjects in [`subjects`].
const ROWS: [Row; 6] = [
    row("raid0 of 4, read, as a session / bare copy", 0, 2, Target::AtLeast(0.7)),
    row("raid0 of 4, read, all in flight / bare copy", 1, 2, Target::None),
    row("raid1 of 2, write / two bare copies", 3, 5, Target::AtLeast(0.7)),
    row("raid1 of 2, write, with a bitmap / two bare copies", 4, 5, Target::None),
    row("raid1 of 2, read / bare copy", 6, 8, Target::None),
    row("raid1 of 2, read / raid0 of 2, read", 6, 7, Target::None),
];

const fn row(name: &'static str, ours: usize, theirs: usize, target: Target) -> Row {
    Row { name, ours, theirs, target }
}

fn main() -> ExitCode {
    finish(run())
}

fn run() -> Result<()> {
    let known = ["--rounds", "--runtime", "--member", "--only"];
    let args = Args::from_command_line(&known, USAGE)?;
    let rounds = args.value("--rounds", 15usize)?.max(1);
    let runtime = Duration::from_secs_f64(args.value("--runtime", 0.2)?);
    let member = args.value("--member", 256u64)?.max(4) << 20;
    // The scheduler would move the thread now and then, and its cache with it.
    cpu::stay_on_one_core()?;
    let times = Times { rounds, runtime };
    copies(&args, times, member)?;
    parity::run(&args, times, member)
}

fn copies(args: &Args, times: Times, member: u64) -> Result<()> {
    let rows: Vec<&Row> = ROWS.iter().filter(|row| args.wants(row.name)).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let pool = Pool::new(16 << 20).map_err(Error::io("buffers"))?;
    let memory = memory(MEMBERS, member)?;
    let mut subjects = subjects(&pool, &memory, member)?;
    let pairs: Vec<[usize; 2]> = rows.iter().map(|row| [row.ours, row.theirs]).collect();
    let rates = times.measure(&mut subjects, &pairs)?;
    let columns = ["array / beside", "array, 1/s", "beside, 1/s", "ratio [95 %]", "target", ""];
    let mut table = Table::new(columns);
    for row in rows {
        let (ours, theirs) = (&rates[row.ours], &rates[row.theirs]);
        let estimate = Estimate::of_ratio(ours, theirs);
        table.row([
            row.name.to_owned(),
            format!("{:.0}", median(&mut ours.clone())),
            format!("{:.0}", median(&mut theirs.clone())),
            estimate.to_string(),
            row.target.to_string(),
            row.target.verdict(estimate),
        ]);
    }
    println!("4 KiB at random, depth 32, RAM members of {} MiB\n\n{table}", member >> 20);
    Ok(())
}

/// The number and the length of the measurements of each subject.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    rounds: usize,
    /// The time of a subject in a round.
    runtime: Duration,
}

impl Times {
    /// Measures the subjects that are in one of `pairs`, in turn; answers the rates of each, one
    /// a round.
    pub(crate) fn measure(
        self,
        subjects: &mut [Subject],
        pairs: &[[usize; 2]],
    ) -> Result<Vec<Vec<f64>>> {
        let is_wanted = |index: &usize| pairs.iter().any(|pair| pair.contains(index));
        let wanted: Vec<usize> = (0..subjects.len()).filter(is_wanted).collect();
        let mut rates = vec![Vec::new(); subjects.len()];
        for round in 0..self.rounds {
            for turn in 0..wanted.len() {
                let index = wanted[(round + turn) % wanted.len()];
                rates[index].push(measure(&mut subjects[index], round, self.runtime)?);
            }
        }
        Ok(rates)
    }
}

/// Requests a second of this thread's own time: others may have the core in between.
fn measure(subject: &mut Subject, round: usize, runtime: Duration) -> Result<f64> {
    let mut rng = Rng::new(round as u64);
    let (places, request) = (subject.places(), subject.request());
    let mut place = || rng.below(places) * request;
    let batch = BATCH / request;
    let start_ns = cpu::thread_ns()?;
    let (mut done, mut used_ns) = (0, 0);
    while u128::from(used_ns) < runtime.as_nanos() {
        subject.complete(batch, &mut place)?;
        done += batch;
        used_ns = cpu::thread_ns()? - start_ns;
    }
    Ok(done as f64 * 1e9 / used_ns as f64)
}

fn subjects(pool: &Pool, memory: &[Arc<Region>], member: u64) -> Result<[Subject; 9]> {
    let size = member - mirrored::DATA_OFFSET;
    let two = &memory[..2];
    // A bitmap of many chunks: four thousand over members of 256 MiB.
    let bitmap = Some(64 << 10);
    let read =
        |dev: Dev, all_in_flight| EngineLoop::reads(pool, dev, all_in_flight).map(Subject::Engine);
    let write = |dev: Dev| EngineLoop::writes(pool, dev).map(Subject::Engine);
    Ok([
        read(raid0(memory)?, false)?,
        read(raid0(memory)?, true)?,
        Subject::BareReads(BareReads::new(pool, memory)?),
        write(raid1(two, size, None)?)?,
        write(raid1(two, size, bitmap)?)?,
        Subject::BareWrites(BareWrites::new(pool, two, mirrored::DATA_OFFSET)?),
        read(raid1(two, size, None)?, false)?,
        read(raid0(two)?, false)?,
        Subject::BareReads(BareReads::new(pool, two)?),
    ])
}

fn members(memory: &[Arc<Region>]) -> Vec<Dev> {
    memory.iter().map(|region| Dev::new(Member::new(region))).collect()
}

fn raid0(memory: &[Arc<Region>]) -> Result<Dev> {
    let sizes: Vec<u64> = memory.iter().map(|region| region.len() as u64).collect();
    let geometry = Raid0::new(&sizes, CHUNK, Raid0Layout::default(), 512)
        .map_err(|error| Error::Unexpected(error.to_string()))?;
    Ok(Dev::new(Array::new(geometry, members(memory))))
}

/// A RAID 1 that is "active" and whose bits are set, all of them: every chunk was written.
fn raid1(memory: &[Arc<Region>], size: u64, bitmap_chunk: Option<u64>) -> Result<Dev> {
    let plan = Raid1Plan::new(size, memory.len(), bitmap_chunk)?;
    let setup = plan.setup(members(memory), Rc::new(NoTimers))?;
    let mirror = Redundant::new(setup).map_err(Error::io("memory of an array"))?;
    let dev = Dev::new(mirror.clone());
    subject::write_every(&dev, bitmap_chunk.unwrap_or(size))?;
    let status = mirror.status();
    let all_set = status.bitmap.is_none_or(|bitmap| bitmap.chunks == bitmap.set);
    match status.active && all_set {
        true => Ok(dev),
        false => Err(Error::Unexpected(format!("the array is not as it should be: {status:?}"))),
    }
}

/// The members' memory, all written once.
fn memory(members: usize, member: u64) -> Result<Vec<Arc<Region>>> {
    let mut regions = Vec::new();
    for _ in 0..members {
        let region = Region::new(member as usize, Advice::SparseHuge);
        let region = region.map_err(Error::io("memory"))?;
        for offset in (0..member).step_by(BLOCK as usize) {
            region.write(offset as usize, &[offset as u8 | 1; BLOCK as usize]);
        }
        regions.push(Arc::new(region));
    }
    Ok(regions)
}
