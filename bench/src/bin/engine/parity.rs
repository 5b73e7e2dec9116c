//! Arrays with parity: small random writes and reads, and whole stripes.
//!
//! ```text
//!   raid5 of 4, with or without md's partial parity log     the same memory, which also the
//!   raid5 without one member, only read                     bare loops work on
//!   raid6 of 6, with or without braid's stripe log          memory of its own
//! ```
//!
//! The logs lie in front of the data, on the members. All of an array's requests are answered in
//! the call that starts them, as the members answer so. Before anything is timed, small arrays of
//! each kind are written at random, and what is read, also without a member, is compared.

use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use braid_bench::args::Args;
use braid_bench::mirrored::NoTimers;
use braid_bench::parity::{DATA_OFFSET, Kind, ParityPlan};
use braid_bench::stats::{Estimate, Target, median};
use braid_bench::table::Table;
use braid_bench::{Error, Result};
use braid_block::{Flags, Io, Payload};
use braid_engine::redundant::Redundant;
use braid_engine::{Dev, Pending};
use braid_mem::{Pool, Region};
use braid_seed::Rng;

use crate::memory::{Member, take};
use crate::stripes::{BareStripes, Work};
use crate::subject::{DEPTH, EngineLoop, Subject, failed};
use crate::{BLOCK, CHUNK, Times};

const RAID5: usize = 4;
const RAID6: usize = 6;
/// Whole stripes under way: what a client with requests of this length has.
const STRIPES: usize = 4;
/// A member that is missing.
const MISSING: usize = 2;

/// The figure that is compared with the target.
#[derive(Clone, Copy)]
enum Wanted {
    /// Requests a second.
    Rate(f64),
    /// Bytes a second, in units of 10^9.
    Bytes(f64),
    /// In units of what is measured beside.
    Ratio(f64),
    Nothing,
}

struct Row {
    name: &'static str,
    ours: usize,
    theirs: usize,
    wanted: &'static [Wanted],
}

const fn row(name: &'static str, ours: usize, theirs: usize, wanted: &'static [Wanted]) -> Row {
    Row { name, ours, theirs, wanted }
}

/// The rows, by the order of the subjects in [`subjects`].
const ROWS: [Row; 10] = [
    row("raid5 of 4, write / bare update", 0, 10, &[Wanted::Rate(250_000.0)]),
    row("raid5 of 4, write, PPL / bare update", 1, 10, &[Wanted::Rate(150_000.0)]),
    row("raid6 of 6, write / raid5's", 2, 0, &[Wanted::Nothing]),
    row("raid6 of 6, write, stripe log / without", 3, 2, &[Wanted::Nothing]),
    row("raid5 of 4, read / raid6 of 6, read", 4, 6, &[Wanted::Nothing]),
    row("raid5 of 4, one missing, read / healthy", 5, 4, &[Wanted::Nothing]),
    row(
        "raid5 of 4, stripes, write / bare copies and XOR",
        7,
        11,
        &[Wanted::Bytes(8.0), Wanted::Ratio(0.8)],
    ),
    row("raid5 of 4, stripes, write, PPL / without", 13, 7, &[Wanted::Nothing]),
    row("raid5 of 4, stripes, read / bare copies", 8, 14, &[Wanted::Nothing]),
    row("raid5 of 4, one missing, stripes, read / by hand", 9, 12, &[Wanted::Nothing]),
];

/// Measures the rows that `args` want, and prints them.
pub(crate) fn run(args: &Args, times: Times, member: u64) -> Result<()> {
    let rows: Vec<&Row> = ROWS.iter().filter(|row| args.wants(row.name)).collect();
    if rows.is_empty() {
        return Ok(());
    }
    for kind in [Kind::Raid5, Kind::Raid5Ppl, Kind::Raid6, Kind::Raid6Log] {
        check(kind)?;
    }
    let member = member.max(2 * DATA_OFFSET);
    let pool = Pool::new(32 << 20).map_err(Error::io("buffers"))?;
    let mut subjects = subjects(&pool, member)?;
    let pairs: Vec<[usize; 2]> = rows.iter().map(|row| [row.ours, row.theirs]).collect();
    let rates = times.measure(&mut subjects, &pairs)?;
    let columns =
        ["array / beside", "1/s", "GB/s", "µs of CPU", "beside, 1/s", "ratio [95 %]", "target", ""];
    let mut table = Table::new(columns);
    for row in rows {
        let (ours, theirs) = (&rates[row.ours], &rates[row.theirs]);
        let bytes = subjects[row.ours].request() as f64;
        let (rate, ratio) = (Estimate::of(ours), Estimate::of_ratio(ours, theirs));
        let of_bytes =
            Estimate::of(&ours.iter().map(|rate| rate * bytes / 1e9).collect::<Vec<_>>());
        for (index, wanted) in row.wanted.iter().enumerate() {
            let (target, unit, estimate) = match *wanted {
                Wanted::Rate(least) => (Target::AtLeast(least), "/s", rate),
                Wanted::Bytes(least) => (Target::AtLeast(least), " GB/s", of_bytes),
                Wanted::Ratio(least) => (Target::AtLeast(least), "", ratio),
                Wanted::Nothing => (Target::None, "", ratio),
            };
            let first = |text: String| if index == 0 { text } else { String::new() };
            table.row([
                first(row.name.to_owned()),
                first(format!("{rate:.0}")),
                first(format!("{of_bytes:.2}")),
                first(format!("{:.2}", 1e6 / rate.median)),
                first(format!("{:.0}", median(&mut theirs.clone()))),
                first(ratio.to_string()),
                format!("{target}{unit}"),
                target.verdict(estimate),
            ]);
        }
    }
    println!(
        "Blocks of 4 KiB, depth {DEPTH}, and whole stripes of 192 KiB, depth {STRIPES}, at random; \
         RAM members of {} MiB, chunks of 64 KiB\n\n{table}",
        member >> 20
    );
    Ok(())
}

