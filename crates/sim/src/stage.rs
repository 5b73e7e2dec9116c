//! A life's disks and array, and what befalls them: faults are placed where the [`crate::atlas`]
//! allows it, orders are given as production gives them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use braid_array::Role;
use braid_block::{Errno, Io, Limits, Op, Span};
use braid_engine::assembled::LogPlace;
use braid_engine::redundant::{Layout, MemberState, MemberStatus, Redundant, Status};
use braid_engine::{Dev, Device};
use braid_md::Resync;

use crate::atlas::Now;
use crate::found::{carried, label, number};
use crate::media::Media;
use crate::opened::Opened;
use crate::scenario::What;
use crate::shards::Shards;
use crate::spec::Spec;
use crate::timeline::{Timeline, watch};
use crate::torn::Torn;
use crate::{Fault, Handle, Oracle, Rng, SimDisk, Target};

/// The time for which a disk counts as spent after its faults are over, in nanoseconds: requests that met one
/// may still be in progress.
const AFTERMATH_NS: u64 = 2_000_000_000;
/// The same if a disk is slow or hangs: several of its requests, or its deadline, may pass before the
/// consequences.
const SLOW_AFTERMATH_NS: u64 = 10 * AFTERMATH_NS;
/// The number of events that an act's consequences take.
const SHAKEN: u64 = 80;
/// The history of this scenario's array.
#[derive(Default)]
pub(crate) struct Past {
    /// True if members have ever been harmed.
    pub harmed: Cell<bool>,
    /// Copies, or parity and data, may differ by what the superblocks say.
    pub doubt: Cell<bool>,
    /// Rows that requests failed on, on more members than redundancy makes up for.
    pub torn: Torn,
    /// The array had all of its members at some time in this life.
    pub was_complete: Cell<bool>,
}

/// The disks on a shelf beside the array.
#[derive(Default)]
pub(crate) struct Shelf {
    /// Blank disks.
    pub blank: Vec<usize>,
    /// Disks that hold something else than they left with.
    pub scribbled: Vec<usize>,
    /// Until when disks count as spent, in nanoseconds.
    pub spent: BTreeMap<usize, u64>,
}

/// A life, for its actors. All clones share one state.
#[derive(Clone)]
pub(crate) struct Stage {
    /// The simulation.
    pub handle: Handle,
    /// The array's properties.
    pub spec: Spec,
    /// The array.
    pub array: Redundant,
    /// The served device: the array, or a stack on it.
    pub dev: Dev,
    /// The other shards.
    pub shards: Shards,
    /// The access to the members.
    pub opened: Rc<Opened>,
    /// All disks, by number.
    pub disks: Rc<RefCell<Vec<SimDisk>>>,
    /// The disks beside it.
    pub shelf: Rc<RefCell<Shelf>>,
    /// The place of its log.
    pub log: LogPlace,
    /// Its history.
    pub past: Rc<Past>,
    /// Its possible answers.
    pub oracle: Rc<RefCell<Oracle>>,
    /// The timeline of events.
    pub timeline: Timeline,
    /// The random numbers for orders.
    pub dice: Rc<RefCell<Rng>>,
    /// The number of coming events during which members may still come or go because of an act.
    pub shaken: Rc<Cell<u64>>,
}

impl Stage {
    /// The array's geometry now.
    pub(crate) fn layout(&self) -> Layout {
        self.spec.geometry(self.array.status().raid_disks)
    }

    /// A disk.
    pub(crate) fn disk(&self, disk: usize) -> Option<SimDisk> {
        self.disks.borrow().get(disk).cloned()
    }

    /// The array as it is now, as far as faults are concerned.
    pub(crate) fn now(&self) -> Now {
        let status = self.array.status();
        self.remember(&status);
        let mut spent = vec![false; status.in_sync.len()];
        for member in &status.members {
            let Some(role) = member.role.map(Role::index) else { continue };
            let disk = number(&member.label);
            // A replacement is counted on soon, unless it is gone before it is full.
            let is_gone = member.replacement && self.disk(disk).is_some_and(|disk| disk.is_gone());
            let is_no_matter = is_gone && !self.takes_over(member);
            if !is_no_matter && member.state != MemberState::Faulty {
                spent[role] |= self.is_spent(disk);
            }
        }
        let (doubt, torn) = (self.past.doubt.get(), self.past.torn.is_any());
        Now { in_sync: status.in_sync, spent, doubt, torn }
    }

