//! The permitted results of a start with a flipped bit.

use std::cell::RefCell;
use std::rc::Rc;

use braid_array::geometry::Column;
use braid_array::{ArrayByte, Geometry};
use braid_block::Span;
use braid_engine::Dev;
use braid_engine::assembled::{Assembled, LogPlace};
use braid_engine::redundant::{Layout, Speed};
use braid_md::BadBlocks;

use super::Rot;
use super::story::{Left, Load, UNIX, come_to_rest, first, take_in};
use crate::atlas::is_readable;
use crate::executor::Outcome;
use crate::found::{self, Frame, Trouble, carried, label};
use crate::rest::{check_at_rest, read_all};
use crate::spec::{Policy, Spec};
use crate::timeline::Timeline;
use crate::verify::{Care, Crash, Process, Verdict, new_disks};
use crate::{Image, Oracle, Rng, Sim};

/// The result of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// All members take part, and all data is there.
    Well,
    /// The member carries nothing that can be believed: all is there without it, or too few are left.
    Without,
    /// The array was refused, and the damage named.
    Refused,
}

/// Holds starts to what was left.
pub(super) struct Judge<'a> {
    pub(super) spec: Spec,
    pub(super) left: &'a Left,
}

impl Judge<'_> {
    /// Starts the array as it was left.
    ///
    /// # Errors
    /// The broken promise, in words.
    pub(super) fn start_sound(&self, dice: &mut Rng) -> Result<(), String> {
        let images = self.left.images.clone();
        let mut there = found::look(&images)?;
        let assembled = found::assemble_as_told(&mut there).map_err(|why| why.to_string())?;
        self.check(images, self.left.oracle.clone(), &assembled, false, dice)
    }

    /// Flips the bit, and starts the array.
    ///
    /// # Errors
    /// The broken promise, in words.
    pub(super) fn start(&self, rot: &Rot, dice: &mut Rng) -> Result<End, String> {
        let mut images = self.left.images.clone();
        let Some(image) = &mut images[rot.disk] else { return Err("no such disk".to_owned()) };
        let at = rot.at as usize;
        let mut byte = [0];
        image.read(at, &mut byte);
        image.write(at, &[byte[0] ^ 1 << rot.bit]);
        let Ok(flipped) = carried(image) else {
            self.start_without(rot.disk, images, dice)?;
            return Ok(End::Without);
        };
        let mut there = found::look(&images)?;
        match found::assemble_as_told(&mut there) {
            Err(refusal) => {
                let why = refusal.to_string();
                if !why.contains(&label(rot.disk)) {
                    return Err(format!("the refusal does not name the member: {why}"));
                }
                self.start_without(rot.disk, images, dice)?;
                Ok(End::Refused)
            }
            Ok(assembled) => {
                let is_told = assembled.warnings.iter().any(|one| one.contains(&label(rot.disk)));
                let is_logged = self.spec.policy == Policy::Log;
                if is_logged && assembled.log == LogPlace::None && !is_told {
                    return Err("it goes on without its stripe log, and does not say so".to_owned());
                }
                let mut oracle = self.left.oracle.clone();
                // A record that is not whole looks as if the crash had torn it, and its write had never begun.
                let is_degraded = there.len() < self.spec.members;
                if rot.area == "records" && is_degraded && self.left.is_crash {
                    oracle.spoil(|_| true);
                }
                if let Some(listed) = self.left.listed.filter(|disk| *disk == rot.disk) {
                    let before = self.left.images[listed].as_ref();
                    let before = before.and_then(|image| carried(image).ok()?.bad_blocks);
                    self.excuse_places(&mut oracle, listed, before, flipped.bad_blocks.as_ref());
                }
                self.check(images, oracle, &assembled, false, dice)?;
                Ok(End::Well)
            }
        }
    }

    /// The others have to start, if they suffice and a crash left them nothing in doubt.
    fn start_without(
        &self,
        disk: usize,
        mut images: Vec<Option<Image>>,
        dice: &mut Rng,
    ) -> Result<(), String> {
        images[disk] = None;
        let mut there = found::look(&images)?;
        let is_logged = matches!(self.spec.policy, Policy::Ppl | Policy::Log);
        match found::assemble_as_told(&mut there) {
            Ok(assembled) => {
                // What another member lists is lost with this one.
                let may_lack = self.left.listed.is_some_and(|listed| listed != disk);
                self.check(images, self.left.oracle.clone(), &assembled, may_lack, dice)
            }
            Err(_) if self.left.is_crash && self.spec.has_parity() && !is_logged => Ok(()),
            Err(refusal) if refusal.to_string().contains("too few members") => Ok(()),
            Err(_) if there.is_empty() => Ok(()),
            Err(refusal) => Err(format!("without {} it is refused: {refusal}", label(disk))),
        }
    }

    fn check(
        &self,
        images: Vec<Option<Image>>,
        oracle: Oracle,
        assembled: &Assembled,
        may_give_up: bool,
        dice: &mut Rng,
    ) -> Result<(), String> {
        if let Some((disk, away)) = &self.left.away
            && self.may_lose_stand_in(assembled)
        {
            return self.check_return(images, (*disk, away), assembled, dice);
        }
        let agreement = self.left.listed.is_none();
        let crash = Crash {
            spec: self.spec,
            was_harmed: images.iter().take(self.spec.members).any(Option::is_none),
            images,
            away_spares: Rc::default(),
            oracle: Rc::new(oracle),
            was_complete: self.left.was_complete,
            may_give_up,
            unix: UNIX,
            schedule: dice.next_u64(),
            timeline: Timeline::default(),
            care: Care { agreement, kernel: false, ..Care::default() },
        };
        match crash.verify(dice, 0)? {
            Verdict::Well => Ok(()),
            Verdict::Refused => Err("refused, and nothing was lacking".to_owned()),
        }
    }

    /// True if the others suffice when the member that has the role of another leaves.
    fn may_lose_stand_in(&self, assembled: &Assembled) -> bool {
        let holders = found::holders(assembled);
        let is_left = |role: usize| {
            holders[role]
                .iter()
                .any(|(disk, up_to)| *up_to == u64::MAX && Some(*disk) != self.left.stands_in)
        };
        is_readable(&found::layout(assembled), &is_left)
    }

    /// A member that had left comes back to the array.
    fn check_return(
        &self,
        mut images: Vec<Option<Image>>,
        (disk, away): (usize, &Image),
        assembled: &Assembled,
        dice: &mut Rng,
    ) -> Result<(), String> {
        let is_there = |disk: usize| images[disk].is_some();
        let stands_in = self.left.stands_in.filter(|disk| is_there(*disk));
        images[disk] = Some(away.clone());
        let process = Process::default();
        let sim = Sim::new(dice.next_u64());
        sim.be_quiet();
        let handle = sim.handle();
        let disks = new_disks(&sim, &images);
        let speed = Speed { min: 100 << 20, ..Speed::default() };
        let frame = Frame { handle: &handle, unix_start: UNIX, speed, nonce: dice.next_u64() };
        let array = found::build(assembled, &frame, &disks);
        process.of(&array);
        let trouble = Trouble::default();
        let (told, mut choices) = (trouble.clone(), dice.fork());
        let (spec, log, is_changed) = (self.spec, assembled.log, assembled.is_changed);
        let away = away.clone();
        let oracle = Rc::new(RefCell::new(self.left.oracle.clone()));
        let load = Load { array, disks, oracle, from: first(&spec) };
        let outcome = sim.run_until(async move {
            let Load { array, disks, oracle, .. } = &load;
            let work = async {
                array.restart().await.map_err(|why| format!("it is not restarted: {why}"))?;
                handle.spawn("array", array.run());
                if is_changed {
                    array.record().await.map_err(|why| format!("not recorded: {why}"))?;
                }
                if let Some(disk) = stands_in {
                    load.pull(disk, &mut choices).await?;
                }
                let lacking = array.status().in_sync.iter().filter(|one| !**one).count();
                take_in(array, &disks[disk], disk, Some(&away), log).await?;
                come_to_rest(array, lacking - 1, &disks[disk]).await?;
                let contents = read_all(&Dev::new(array.clone())).await?;
                let read = oracle.borrow_mut().begin_read(Span::new(0, contents.len() as u64));
                let shown = oracle.borrow_mut().end_read(read, Some(&contents));
                shown.map_err(|why| why.to_string())?;
                check_at_rest(&spec, array, disks, &contents, &mut choices, async {}).await
            };
            let done = work.await.map_err(|why| format!("when disk{disk} is back: {why}"));
            told.note(&handle, done);
        });
        trouble.check()?;
        match outcome {
            Outcome::Done(()) | Outcome::Halted => Ok(()),
            Outcome::Stuck(stuck) => Err(stuck.to_string()),
        }
    }

    /// An entry that became another sound one cannot be told from it: what it had named reads as anything.
    fn excuse_places(
        &self,
        oracle: &mut Oracle,
        disk: usize,
        before: Option<BadBlocks>,
        now: Option<&BadBlocks>,
    ) {
        let Some(before) = before.filter(|before| Some(before) != now) else { return };
        let data_offset = self.spec.data_offset();
        let was_listed = |row: u64| before.overlaps(data_offset + row, 512).is_some();
        oracle.spoil(|offset| match self.spec.geometry(self.spec.members) {
            Layout::Copies(geometry) => (0..geometry.copies()).any(|copy| {
                let run = geometry.locate(ArrayByte::new(offset), copy);
                run.role.index() == disk && was_listed(run.offset.get())
            }),
            Layout::Parity(geometry) => {
                let (stripe, within) = (offset / geometry.stripe(), offset % geometry.stripe());
                let (column, row) = (within / geometry.chunk(), within % geometry.chunk());
                let role = geometry.role_of(stripe, Column::Data(column as usize));
                role.index() == disk && was_listed(stripe * geometry.chunk() + row)
            }
        });
    }
}