fn subjects(pool: &Pool, member: u64) -> Result<[Subject; 15]> {
    let five = &memory(RAID5, member)?;
    let six = &memory(RAID6, member)?;
    let stripe = CHUNK * (RAID5 as u64 - 1);
    let write = |kind, memory: &[Arc<Region>]| {
        EngineLoop::writes(pool, array(kind, memory, None)?).map(Subject::Engine)
    };
    let read = |kind, memory: &[Arc<Region>], missing| {
        EngineLoop::reads(pool, array(kind, memory, missing)?, false).map(Subject::Engine)
    };
    let stripes = |kind, write, missing| {
        let dev = array(kind, five, missing)?;
        EngineLoop::long(pool, dev, write, stripe, STRIPES).map(Subject::Engine)
    };
    let bare = |work, depth| BareStripes::new(pool, five, work, depth).map(Subject::BareStripes);
    Ok([
        write(Kind::Raid5, five)?,
        write(Kind::Raid5Ppl, five)?,
        write(Kind::Raid6, six)?,
        write(Kind::Raid6Log, six)?,
        read(Kind::Raid5, five, None)?,
        read(Kind::Raid5, five, Some(MISSING))?,
        read(Kind::Raid6, six, None)?,
        stripes(Kind::Raid5, true, None)?,
        stripes(Kind::Raid5, false, None)?,
        stripes(Kind::Raid5, false, Some(MISSING))?,
        bare(Work::Update, DEPTH)?,
        bare(Work::Write, STRIPES)?,
        bare(Work::Read { missing: Some(MISSING) }, STRIPES)?,
        stripes(Kind::Raid5Ppl, true, None)?,
        bare(Work::Read { missing: None }, STRIPES)?,
    ])
}

/// The members' memory, all zeroes, which has parity that fits, and all there.
fn memory(members: usize, member: u64) -> Result<Vec<Arc<Region>>> {
    let regions = crate::memory(members, member)?;
    regions.iter().for_each(|region| region.zero(0, region.len(), true));
    Ok(regions)
}

/// An array whose superblocks say "active", if anything may be written.
fn array(kind: Kind, memory: &[Arc<Region>], missing: Option<usize>) -> Result<Dev> {
    let size = memory[0].len() as u64 - DATA_OFFSET;
    let plan = ParityPlan::new(kind, size, memory.len(), CHUNK)?;
    let dev = |(role, region)| (Some(role) != missing).then(|| Dev::new(Member::new(region)));
    let devs = memory.iter().enumerate().map(dev).collect();
    let array = Redundant::new(plan.setup(devs, Rc::new(NoTimers)));
    let array = array.map_err(Error::io("memory of an array"))?;
    let restarted = pin!(array.restart()).poll(&mut Context::from_waker(Waker::noop()));
    match restarted {
        Poll::Ready(Ok(())) => Ok(Dev::new(array)),
        Poll::Ready(Err(error)) => Err(Error::Unexpected(error.to_string())),
        Poll::Pending => Err(Error::Unexpected("a RAM disk answers at once".into())),
    }
}

/// Writes a small array at random and compares what is read, also where a member is missing.
fn check(kind: Kind) -> Result<()> {
    const WRITES: usize = 400;
    let members = if kind.parities() == 1 { RAID5 } else { RAID6 };
    let memory = memory(members, DATA_OFFSET + (2 << 20))?;
    let pool = Pool::new(8 << 20).map_err(Error::io("buffers"))?;
    let dev = array(kind, &memory, None)?;
    let size = dev.limits().size;
    let mut content = vec![0; size as usize];
    let mut rng = Rng::new(kind as u64);
    for _ in 0..WRITES {
        let offset = rng.below(size / BLOCK) * BLOCK;
        // Mostly blocks, and some of several stripes.
        let most = if rng.below(4) == 0 { 200 } else { 4 };
        let len = ((1 + rng.below(most)) * BLOCK).min(size - offset);
        let mut buf = take(&pool, len)?;
        buf.chunks_mut(8).for_each(|word| word.copy_from_slice(&rng.below(u64::MAX).to_le_bytes()));
        content[offset as usize..(offset + len) as usize].copy_from_slice(&buf);
        at_once(&dev, Io::write(offset, buf, Flags::NONE))?;
    }
    for missing in [None].into_iter().chain((0..members).map(Some)) {
        let dev = array(kind, &memory, missing)?;
        for (from, len) in [(0, size), (3 * BLOCK, 2 * CHUNK + BLOCK), (CHUNK, BLOCK)] {
            for offset in (from..=size - len).step_by(len as usize) {
                let read = at_once(&dev, Io::read(offset, take(&pool, len)?))?;
                if read.to_vec() != content[offset as usize..(offset + len) as usize] {
                    return Err(Error::Unexpected(format!(
                        "{kind:?}, without {missing:?}: {len} bytes at {offset} are not what was \
                         written"
                    )));
                }
            }
        }
    }
    Ok(())
}

fn at_once(dev: &Dev, io: Io) -> Result<Payload> {
    match dev.start(io) {
        Pending::Ready(Some(completion)) => {
            completion.result.map_err(failed)?;
            Ok(completion.payload)
        }
        _ => Err(Error::Unexpected("a RAM disk answers at once".into())),
    }
}
