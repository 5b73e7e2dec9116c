//! Writing braid's stripe log, for raid4 and raid6.
//!
//! ```text
//!   unit ──▶ a record on each member that it changes ──▶ in place ──▶ durable ──▶ retired
//!            (of whole stripes without their data)                    by a flush; heads say so
//! ```
//!
//! Source: the format, and the duties of its writer, in `braid_md::stripe_log`.

mod restart;
mod share;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use braid_array::geometry::Raid456;
use braid_array::{Geometry, MemberSpan, Role};
use braid_block::{Errno, Payload};
use braid_md::Uuid;
use braid_md::stripe_log::{BLOCK, Head, Record, Ring, padded};
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
use share::{Share, holders_of, shares_of};

/// The logs of all members.
pub(super) struct Records {
    array_uuid: Uuid,
    area: u64,
    nonce: u64,
    /// The next sequence.
    next: Cell<u64>,
    /// All sequences below are retired, by heads that are durable on all members.
    tail: Cell<u64>,
    /// Rings by the member's number.
    rings: RefCell<BTreeMap<u32, Ring>>,
    /// Units by sequence, from the tail on.
    live: RefCell<BTreeMap<u64, Live>>,
    changed: Signal,
    units: Units,
}

struct Live {
    rows: MemberSpan,
    /// True if no newer record of the rows may exist: a replay would write the newer record over the result of
    /// this one, from which it was not computed. A record of a whole stripe has no data to replay, and a failed
    /// unit arrived only in part.
    is_alone: bool,
    /// Number of the unit when it was in place.
    written: Option<u64>,
}

impl Records {
    pub(super) fn new(array_uuid: Uuid, area: u64, nonce: u64, units: Units) -> Records {
        Records {
            array_uuid,
            area,
            nonce,
            next: Cell::new(1),
            tail: Cell::new(1),
            rings: RefCell::default(),
            live: RefCell::default(),
            changed: Signal::default(),
            units,
        }
    }

    fn ring_bytes(&self) -> u64 {
        self.area - BLOCK as u64
    }

    /// Returns the largest number of rows of a unit of which the ring has room for several.
    fn most_rows_of_part(&self) -> u64 {
        let most = (self.ring_bytes() / 4).saturating_sub(BLOCK as u64).max(BLOCK as u64);
        1 << most.ilog2()
    }

    /// Returns the largest number of rows of a unit of a whole stripe for which the ring has room.
    fn most_rows_of_whole(&self) -> u64 {
        let most = self.ring_bytes().saturating_sub(BLOCK as u64).max(BLOCK as u64);
        1 << most.ilog2()
    }

    /// Starts the log anew: all sequences below `next` are retired.
    fn start_at(&self, next: u64) {
        self.next.set(next.max(1));
        self.tail.set(next.max(1));
    }

    /// Notes that a unit is in place.
    fn stored(&self, sequence: u64, written: u64) {
        if let Some(live) = self.live.borrow_mut().get_mut(&sequence) {
            live.written = Some(written);
        }
        self.changed.notify();
    }

    /// Returns the first sequence that may be needed, if the units for which `is_durable` holds are durable.
    fn tail_if(&self, is_durable: impl Fn(u64) -> bool) -> u64 {
        let live = self.live.borrow();
        let needed = live.iter().find(|(_, live)| !live.written.is_some_and(&is_durable));
        needed.map_or(self.next.get(), |(sequence, _)| *sequence)
    }

    /// Notes that heads with this tail are durable on all members.
    fn retire_below(&self, tail: u64) {
        self.tail.set(tail);
        let mut live = self.live.borrow_mut();
        *live = live.split_off(&tail);
        self.rings.borrow_mut().values_mut().for_each(|ring| ring.retire_below(tail));
        self.changed.notify();
    }

    /// Returns true if a record of these rows might be replayed. With `only_alone`, only records that must be
    /// alone count.
    fn is_live(&self, rows: MemberSpan, only_alone: bool) -> bool {
        let overlaps = |live: &Live| live.rows.overlaps(rows) && (live.is_alone || !only_alone);
        self.live.borrow().values().any(overlaps)
    }

    /// Reserves places for records on all these members, or on none.
    fn place(
        &self,
        rows: MemberSpan,
        is_alone: bool,
        records: &[(u32, u64)],
    ) -> Option<(u64, Vec<u64>)> {
        let mut rings = self.rings.borrow_mut();
        for (number, len) in records {
            let ring = rings.entry(*number).or_insert_with(|| Ring::new(self.ring_bytes()));
            if !ring.has_room(*len) {
                return None;
            }
        }
        let sequence = self.next.get();
        self.next.set(sequence + 1);
        self.live.borrow_mut().insert(sequence, Live { rows, is_alone, written: None });
        let places = records.iter().map(|(number, len)| {
            let ring = rings.get_mut(number).expect("looked at above");
            ring.place(sequence, *len).expect("there is room")
        });
        Some((sequence, places.collect()))
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
        self.stored(entry.place, written);
    }

    fn failed(&self, core: &Core, entry: Entry) {
        if let Some(live) = self.live.borrow_mut().get_mut(&entry.place) {
            live.is_alone = true;
        }
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
        let (holders, sequence, places, counted_on) = loop {
            // The members that superblocks count on are those that get a record: a member without a record
            // would make the write look as if it never began, or lack it after a replay.
            let Some(counted_on) = core.counted_on(change.plan.generation) else {
                return self.replan(core, memory).await;
            };
            let holders = holders_of(core, &shares);
            let lens: Vec<(u32, u64)> =
                holders.iter().map(|(member, share)| (member.number, shares[*share].len)).collect();
            match self.place(rows, is_short, &lens) {
                Some((sequence, places)) => break (holders, sequence, places, counted_on),
                None => self.retire(core).await?,
            }
        };
        let areas = self.encode(&mut shares, &holders, sequence, &places, memory);
        let entry = Entry { place: sequence, ..entry };
        let stored = self.units.store(core, areas, &counted_on).await;
        let log_time = core.clock.now() - began;
        self.units.add_cost(|cost| cost.log_time_us += micros(log_time));
        if let Err(errno) = stored {
            // The array is stopped, and no group must wait for this unit.
            self.in_place(core, entry);
            return Err(errno);
        }
        Ok(Entered::Logged(entry))
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
                tail: self.tail.get(),
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
        while self.is_live(rows, only_alone) {
            self.retire(core).await?;
        }
        Ok(())
    }

    /// Makes room: units in place become durable, and the heads say so.
    async fn retire(&self, core: &Rc<Core>) -> Result<(), Errno> {
        let before = self.tail.get();
        if self.tail_if(|_| true) == before {
            // All of them are under way.
            self.changed.until(|| self.tail_if(|_| true) > before).await;
        }
        let durable = core.settle().await?;
        self.units.forget(&durable);
        {
            let _turn = core.publisher.turn().await;
            core.check_running()?;
            if self.tail.get() == before {
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
        let tail = self.tail_if(|written| self.units.is_durable(written));
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
            self.retire_below(tail);
        }
        failed
    }
}

/// Returns true if some role has two members, one of which is to replace the other.
fn has_twins(core: &Core) -> bool {
    core.roster.slots().values().any(|slot| slot.written().count() > 1)
}
