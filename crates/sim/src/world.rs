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
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use braid_block::Limits;
use braid_engine::Dev;
use braid_engine::redundant::{MemberState, Speed, Status};
use braid_export_nbd::Export;
use braid_md::Resync;

use crate::atlas;
use crate::birth::birth;
use crate::executor::Outcome;
use crate::found::{self, Frame, Trouble};
use crate::load::Clients;
use crate::media::Media;
use crate::pipe::Pipe;
use crate::scenario::{Act, End, Life, Probe, Scenario, probe as draw_probe};
use crate::stage::{Past, Shelf, Stage, watch};
use crate::timeline::Timeline;
use crate::verify::DELAY_NS;
use crate::verify::{Care, Process, begin};
use crate::verify::{Crash, Found, Verdict, brief, check_at_rest, crash_images, pool, read_all};
use crate::{Image, Oracle, Rng, Sim, SimDisk};

/// Blank disks beside the members, for operators.
const BLANK: usize = 4;
/// Memory that a connection receives into, in bytes.
const INBOX: usize = 16 << 10;
/// How long a life may take beyond its acts, in steps of [`STEP_NS`].
const PATIENCE: u64 = 60_000;
/// An event may overtake tasks that are ready: whoever waits long waits in steps.
const STEP_NS: u64 = 50_000_000;
/// How long a life goes on in which nothing is asked for any more, waiting for its end.
const LINGER: u64 = 120;

