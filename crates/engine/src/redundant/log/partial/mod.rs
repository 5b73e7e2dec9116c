//! md's partial parity log, written: for raid5.
//!
//! ```text
//!   units ──▶ the queue of the member that has their parity ──▶ one header for all that wait
//!                                                                 │ durable
//!              in place, all of them ◀────────────────────────────┘
//!                 │ durable
//!                 └──▶ the next header, over this one
//! ```
//!
//! A member's log has one group of units at a time, as the kernel's has: after a crash only the
//! newest header counts. What comes meanwhile waits and is the next group.
//!
//! Whole stripes are logged without parity: after a crash theirs is made anew, and what an older
//! header says of these rows no longer counts.

mod restart;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use braid_array::geometry::{Column, Raid456};
use braid_array::parity_plan::{Band, Method};
use braid_array::{ByRole, MemberSpan, Role};
use braid_block::{Errno, Flags, Io, Payload, Span};
use braid_md::ppl::{self, Header};
use braid_mem::Buf;

use super::{Change, Consistency, Entered, Entry, Log, LogCost, RestartError, Restarted, Units};
use crate::canary::Canary;
use crate::redundant::background::Later;
use crate::redundant::core::{Before, Core, Failures, Follower};
use crate::redundant::flush::Durable;
use crate::redundant::publish::RecordedFrontier;
use crate::redundant::roster::Member;
use crate::redundant::stripe::columns::Columns;
use crate::redundant::stripe::plan::{compute, compute_band, restore};
use crate::signal::Signal;

/// The logs of all members, by the role whose parity they are of.
pub(super) struct Partial {
    signature: u32,
    generation: Cell<u64>,
    queues: ByRole<Queue>,
    /// The devices' numbers of those whose log could not be relied on at the start: theirs are emptied last.
    doubtful: RefCell<Vec<u32>>,
    units: Units,
}

#[derive(Default)]
struct Queue {
    waiting: RefCell<VecDeque<Waiting>>,
    /// Units that were put into the queue, and that came into a header.
    joined: Cell<u64>,
    logged: Cell<u64>,
    /// A header is being written, or its units are.
    is_busy: Cell<bool>,
    /// The rows that the last header tells of.
    told: RefCell<Vec<MemberSpan>>,
    /// Units of the last header that are not in place yet.
    active: Cell<usize>,
    /// When the last of them was: as [`Units`] counts.
    last: Cell<u64>,
    changed: Signal,
}

struct Waiting {
    /// The rows that they tell of.
    rows: Option<MemberSpan>,
    entries: Vec<ppl::Entry>,
    parity: Payload,
    /// Room for a header, of which the first unit of a group gives its own.
    header: Buf,
}

impl Partial {
    pub(super) fn new(signature: u32, members: usize, units: Units) -> Partial {
        let queues = ByRole::new(members, |_| Queue::default());
        Partial { signature, generation: Cell::new(0), queues, doubtful: RefCell::default(), units }
    }

    fn next_generation(&self) -> u64 {
        self.generation.set(self.generation.get() + 1);
        self.generation.get()
    }

    /// A unit of `role`'s log is in place.
    fn leave(&self, role: Role, written: u64) {
        let queue = &self.queues[role];
        queue.last.set(written);
        queue.active.set(queue.active.get() - 1);
        if queue.active.get() == 0 {
            queue.is_busy.set(false);
            queue.changed.notify();
        }
    }
}

/// Where `member` has its log, on its device.
fn area_of(member: &Member) -> Option<Span> {
    let superblock = member.superblock.borrow();
    let superblock = superblock.as_ref()?;
    let (offset, size) = superblock.ppl?;
    Some(Span::new(superblock.super_offset.checked_add_signed(offset)?, size))
}

/// How many bytes of partial parity have room behind a header in the log of each of `members`.
fn room_for_parity(members: &[Rc<Member>]) -> u64 {
    let room = |member: &Rc<Member>| Some(area_of(member)?.len - ppl::HEADER_BYTES as u64);
    members.iter().filter_map(room).fold(ppl::RING_PARITY_BYTES, u64::min)
}

impl Follower for Partial {
    fn units_in_place(&self) -> u64 {
        self.units.written()
    }

    fn forget(&self, durable: Durable) {
        self.units.forget(&durable);
    }

    fn before_superblocks<'a>(&'a self, core: &'a Rc<Core>, before: Before) -> Later<'a, Failures> {
        before.durable.iter().for_each(|durable| self.units.forget(durable));
        Box::pin(self.make_ready(core))
    }
}

impl Log for Partial {
    fn consistency(&self) -> Consistency {
        Consistency::Ppl
    }

    fn cost(&self) -> LogCost {
        self.units.cost.get()
    }

    fn memory(&self, _: &Raid456, rows: u64, is_whole: bool) -> u64 {
        ppl::HEADER_BYTES as u64 + if is_whole { 0 } else { rows }
    }

