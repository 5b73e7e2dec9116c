//! The engine beside a bare loop of copies: random reads of 4 KiB at depth 32 on a RAID 0 of four
//! RAM members, in one thread on one core.
//!
//! `cargo run --release -p braid-bench --bin engine`
//!
//! ```text
//! engine   32 buffers ─▶ Io::read ─▶ Dev::start ─▶ Array ─▶ Ram ─▶ completion ─▶ the next read
//! bare     32 buffers ─▶ the member and offset by arithmetic ─▶ copy
//! ```
//!
//! Both draw the same places from the same generator, out of the same memory, into buffers of one
//! pool. The memory must be the same and not only alike: what backs a stretch of it (the size of
//! the host's pages, where it lies) moves the ratio by a third from run to run. As a
//! `braid_device::Ram` keeps its memory to itself, the members here are a device of their own that
//! reads as it does; `engine_instructions` counts the real one. The driver does what a session of an export does: what is
//! completed when it starts is answered at once, the rest goes through the table of requests in
//! flight. The second row sends everything through that table.

use std::collections::VecDeque;
use std::process::ExitCode;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use braid_array::geometry::{Raid0, Raid0Layout};
use braid_bench::args::{Args, finish};
use braid_bench::rng::Rng;
use braid_bench::stats::{Estimate, Target, median};
use braid_bench::table::Table;
use braid_bench::{Error, Result, cpu};
use braid_block::{Io, Limits, Payload};
use braid_engine::{Array, Dev, Device, InFlight, Pending};
use braid_mem::{Advice, Buf, Pool, Region};

const USAGE: &str = "\
engine [--rounds N] [--runtime SECONDS] [--member MIB]
  --rounds   rounds (15)
  --runtime  seconds of each subject in a round (0.2)
  --member   size of each of the four members in MiB (256)";

const BLOCK: u64 = 4096;
const CHUNK: u64 = 64 << 10;
const MEMBERS: u64 = 4;
const DEPTH: usize = 32;
/// Requests between two looks at the clock.
const BATCH: u64 = 4096;

fn main() -> ExitCode {
    finish(run())
}

fn run() -> Result<()> {
    let args = Args::from_command_line(&["--rounds", "--runtime", "--member"], USAGE)?;
    let rounds = args.value("--rounds", 15usize)?.max(1);
    let runtime = Duration::from_secs_f64(args.value("--runtime", 0.2)?);
    let member = args.value("--member", 256u64)?.max(1) << 20;
    // The scheduler would move the thread now and then, and its cache with it.
    cpu::stay_on_one_core()?;
    let pool = Pool::new(4 << 20).map_err(Error::io("buffers"))?;
    let memory = memory(member)?;
    let mut subjects = [
        Subject::Engine(EngineLoop::new(&pool, &memory, false)?),
        Subject::Engine(EngineLoop::new(&pool, &memory, true)?),
        Subject::Bare(BareLoop { members: memory, buffers: buffers(&pool)?, next: 0 }),
    ];
    let mut rates: [Vec<f64>; 3] = Default::default();
    for round in 0..rounds {
        for turn in 0..subjects.len() {
            let index = (round + turn) % subjects.len();
            rates[index].push(measure(&mut subjects[index], member, round, runtime)?);
        }
    }
    let [engine, table_only, bare] = &rates;
    let mut table = Table::new(["driver", "engine/s", "bare/s", "ratio [95 %]", "target", ""]);
    let rows = [
        ("as a session", engine, Target::AtLeast(0.7)),
        ("all in flight", table_only, Target::None),
    ];
    for (name, engine, target) in rows {
        let estimate = Estimate::of_ratio(engine, bare);
        table.row([
            name.to_owned(),
            format!("{:.0}", median(&mut engine.clone())),
            format!("{:.0}", median(&mut bare.clone())),
            estimate.to_string(),
            target.to_string(),
            target.verdict(estimate),
        ]);
    }
    println!("raid0(chunk=64K) over 4 RAM members of {} MiB\n\n{table}", member >> 20);
    Ok(())
}

enum Subject {
    Engine(EngineLoop),
    Bare(BareLoop),
}