    /// Notes which chunks are in doubt and which are no longer, by the moment when superblocks said so.
    pub(crate) fn remember(&self, status: &Status) {
        if status.in_sync.iter().all(|one| *one) {
            self.past.was_complete.set(true);
        }
        if status.resync != Resync::Clean {
            self.past.doubt.set(true);
        } else if !status.active && status.job.is_none() {
            self.past.doubt.set(false);
        }
    }

    fn is_spent(&self, disk: usize) -> bool {
        let Some(sim) = self.disk(disk) else { return true };
        let spent_ns = self.shelf.borrow().spent.get(&disk).copied().unwrap_or(0);
        // A fault may have waited for its request.
        let failed_ns = sim.failed_ns().map_or(0, |failed_ns| failed_ns + self.aftermath_ns());
        sim.is_gone()
            || sim.hangs()
            || sim.faults().is_armed()
            || !sim.faults().latent().is_empty()
            || spent_ns.max(failed_ns) > self.handle.now()
    }

    /// The role in which `disk` is in sync, if it is.
    fn role_in_sync(&self, disk: usize) -> Option<usize> {
        let members = self.array.status().members;
        let member = members.into_iter().find(|one| one.label == label(disk))?;
        (member.state == MemberState::InSync).then_some(member.role?.index())
    }

    /// True if `member` replaces another and is full: it may have recorded that, and the replaced member may be
    /// out at any moment.
    fn takes_over(&self, member: &MemberStatus) -> bool {
        matches!(member.state, MemberState::Recovering(filled) if filled.get() >= self.spec.member_size)
            && member.replacement
    }

    /// True if `what` may harm `disk`; then the harm is recorded as imminent.
    pub(crate) fn may_harm(&self, disk: usize, what: What) -> bool {
        let Some(sim) = self.disk(disk) else { return false };
        let members = self.array.status().members;
        let Some(member) = members.into_iter().find(|one| one.label == label(disk)) else {
            return false;
        };
        let is_at_once = matches!(what, What::Vanish { .. } | What::Fail { .. });
        let takes_over = self.takes_over(&member);
        let may = match member.role {
            // A member that is being filled is not counted on; but soon it is, also with the faults that come
            // later.
            Some(_) if member.state != MemberState::InSync && is_at_once && !takes_over => true,
            Some(role) if member.state != MemberState::Faulty => {
                self.now().may_lose(&self.layout(), &[role.index()])
            }
            _ => true,
        };
        if !may || sim.is_gone() {
            return false;
        }
        let after_ns = match what {
            What::Transient { after_ns, .. } => after_ns,
            What::Hang { for_ns: Some(for_ns), .. } => for_ns,
            _ => 0,
        };
        self.harm(disk, after_ns);
        true
    }

    /// The time for which a disk counts as spent after its faults are over.
    fn aftermath_ns(&self) -> u64 {
        let keeps_waiting = |disk: &SimDisk| disk.is_slow() || disk.hangs();
        if self.disks.borrow().iter().any(keeps_waiting) { SLOW_AFTERMATH_NS } else { AFTERMATH_NS }
    }

    /// Something befalls `disk`, which takes `for_ns`.
    fn harm(&self, disk: usize, for_ns: u64) {
        self.past.harmed.set(true);
        let now_ns = self.handle.now();
        let until_ns = now_ns + for_ns + self.aftermath_ns();
        let spent = &mut self.shelf.borrow_mut().spent;
        // A request that waits for a slow disk has not reported yet what the other disks returned.
        let last_ns = spent.values().fold(until_ns, |last, one| last.max(*one));
        spent.insert(disk, last_ns);
        spent.values_mut().filter(|one| **one > now_ns).for_each(|one| *one = last_ns);
        if self.past.doubt.get() {
            self.oracle.borrow_mut().waver(true);
        }
    }

    pub(crate) fn tell(&self, who: &str, what: impl FnOnce() -> String) {
        self.timeline.note(&self.handle, who, what);
    }

    /// Has `what` happen, if it may; answers whether it did.
    pub(crate) async fn act(&self, what: What) -> bool {
        self.shaken.set(SHAKEN);
        let done = match what {
            What::Memory { limit } => {
                braid_mem::set_limit(limit);
                true
            }
            _ if what.is_fault() => self.place(what),
            _ => self.order(what).await,
        };
        if !done {
            self.tell("atlas", || format!("not now: {what:?}"));
        }
        done
    }

