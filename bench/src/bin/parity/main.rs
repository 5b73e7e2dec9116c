//! Parity beside ISA-L: XOR and P+Q in one thread on one core, in cache and from memory.
//!
//! `cargo run --release -p braid-bench --bin parity`
//!
//! ```text
//!   a stripe    D0 │ D1 │ ... │ P │ Q      buffers of one length, each on a page of its own
//!   in cache    one stripe, again and again
//!   from memory as many stripes as fill the working set, one after the other, round and round
//! ```
//!
//! Both work on the same buffers, in turn; a rate is that of the data blocks that are read, per
//! second of this thread's processor time. Before anything is timed the results are compared.
//! Work for which ISA-L has no function is timed alone.

mod isal;

use std::process::ExitCode;
use std::time::Duration;

use braid_bench::args::{Args, finish};
use braid_bench::stats::{Estimate, Target, median};
use braid_bench::table::Table;
use braid_bench::{Error, Result, cpu};
use braid_mem::{Buf, Pool};
use braid_parity::{Kernel, kernels};
use braid_seed::Rng;

use isal::Isal;

const USAGE: &str = "\
parity [--rounds N] [--runtime SECONDS] [--memory MIB] [--kernel NAME] [--only NAME]
  --rounds   rounds of each row (31)
  --runtime  seconds of each subject in a round (0.02)
  --memory   working set of what is read from memory, in MiB (1024)
  --kernel   one of those that this processor can run (the first, which braid would choose)
  --only     rows with this in their name";

const KIB: usize = 1 << 10;
/// More data blocks than any row has.
const MAX_DATA: usize = 16;

/// The operation on a stripe.
#[derive(Clone, Copy, PartialEq)]
enum Operation {
    Xor,
    Pq,
    UpdateQ,
    RecoverByQ,
    RecoverTwo,
}

impl Operation {
    const ALL: [Operation; 5] = [
        Operation::Xor,
        Operation::Pq,
        Operation::UpdateQ,
        Operation::RecoverByQ,
        Operation::RecoverTwo,
    ];

    fn name(self) -> &'static str {
        match self {
            Operation::Xor => "XOR",
            Operation::Pq => "P+Q",
            Operation::UpdateQ => "update of Q",
            Operation::RecoverByQ => "one by Q",
            Operation::RecoverTwo => "two by P and Q",
        }
    }

    /// True if ISA-L has it.
    fn has_peer(self) -> bool {
        matches!(self, Operation::Xor | Operation::Pq)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Cache,
    Memory,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Place::Cache => "in cache",
            Place::Memory => "from memory",
        }
    }

    fn target(self) -> Target {
        match self {
            Place::Cache => Target::AtLeast(1.0),
            Place::Memory => Target::AtLeast(0.95),
        }
    }
}

/// The data, P and Q.
struct Stripe {
    data: Vec<Buf>,
    p: Buf,
    q: Buf,
}

/// The stripes of a working set, and which is next.
struct Stripes {
    stripes: Vec<Stripe>,
    next: usize,
}