/// What happened in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Lives that began.
    pub lives: u64,
    /// Crashes that ended one.
    pub crashes: u64,
    /// Crashes that were tried beside.
    pub probes: u64,
    /// Of both, those after which the array was refused, rightly.
    pub refused: u64,
    /// Faults and orders that were placed.
    pub acts: u64,
    /// Virtual time, in nanoseconds.
    pub virtual_ns: u64,
    /// Requests of disks.
    pub disk_requests: u64,
}

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
        unix: Duration::from_secs(1_700_000_000),
        report: Rc::default(),
        timeline: timeline.clone(),
    };
    for (index, life) in scenario.lives.iter().enumerate() {
        if !world.live(index + 1, life, false)? {
            return Ok(world.report.get());
        }
    }
    let judgement = Life {
        schedule: rng.next_u64(),
        speed: 100 << 20,
        connections: Vec::new(),
        acts: Vec::new(),
        probes: Vec::new(),
        aftershocks: 0,
        end: End::Rest,
    };
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
            oracle: Rc::new(self.oracle.borrow().clone()),
            was_complete: self.past.was_complete.get(),
            may_give_up: self.past.torn.get().is_some(),
            was_harmed: self.past.harmed.get(),
            unix: self.unix,
            schedule,
            timeline: self.timeline.clone(),
            care: Care::default(),
        }
    }

    /// One life, from a start to its end; false if the array was given up, rightly.
    fn live(&mut self, number: usize, life: &Life, is_last: bool) -> Result<bool, String> {
        self.count(|report| report.lives += 1);
        self.timeline.begin(number);
        let process = Process::default();
        let sim = Sim::new(life.schedule);
        sim.be_quiet();
        sim.be_prompt(DELAY_NS);
        let handle = sim.handle();
        let disks = self.disks(&sim);
        let current = |disk: &SimDisk| (!disk.is_gone()).then(|| disk.contents());
        let images: Vec<_> = disks.iter().map(current).collect();
        let crash = self.crash(images, life.schedule);
        let (there, assembled) = match crash.assemble()? {
            Found::Whole(there, assembled) => (there, assembled),
            Found::Refused(why) => {
                self.timeline.put(0, "world", || format!("refused, rightly: {why}"));
                self.count(|report| report.refused += 1);
                return Ok(false);
            }
        };
        drop((there, crash));
        self.timeline.put(0, "world", || {
            let member = |one: &braid_engine::assembled::TakesPart| {
                format!("{} role {:?} {:?}", one.label, one.role, one.state)
            };
            let members: Vec<String> = assembled.members.iter().map(member).collect();
            let (events, resync) = (assembled.superblock.events, assembled.resync);
            format!("assembled: events {events}, {resync:?}, {}", members.join(", "))
        });
        let frame = Frame {
            handle: &handle,
            unix_start: self.unix,
            speed: Speed { min: life.speed, max: Some(life.speed), latency: None },
            nonce: life.schedule,
        };
        let array = found::build(&assembled, &frame, &disks);
        process.of(&array);
        self.past.was_complete.set(array.status().in_sync.iter().all(|one| *one));
        let stage = Stage {
            handle: handle.clone(),
            spec: self.scenario.spec,
            array,
            disks: Rc::new(RefCell::new(disks)),
            shelf: Rc::clone(&self.shelf),
            superblock: Rc::new(assembled.superblock.clone()),
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
        if let Err(what) = trouble.check() {
            self.timeline.put(end_ns, "world", || format!("WRONG: {what}"));
            self.timeline.put(end_ns, "array", || last_words);
            return Err(format!("life {number}: {what}"));
        }
        if let Outcome::Stuck(stuck) = outcome {
            return Err(format!("life {number}: {stuck}; {last_words}"));
        }
        self.unix += Duration::from_nanos(end_ns) + Duration::from_secs(1);
        stage.remember(&state);
        self.end(&stage, &state, life, end_ns)
    }

    /// What is left when a life is over is the next one's start.
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
            self.past.torn.set(None);
        }
        let disks = stage.disks.borrow().clone();
        self.shelf.borrow_mut().spent.clear();
        match life.end {
            End::Rest => {
                self.timeline.put(end_ns, "world", || "the volume is down".to_owned());
                self.oracle.borrow_mut().kill();
                self.keep(&disks, |disk| disk.take_media());
                Ok(true)
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
                // What a failed flush lost is lost as by a crash, if nobody could record it.
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
                    true => crash.lose(&mut dice)?,
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

    /// What the crash that left `images` may have done to what `before` knew.
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
        let disk = |(index, drive): (usize, &mut Drive)| {
            let media = std::mem::replace(&mut drive.media, Media::new(Image::default(), 512));
            let limits = Limits::new(media.current().len() as u64, 512);
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

    /// Whether members may go with a crash: of what is in doubt nobody knows what the others hold.
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
                let crash = Crash {
                    images: crash_images(&stage.disks.borrow(), probe.way, &mut dice),
                    oracle: Rc::new(oracle.borrow().clone()),
                    was_complete: past.was_complete.get(),
                    may_give_up: past.torn.get().is_some(),
                    was_harmed: past.harmed.get(),
                    unix: template.unix + Duration::from_nanos(handle.now()),
                    schedule: dice.next_u64(),
                    ..template.clone()
                };
                let now = stage.now();
                let may_lose = !now.torn && (is_copies || !now.doubt) && !now.spent.contains(&true);
                let loses = probe.loses && may_lose;
                timeline.note(&handle, "world", || format!("probe of a crash: {probe:?}"));
                let verdict = try_crash(crash, loses, probe.again, &mut dice);
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

/// Has members lost with a crash if `loses`, and holds what is left to what it must be.
fn try_crash(mut crash: Crash, loses: bool, again: u32, dice: &mut Rng) -> Result<Verdict, String> {
    let lost = if loses { crash.lose(dice)? } else { Vec::new() };
    let way = if lost.is_empty() { String::new() } else { format!(", without disks {lost:?}") };
    crash.verify(dice, again).map_err(|why| format!("a crash here{way}: {why}"))
}

impl Drive {
    fn contents(&self) -> Option<Image> {
        (!self.away).then(|| self.media.current().clone())
    }
}

/// What goes on in a life.
struct Acting {
    stage: Stage,
    trouble: Trouble,
    is_changed: bool,
    life: Life,
    is_last: bool,
    placed: Rc<Cell<u64>>,
}

/// Counts down to 0, and wakes who waits for that.
#[derive(Clone, Default)]
struct Left {
    count: Rc<Cell<usize>>,
    waiting: Rc<RefCell<Option<Waker>>>,
}

impl Left {
    fn one_more(&self) {
        self.count.set(self.count.get() + 1);
    }

    fn one_less(&self) {
        self.count.set(self.count.get() - 1);
        self.waiting.take().into_iter().for_each(Waker::wake);
    }

    async fn none(&self) {
        poll_fn(|cx| {
            if self.count.get() == 0 {
                return Poll::Ready(());
            }
            *self.waiting.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

impl Acting {
    async fn run(self) {
        let Acting { stage, trouble, .. } = &self;
        let handle = stage.handle.clone();
        if let Err(why) = stage.array.restart().await {
            if stage.past.torn.get().is_none() {
                trouble.tell(&handle, format!("it is not restarted: {why}"));
            }
            return handle.halt();
        }
        stage.remember(&stage.array.status());
        handle.spawn("array", stage.array.run());
        if self.is_changed {
            let (stage, trouble) = (stage.clone(), trouble.clone());
            handle.spawn("record", async move {
                let recorded = stage.array.record().await;
                if let (Err(why), None) = (recorded, stage.past.torn.get()) {
                    trouble.tell(&stage.handle, format!("who takes part is not recorded: {why}"));
                }
            });
        }
        let dev = Dev::new(stage.array.clone());
        let export = match Export::new(dev.clone(), pool(), "", Duration::from_secs(3600)) {
            Ok(export) => export,
            Err(why) => return trouble.tell(&handle, format!("no export: {why}")),
        };
        let (left, sessions) = (Left::default(), Left::default());
        self.connect(&export, &left, &sessions);
        self.operate(&left);
        self.guard();
        left.none().await;
        stage.tell_world("everybody is answered");
        if self.is_last {
            let checked = self.judge(&dev).await;
            trouble.note(&handle, checked);
        }
        if self.life.end != End::Rest {
            for _ in 0..LINGER {
                handle.sleep(STEP_NS).await;
            }
            return handle.halt();
        }
        export.stop().raise();
        sessions.none().await;
        let flushed = stage.flush(&dev).await;
        trouble.note(&handle, flushed);
        stage.array.shut_down().await;
        let checked = self.check_down();
        trouble.note(&handle, checked);
    }

    /// Nothing may take for ever.
    fn guard(&self) {
        let (stage, trouble) = (self.stage.clone(), self.trouble.clone());
        let acts_ns = self.life.acts.last().map_or(0, |act| act.at_ns);
        let steps = PATIENCE + acts_ns / STEP_NS;
        stage.handle.clone().spawn("guard", async move {
            for _ in 0..steps / 20 {
                stage.handle.sleep(20 * STEP_NS).await;
            }
            let state = brief(&stage.array);
            trouble.tell(&stage.handle, format!("the life does not end: {state}"));
        });
    }

    /// Has clients come.
    fn connect(&self, export: &Export, left: &Left, sessions: &Left) {
        let excused = self.stage.clone();
        let clients = Clients {
            handle: self.stage.handle.clone(),
            oracle: Rc::clone(&self.stage.oracle),
            excuse: Rc::new(move |op, span| excused.may_fail(op, span)),
            timeline: self.stage.timeline.clone(),
        };
        for (index, plan) in self.life.connections.iter().enumerate() {
            let (clients, export, plan) = (clients.clone(), export.clone(), plan.clone());
            let (handle, trouble) = (self.stage.handle.clone(), self.trouble.clone());
            let (left, sessions) = (left.clone(), sessions.clone());
            left.one_more();
            self.stage.handle.spawn(format!("client {index}"), async move {
                handle.sleep(plan.at_ns).await;
                let (theirs, ours) = Pipe::pair(&handle);
                let (leaves, told, of) = (plan.leaves, trouble.clone(), handle.clone());
                let over = sessions.clone();
                sessions.one_more();
                handle.spawn(format!("session {index}"), async move {
                    let inbox = pool().get_wait(INBOX).await;
                    let end = export.serve(ours.clone(), inbox).await;
                    ours.close();
                    if end.is_protocol_error() && !leaves {
                        told.tell(&of, format!("session {index}: {end}"));
                    }
                    over.one_less();
                });
                let result = clients.work(format!("client {index}"), theirs, plan).await;
                trouble.note(&handle, result);
                left.one_less();
            });
        }
    }

    /// Has acts happen at their times.
    fn operate(&self, left: &Left) {
        let (stage, left, placed) = (self.stage.clone(), left.clone(), Rc::clone(&self.placed));
        let acts: Vec<Act> = self.life.acts.clone();
        left.one_more();
        self.stage.handle.spawn("operator", async move {
            for Act { at_ns, what } in acts {
                let now_ns = stage.handle.now();
                stage.handle.sleep(at_ns.saturating_sub(now_ns)).await;
                if stage.act(what).await {
                    placed.set(placed.get() + 1);
                }
            }
            left.one_less();
        });
    }

    /// Gives the array what it is missing, waits until it is whole, and compares everything.
    async fn judge(&self, dev: &Dev) -> Result<(), String> {
        let Acting { stage, .. } = self;
        let gave_up = stage.past.torn.get().is_some();
        for _ in 0..PATIENCE / 10 {
            let status = stage.array.status();
            let is_whole = status.in_sync.iter().all(|one| *one) && status.job.is_none();
            let is_quiet = !status.active && status.resync == Resync::Clean;
            if is_whole && is_quiet && status.bitmap.is_none_or(|bitmap| bitmap.set == 0) {
                break;
            }
            if gave_up && status.broken {
                return Ok(());
            }
            let waits = |state| !matches!(state, MemberState::Faulty | MemberState::InSync);
            let has_spare = status.members.iter().any(|one| waits(one.state));
            if status.in_sync.contains(&false) && !has_spare {
                match stage.add_blank(None).await {
                    Ok(()) => {}
                    // Operators have used them up.
                    Err(why) if stage.shelf.borrow().blank.is_empty() => {
                        stage.tell_world(&why);
                        if is_quiet && status.job.is_none() {
                            break;
                        }
                    }
                    Err(why) => return Err(format!("a blank disk is not taken in: {why}")),
                }
            }
            stage.handle.sleep(STEP_NS).await;
        }
        let contents = match read_all(dev).await {
            Ok(contents) => contents,
            Err(_) if gave_up => return Ok(()),
            Err(why) => return Err(why),
        };
        {
            let mut oracle = stage.oracle.borrow_mut();
            let span = braid_block::Span::new(0, contents.len() as u64);
            let read = oracle.begin_read(span);
            oracle.end_read(read, Some(&contents)).map_err(|why| format!("at the end {why}"))?;
        }
        if gave_up {
            return Ok(());
        }
        let (disks, mut dice) = (stage.disks.borrow().clone(), stage.dice.borrow().clone());
        check_at_rest(&stage.spec, &stage.array, &disks, &contents, &mut dice, async {}).await
    }

    /// That nothing is left over when the volume is down.
    fn check_down(&self) -> Result<(), String> {
        let status = self.stage.array.status();
        if status.broken {
            return match self.stage.past.torn.get() {
                Some(_) => Ok(()),
                None => Err(format!("broken: {}", brief(&self.stage.array))),
            };
        }
        if status.active {
            return Err(format!("down, and not clean: {}", brief(&self.stage.array)));
        }
        match self.stage.array.leftovers() {
            left if left.is_empty() => Ok(()),
            left => Err(format!("left over when the volume is down: {}", left.join(", "))),
        }
    }
}

impl Stage {
    fn tell_world(&self, what: &str) {
        self.timeline.note(&self.handle, "world", || what.to_owned());
    }
}