    /// Places a fault.
    fn place(&self, what: What) -> bool {
        let rows = |block: u64, blocks: u64| {
            Span::new(self.spec.data_offset() + block * 512, blocks * 512)
        };
        let (disk, faults) = match what {
            What::Latent { disk, block, blocks } if self.is_all_in_doubt() => {
                return self.lose_in_doubt(disk, Span::new(block * 512, blocks * 512));
            }
            What::Latent { disk, .. }
            | What::Transient { disk, .. }
            | What::Vanish { disk }
            | What::FlushError { disk }
            | What::Hang { disk, .. }
            | What::Full { disk: Some(disk), .. } => {
                if !self.may_harm(disk, what) {
                    return false;
                }
                let Some(sim) = self.disk(disk) else { return false };
                (disk, sim)
            }
            What::Slow { disk, times } => {
                let Some(sim) = self.disk(disk) else { return false };
                self.tell(&label(disk), || format!("takes {times} times as long from now on"));
                sim.slow_down(times);
                return true;
            }
            What::Return { disk } => return self.return_disk(disk),
            What::Full { disk: None, block, blocks, for_ns } => {
                return self.fill_all(block, blocks, for_ns);
            }
            What::Scribble { disk, data } => return self.scribble(disk, data),
            _ => return false,
        };
        match what {
            What::Latent { block, blocks, .. } => {
                let span = rows(block, blocks);
                self.tell(&label(disk), || format!("cannot read {span} until it is written"));
                faults.faults().add_latent(span);
            }
            What::Transient { op, count, after_ns, .. } => {
                self.tell(&label(disk), || format!("fails the next {count} requests: {op:?}"));
                let target = Target::op(op);
                if after_ns > 0 {
                    let until_ns = self.handle.now() + after_ns;
                    faults.faults().add_some(target, Fault::NotBefore(until_ns), count);
                }
                faults.faults().add_some(target, Fault::Error(Errno::IO), count);
            }
            What::Hang { op, count, for_ns, .. } => {
                let until_ns = for_ns.map_or(u64::MAX, |for_ns| self.handle.now() + for_ns);
                self.tell(&label(disk), || format!("hangs until {until_ns} ns: {count} × {op:?}"));
                let target = Target { op, ..Target::ALL };
                faults.faults().add_some(target, Fault::Hang(until_ns), count);
            }
            What::Vanish { .. } => {
                self.tell(&label(disk), || "is pulled".to_owned());
                faults.vanish();
            }
            What::FlushError { .. } => {
                self.tell(&label(disk), || "fails the next flush, and loses its cache".to_owned());
                faults.faults().add_some(Target::op(Op::Flush), Fault::Error(Errno::IO), 1);
            }
            What::Full { block, blocks, for_ns, .. } => {
                let span = rows(block, blocks);
                self.tell(&label(disk), || format!("has no space for {span}"));
                self.lack_space(&faults, span, for_ns);
            }
            _ => return false,
        }
        true
    }

    /// True if no member is missing, and parity may not fit.
    fn is_all_in_doubt(&self) -> bool {
        let now = self.now();
        self.spec.has_parity() && now.doubt && now.is_complete()
    }

    /// A range that is unreadable while parity is in doubt is an error: its content is unknown, and must not be
    /// invented.
    fn lose_in_doubt(&self, disk: usize, rows: Span) -> bool {
        let (Some(sim), Some(_)) = (self.disk(disk), self.role_in_sync(disk)) else { return false };
        self.tell(&label(disk), || format!("cannot read {rows} of its data, in doubt"));
        self.harm(disk, 0);
        self.past.torn.set(rows);
        sim.faults().add_latent(Span::new(self.spec.data_offset() + rows.offset, rows.len));
        true
    }

    /// Writes to `span` of `disk` fail for a while.
    fn lack_space(&self, disk: &SimDisk, span: Span, for_ns: u64) {
        for op in [Op::Write, Op::WriteZeroes] {
            disk.faults().add(Target::op(op).touching(span), Fault::Error(Errno::NOSPC));
        }
        let (handle, disk) = (self.handle.clone(), disk.clone());
        self.handle.spawn("space", async move {
            handle.sleep(for_ns).await;
            disk.faults().clear_rules();
        });
    }