#[derive(Clone, Copy)]
enum Subject<'a> {
    Ours(&'a Kernel),
    Theirs(&'a Isal),
}

fn main() -> ExitCode {
    finish(run())
}

fn run() -> Result<()> {
    let known = ["--rounds", "--runtime", "--memory", "--kernel", "--only"];
    let args = Args::from_command_line(&known, USAGE)?;
    let rounds = args.value("--rounds", 31usize)?.max(1);
    let runtime = Duration::from_secs_f64(args.value("--runtime", 0.02)?);
    let memory = args.value("--memory", 1024usize)?.max(1) << 20;
    let kernel = kernel(args.text("--kernel"))?;
    let isal = Isal::load()?;
    cpu::stay_on_one_core()?;
    let pool = Pool::new(memory + (4 << 20)).map_err(Error::io("buffers"))?;
    let columns = ["operation", "braid, GB/s", "ISA-L, GB/s", "ratio [95 %]", "target", ""];
    let mut table = Table::new(columns);
    for place in [Place::Cache, Place::Memory] {
        for (length, members) in [(16, 4), (16, 8), (64, 4), (64, 8)] {
            let mut stripes = Stripes::new(&pool, place, memory, length * KIB, members)?;
            for operation in Operation::ALL {
                let kind = format!("{} of {members} x {length} KiB", operation.name());
                let name = format!("{kind}, {}", place.name());
                if !args.wants(&name) {
                    continue;
                }
                eprintln!("{name} ...");
                let mut rates: [Vec<f64>; 2] = Default::default();
                let mut subjects = vec![Subject::Ours(kernel)];
                if operation.has_peer() {
                    subjects.push(Subject::Theirs(&isal));
                    stripes.compare(operation, kernel, &isal)?;
                }
                for round in 0..rounds {
                    for turn in 0..subjects.len() {
                        let index = (round + turn) % subjects.len();
                        let rate = stripes.measure(operation, subjects[index], runtime)?;
                        rates[index].push(rate);
                    }
                }
                table.row(cells(name, operation, place, &mut rates));
            }
        }
    }
    println!(
        "{} beside ISA-L, working set of {} MiB from memory; GB/s of data blocks\n\n{table}",
        kernel.name(),
        memory >> 20
    );
    Ok(())
}

fn kernel(name: Option<&str>) -> Result<&'static Kernel> {
    let found = kernels().find(|kernel| name.is_none_or(|name| kernel.name() == name));
    found.ok_or_else(|| {
        let names: Vec<&str> = kernels().map(Kernel::name).collect();
        Error::Usage(format!("--kernel: this processor can run {}", names.join(", ")))
    })
}

fn cells(
    name: String,
    operation: Operation,
    place: Place,
    rates: &mut [Vec<f64>; 2],
) -> [String; 6] {
    let [ours, theirs] = rates;
    let gigabytes = |rates: &mut Vec<f64>| format!("{:.1}", median(rates) / 1e9);
    if !operation.has_peer() {
        let nothing = || String::new();
        return [name, gigabytes(ours), nothing(), nothing(), nothing(), nothing()];
    }
    let estimate = Estimate::of_ratio(ours, theirs);
    let target = place.target();
    [
        name,
        gigabytes(ours),
        gigabytes(theirs),
        estimate.to_string(),
        target.to_string(),
        target.verdict(estimate),
    ]
}

impl Stripes {
    /// Stripes of random bytes: one, or as many as `memory` bytes hold.
    fn new(
        pool: &Pool,
        place: Place,
        memory: usize,
        length: usize,
        members: usize,
    ) -> Result<Stripes> {
        let count = match place {
            Place::Cache => 1,
            Place::Memory => memory / (length * (members + 2)),
        };
        let mut rng = Rng::new(length as u64);
        let mut buffer = || {
            let spent = || Error::Unexpected("--memory is too little".to_owned());
            let mut buffer = pool.get(length).ok_or_else(spent)?;
            for word in buffer.as_chunks_mut().0 {
                *word = rng.next_u64().to_le_bytes();
            }
            Ok(buffer)
        };
        let stripe = |_| {
            let data = (0..members).map(|_| buffer()).collect::<Result<_>>()?;
            Ok(Stripe { data, p: buffer()?, q: buffer()? })
        };
        let stripes = (0..count.max(1)).map(stripe).collect::<Result<_>>()?;
        Ok(Stripes { stripes, next: 0 })
    }

    /// Does the next stripe; how many bytes of data blocks that were.
    fn step(&mut self, operation: Operation, subject: Subject<'_>) -> usize {
        self.next = if self.next + 1 < self.stripes.len() { self.next + 1 } else { 0 };
        self.stripes[self.next].work(operation, subject)
    }

