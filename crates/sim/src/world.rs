//! The whole stack through all of its lives: disks, superblocks, assembly, engine, NBD, clients.
//!
//! ```text
//!   clients ══ pipes ══ NBD sessions ── Redundant ── disks        one Sim a life, one clock
//!                            operators and faults ──┘    │
//!   the life's end:  at rest · killed · the power goes ──┘ what is left is the next life's start
//!   beside it, at probes: crash ─▶ [`crate::verify`]
//!   the last life: members are made whole, everything is read and compared
//! ```

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use braid_block::Limits;
use braid_engine::assembled::{Assembled, TakesPart};
use braid_engine::redundant::{Speed, Status};
use braid_md::Resync;

use crate::atlas;
use crate::birth::birth;
use crate::brief::brief;
use crate::draw::{AT_ONCE, probe as draw_probe};
use crate::executor::Outcome;
use crate::found::{self, Frame, Trouble};
use crate::kernel::AwaySpare;
use crate::life::Acting;
use crate::media::Media;
use crate::opened::Opened;
use crate::report::Report;
use crate::scenario::{End, Life, Probe, Scenario};
use crate::shards::Shards;
use crate::stage::{Past, Shelf, Stage};
use crate::timeline::{Timeline, watch};
use crate::verify::{Care, Crash, DELAY_NS, Found, Process, Verdict, begin, crash_images};
use crate::{Image, Oracle, Rng, Sim, SimDisk};

/// Blank disks beside the members, for operators.
const BLANK: usize = 4;

/// A disk between two lives.
struct Drive {
    media: Media,
    /// It is not there.
    away: bool,
}

struct World<'a> {
    scenario: &'a Scenario,
    oracle: Rc<RefCell<Oracle>>,
    drives: Vec<Drive>,
    shelf: Rc<RefCell<Shelf>>,
    past: Rc<Past>,
    away_spares: Rc<[AwaySpare]>,
    /// Seconds since 1970.
    unix: Duration,
    report: Rc<Cell<Report>>,
    timeline: Timeline,
}

/// Runs `scenario`.
///
/// # Errors
/// What went wrong.
pub fn run(scenario: &Scenario, timeline: &Timeline) -> Result<Report, String> {
    begin();
    let mut rng = Rng::new(scenario.seed ^ 0xb17);
    let born = birth(&scenario.spec, scenario.start, BLANK, &mut rng);
    let size = scenario.spec.disk_size() as usize;
    let drive = |image: Option<Image>| Drive {
        away: image.is_none(),
        media: Media::new(image.unwrap_or_else(|| Image::zeroes(size)), 512),
    };
    let past = Past::default();
    past.harmed.set(matches!(scenario.start, crate::scenario::Start::Missing(_)));
    let shelf = Shelf {
        blank: (scenario.spec.members..born.disks.len()).rev().collect(),
        ..Shelf::default()
    };
    let mut world = World {
        scenario,
        oracle: Rc::new(RefCell::new(born.oracle)),
        drives: born.disks.into_iter().map(drive).collect(),
        shelf: Rc::new(RefCell::new(shelf)),
        past: Rc::new(past),
        away_spares: Rc::default(),
        unix: Duration::from_secs(1_700_000_000),
        report: Rc::default(),
        timeline: timeline.clone(),
    };
    for (index, life) in scenario.lives.iter().enumerate() {
        if !world.live(index + 1, life, false)? {
            return Ok(world.report.get());
        }
    }
    let judgement = Life::plain(rng.next_u64(), 100 << 20);
    world.live(scenario.lives.len() + 1, &judgement, true)?;
    Ok(world.report.get())
}