    /// The file system that all members are on is full.
    fn fill_all(&self, block: u64, blocks: u64, for_ns: u64) -> bool {
        // Also in doubt: rows that are torn behind a resync's back stay in doubt.
        if !self.now().is_complete() {
            return false;
        }
        let span = Span::new(block * 512, blocks * 512);
        self.tell("all disks", || format!("have no space for {span} of their data"));
        self.past.harmed.set(true);
        self.past.torn.set(span);
        self.oracle.borrow_mut().waver(true);
        let on_disk = Span::new(self.spec.data_offset() + span.offset, span.len);
        let members = self.array.status().members;
        for member in members {
            if let Some(disk) = self.disk(number(&member.label)) {
                self.lack_space(&disk, on_disk, for_ns);
            }
        }
        true
    }

    /// A disk that was pulled is there again, with what a loss of power left of it.
    fn return_disk(&self, disk: usize) -> bool {
        let Some(old) = self.disk(disk).filter(SimDisk::is_gone) else { return false };
        let members = self.array.status().members;
        let is_in_use = |one: &&_| -> bool { is_in_use(one, &label(disk)) };
        if members.iter().find(is_in_use).is_some() {
            return false;
        }
        let image = old.crash_image(&mut self.dice.borrow_mut());
        if image.len() <= 4096 {
            return false;
        }
        let media = Media::new(image, 512);
        let limits = Limits { size: media.current().len() as u64, ..old.limits() };
        let new = SimDisk::with_media(&self.handle, label(disk), limits, media);
        if self.timeline.is_kept() {
            watch(&new, disk, &self.timeline);
        }
        self.spec.settle(&new);
        self.opened.exchange(disk, &new);
        self.disks.borrow_mut()[disk] = new;
        self.tell(&label(disk), || "is there again".to_owned());
        true
    }

    /// A disk that is no member any more, and that the members left behind, holds something else by
    /// now.
    fn scribble(&self, disk: usize, data: u64) -> bool {
        // One that still works on a request is not pulled.
        let is_free = |disk: &SimDisk| !disk.is_gone() && !disk.hangs() && !disk.is_asked();
        let Some(sim) = self.disk(disk).filter(is_free) else { return false };
        let members = self.array.status().members;
        let is_blank = self.shelf.borrow().blank.contains(&disk);
        if is_blank || members.iter().any(|one| one.label == label(disk)) {
            return false;
        }
        let events = |disk| Some(carried(&self.disk(disk)?.durable()).ok()?.superblock.events);
        let own = events(disk).unwrap_or(0);
        let mut in_sync = members.iter().filter(|one| one.state == MemberState::InSync);
        if in_sync.any(|one| events(number(&one.label)).is_none_or(|events| events < own + 2)) {
            return false;
        }
        let mut media = sim.take_media();
        let from = self.spec.data_offset() as usize;
        let mut rubbish = vec![0; self.spec.member_size as usize];
        crate::birth::fill(&mut rubbish, &mut Rng::new(data));
        let mut image = media.current().to_vec();
        image[from..from + rubbish.len()].copy_from_slice(&rubbish);
        media = Media::new(image, 512);
        let limits = Limits { size: media.current().len() as u64, ..sim.limits() };
        let other = SimDisk::with_media(&self.handle, label(disk), limits, media);
        self.opened.exchange(disk, &other);
        self.disks.borrow_mut()[disk] = other;
        self.shelf.borrow_mut().scribbled.push(disk);
        self.tell(&label(disk), || "holds something else now".to_owned());
        true
    }

    /// True if a request may be answered with an error.
    pub(crate) fn may_fail(&self, op: Op, span: Span) -> bool {
        self.past.torn.excuses(&self.layout(), op, span)
    }

    /// Makes everything written durable.
    pub(crate) async fn flush(&self, dev: &Dev) -> Result<(), String> {
        let began = self.oracle.borrow_mut().begin_flush();
        let done = dev.start(Io::flush()).await;
        match done.result {
            Ok(()) => {
                self.oracle.borrow_mut().end_flush(began);
                Ok(())
            }
            Err(_) if self.past.torn.is_any() => Ok(()),
            Err(errno) => Err(format!("the last flush failed: {errno}")),
        }
    }
}

pub(crate) fn is_in_use(one: &MemberStatus, label: &str) -> bool {
    one.label == label && one.state != MemberState::Faulty
}