    /// Bytes a second of this thread's own time: others may have the core in between.
    fn measure(
        &mut self,
        operation: Operation,
        subject: Subject<'_>,
        runtime: Duration,
    ) -> Result<f64> {
        // What lies in the cache after another subject is not this one's doing.
        for _ in 0..2 {
            self.step(operation, subject);
        }
        let start_ns = cpu::thread_ns()?;
        let (mut done, mut used_ns) = (0, 0);
        while u128::from(used_ns) < runtime.as_nanos() {
            for _ in 0..64 {
                done += self.step(operation, subject);
            }
            used_ns = cpu::thread_ns()? - start_ns;
        }
        Ok(done as f64 * 1e9 / used_ns as f64)
    }

    /// Checks on one stripe that both give the same.
    fn compare(&mut self, operation: Operation, kernel: &Kernel, isal: &Isal) -> Result<()> {
        let stripe = &mut self.stripes[0];
        let mut results = Vec::new();
        for (fill, subject) in [(0x55, Subject::Ours(kernel)), (0xaa, Subject::Theirs(isal))] {
            stripe.p.fill(fill);
            stripe.q.fill(fill);
            stripe.work(operation, subject);
            let q = (operation == Operation::Pq).then(|| stripe.q.to_vec());
            results.push((stripe.p.to_vec(), q));
        }
        if results[0] != results[1] {
            return Err(Error::Unexpected(format!("{}: not what ISA-L gives", operation.name())));
        }
        Ok(())
    }
}

impl Stripe {
    /// Does one operation; how many bytes of blocks were read (of an update: of the difference).
    fn work(&mut self, operation: Operation, subject: Subject<'_>) -> usize {
        let Stripe { data, p, q } = self;
        let (members, length) = (data.len(), p.len());
        match (operation, subject) {
            (Operation::Xor, Subject::Ours(kernel)) => {
                kernel.xor(p, &sources(data)[..members]);
            }
            (Operation::Xor, Subject::Theirs(isal)) => {
                isal.xor(p, &sources(data)[..members]);
            }
            (Operation::Pq, Subject::Ours(kernel)) => {
                kernel.pq(p, q, &by_power(data)[..members]);
            }
            (Operation::Pq, Subject::Theirs(isal)) => {
                isal.pq(p, q, &sources(data)[..members]);
            }
            (Operation::UpdateQ, Subject::Ours(kernel)) => {
                kernel.update_q(q, 1, &data[1]);
                return length;
            }
            (Operation::RecoverByQ, Subject::Ours(kernel)) => {
                let (kept, lost) = data.split_at_mut(members - 1);
                let power = kept.len() as u8;
                kernel.recover_by_q(&mut lost[0], power, q, &by_power(kept)[..members]);
            }
            (Operation::RecoverTwo, Subject::Ours(kernel)) => {
                let (kept, lost) = data.split_at_mut(members - 2);
                let power = kept.len() as u8;
                let (a, b) = lost.split_at_mut(1);
                let lost = ((&mut a[0][..], power), (&mut b[0][..], power + 1));
                kernel.recover_two(lost.0, lost.1, (p, q), &by_power(kept)[..members]);
            }
            (_, Subject::Theirs(_)) => unreachable!("ISA-L is a subject only where it can do it"),
        }
        members * length
    }
}

/// The blocks, in an array that is not on the heap.
fn sources(data: &[Buf]) -> [&[u8]; MAX_DATA] {
    let mut sources: [&[u8]; MAX_DATA] = [&[]; MAX_DATA];
    for (source, block) in sources.iter_mut().zip(data) {
        *source = block;
    }
    sources
}

/// The same by power; the powers behind them are lost.
fn by_power(data: &[Buf]) -> [Option<&[u8]>; MAX_DATA] {
    let mut blocks = [None; MAX_DATA];
    for (slot, block) in blocks.iter_mut().zip(data) {
        *slot = Some(&block[..]);
    }
    blocks
}
