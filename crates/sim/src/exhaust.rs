//! Crashes at every moment of short loads, with every subset of unflushed pieces, up to a bound; and again in
//! the restart that follows.
//!
//! ```text
//!   events   e───e───e───e───e          at each: pieces of writes that are in caches only
//!            │                             p0 p1 p2 …  each there or not: 2^n images of the disks,
//!            ├─ 000 ─▶ verify              beyond the bound all, none, and some that are drawn
//!            ├─ 001 ─▶ verify
//!            └─ …                        in some: a crash at every event of the restart, too
//! ```
//!
//! A life by seed takes many turns and examines few moments; this takes few turns and examines all moments.
//! Images that equal those of the moment before, with the same knowledge, are not examined twice; they still
//! count as crash points, and the examined ones are counted separately.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;
use std::time::Duration;

use braid_block::{Flags, Io, Op, Span};
use braid_engine::Dev;
use braid_engine::redundant::Speed;
use braid_md::{Level, Version};

use crate::birth::{birth, fill};
use crate::executor::Outcome;
use crate::found::{self, Frame, Trouble};
use crate::scenario::Start;
use crate::share::share;
use crate::spec::{Policy, Spec};
use crate::timeline::Timeline;
use crate::verify::{Care, Crash, Process, Verdict, begin, new_disks, pool};
use crate::{Image, Oracle, Rng, Sim, SimDisk, quiet};

/// As many subsets are tried at one event.
const SUBSETS: u64 = 32;
/// One point in so many has crashes in its restart as well.
const AGAIN_ONE_IN: u64 = 40;

/// Every level and policy, as small as they go.
pub(crate) const SPECS: [Spec; 18] = [
    tiny(Level::Raid1, 0, 2, Policy::Resync),
    tiny(Level::Raid1, 0, 3, Policy::Bitmap),
    tiny(Level::Raid10, 0x102, 3, Policy::Resync),
    tiny(Level::Raid10, 0x201, 3, Policy::Bitmap),
    tiny(Level::Raid10, 0x1_0201, 4, Policy::Resync),
    tiny(Level::Raid4, 0, 3, Policy::Resync),
    tiny(Level::Raid4, 0, 3, Policy::Bitmap),
    tiny(Level::Raid4, 0, 3, Policy::Log),
    tiny(Level::Raid5, 2, 3, Policy::Resync),
    tiny(Level::Raid5, 2, 3, Policy::Bitmap),
    tiny(Level::Raid5, 2, 3, Policy::Ppl),
    tiny(Level::Raid5, 0, 4, Policy::Ppl),
    tiny(Level::Raid5, 2, 3, Policy::Log),
    tiny(Level::Raid5, 3, 4, Policy::Log),
    tiny(Level::Raid6, 2, 4, Policy::Resync),
    tiny(Level::Raid6, 2, 4, Policy::Bitmap),
    tiny(Level::Raid6, 2, 4, Policy::Log),
    tiny(Level::Raid6, 10, 5, Policy::Log),
];

pub(crate) const fn tiny(level: Level, layout: u32, members: usize, policy: Policy) -> Spec {
    let chunk = if matches!(level, Level::Raid1) { 0 } else { 4096 };
    let version = Version::V1_2;
    Spec { level, layout, members, chunk, member_size: 12 << 10, policy, version }
}

/// The number of trials.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Events times subsets.
    pub points: u64,
    /// The examined ones of these: the others were equal to an earlier one.
    pub looked_at: u64,
    /// Crashes in restarts.
    pub again: u64,
    /// Loads.
    pub loads: u64,
    /// Those that failed, by seed, and how.
    pub failed: Vec<(u64, String)>,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.points += other.points;
        self.looked_at += other.looked_at;
        self.again += other.again;
        self.loads += other.loads;
        self.failed.extend(other.failed);
    }
}

/// Runs loads from seed `first` on, until there were `points` crash points, those in restarts
/// included; on `threads`. Stops after 20 failures.
pub fn exhaust(first: u64, points: u64, threads: usize) -> Tally {
    let job = |index| run_load(first.wrapping_add(index));
    share(threads, u64::MAX, job, |tally: &mut Tally, one| {
        tally.add(one);
        tally.points + tally.again < points && tally.failed.len() < 20
    })
}

/// One load, with crashes at all of its events.
pub fn run_load(seed: u64) -> Tally {
    let tally = Rc::new(RefCell::new(Tally { loads: 1, ..Tally::default() }));
    let counted = Rc::clone(&tally);
    let result = quiet::quietly(move || crash_everywhere(seed, &counted));
    let mut tally = tally.borrow().clone();
    tally.failed.extend(result.err().map(|what| (seed, what)));
    tally
}

