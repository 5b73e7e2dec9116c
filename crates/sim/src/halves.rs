//! Two machines with a half of one array each, which then meet.
//!
//! ```text
//!              ┌─▶ half A starts alone, is written, perhaps takes in blank disks ─┐
//!   one array ─┤     (some members may be lost)                                   ├─▶ all disks at once
//!              └─▶ half B starts alone, is written, perhaps takes in blank disks ─┘
//!   judged well: no start has members of both; what one half was written is given up only if that is said;
//!                the half that starts has all that it was written; members of the other come back filled anew,
//!                or are refused
//! ```
//!
//! Deliberately absent: halves that took in disks of version 0.90, or in place of a member that neither has. Both gave
//! one number to their newcomers, so that nothing tells these apart.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use braid_block::Span;
use braid_engine::Dev;
use braid_engine::assembled::Assembled;
use braid_engine::redundant::{MemberState, MemberStatus, Redundant, Speed};
use braid_md::{Resync, Version};

use crate::atlas::is_readable;
use crate::birth::birth;
use crate::draw;
use crate::executor::Outcome;
use crate::exhaust::request;
use crate::found::{self, Frame, Trouble, number};
use crate::report::Report;
use crate::rest::{STEP_NS, check_at_rest, read_all};
use crate::rot::story::{come_to_rest, take_in};
use crate::scenario::{Start, Way};
use crate::spec::{Policy, Spec};
use crate::timeline::Timeline;
use crate::verify::{Care, Crash, Process, Verdict, begin, crash_images, new_disks};
use crate::{Handle, Image, Oracle, Rng, Sim, SimDisk};

const UNIX: Duration = Duration::from_secs(1_700_000_000);
/// Blank disks of each half.
const BLANKS: usize = 2;

/// A half, and what became of it.
struct Half {
    /// By number, with its blank ones.
    disks: Vec<usize>,
    /// The number of blank ones among these.
    blanks: usize,
    /// True if it may take them in.
    may_take: bool,
    images: Vec<Option<Image>>,
    oracle: Oracle,
    is_started: bool,
    is_crashed: bool,
}

/// Splits an array of `seed`, and joins it again.
///
/// # Errors
/// The fault, in words.
pub fn run(seed: u64) -> Result<Report, String> {
    begin();
    let mut rng = Rng::new(seed ^ 0x4a1f);
    let (spec, roles) = plot(&mut rng);
    split(spec, &roles, &mut rng).map_err(|why| format!("{spec:?} in {roles:?}: {why}"))
}

fn split(spec: Spec, roles: &[usize], rng: &mut Rng) -> Result<Report, String> {
    let born = birth(&spec, Start::Clean, 2 * BLANKS, rng);
    let may_take = spec.version != Version::V0_90 && !roles.contains(&2);
    let mut halves = [0, 1].map(|half| {
        let mut disks: Vec<usize> = (0..spec.members).filter(|one| roles[*one] == half).collect();
        let first = spec.members + half * BLANKS;
        disks.extend(first..first + BLANKS);
        let own = |(disk, image): (usize, &Option<Image>)| {
            image.clone().filter(|_| disks.contains(&disk))
        };
        let images = born.disks.iter().enumerate().map(own).collect();
        let oracle = born.oracle.clone();
        Half {
            disks,
            blanks: BLANKS,
            may_take,
            images,
            oracle,
            is_started: false,
            is_crashed: false,
        }
    });
    let mut report = Report::default();
    let only = rng.percent(15).then(|| rng.index(2));
    for (index, half) in halves.iter_mut().enumerate() {
        if only.is_none_or(|only| only == index) {
            half.live(&spec, rng, &mut report).map_err(|why| format!("half {index}: {why}"))?;
        }
    }
    if halves.iter().all(|half| !half.is_started) {
        return Ok(report);
    }
    let mut images: Vec<Option<Image>> = vec![None; born.disks.len()];
    for half in &mut halves {
        half.disks.iter().for_each(|disk| images[*disk] = half.images[*disk].clone());
    }
    let is_named = rng.percent(30);
    let chosen = match is_named {
        true => only.unwrap_or_else(|| rng.index(2)),
        false => meet(&halves, &images)?,
    };
    let half = &halves[chosen];
    let care = Care { kernel: false, ..Care::default() };
    let left = Crash {
        spec,
        images: half.images.clone(),
        away_spares: Rc::default(),
        oracle: Rc::new(half.oracle.clone()),
        was_complete: false,
        may_give_up: false,
        was_harmed: half.is_crashed,
        unix: UNIX,
        schedule: rng.next_u64(),
        timeline: Timeline::default(),
        care,
    };
    report.probes += 1;
    if left.verify(rng, 1)? == Verdict::Refused {
        report.refused += 1;
        return Ok(report);
    }
    join(&spec, half, &halves[1 - chosen], &images, rng, &mut report)?;
    Ok(report)
}

