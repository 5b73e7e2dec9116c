//! The cost of counting: processor time of a request of 4 KiB with its counters and without, in turn, in this
//! process.
//!
//! `cargo run --release -p braid-bench --bin metered`
//!
//! ```text
//!   without    32 KiB of RAM ────────────────────────────────▶ answered in the call, or when it is asked for
//!   an export  the same behind what times an export's requests
//!   all        the same behind a member's meter, behind an export's: as a volume serves it
//! ```
//!
//! The memory stays in the processor's cache, so that what is added is seen beside as little as can be. "Twice" is
//! the first one measured once more: what two equal runs differ by.

use std::cell::RefCell;
use std::pin::Pin;
use std::process::ExitCode;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use braid_bench::args::{Args, finish};
use braid_bench::stats::{Estimate, median};
use braid_bench::table::Table;
use braid_bench::{Error, Result, cpu};
use braid_block::{Completion, Io, Limits, Payload};
use braid_device::{Metered, Ram, Stopwatch, Tally};
use braid_engine::{CompletionSource, Dev, Device, Pending, Ticket};
use braid_mem::Pool;
use braid_uring::{Config, Executor, ExecutorClock, Handle};
use slab::Slab;

const USAGE: &str = "\
metered [--rounds N] [--requests N]
  --rounds    rounds (60)
  --requests  requests of each in a round (100000)";

const SIZE: u64 = 32 << 10;
const BLOCK: u64 = 4096;

fn main() -> ExitCode {
    finish(run())
}

fn run() -> Result<()> {
    let args = Args::from_command_line(&["--rounds", "--requests"], USAGE)?;
    let rounds = args.value("--rounds", 60usize)?.max(1);
    let requests = args.value("--requests", 100_000u64)?.max(1);
    cpu::stay_on_one_core()?;
    let executor = Executor::new(Config::default()).map_err(Error::io("an executor"))?;
    let handle = executor.handle();
    let pool = Pool::new(1 << 20).map_err(Error::io("buffers"))?;
    let ram = Ram::new(SIZE).map_err(|error| Error::Unexpected(error.to_string()))?;
    let mut table = Table::new(["request", "ns", "and", "ns more [95 %]"]);
    for (name, later) in [("answered in the call", false), ("answered when asked for", true)] {
        let subjects = Subjects::new(&ram, later, &handle);
        let mut ns: [Vec<f64>; 4] = Default::default();
        for round in 0..rounds {
            for turn in 0..4 {
                let index = (round + turn) % 4;
                ns[index].push(measure(subjects.get(index), &pool, requests)?);
            }
        }
        let without = format!("{:.1}", median(&mut ns[0].clone()));
        for (index, and) in [(3, "twice"), (1, "an export's counters"), (2, "all counters")] {
            let more: Vec<f64> = ns[index].iter().zip(&ns[0]).map(|(with, no)| with - no).collect();
            let more = format!("{:.1}", Estimate::of(&more));
            table.row([name.to_owned(), without.clone(), and.to_owned(), more]);
        }
    }
    println!("Reads of 4 KiB from memory, medians of {rounds} rounds of {requests}\n\n{table}");
    Ok(())
}

/// The same device without counters, behind an export's, and behind both kinds.
struct Subjects {
    without: Dev,
    export: Dev,
    all: Dev,
}

impl Subjects {
    fn new(ram: &Ram, later: bool, handle: &Handle) -> Subjects {
        let watch = Stopwatch::new(&Tally::default(), Rc::new(ExecutorClock::new(handle)));
        let tally = Tally::default();
        if !later {
            let member = Metered::new(
                ram.device(),
                "ram",
                &tally,
                Rc::new(ExecutorClock::new(handle)),
                None,
            );
            return Subjects {
                without: Dev::new(ram.device()),
                export: watch.in_front_of(Dev::new(ram.device())),
                all: watch.in_front_of(Dev::new(member)),
            };
        }
        let member =
            Metered::new(Later::new(ram), "ram", &tally, Rc::new(ExecutorClock::new(handle)), None);
        Subjects {
            without: Dev::new(Later::new(ram)),
            export: watch.in_front_of(Dev::new(Later::new(ram))),
            all: watch.in_front_of(Dev::new(member)),
        }
    }

    fn get(&self, index: usize) -> &Dev {
        match index {
            1 => &self.export,
            2 => &self.all,
            _ => &self.without,
        }
    }
}

/// Nanoseconds of this thread for each of so many reads.
fn measure(dev: &Dev, pool: &Pool, requests: u64) -> Result<f64> {
    let buf = pool.get(BLOCK as usize);
    let mut payload = Payload::One(buf.ok_or_else(|| Error::Unexpected("no buffer".into()))?);
    let mut context = Context::from_waker(Waker::noop());
    let start = cpu::thread_ns()?;
    for number in 0..requests {
        let mut pending = dev.start(Io::read(number % (SIZE / BLOCK) * BLOCK, payload));
        let Poll::Ready(completion) = Pin::new(&mut pending).poll(&mut context) else {
            return Err(Error::Unexpected("a request that is not done".into()));
        };
        payload = completion.payload;
    }
    Ok((cpu::thread_ns()? - start) as f64 / requests as f64)
}

/// Answers when it is asked for the answer, as what an executor has under way.
struct Later {
    dev: Dev,
    done: Rc<Done>,
}

#[derive(Default)]
struct Done(RefCell<Slab<Completion>>);

impl Later {
    fn new(ram: &Ram) -> Later {
        Later { dev: Dev::new(ram.device()), done: Rc::default() }
    }
}

impl Device for Later {
    fn limits(&self) -> Limits {
        Limits { immediate: false, ..*self.dev.limits() }
    }

    fn start(&self, io: Io) -> Pending {
        let Pending::Ready(Some(completion)) = self.dev.start(io) else {
            unreachable!("memory answers in the call");
        };
        let id = self.done.0.borrow_mut().insert(completion) as u32;
        Pending::Ticket(Ticket::new(Rc::clone(&self.done) as Rc<dyn CompletionSource>, id))
    }
}

impl CompletionSource for Done {
    fn poll_completion(&self, id: u32, _: &mut Context<'_>) -> Poll<Completion> {
        Poll::Ready(self.0.borrow_mut().remove(id as usize))
    }

    fn abandon(&self, id: u32) {
        self.0.borrow_mut().remove(id as usize);
    }

    fn lend(&self, _: u32) -> Payload {
        Payload::None
    }
}