fn crash_everywhere(seed: u64, tally: &Rc<RefCell<Tally>>) -> Result<(), String> {
    begin();
    let mut rng = Rng::new(seed ^ 0xe_4a05);
    let spec = SPECS[(seed % SPECS.len() as u64) as usize];
    let is_logged = matches!(spec.policy, Policy::Ppl | Policy::Log);
    let may_miss = (!spec.has_parity() || is_logged) && rng.percent(30);
    let start = if may_miss { Start::Missing(rng.index(spec.members)) } else { Start::Clean };
    let born = birth(&spec, start, 0, &mut rng);
    let oracle = Rc::new(RefCell::new(born.oracle));
    let unix = Duration::from_secs(1_700_000_000);
    let template = Crash {
        spec,
        images: born.disks,
        away_spares: Rc::default(),
        oracle: Rc::new(oracle.borrow().clone()),
        was_complete: start == Start::Clean,
        may_give_up: false,
        was_harmed: false,
        unix,
        schedule: seed,
        timeline: Timeline::default(),
        care: Care { at_rest: false, again_percent: 100, most_again: 60, ..Care::default() },
    };
    let there = found::look(&template.images)?;
    let assembled = found::assemble(&there).map_err(|why| why.to_string())?;
    let process = Process::default();
    let sim = Sim::new(seed);
    sim.be_quiet();
    let handle = sim.handle();
    let disks = new_disks(&sim, &template.images);
    let speed = Speed { min: 100 << 20, ..Speed::default() };
    let frame = Frame { handle: &handle, unix_start: unix, speed, nonce: rng.next_u64() };
    let array = found::build(&assembled, &frame, &disks);
    process.of(&array);
    let trouble = Trouble::default();
    let moments = Moments {
        template,
        present: there.iter().map(|one| one.disk).collect(),
        disks,
        oracle: Rc::clone(&oracle),
        seen: HashSet::new(),
        known: 0,
        dice: rng.fork(),
        tally: Rc::clone(tally),
    };
    watch(&sim, moments, &trouble);
    let dev = Dev::new(array.clone());
    let told = trouble.clone();
    let outcome = sim.run_until(async move {
        if let Err(why) = array.restart().await {
            return told.tell(&handle, why.to_string());
        }
        handle.spawn("array", array.run());
        for _ in 0..rng.within(2..=4) {
            let done = request(&dev, &oracle, &mut rng).await;
            told.note(&handle, done);
        }
        // Until it is marked clean.
        handle.sleep(500_000_000).await;
    });
    trouble.check()?;
    match outcome {
        Outcome::Done(()) | Outcome::Halted => Ok(()),
        Outcome::Stuck(stuck) => Err(stuck.to_string()),
    }
}

/// A request, told to the oracle.
pub(crate) async fn request(
    dev: &Dev,
    oracle: &Rc<RefCell<Oracle>>,
    rng: &mut Rng,
) -> Result<(), String> {
    request_from(0, dev, oracle, rng).await
}

/// The same beyond the first `from` bytes.
pub(crate) async fn request_from(
    from: u64,
    dev: &Dev,
    oracle: &Rc<RefCell<Oracle>>,
    rng: &mut Rng,
) -> Result<(), String> {
    if rng.percent(20) {
        let began = oracle.borrow_mut().begin_flush();
        let done = dev.start(Io::flush()).await;
        done.result.map_err(|errno| format!("a flush fails: {errno}"))?;
        oracle.borrow_mut().end_flush(began);
        return Ok(());
    }
    let blocks = (dev.limits().size - from) / 512;
    let longest = [1, 4, 16, blocks][rng.index(4)].min(blocks);
    let count = rng.within(1..=longest);
    let span = Span::new(from + rng.within(0..=blocks - count) * 512, count * 512);
    let flags = if rng.percent(30) { Flags::FUA } else { Flags::NONE };
    let mut buf = pool().get_wait(span.len as usize).await;
    fill(&mut buf, rng);
    let token = oracle.borrow_mut().begin_write(span, Some(&buf));
    let done = dev.start(Io::write(span.offset, buf, flags)).await;
    done.result.map_err(|errno| format!("{:?} of {span} fails: {errno}", Op::Write))?;
    oracle.borrow_mut().end_write(token, true, flags.contains(Flags::FUA));
    Ok(())
}

