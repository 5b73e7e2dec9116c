//! Writing md's partial parity log, for raid5.
//!
//! ```text
//!   units ──▶ the queue of the member that has their parity ──▶ one header for all that wait
//!                                                                 │ durable
//!              in place, all of them ◀────────────────────────────┘
//!                 │ durable
//!                 └──▶ the next header, over this one
//! ```
//!
//! A member's log has one group of units at a time, as in the kernel: after a crash only the newest header
//! counts. Units that arrive meanwhile wait and are the next group.
//!
//! Whole stripes are logged without parity: after a crash their parity is recomputed, and older headers of
//! these rows no longer count.

mod restart;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use braid_array::geometry::{Column, Raid456};
use braid_array::parity_plan::{Band, Method};
use braid_array::{ArrayByte, ByRole, MemberSpan, Role};
use braid_block::{Errno, Flags, Io, Payload, Span};
use braid_md::ppl::{self, Header};
use braid_mem::Buf;

use super::{
    Change, Consistency, Entered, Entry, Log, LogCost, RestartError, Restarted, SmallChange, Units,
    micros,
};
use crate::background::Later;
use crate::canary::Canary;
use crate::redundant::core::{Before, Core, Failures, Follower, answer};
use crate::redundant::flush::Durable;
use crate::redundant::publish::RecordedFrontier;
use crate::redundant::roster::Member;
use crate::redundant::stripe::columns::Columns;
use crate::redundant::stripe::plan::{compute, compute_band, restore};
use crate::signal::Signal;

/// The logs of all members, by the role that has the parity.
pub(super) struct Partial {
    signature: u32,
    generation: Cell<u64>,
    queues: ByRole<Queue>,
    /// Device numbers of members whose log could not be relied on at the start: these logs are emptied last.
    doubtful: RefCell<Vec<u32>>,
    units: Units,
}

#[derive(Default)]
struct Queue {
    waiting: RefCell<VecDeque<Waiting>>,
    /// Number of units that were added to the queue, and number of units in headers so far.
    joined: Cell<u64>,
    logged: Cell<u64>,
    /// True if a header or its units are being written.
    is_busy: Cell<bool>,
    /// The rows that the last header describes.
    told: RefCell<Vec<MemberSpan>>,
    /// Units of the last header that are not in place yet.
    active: Cell<usize>,
    /// Number of its last unit that is in place, as [`Units`] counts.
    last: Cell<u64>,
    changed: Signal,
}

struct Waiting {
    /// The rows that the entries describe.
    rows: Option<MemberSpan>,
    entries: Vec<ppl::Entry>,
    parity: Payload,
    /// Memory for a header. The first unit of a group provides it.
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

    /// Notes that a unit of `role`'s log is in place.
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

/// Returns the area of the log on the device of `member`.
fn area_of(member: &Member) -> Option<Span> {
    let superblock = member.superblock.borrow();
    let superblock = superblock.as_ref()?;
    let (offset, size) = superblock.ppl?;
    Some(Span::new(superblock.super_offset.checked_add_signed(offset)?, size))
}

/// Returns the bytes of partial parity for which the logs of all `members` have room behind a header.
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

    fn header_of_small(&self) -> Option<usize> {
        Some(ppl::HEADER_BYTES)
    }

    fn enter_now(&self, core: &Core, small: SmallChange, mut memory: Buf) -> Option<Entry> {
        let start = core.clock.now();
        let SmallChange { role, rows, data } = small;
        let queue = &self.queues[role];
        if queue.is_busy.get() || !queue.waiting.borrow().is_empty() {
            return None;
        }
        let frontier = core.recorded_frontier_now()?;
        let counted_on = core.counted_on(core.roster.generation())?;
        let member = core.roster.slots()[role].written().next().cloned()?;
        let area = area_of(&member).filter(|area| memory.len() as u64 <= area.len)?;
        // As in `log_group`.
        if !self.units.is_durable(queue.last.get()) {
            self.units.forget(&core.settle_now()?);
        }
        frontier.check(core.id, &core.publisher);
        counted_on.check(core.id, core.roster.generation());
        let (header, parity) = memory.split_at_mut(ppl::HEADER_BYTES);
        let entry = [entry_of(data, rows.len, role, parity)];
        ppl::Header::encode_parts(self.signature, self.next_generation(), &entry, header);
        self.units.add_cost(|cost| cost.log_bytes += memory.len() as u64);
        let stored = answer(member.dev.start(Io::write(area.offset, memory, Flags::FUA)));
        let mut told = queue.told.borrow_mut();
        if stored.result.is_err() {
            // The next header, which is written in steps, judges the member. Either header may be there until then.
            told.push(rows);
            return None;
        }
        told.clear();
        told.push(rows);
        queue.is_busy.set(true);
        queue.active.set(1);
        Some(Entry { place: role.get().into(), stored_bytes: 2 * rows.len, start })
    }