    fn most_rows(&self, core: &Core, is_whole: bool) -> u64 {
        if is_whole {
            return 1 << 63;
        }
        1 << room_for_parity(&core.roster.written()).max(1).ilog2()
    }

    fn enter<'a>(
        &'a self,
        core: &'a Rc<Core>,
        change: Change<'a>,
        memory: Buf,
    ) -> Later<'a, Result<Entered, Errno>> {
        Box::pin(self.enter_unit(core, change, memory))
    }

    fn in_place(&self, core: &Core, entry: Entry) {
        let written = self.units.count(core, &entry);
        self.leave(Role::nth(entry.place as usize), written);
    }

    /// Parity that is made of the data that is there fits, whatever of the unit arrived; and who
    /// writes these rows next writes over the header.
    fn failed(&self, core: &Core, entry: Entry) {
        self.in_place(core, entry);
    }

    fn restart<'a>(
        &'a self,
        core: &'a Rc<Core>,
        geometry: &'a Raid456,
        is_dirty: bool,
    ) -> Later<'a, Result<Restarted, RestartError>> {
        Box::pin(self.make_good(core, geometry, is_dirty))
    }
}

impl Partial {
    async fn enter_unit(
        &self,
        core: &Rc<Core>,
        change: Change<'_>,
        memory: Buf,
    ) -> Result<Entered, Errno> {
        let began = core.clock.now();
        // Where superblocks do not count on parity there is nothing to be made good. And those of an
        // array that nobody ever brought in sync look like those of one that is being written: an
        // entry would make a crash call it clean. Of a unit on both sides of a resync's frontier
        // all rows are logged: their parity is computed from all of their data.
        let frontier = if change.is_counted_on { core.recorded_frontier().await? } else { None };
        if core.counted_on(change.plan.generation).is_none() {
            let _published = core.publish().await?;
            return Ok(Entered::Replan(memory));
        }
        let role = change.columns.role_of(Column::P);
        let entered = match frontier {
            Some(frontier) if change.plan.parity[role] => {
                self.enter_partial(core, change, role, memory, &frontier).await?
            }
            // Without parity there is no hole.
            _ if !change.plan.parity[role] || !self.tells_of(role, change.unit.rows) => {
                compute(change.unit, change.columns, change.plan);
                Entered::NotNeeded
            }
            // What the header says of these rows is true no more once they are written.
            _ => {
                let entry = change.entry(role.get().into());
                compute(change.unit, change.columns, change.plan);
                let mut header = memory;
                header.truncate(ppl::HEADER_BYTES);
                let (entries, parity) = (Vec::new(), Payload::None);
                let empty = Waiting { rows: None, entries, parity, header };
                self.wait_for_header(core, role, empty, entry).await?
            }
        };
        let log_time = core.clock.now() - began;
        self.units.add_cost(|cost| cost.log_time += log_time);
        Ok(entered)
    }

    /// Computes the parity of a unit and what is left of it without the data that is written;
    /// returns when the log has that.
    async fn enter_partial(
        &self,
        core: &Rc<Core>,
        change: Change<'_>,
        role: Role,
        mut memory: Buf,
        frontier: &RecordedFrontier,
    ) -> Result<Entered, Errno> {
        frontier.check(core.id, &core.publisher);
        let entry = change.entry(role.get().into());
        let Change { unit, columns, plan, .. } = change;
        let mut parity = memory.split_off(ppl::HEADER_BYTES);
        let header = memory;
        let mut entries = Vec::with_capacity(unit.bands.len());
        let mut len = 0;
        for (band, method) in unit.bands.iter().zip(plan.methods) {
            if method == Method::Restore {
                restore(columns, band.rows, plan);
            }
            let rows = band.rows.len as usize;
            let is_partial = band.count < columns.geometry.data();
            let place = len..len + if is_partial { rows } else { 0 };
            if is_partial {
                columns.partial(band, method, &mut parity[place.clone()]);
            }
            compute_band(unit, columns, plan, band, method);
            entries.push(entry_of(columns, band, role, &parity[place.clone()]));
            len = place.end;
        }
        if Canary::PartialWriteNotLogged.is_planted() && len > 0 {
            return Ok(Entered::NotNeeded);
        }
        parity.truncate(len);
        let parity = if len == 0 { Payload::None } else { Payload::One(parity) };
        let rows = Some(unit.rows);
        let waiting = Waiting { rows, entries, parity, header };
        self.wait_for_header(core, role, waiting, entry).await
    }

    /// Whether the last header of `role`, or the next, tells of some of `rows`.
    fn tells_of(&self, role: Role, rows: MemberSpan) -> bool {
        let queue = &self.queues[role];
        let overlaps = |one: &MemberSpan| one.overlaps(rows);
        queue.told.borrow().iter().any(overlaps)
            || queue.waiting.borrow().iter().filter_map(|one| one.rows.as_ref()).any(overlaps)
    }