/// The moments of a load.
struct Moments {
    template: Crash,
    /// The disks that are there.
    present: Vec<usize>,
    disks: Vec<SimDisk>,
    oracle: Rc<RefCell<Oracle>>,
    /// Images that were looked at since something else became known.
    seen: HashSet<u64>,
    known: u64,
    dice: Rng,
    tally: Rc<RefCell<Tally>>,
}

fn watch(sim: &Sim, mut moments: Moments, trouble: &Trouble) {
    let (handle, trouble) = (sim.handle(), trouble.clone());
    sim.observe(move || {
        if trouble.check().is_ok() {
            let tried = moments.crash();
            trouble.note(&handle, tried);
        }
    });
}

impl Moments {
    /// Tries the subsets of this moment.
    fn crash(&mut self) -> Result<(), String> {
        let now = self.oracle.borrow().changes();
        if std::mem::replace(&mut self.known, now) != now {
            self.seen.clear();
            self.template.oracle = Rc::new(self.oracle.borrow().clone());
        }
        let pieces: Vec<u64> = self.present.iter().flat_map(|disk| self.pieces(*disk)).collect();
        let all = pieces.iter().try_fold(1u64, |all, versions| all.checked_mul(versions + 1));
        let count = all.map_or(SUBSETS, |all| all.min(SUBSETS));
        let is_all = all.is_some_and(|all| all <= SUBSETS);
        for index in 0..count {
            let picks: Vec<u64> = match (is_all, index) {
                (true, _) => digits(index, &pieces),
                (false, 0) => pieces.clone(),
                (false, 1) => pieces.iter().map(|versions| versions - 1).collect(),
                (false, _) => pieces.iter().map(|most| self.dice.within(0..=*most)).collect(),
            };
            self.crash_with(&picks)?;
        }
        Ok(())
    }

    /// The pieces of a disk: how many versions each has beside the durable one.
    fn pieces(&self, disk: usize) -> Vec<u64> {
        let mut pieces = Vec::new();
        let mut last = None;
        for (offset, versions) in self.disks[disk].media().unsettled() {
            if last != Some((offset, versions)) {
                pieces.push(versions as u64);
            }
            last = Some((offset + 512, versions));
        }
        pieces
    }

    /// Tries the crash that leaves version number `picks` of each piece; the number of versions is
    /// the durable one.
    fn crash_with(&mut self, picks: &[u64]) -> Result<(), String> {
        let mut images: Vec<Option<Image>> = vec![None; self.disks.len()];
        let mut picks = picks.iter();
        for disk in &self.present {
            let (mut last, mut pick) = (None, 0);
            let image = self.disks[*disk].media().chosen(|offset, versions| {
                if last != Some((offset, versions)) {
                    pick = picks.next().map_or(0, |pick| *pick as usize);
                }
                last = Some((offset + 512, versions));
                pick
            });
            images[*disk] = Some(image);
        }
        let mut tally = self.tally.borrow_mut();
        tally.points += 1;
        let mut hasher = DefaultHasher::new();
        images.hash(&mut hasher);
        if !self.seen.insert(hasher.finish()) {
            return Ok(());
        }
        tally.looked_at += 1;
        drop(tally);
        let again = u32::from(self.dice.below(AGAIN_ONE_IN) == 0);
        let mut crash = Crash {
            images,
            oracle: Rc::clone(&self.template.oracle),
            schedule: self.dice.next_u64(),
            ..self.template.clone()
        };
        let count: Rc<Cell<u64>> = Rc::default();
        crash.care.again = Rc::clone(&count);
        let mut dice = self.dice.fork();
        if dice.percent(40) {
            crash.lose(&[], &mut dice)?;
        }
        let verdict = crash.verify(&mut dice, again)?;
        self.tally.borrow_mut().again += count.get();
        match verdict {
            Verdict::Well => Ok(()),
            Verdict::Refused => Err("refused, and nothing was harmed".to_owned()),
        }
    }
}

/// `index` in the mixed radix that has one more digit than each of `most`.
fn digits(mut index: u64, most: &[u64]) -> Vec<u64> {
    most.iter()
        .map(|most| {
            let digit = index % (most + 1);
            index /= most + 1;
            digit
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subset_is_tried_once() {
        let most = [1, 2, 1];
        let mut all: Vec<Vec<u64>> = (0..12).map(|index| digits(index, &most)).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 12);
        assert!(all.iter().all(|one| one.iter().zip(&most).all(|(digit, most)| digit <= most)));
    }

    #[test]
    fn loads_crash_at_many_points() {
        let tally = run_load(0);
        assert!(tally.failed.is_empty(), "{tally:?}");
        assert!(tally.points > 50 && tally.looked_at > 10, "{tally:?}");
    }
}