impl World<'_> {
    fn count(&self, change: impl FnOnce(&mut Report)) {
        let mut report = self.report.get();
        change(&mut report);
        self.report.set(report);
    }

    /// A crash that leaves `images`.
    fn crash(&self, images: Vec<Option<Image>>, schedule: u64) -> Crash {
        Crash {
            spec: self.scenario.spec,
            images,
            away_spares: Rc::clone(&self.away_spares),
            oracle: Rc::new(self.oracle.borrow().clone()),
            was_complete: self.past.was_complete.get(),
            may_give_up: self.past.torn.is_any(),
            was_harmed: self.past.harmed.get(),
            unix: self.unix,
            schedule,
            timeline: self.timeline.clone(),
            care: Care::default(),
        }
    }

    fn note_away_spares(&mut self) {
        let away = self.drives.iter().enumerate().filter(|(_, drive)| drive.away);
        let spare = away.filter_map(|(disk, drive)| AwaySpare::of(disk, drive.media.current()));
        self.away_spares = self.away_spares.iter().copied().chain(spare).collect();
    }

    /// One life, from a start to its end; false if the array was given up, rightly.
    fn live(&mut self, number: usize, life: &Life, is_last: bool) -> Result<bool, String> {
        self.count(|report| report.lives += 1);
        self.timeline.begin(number);
        self.note_away_spares();
        let process = Process::default();
        let sim = Sim::new(life.schedule);
        sim.be_quiet();
        sim.be_prompt(DELAY_NS);
        let handle = sim.handle();
        handle.set_clock(life.clock_by_s);
        let disks = self.disks(&sim);
        let Some(assembled) = self.assembled(&disks, life)? else { return Ok(false) };
        let frame = Frame {
            handle: &handle,
            unix_start: self.unix,
            speed: Speed { min: life.speed, max: Some(life.speed), latency: None },
            nonce: life.schedule,
        };
        let opened = Opened::new(&handle, life.deadline_ns.map(Duration::from_nanos), &disks);
        let (array, dev, shards) =
            Shards::build(&assembled, &frame, life, &|disk| opened.dev(disk));
        process.of(&array).with(&shards);
        self.past.was_complete.set(array.status().in_sync.iter().all(|one| *one));
        let stage = Stage {
            handle: handle.clone(),
            spec: self.scenario.spec,
            array,
            dev,
            shards,
            opened,
            disks: Rc::new(RefCell::new(disks)),
            shelf: Rc::clone(&self.shelf),
            log: assembled.log,
            past: Rc::clone(&self.past),
            oracle: Rc::clone(&self.oracle),
            timeline: self.timeline.clone(),
            dice: Rc::new(RefCell::new(Rng::new(life.schedule ^ 0xd1ce))),
            shaken: Rc::default(),
        };
        let trouble = Trouble::default();
        self.observe(&sim, &stage, life, &trouble);
        let acting = Acting {
            stage: stage.clone(),
            trouble: trouble.clone(),
            is_changed: assembled.is_changed,
            life: life.clone(),
            is_last,
            placed: Rc::default(),
        };
        let placed = Rc::clone(&acting.placed);
        let outcome = sim.run_until(async move { acting.run().await });
        let end_ns = handle.now();
        // What is said of the array is of this moment; then the process is over.
        let state = stage.array.status();
        let last_words = brief(&stage.array);
        self.count(|report| {
            report.virtual_ns += end_ns;
            report.acts += placed.get();
            let completed = stage.disks.borrow().iter().map(SimDisk::completed).sum::<u64>();
            report.disk_requests += completed;
        });
        self.judge(&trouble, &outcome, &last_words, end_ns)
            .map_err(|what| format!("life {number}: {what}"))?;
        self.unix =
            handle.clock_for(self.unix + Duration::from_nanos(end_ns) + Duration::from_secs(1));
        stage.remember(&state);
        self.end(&stage, &state, life, end_ns)
    }

    /// Fails if the life had trouble, or got stuck; `last_words` then describe the array in the timeline.
    fn judge(
        &self,
        trouble: &Trouble,
        outcome: &Outcome<()>,
        last_words: &str,
        end_ns: u64,
    ) -> Result<(), String> {
        if let Err(what) = trouble.check() {
            self.timeline.put(end_ns, "world", || format!("WRONG: {what}"));
            self.timeline.put(end_ns, "array", || last_words.to_owned());
            return Err(what);
        }
        match outcome {
            Outcome::Stuck(stuck) => Err(format!("{stuck}; {last_words}")),
            _ => Ok(()),
        }
    }

    /// Puts the array together as in production; `None` if that is refused, rightly.
    fn assembled(&self, disks: &[SimDisk], life: &Life) -> Result<Option<Box<Assembled>>, String> {
        let current = |disk: &SimDisk| (!disk.is_gone()).then(|| disk.contents());
        let images = disks.iter().map(current).collect();
        let assembled = match self.crash(images, life.schedule).assemble()? {
            Found::Whole(_, assembled) => assembled,
            Found::Refused(why) => {
                self.timeline.put(0, "world", || format!("refused, rightly: {why}"));
                self.count(|report| report.refused += 1);
                return Ok(None);
            }
        };
        self.timeline.put(0, "world", || {
            format!("assembled: {}, served is {}", told(&assembled), life.front)
        });
        Ok(Some(assembled))
    }

    /// Takes the remaining state at the end of a life as the start of the next one.
    fn end(
        &mut self,
        stage: &Stage,
        status: &Status,
        life: &Life,
        end_ns: u64,
    ) -> Result<bool, String> {
        let mut dice = Rng::new(life.schedule ^ 0xe9d);
        let whole = status.in_sync.iter().all(|one| *one) && status.resync == Resync::Clean;
        if whole && !status.broken && !status.active {
            self.past.torn.clear();
        }
        let disks = stage.disks.borrow().clone();
        self.shelf.borrow_mut().spent.clear();
        match life.end {
            End::Rest => {
                self.timeline.put(end_ns, "world", || "the volume is down".to_owned());
                let before = self.oracle.borrow().clone();
                self.oracle.borrow_mut().kill();
                self.keep(&disks, |disk| {
                    let mut media = disk.take_media();
                    // The next process waits for what the last one asked of disks that hung.
                    if disk.has_hung() {
                        media.settle(&mut dice);
                    }
                    media
                });
                if !status.broken {
                    return Ok(true);
                }
                // The array stopped amid writes, as when it is killed, and they could not be finished.
                let images = self.drives.iter().map(Drive::contents).collect();
                self.excuse(images, &before, false)
            }
            End::Kill(_) => {
                self.timeline.put(end_ns, "world", || "the process is killed".to_owned());
                self.count(|report| report.crashes += 1);
                let before = self.oracle.borrow().clone();
                let mut was_lost = false;
                self.keep(&disks, |disk| {
                    let mut media = disk.take_media();
                    was_lost |= media.settle(&mut dice);
                    media
                });
                // If it could not be recorded, data of a failed flush is lost as in a crash.
                if !was_lost {
                    self.oracle.borrow_mut().kill();
                }
                let images = self.drives.iter().map(Drive::contents).collect();
                self.excuse(images, &before, was_lost)
            }
            End::Power(probe) => {
                let mut dice = Rng::new(probe.dice);
                self.count(|report| report.crashes += 1);
                let images = crash_images(&disks, probe.way, &mut dice);
                let mut crash = self.crash(images, life.schedule);
                let lost = match probe.loses && self.may_lose_with_a_crash(stage) {
                    true => crash.lose(&stage.now().in_sync, &mut dice)?,
                    false => Vec::new(),
                };
                self.timeline.put(end_ns, "world", || {
                    format!("the power goes: {:?} is left, lost with it: {lost:?}", probe.way)
                });
                self.past.harmed.set(self.past.harmed.get() || !lost.is_empty());
                self.keep(&disks, |disk| Media::new(disk.crash_image(&mut dice), 512));
                for (drive, image) in self.drives.iter_mut().zip(&crash.images) {
                    if let Some(image) = image {
                        drive.media = Media::new(image.clone(), 512);
                    }
                }
                lost.iter().for_each(|disk| self.drives[*disk].away = true);
                let before = self.oracle.borrow().clone();
                self.excuse(crash.images, &before, true)
            }
        }
    }

    /// Allows the changes that the crash with these `images` may have made to the knowledge in `before`.
    fn excuse(
        &mut self,
        images: Vec<Option<Image>>,
        before: &Oracle,
        power: bool,
    ) -> Result<bool, String> {
        let crash = self.crash(images, 0);
        let (assembled, spec) = match crash.assemble()? {
            Found::Whole(_, assembled) => (assembled, self.scenario.spec),
            // The next start says so.
            Found::Refused(_) => return Ok(true),
        };
        let layout = found::layout(&assembled);
        let readable = found::view(&assembled, &crash.images).in_sync();
        let complete = self.past.was_complete.get();
        let excused = |offset: u64| {
            atlas::may_be_anything(&spec, &layout, before, &readable, complete, offset)
        };
        match power {
            true => self.oracle.borrow_mut().crash(excused),
            false => self.oracle.borrow_mut().spoil(excused),
        }
        Ok(true)
    }

    fn keep(&mut self, disks: &[SimDisk], mut media: impl FnMut(&SimDisk) -> Media) {
        let keep = |disk: &SimDisk| Drive { away: disk.is_gone(), media: media(disk) };
        self.drives = disks.iter().map(keep).collect();
    }

    /// The disks, in a simulation.
    fn disks(&mut self, sim: &Sim) -> Vec<SimDisk> {
        let (handle, timeline) = (sim.handle(), self.timeline.clone());
        let spec = self.scenario.spec;
        let immediate = self.scenario.seed & AT_ONCE != 0;
        let disk = |(index, drive): (usize, &mut Drive)| {
            let media = std::mem::replace(&mut drive.media, Media::new(Image::default(), 512));
            let size = media.current().len() as u64;
            let limits = Limits { immediate, ..Limits::new(size, 512) };
            let disk = SimDisk::with_media(&handle, found::label(index), limits, media);
            if drive.away {
                disk.vanish();
            }
            spec.settle(&disk);
            if timeline.is_kept() {
                watch(&disk, index, &timeline);
            }
            disk
        };
        self.drives.iter_mut().enumerate().map(disk).collect()
    }

    /// True if members may be lost with a crash: for parts in doubt, the content of the others is unknown.
    fn may_lose_with_a_crash(&self, stage: &Stage) -> bool {
        let now = stage.now();
        let is_copies = !self.scenario.spec.has_parity();
        !now.torn && (is_copies || !now.doubt) && !now.spent.contains(&true)
    }

    /// Counts events; tries crashes at probes, and ends the life at its end.
    fn observe(&self, sim: &Sim, stage: &Stage, life: &Life, trouble: &Trouble) {
        let (stage, trouble, handle) = (stage.clone(), trouble.clone(), sim.handle());
        let mut probes: Vec<Probe> = life.probes.clone();
        probes.sort_by_key(|probe| probe.event);
        probes.reverse();
        let end = match life.end {
            End::Rest => u64::MAX,
            End::Kill(event) | End::Power(Probe { event, .. }) => event,
        };
        let template = self.crash(Vec::new(), life.schedule);
        let (oracle, past, report) =
            (Rc::clone(&self.oracle), Rc::clone(&self.past), Rc::clone(&self.report));
        let is_copies = !self.scenario.spec.has_parity();
        let timeline = self.timeline.clone();
        let mut event = 0;
        let mut aftershocks = life.aftershocks;
        let mut shocks = Rng::new(life.schedule ^ 0xaf7e);
        sim.observe(move || {
            event += 1;
            if stage.shaken.get() > 0 && aftershocks > 0 {
                stage.shaken.set(stage.shaken.get() - 1);
                if shocks.percent(8) {
                    aftershocks -= 1;
                    probes.push(Probe { event, ..draw_probe(&mut shocks) });
                }
            }
            if event % 16 == 0 {
                stage.remember(&stage.array.status());
            }
            while probes.last().is_some_and(|probe| probe.event == event) {
                let Some(probe) = probes.pop() else { break };
                let mut dice = Rng::new(probe.dice);
                // It also notes that the array is complete, which the crash needs to know.
                let now = stage.now();
                let crash = Crash {
                    images: crash_images(&stage.disks.borrow(), probe.way, &mut dice),
                    oracle: Rc::new(oracle.borrow().clone()),
                    was_complete: past.was_complete.get(),
                    may_give_up: past.torn.is_any(),
                    was_harmed: past.harmed.get(),
                    unix: handle.clock_for(template.unix + Duration::from_nanos(handle.now())),
                    schedule: dice.next_u64(),
                    ..template.clone()
                };
                let may_lose = !now.torn && (is_copies || !now.doubt) && !now.spent.contains(&true);
                let counted_on = (probe.loses && may_lose).then_some(now.in_sync);
                timeline.note(&handle, "world", || format!("probe of a crash: {probe:?}"));
                let verdict = crash.strike(counted_on.as_deref(), probe.again, &mut dice);
                let mut counts = report.get();
                counts.probes += 1;
                counts.refused += u64::from(verdict == Ok(Verdict::Refused));
                report.set(counts);
                trouble.note(&handle, verdict);
            }
            if event >= end {
                handle.halt();
            }
        });
    }
}

/// An array that was assembled, for the timeline.
fn told(assembled: &Assembled) -> String {
    let member = |one: &TakesPart| format!("{} role {:?} {:?}", one.label, one.role, one.state);
    let members: Vec<String> = assembled.members.iter().map(member).collect();
    let (events, resync) = (assembled.superblock.events, assembled.resync);
    format!("events {events}, {resync:?}, {}", members.join(", "))
}

impl Drive {
    fn contents(&self) -> Option<Image> {
        (!self.away).then(|| self.media.current().clone())
    }
}