/// Requests a second of this thread's own time: others may have the core in between.
fn measure(subject: &mut Subject, member: u64, round: usize, runtime: Duration) -> Result<f64> {
    let mut rng = Rng::new(round as u64);
    let blocks = member * MEMBERS / BLOCK;
    let mut place = || rng.below(blocks) * BLOCK;
    let start_ns = cpu::thread_ns()?;
    let (mut done, mut used_ns) = (0, 0);
    while u128::from(used_ns) < runtime.as_nanos() {
        match subject {
            Subject::Engine(engine) => engine.complete(BATCH, &mut place),
            Subject::Bare(bare) => bare.copy(BATCH, &mut place),
        }
        done += BATCH;
        used_ns = cpu::thread_ns()? - start_ns;
    }
    Ok(done as f64 * 1e9 / used_ns as f64)
}

struct EngineLoop {
    dev: Dev,
    /// Reads that wait to be issued: the buffers of what completed.
    idle: VecDeque<Payload>,
    in_flight: InFlight<()>,
    /// Everything goes through `in_flight`.
    all_in_flight: bool,
}

impl EngineLoop {
    fn new(pool: &Pool, memory: &[Arc<Region>], all_in_flight: bool) -> Result<EngineLoop> {
        let member = |region: &Arc<Region>| Dev::new(Member { region: Arc::clone(region) });
        let members: Vec<Dev> = memory.iter().map(member).collect();
        let sizes: Vec<u64> = members.iter().map(|member| member.limits().size).collect();
        let geometry = Raid0::new(&sizes, CHUNK, Raid0Layout::default(), 512)
            .map_err(|error| Error::Unexpected(error.to_string()))?;
        Ok(EngineLoop {
            dev: Dev::new(Array::new(geometry, members)),
            idle: buffers(pool)?.into_iter().map(Payload::from).collect(),
            in_flight: InFlight::new(DEPTH),
            all_in_flight,
        })
    }

    /// Issues reads, each in the buffer of the one that completed first, until `count` completed.
    fn complete(&mut self, count: u64, place: &mut impl FnMut() -> u64) {
        let mut cx = Context::from_waker(Waker::noop());
        let mut done = 0;
        while done < count {
            while let Some(payload) = self.idle.pop_front() {
                match self.dev.start(Io::read(place(), payload)) {
                    Pending::Ready(Some(completion)) if !self.all_in_flight => {
                        done += u64::from(completion.result.is_ok());
                        self.idle.push_back(completion.payload);
                        if done == count {
                            return;
                        }
                    }
                    pending => self.in_flight.push((), pending),
                }
            }
            while let Poll::Ready(((), completion)) = self.in_flight.poll_next(&mut cx) {
                done += u64::from(completion.result.is_ok());
                self.idle.push_back(completion.payload);
            }
        }
    }
}

/// A member that reads as a RAM disk does.
struct Member {
    region: Arc<Region>,
}

impl Device for Member {
    fn limits(&self) -> Limits {
        Limits { read_only: true, volatile: true, ..Limits::new(self.region.len() as u64, 512) }
    }

    #[inline]
    fn start(&self, mut io: Io) -> Pending {
        let mut offset = io.span.offset as usize;
        for buf in io.payload.bufs_mut() {
            self.region.read(offset, buf);
            offset += buf.len();
        }
        Pending::ready(io.complete(Ok(())))
    }
}

/// The members' memory, all written once.
fn memory(member: u64) -> Result<Vec<Arc<Region>>> {
    let mut regions = Vec::new();
    for _ in 0..MEMBERS {
        let region = Region::new(member as usize, Advice::SparseHuge);
        let region = region.map_err(Error::io("memory"))?;
        for offset in (0..member).step_by(BLOCK as usize) {
            region.write(offset as usize, &[offset as u8 | 1; BLOCK as usize]);
        }
        regions.push(Arc::new(region));
    }
    Ok(regions)
}

fn buffers(pool: &Pool) -> Result<Vec<Buf>> {
    (0..DEPTH).map(|_| take(pool, BLOCK as usize)).collect()
}

fn take(pool: &Pool, len: usize) -> Result<Buf> {
    pool.get(len).ok_or_else(|| Error::Unexpected("the buffers are spent".into()))
}

struct BareLoop {
    members: Vec<Arc<Region>>,
    buffers: Vec<Buf>,
    next: usize,
}

impl BareLoop {
    fn copy(&mut self, count: u64, place: &mut impl FnMut() -> u64) {
        for _ in 0..count {
            let offset = place();
            let chunk = offset / CHUNK;
            let member = &self.members[(chunk % MEMBERS) as usize];
            let at = chunk / MEMBERS * CHUNK + offset % CHUNK;
            member.read(at as usize, &mut self.buffers[self.next]);
            self.next = (self.next + 1) % DEPTH;
        }
    }
}