/// An array, and by role which half has it; `2` for members that are lost.
fn plot(rng: &mut Rng) -> (Spec, Vec<usize>) {
    loop {
        let spec = draw::spec(rng);
        let layout = spec.geometry(spec.members);
        for _ in 0..20 {
            let whose = |_| if rng.percent(10) { 2 } else { rng.index(2) };
            let roles: Vec<usize> = (0..spec.members).map(whose).collect();
            if (0..2).all(|half| is_readable(&layout, &|role| roles[role] == half)) {
                return (spec, roles);
            }
        }
    }
}

/// Offers all disks at once; answers which half starts.
fn meet(halves: &[Half; 2], images: &[Option<Image>]) -> Result<usize, String> {
    let mut there = found::look(images)?;
    let is_split = halves.iter().all(|half| half.is_started);
    let assembled = match found::assemble(&there) {
        Ok(_) if is_split => return Err("a half is given up, and nothing said so".to_owned()),
        Ok(assembled) => assembled,
        Err(_) => found::assemble_as_told(&mut there).map_err(|why| format!("refused: {why}"))?,
    };
    let takes_part = |half: &Half| {
        let mut disks = members(&assembled);
        disks.any(|disk| half.disks.contains(&disk))
    };
    match [0, 1].map(|half| takes_part(&halves[half])) {
        [true, true] => Err("members of both halves take part".to_owned()),
        [false, false] => Err("no half takes part".to_owned()),
        [is_first, _] => {
            let chosen = usize::from(!is_first);
            let is_stale = !halves[chosen].is_started;
            if is_stale { Err("the stale half starts".to_owned()) } else { Ok(chosen) }
        }
    }
}

/// The disks that have a role.
fn members(assembled: &Assembled) -> impl Iterator<Item = usize> {
    let with_role = assembled.members.iter().filter(|one| one.role.is_some());
    with_role.map(|one| number(&one.label))
}

/// A machine with all disks, and the array that it has assembled from some of them.
struct Machine {
    _process: Process,
    sim: Sim,
    handle: Handle,
    disks: Vec<SimDisk>,
    assembled: Assembled,
    array: Redundant,
}

impl Machine {
    /// Assembles the array of the images in `of`, on disks that hold `images`.
    fn new(
        spec: &Spec,
        of: &[Option<Image>],
        images: &[Option<Image>],
        rng: &mut Rng,
    ) -> Result<Machine, String> {
        let there = found::look(of)?;
        let assembled = found::assemble(&there).map_err(|why| why.to_string())?;
        let process = Process::default();
        let sim = Sim::new(rng.next_u64());
        sim.be_quiet();
        let handle = sim.handle();
        let disks = new_disks(&sim, images);
        disks.iter().filter(|one| one.contents().len() > 4096).for_each(|one| spec.settle(one));
        let speed = Speed { min: 100 << 20, ..Speed::default() };
        let frame = Frame { handle: &handle, unix_start: UNIX, speed, nonce: rng.next_u64() };
        let array = found::build(&assembled, &frame, &disks);
        process.of(&array);
        Ok(Machine { _process: process, sim, handle, disks, assembled, array })
    }
}

