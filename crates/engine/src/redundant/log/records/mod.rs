//! Writing braid's stripe log, for raid4 and raid6.
//!
//! ```text
//!   units ──▶ a record on each member that they change ──▶ in place ──▶ durable ──▶ retired
//!             (of whole stripes without their data)                     by a flush; heads say so
//! ```
//!
//! Source: the format, and the duties of its writer, in `braid_md::stripe_log`.

mod group;
mod places;
mod restart;
mod share;

use std::rc::Rc;

use braid_array::geometry::Raid456;
use braid_array::{Geometry, MemberSpan, Role};
use braid_block::{Errno, Payload};
use braid_md::Uuid;
use braid_md::stripe_log::{BLOCK, Head, Record, padded};
use braid_mem::Buf;

use super::{
    Change, Consistency, Entered, Entry, Log, LogCost, RestartError, Restarted, Units, micros,
};
use crate::background::Later;
use crate::canary::Canary;
use crate::redundant::core::{Before, Core, Failures, Follower};
use crate::redundant::flush::Durable;
use crate::redundant::roster::Member;
use crate::redundant::stripe::plan::compute;
use crate::signal::Signal;
use group::{Answer, MOST_UNDER_WAY, Queue, Told, Waiting, add_sizes, join_shares};
use places::{Live, Places};
use share::{Share, holders_of, shares_of};

/// The logs of all members.
pub(super) struct Records {
    array_uuid: Uuid,
    area: u64,
    nonce: u64,
    places: Places,
    /// Something is in place, or was retired.
    changed: Signal,
    queue: Queue,
    units: Units,
}

impl Records {
    pub(super) fn new(array_uuid: Uuid, area: u64, nonce: u64, units: Units) -> Records {
        Records {
            array_uuid,
            area,
            nonce,
            places: Places::new(area - BLOCK as u64),
            changed: Signal::default(),
            queue: Queue::default(),
            units,
        }
    }

    /// Returns the largest number of rows of a unit of which the ring has room for several.
    fn most_rows_of_part(&self) -> u64 {
        let most = (self.places.ring_bytes() / 4).saturating_sub(BLOCK as u64).max(BLOCK as u64);
        1 << most.ilog2()
    }

    /// Returns the largest number of rows of a unit of a whole stripe for which the ring has room.
    fn most_rows_of_whole(&self) -> u64 {
        let most = self.places.ring_bytes().saturating_sub(BLOCK as u64).max(BLOCK as u64);
        1 << most.ilog2()
    }
}

impl Follower for Records {
    fn units_in_place(&self) -> u64 {
        self.units.written()
    }

    fn forget(&self, durable: Durable) {
        self.units.forget(&durable);
    }

    fn before_superblocks<'a>(&'a self, core: &'a Rc<Core>, before: Before) -> Later<'a, Failures> {
        before.durable.iter().for_each(|durable| self.units.forget(durable));
        Box::pin(self.store_heads(core, before.events))
    }
}

impl Log for Records {
    fn consistency(&self) -> Consistency {
        Consistency::Log
    }

    fn cost(&self) -> LogCost {
        self.units.cost.get()
    }

    fn memory(&self, geometry: &Raid456, _: u64, _: bool) -> u64 {
        // Padding of payloads to whole blocks; a header for each member, and for each replacement.
        BLOCK as u64 * (1 + 2 * geometry.members() as u64)
    }

    fn most_rows(&self, _: &Core, is_whole: bool) -> u64 {
        // Whole stripes are logged with their data only if a member is missing.
        if is_whole { self.most_rows_of_whole() } else { self.most_rows_of_part() }
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
        self.places.stored(entry.place, written);
        self.changed.notify();
    }