    /// Has `waiting` written with the next header of `role`.
    async fn wait_for_header(
        &self,
        core: &Rc<Core>,
        role: Role,
        waiting: Waiting,
        entry: Entry,
    ) -> Result<Entered, Errno> {
        let queue = &self.queues[role];
        queue.waiting.borrow_mut().push_back(waiting);
        let ticket = queue.joined.get();
        queue.joined.set(ticket + 1);
        loop {
            queue.changed.until(|| queue.logged.get() > ticket || !queue.is_busy.get()).await;
            if queue.logged.get() > ticket {
                break;
            }
            // Whoever finds it idle has the next group logged, even if there is no room in it for
            // its own unit.
            queue.is_busy.set(true);
            self.log_group(core, role).await;
            queue.changed.notify();
        }
        if let Err(errno) = core.fence().await {
            // Nothing is written any more, and nobody is to wait for this unit.
            self.in_place(core, entry);
            return Err(errno);
        }
        Ok(Entered::Logged(entry))
    }

    /// Gives members that have none an empty log: what lay there may be newer than what comes.
    /// Those that a crash left doubtful come last, so that a crash in between finds them as
    /// doubtful as before.
    async fn make_ready(&self, core: &Rc<Core>) -> Failures {
        let mut without = core.roster.written();
        without.retain(|member| !member.has_log.get());
        without.sort_by_key(|member| self.doubtful.borrow().contains(&member.number));
        let mut failed = Failures::new();
        for member in without {
            let Some(area) = area_of(&member) else { continue };
            let io = Io::write_zeroes(area, Flags::FUA.union(Flags::NO_UNMAP));
            if let Err(errno) = member.dev.start(io).await.result {
                failed.push((member, format!("its log could not be written: {errno}")));
                continue;
            }
            let header = Header::empty(self.signature).encode();
            let area = vec![(Rc::clone(&member), area.offset, header)];
            let trouble = core.store_metadata("log", area).await;
            if trouble.is_empty() {
                member.has_log.set(true);
                self.doubtful.borrow_mut().retain(|number| *number != member.number);
            }
            failed.extend(trouble);
        }
        failed
    }

    /// Writes a header for all that wait, as far as it has room.
    async fn log_group(&self, core: &Rc<Core>, role: Role) {
        let queue = &self.queues[role];
        // What the header before describes has to be durable in place, on every member that
        // superblocks count on. A stopped array finds that out below.
        if !self.units.is_durable(queue.last.get())
            && let Ok(durable) = core.settle().await
        {
            self.units.forget(&durable);
        }
        // Units waited for the header, and the membership that they were planned for may be an earlier
        // one: superblocks have to name the members that are out since.
        let counted_on = core.counted_on_now().await;
        let members: Vec<Rc<Member>> = core.roster.slots()[role].written().cloned().collect();
        let room = room_for_parity(&members);
        let (mut entries, mut parity) = (Vec::new(), Payload::None);
        let mut told = Vec::new();
        let mut units = 0;
        let mut header = None;
        {
            let mut waiting = queue.waiting.borrow_mut();
            while let Some(next) = waiting.front() {
                let fits = entries.len() + next.entries.len() <= ppl::MOST_ENTRIES
                    && parity.len() + next.parity.len() <= room;
                if units > 0 && !fits {
                    break;
                }
                let Some(next) = waiting.pop_front() else { break };
                entries.extend(next.entries);
                told.extend(next.rows);
                parity.append(next.parity);
                header.get_or_insert(next.header);
                units += 1;
            }
        }
        // Otherwise nothing is written any more, and all of them are told so.
        if let (Some(mut header), Ok(counted_on)) = (header, counted_on) {
            let generation = self.next_generation();
            let signature = self.signature;
            Header { signature, generation, entries }.encode_into(&mut header);
            let mut payload = Payload::One(header);
            payload.append(parity);
            let areas = members.into_iter().filter_map(|member| {
                let area = area_of(&member)?;
                Some((member, area.offset, payload.share()))
            });
            // Whoever waits for the group asks whether the array has stopped.
            let _ = self.units.store(core, areas.collect(), &counted_on).await;
        }
        queue.told.replace(told);
        queue.active.set(units);
        queue.logged.set(queue.logged.get() + units as u64);
    }
}

fn entry_of(columns: &Columns, band: &Band, role: Role, parity: &[u8]) -> ppl::Entry {
    let geometry = &columns.geometry;
    let in_chunk = band.rows.offset % geometry.chunk();
    let stripe = geometry.span_of_stripe(columns.stripe);
    let first = stripe.offset + band.first as u64 * geometry.chunk();
    ppl::Entry {
        data_start: (first + in_chunk).get(),
        data_len: (band.rows.len * band.count as u64) as u32,
        parity_len: parity.len() as u32,
        parity_role: role.get(),
        checksum: ppl::parity_checksum([parity]),
    }
}
