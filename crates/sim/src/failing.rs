//! Short loads in which one request of one disk fails: for each request of each disk, once and for ever.
//!
//! ```text
//!   disk1   r0   r1   r2   r3   r4   r5        the load without failures: as many requests as there are
//!           ✕    r1'  r2'  …                   then a run for each: this one fails,
//!           r0   ✕    r2'  …                     or it and all that follow
//!           r0   r1   ✕    …
//!                                     ╲        every answer is right; at the end the array is read, and
//!                                      ▶       put together again, with the disk that failed and without it
//! ```
//!
//! The array is whole when it begins, and one disk fails in a run: every level survives that, so no request may
//! fail, nothing may be lost, and the array that was shut down is taken. (What a level does with several failures is what seeds are for.)
//!
//! Deliberately absent: crashes, which [`crate::exhaust`] tries everywhere.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use braid_block::{Errno, Span};
use braid_engine::Dev;
use braid_engine::redundant::Speed;

use crate::birth::birth;
use crate::executor::Outcome;
use crate::exhaust::{SPECS, request};
use crate::fault::{Fault, Target};
use crate::found::{self, Frame, Trouble};
use crate::rest::read_all;
use crate::scenario::Start;
use crate::share::share;
use crate::timeline::Timeline;
use crate::verify::{Care, Crash, Found, Process, Verdict, begin, new_disks};
use crate::{Rng, Sim, quiet};

/// A disk that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which disk.
    pub disk: usize,
    /// Its request of this number, counted from 0, fails.
    pub request: u64,
    /// And all that follow.
    pub lasts: bool,
}

/// The number of trials.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Loads.
    pub loads: u64,
    /// Runs of them with a failure.
    pub runs: u64,
    /// Those that went wrong: the load's seed, the failure if there was one, and how.
    pub failed: Vec<(u64, Option<Failure>, String)>,
}

/// Runs `loads` loads from seed `first` on, each with every failure; on `threads`. Stops after 20 that go wrong.
pub fn fail_everywhere(first: u64, loads: u64, threads: usize) -> Tally {
    let job = |index| run_load(first.wrapping_add(index));
    share(threads, loads, job, |tally: &mut Tally, one| {
        tally.loads += 1;
        tally.runs += one.runs;
        tally.failed.extend(one.failed);
        tally.failed.len() < 20
    })
}

/// One load, with each failure.
fn run_load(seed: u64) -> Tally {
    let mut tally = Tally::default();
    let counts = match quiet::quietly(|| run(seed, None)) {
        Ok(counts) => counts,
        Err(why) => {
            tally.failed.push((seed, None, why));
            return tally;
        }
    };
    for (disk, count) in counts.into_iter().enumerate() {
        for (request, lasts) in (0..count).flat_map(|one| [(one, false), (one, true)]) {
            let failure = Some(Failure { disk, request, lasts });
            tally.runs += 1;
            if let Err(why) = quiet::quietly(|| run(seed, failure)) {
                tally.failed.push((seed, failure, why));
            }
        }
    }
    tally
}

/// Runs a load; answers how many requests each disk had.
///
/// # Errors
/// The fault, in words.
pub fn run(seed: u64, failure: Option<Failure>) -> Result<Vec<u64>, String> {
    begin();
    let mut rng = Rng::new(seed ^ 0xfa_111e);
    let spec = SPECS[(seed % SPECS.len() as u64) as usize];
    let born = birth(&spec, Start::Clean, 0, &mut rng);
    let oracle = Rc::new(RefCell::new(born.oracle));
    let there = found::look(&born.disks)?;
    let assembled = found::assemble(&there).map_err(|why| why.to_string())?;
    let process = Process::default();
    let sim = Sim::new(seed);
    sim.be_quiet();
    let handle = sim.handle();
    let disks = new_disks(&sim, &born.disks);
    if let Some(Failure { disk, request, lasts }) = failure {
        let target = if lasts { Target::since(request) } else { Target::index(request) };
        disks[disk].faults().add(target, Fault::Error(Errno::IO));
    }
    let unix = Duration::from_secs(1_700_000_000);
    let speed = Speed { min: 100 << 20, ..Speed::default() };
    let frame = Frame { handle: &handle, unix_start: unix, speed, nonce: rng.next_u64() };
    let array = found::build(&assembled, &frame, &disks);
    process.of(&array);
    let trouble = Trouble::default();
    let (told, asked) = (trouble.clone(), Rc::clone(&oracle));
    let mut choices = rng.fork();
    let outcome = sim.run_until(async move {
        let work = async {
            array.restart().await.map_err(|why| format!("it is not restarted: {why}"))?;
            handle.spawn("array", array.run());
            let dev = Dev::new(array.clone());
            for _ in 0..rng.within(2..=4) {
                request(&dev, &asked, &mut rng).await?;
            }
            let read = asked.borrow_mut().begin_read(Span::new(0, dev.limits().size));
            let contents = read_all(&dev).await?;
            asked.borrow_mut().end_read(read, Some(&contents)).map_err(|why| why.to_string())?;
            array.shut_down().await;
            Ok(())
        };
        let done = work.await;
        told.note(&handle, done);
    });
    trouble.check()?;
    if let Outcome::Stuck(stuck) = outcome {
        return Err(stuck.to_string());
    }
    let counts = disks.iter().map(|disk| disk.trace().len() as u64).collect();
    let images = disks.iter().map(|disk| Some(disk.contents())).collect();
    let oracle = oracle.borrow().clone();
    let mut left = Crash {
        spec,
        images,
        away_spares: Rc::default(),
        oracle: Rc::new(oracle),
        was_complete: failure.is_none(),
        may_give_up: false,
        was_harmed: failure.is_some(),
        unix,
        schedule: seed,
        timeline: Timeline::default(),
        care: Care { at_rest: true, again_percent: 0, most_again: 0, ..Care::default() },
    };
    if let Some(Failure { disk, lasts: true, .. }) = failure
        && choices.percent(50)
    {
        left.images[disk] = None;
    }
    starts_again(left, &mut choices)?;
    Ok(counts)
}

/// Judges what is left by a start that must succeed.
fn starts_again(left: Crash, choices: &mut Rng) -> Result<(), String> {
    if let Found::Refused(why) = left.assemble()? {
        return Err(format!("refused afterwards: {why}"));
    }
    match left.verify(choices, 0)? {
        Verdict::Well => Ok(()),
        Verdict::Refused => Err("refused afterwards".to_owned()),
    }
}