    fn in_place(&self, core: &Core, entry: Entry) {
        let written = self.units.count(core, &entry);
        self.leave(Role::nth(entry.place as usize), written);
    }

    /// Parity that is recomputed from the present data fits, and the next write of these rows replaces the
    /// header.
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
        // Superblocks that do not count on parity need no repair. An array that was never in sync has the same
        // superblocks as an array that is being written, so an entry would make it look clean after a crash. Of
        // a unit on both sides of a resync's frontier all rows are logged: their parity is computed from all of
        // their data.
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
            // Without parity there is no write hole.
            _ if !change.plan.parity[role] || !self.tells_of(role, change.unit.rows) => {
                compute(change.unit, change.columns, change.plan);
                Entered::NotNeeded
            }
            // The statements of the header about these rows are invalid once they are written.
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
        self.units.add_cost(|cost| cost.log_time_us += micros(log_time));
        Ok(entered)
    }

    /// Computes the parity of a unit, and the partial parity of the unwritten data; returns when the log has
    /// the latter.
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
            let (data, len_of_data) = (start_of(columns, band), band.rows.len * band.count as u64);
            entries.push(entry_of(data, len_of_data, role, &parity[place.clone()]));
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

    /// Returns true if the last header of `role`, or the next, describes some of `rows`.
    fn tells_of(&self, role: Role, rows: MemberSpan) -> bool {
        let queue = &self.queues[role];
        let overlaps = |one: &MemberSpan| one.overlaps(rows);
        queue.told.borrow().iter().any(overlaps)
            || queue.waiting.borrow().iter().filter_map(|one| one.rows.as_ref()).any(overlaps)
    }

    /// Waits until `waiting` is written with a header of `role`.
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
            // The caller that finds the queue idle logs the next group, even if that has no room for its own
            // unit.
            queue.is_busy.set(true);
            self.log_group(core, role).await;
            queue.changed.notify();
        }
        if let Err(errno) = core.fence().await {
            // The array is stopped, and no group must wait for this unit.
            self.in_place(core, entry);
            return Err(errno);
        }
        Ok(Entered::Logged(entry))
    }

    /// Stores an empty log on members that have none: older data there may look newer than the next header.
    /// Logs that a crash left doubtful are emptied last, so that after another crash they are as doubtful as
    /// before.
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

    /// Writes a header for all waiting units, as far as it has room.
    async fn log_group(&self, core: &Rc<Core>, role: Role) {
        let queue = &self.queues[role];
        // The units of the previous header must be durable in place, on every member that superblocks count on.
        // A stopped array is detected below.
        if !self.units.is_durable(queue.last.get())
            && let Ok(durable) = core.settle().await
        {
            self.units.forget(&durable);
        }
        // Units waited for the header, so their plan may be of an earlier membership: superblocks must name the
        // members that are out since.
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
        // Otherwise the array is stopped, and all callers receive an error.
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
            // The waiting callers check whether the array has stopped.
            let _ = self.units.store(core, areas.collect(), &counted_on).await;
        }
        queue.told.replace(told);
        queue.active.set(units);
        queue.logged.set(queue.logged.get() + units as u64);
    }
}

/// Returns the place of the first byte of `band` in the array.
fn start_of(columns: &Columns, band: &Band) -> ArrayByte {
    let geometry = &columns.geometry;
    let in_chunk = band.rows.offset % geometry.chunk();
    let stripe = geometry.span_of_stripe(columns.stripe);
    stripe.offset + band.first as u64 * geometry.chunk() + in_chunk
}

fn entry_of(data: ArrayByte, len: u64, role: Role, parity: &[u8]) -> ppl::Entry {
    ppl::Entry {
        data_start: data.get(),
        data_len: len as u32,
        parity_len: parity.len() as u32,
        parity_role: role.get(),
        checksum: ppl::parity_checksum([parity]),
    }
}