impl Half {
    /// It is started, written, and ends.
    fn live(&mut self, spec: &Spec, rng: &mut Rng, report: &mut Report) -> Result<(), String> {
        report.lives += 1;
        let Machine { _process, sim, handle, disks, assembled, array } =
            Machine::new(spec, &self.images, &self.images, rng)?;
        let is_logged = spec.policy == Policy::Log;
        self.is_crashed = (is_logged || !spec.has_parity()) && rng.percent(40);
        if self.is_crashed {
            report.crashes += 1;
            let (mut event, end) = (0, rng.within(30..=250));
            let handle = handle.clone();
            sim.observe(move || {
                event += 1;
                if event >= end {
                    handle.halt();
                }
            });
        }
        let missing = array.status().in_sync.iter().filter(|one| !**one).count();
        let may_take = if self.may_take { missing.min(self.blanks) } else { 0 };
        let takes = rng.within(0..=may_take as u64) as usize;
        report.acts += takes as u64;
        let blank: Vec<usize> = self.disks.iter().rev().copied().take(takes).collect();
        let oracle = Rc::new(RefCell::new(self.oracle.clone()));
        let (asked, of_life, log) = (Rc::clone(&oracle), disks.clone(), assembled.log);
        let (trouble, mut dice, is_crashed) = (Trouble::default(), rng.fork(), self.is_crashed);
        let (told, is_changed) = (trouble.clone(), assembled.is_changed);
        let is_recorded = Rc::new(Cell::new(false));
        let recorded = Rc::clone(&is_recorded);
        let outcome = sim.run_until(async move {
            let work = async {
                array.restart().await.map_err(|why| format!("it is not restarted: {why}"))?;
                handle.spawn("array", array.run());
                if is_changed {
                    array.record().await.map_err(|why| format!("not recorded: {why}"))?;
                }
                recorded.set(true);
                let dev = Dev::new(array.clone());
                for _ in 0..dice.within(1..=4) {
                    request(&dev, &asked, &mut dice).await?;
                }
                for (taken, disk) in (1..).zip(blank) {
                    take_in(&array, &of_life[disk], disk, None, log).await?;
                    come_to_rest(&array, missing - taken, &of_life[disk]).await?;
                }
                let requests = if is_crashed { 1000 } else { dice.within(0..=4) };
                for _ in 0..requests {
                    request(&dev, &asked, &mut dice).await?;
                }
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
        // The crash came before superblocks named the missing members: as if the half had not been started.
        self.is_started = is_recorded.get();
        if !self.is_started {
            self.is_crashed = false;
            return Ok(());
        }
        let ways = [Way::All, Way::Nothing, Way::Mixed];
        let way = if self.is_crashed { ways[rng.index(3)] } else { Way::All };
        self.images = crash_images(&disks, way, rng);
        self.images.iter_mut().for_each(|one| *one = one.take().filter(|one| one.len() > 4096));
        self.oracle = oracle.borrow().clone();
        Ok(())
    }
}

/// Waits until nothing is filled any more; answers how many members are missing then.
async fn settled(array: &Redundant, disk: &SimDisk) -> Result<usize, String> {
    for _ in 0..2000 {
        disk.handle().sleep(STEP_NS).await;
        let status = array.status();
        let missing = status.in_sync.iter().filter(|one| !**one).count();
        // Between a member's taking a role and its recovery there is no job.
        let is_to_be_filled = |one: &MemberStatus| match one.state {
            MemberState::Recovering(_) => true,
            MemberState::Spare => missing > 0,
            MemberState::InSync | MemberState::Faulty => false,
        };
        let is_full = !status.members.iter().any(is_to_be_filled);
        if is_full && !status.active && status.job.is_none() && status.resync == Resync::Clean {
            return Ok(missing);
        }
    }
    Err("it does not come to rest alone".to_owned())
}

/// The members of `other` come back to those of `half`, which serve.
fn join(
    spec: &Spec,
    half: &Half,
    other: &Half,
    images: &[Option<Image>],
    rng: &mut Rng,
    report: &mut Report,
) -> Result<(), String> {
    report.lives += 1;
    let Machine { _process, sim, handle, disks, assembled, array } =
        Machine::new(spec, &half.images, images, rng)?;
    let back = other.disks[..other.disks.len() - other.blanks].to_vec();
    report.acts += back.len() as u64;
    let (trouble, mut dice, log) = (Trouble::default(), rng.fork(), assembled.log);
    let (told, images, is_started) = (trouble.clone(), images.to_vec(), other.is_started);
    let (spec, is_changed) = (*spec, assembled.is_changed);
    let outcome = sim.run_until(async move {
        let work = async {
            array.restart().await.map_err(|why| format!("it is not restarted: {why}"))?;
            handle.spawn("array", array.run());
            if is_changed {
                array.record().await.map_err(|why| format!("not recorded: {why}"))?;
            }
            let before = read_all(&Dev::new(array.clone())).await?;
            // A disk may have been being filled when the half ended.
            let missing = settled(&array, &disks[0]).await?;
            for (taken, disk) in (1..=missing).zip(back) {
                let sim = &disks[disk];
                let known = images[disk].as_ref();
                match take_in(&array, sim, disk, known, log).await {
                    Err(why) if is_started && why.contains("went on without") => {
                        take_in(&array, sim, disk, None, log).await?;
                    }
                    taken_in => taken_in?,
                }
                come_to_rest(&array, missing - taken, sim).await?;
            }
            // What is left of the other half stays elsewhere: it may be the freshest.
            let members = array.status().members;
            for (disk, sim) in disks.iter().enumerate() {
                if members.iter().all(|one| number(&one.label) != disk) {
                    sim.vanish();
                }
            }
            let oracle = Rc::new(RefCell::new(Oracle::new(&before, 512)));
            let dev = Dev::new(array.clone());
            for _ in 0..dice.within(0..=3) {
                request(&dev, &oracle, &mut dice).await?;
            }
            let read = oracle.borrow_mut().begin_read(Span::new(0, before.len() as u64));
            let contents = read_all(&dev).await?;
            let checked = oracle.borrow_mut().end_read(read, Some(&contents));
            checked.map_err(|why| format!("joined, {why}"))?;
            check_at_rest(&spec, &array, &disks, &contents, &mut dice, async {}).await
        };
        let done = work.await;
        told.note(&handle, done);
    });
    trouble.check()?;
    match outcome {
        Outcome::Stuck(stuck) => Err(stuck.to_string()),
        _ => Ok(()),
    }
}