    fn failed(&self, core: &Core, entry: Entry) {
        self.places.must_be_alone(entry.place);
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

impl Records {
    /// Logs the new contents of every member that the unit changes.
    async fn enter_unit(
        &self,
        core: &Rc<Core>,
        change: Change<'_>,
        memory: Buf,
    ) -> Result<Entered, Errno> {
        let began = core.clock.now();
        compute(change.unit, change.columns, change.plan);
        let rows = change.unit.rows;
        if !change.plan.parity.values().any(|is_written| *is_written) && !has_twins(core) {
            // Without parity, and without a replacement that must get the same contents, there is no write
            // hole; but an older record must not be replayed over this unit.
            self.retire_rows(core, rows, false).await?;
            return if core.counted_on(change.plan.generation).is_some() {
                Ok(Entered::NotNeeded)
            } else {
                self.replan(core, memory).await
            };
        }
        let geometry = &change.columns.geometry;
        let is_complete = Role::all(geometry.members()).all(|role| core.is_readable(role, rows));
        let is_short = change.unit.is_whole(geometry) && is_complete;
        let entry = change.entry(0);
        let mut shares = shares_of(change.unit, change.columns, change.plan);
        if is_short {
            // A record of a whole stripe keeps no data: it only names the rows.
            for share in &mut shares {
                (share.payload, share.len) = (Payload::None, 0);
            }
        }
        if Canary::PartialWriteNotLogged.is_planted() && !is_short {
            return Ok(Entered::NotNeeded);
        }
        // A whole stripe supersedes older records, and has no newer record to replay after them. A part of a
        // stripe depends on the contents of the other columns, which a whole stripe has changed, or a failed
        // unit has not.
        if !(is_short && Canary::OldRecordsOfStripeKept.is_planted()) {
            self.retire_rows(core, rows, !is_short).await?;
        }
        let unit = Waiting::new(rows, is_short, shares, change.plan.generation, memory);
        let entered = self.log_unit(core, unit, entry).await;
        let log_time = core.clock.now() - began;
        self.units.add_cost(|cost| cost.log_time_us += micros(log_time));
        entered
    }

    /// Waits until the records of `unit` are durable. `entry` gets their sequence.
    ///
    /// # Errors
    /// The array is stopped.
    async fn log_unit(
        &self,
        core: &Rc<Core>,
        unit: Waiting,
        entry: Entry,
    ) -> Result<Entered, Errno> {
        let queue = &self.queue;
        let told = queue.add(unit);
        let mut answer = None;
        let may_write = || queue.under_way.get() < MOST_UNDER_WAY && queue.begins_with(&told);
        queue
            .changed
            .until(|| {
                answer = told.take();
                answer.is_some() || may_write()
            })
            .await;
        if answer.is_none() {
            queue.under_way.set(queue.under_way.get() + 1);
            self.write_group(core).await;
            queue.under_way.set(queue.under_way.get() - 1);
            queue.changed.notify();
            answer = told.take();
        }
        match answer.expect("a group tells all of its units") {
            Told::Logged(sequence) => {
                let entry = Entry { place: sequence, ..entry };
                if let Err(errno) = core.fence().await {
                    // The array is stopped, and nothing must wait for this unit.
                    self.in_place(core, entry);
                    return Err(errno);
                }
                Ok(Entered::Logged(entry))
            }
            Told::Replan(memory) => self.replan(core, memory).await,
            Told::Failed(errno) => Err(errno),
        }
    }

    /// Writes the records of the next group, and tells its units.
    async fn write_group(&self, core: &Rc<Core>) {
        let mut group = self.queue.take_group(self.most_rows_of_part());
        let (holders, sizes, (sequence, places), counted_on) = loop {
            // The members that superblocks count on are those that get a record: a member without a record
            // would make the write look as if it never began, or lack it after a replay.
            let generation = core.roster.generation();
            let counted_on = core.counted_on(generation);
            let is_planned = |unit: &Waiting| counted_on.is_some() && unit.generation == generation;
            let (planned, others): (Vec<_>, Vec<_>) = group.into_iter().partition(is_planned);
            for Waiting { memory, told, .. } in others {
                told.set(Some(Told::Replan(memory)));
            }
            group = planned;
            let Some(counted_on) = counted_on.filter(|_| !group.is_empty()) else { return };
            let mut sizes = Vec::new();
            group.iter().for_each(|unit| add_sizes(&mut sizes, &unit.shares));
            let holders = holders_of(core, sizes.iter().map(|size| size.role));
            let records = holders.iter().map(|(member, index)| (member.number, sizes[*index].len));
            let live = Live::of(group.iter().map(|unit| unit.rows).collect(), group[0].is_short);
            match self.places.place(live, &records.collect::<Vec<_>>()) {
                Some(placed) => break (holders, sizes, placed, counted_on),
                None => {
                    if let Err(errno) = self.retire(core).await {
                        group.iter().for_each(|unit| unit.told.set(Some(Told::Failed(errno))));
                        return;
                    }
                }
            }
        };
        let mut shares = join_shares(&mut group, &sizes);
        let parts = group.into_iter().map(|unit| (unit.memory, unit.told));
        let (memories, answers): (Vec<Buf>, Vec<Answer>) = parts.unzip();
        let memory = memories.into_iter().next().expect("a group has a unit");
        let areas = self.encode(&mut shares, &holders, sequence, &places, memory);
        // The units find out themselves whether the array has stopped.
        let _ = self.units.store(core, areas, &counted_on).await;
        answers.into_iter().for_each(|told| told.set(Some(Told::Logged(sequence))));
    }

    async fn replan(&self, core: &Rc<Core>, memory: Buf) -> Result<Entered, Errno> {
        let _published = core.publish().await?;
        Ok(Entered::Replan(memory))
    }

    /// Encodes the records as they lie in the rings.
    fn encode(
        &self,
        shares: &mut [Share],
        holders: &[(Rc<Member>, usize)],
        sequence: u64,
        places: &[u64],
        mut memory: Buf,
    ) -> Vec<(Rc<Member>, u64, Payload)> {
        let mut cut = |len: usize| {
            let rest = memory.split_off(len);
            std::mem::replace(&mut memory, rest)
        };
        let participants = shares.iter().map(|share| share.role.get()).collect();
        // Members with the same role store the same payload.
        let mut padding = cut(BLOCK);
        padding.fill(0);
        let mut areas = Vec::with_capacity(holders.len());
        for ((member, index), place) in holders.iter().zip(places) {
            let share = &mut shares[*index];
            let mut header = cut(BLOCK);
            Record {
                array_uuid: self.array_uuid,
                device_number: member.number,
                role: share.role.get(),
                nonce: self.nonce,
                sequence,
                tail: self.places.tail(),
                participants,
                parts: share.parts.clone(),
                payload_len: share.len as u32,
                payload_checksum: Record::checksum_of(
                    share.payload.bufs().iter().map(|buf| &buf[..]),
                ),
            }
            .encode_into(&mut header);
            let mut payload = Payload::One(header);
            payload.append(share.payload.share());
            let fill = padded(share.len) - share.len;
            if fill > 0 {
                let mut padding = padding.share();
                padding.truncate(fill as usize);
                payload.append(Payload::One(padding));
            }
            areas.push((Rc::clone(member), member.data_offset - self.area + place, payload));
        }
        areas
    }

    /// Returns when no record of `rows` can be replayed any more (with `only_alone`, none that must be alone):
    /// the next write there may have no record that would supersede an older one.
    async fn retire_rows(
        &self,
        core: &Rc<Core>,
        rows: MemberSpan,
        only_alone: bool,
    ) -> Result<(), Errno> {
        while self.places.is_live(rows, only_alone) {
            self.retire(core).await?;
        }
        Ok(())
    }

    /// Makes room: units in place become durable, and the heads say so.
    async fn retire(&self, core: &Rc<Core>) -> Result<(), Errno> {
        let before = self.places.tail();
        if self.places.tail_if(|_| true) == before {
            // All of them are under way.
            self.changed.until(|| self.places.tail_if(|_| true) > before).await;
        }
        let durable = core.settle().await?;
        self.units.forget(&durable);
        {
            let _turn = core.publisher.turn().await;
            core.check_running()?;
            if self.places.tail() == before {
                let failed = self.store_heads(core, core.publisher.events()).await;
                core.fail_or_stop(failed);
            }
        }
        let _published = core.fence().await?;
        Ok(())
    }

    /// Stores the log's heads, with the tail of the log, on all written members. The caller holds the turn to
    /// write metadata. Returns the members that failed.
    async fn store_heads(&self, core: &Rc<Core>, events: u64) -> Failures {
        let tail = self.places.tail_if(|written| self.units.is_durable(written));
        let synced = core.publisher.synced(core.agreement.resync());
        let (updated, before) = core.publisher.times();
        let head = |member: Rc<Member>| {
            let head = Head {
                array_uuid: self.array_uuid,
                device_number: member.number,
                area: self.area,
                events,
                tail,
                nonce: self.nonce,
                synced,
                updated,
                before,
            };
            let place = member.data_offset - BLOCK as u64;
            (member, place, head.encode())
        };
        let areas = core.roster.written().into_iter().map(head).collect();
        let failed = core.store_metadata("log", areas).await;
        if failed.is_empty() {
            self.places.retire_below(tail);
            self.changed.notify();
        }
        failed
    }
}

/// Returns true if some role has two members, one of which is to replace the other.
fn has_twins(core: &Core) -> bool {
    core.roster.slots().values().any(|slot| slot.written().count() > 1)
}
