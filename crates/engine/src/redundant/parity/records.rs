//! braid's stripe log, written: for raid4 and raid6.
//!
//! ```text
//!   unit ──▶ a record on each member that it changes ──▶ in place ──▶ durable ──▶ retired
//!            (of whole stripes without their data)                    by a flush; heads say so
//! ```
//!
//! Source: the format and what its writer owes, `braid_md::stripe_log`.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use braid_array::geometry::Column;
use braid_block::{Payload, Span};
use braid_md::Uuid;
use braid_md::stripe_log::{BLOCK, Head, Part, Record, Ring, padded};
use braid_mem::Buf;

use super::columns::Columns;
use super::log::{Kind, Logged};
use super::store::Plan;
use super::units::Unit;
use crate::redundant::Inner;
use crate::redundant::data::Data;
use crate::redundant::member::Member;
use crate::signal::Signal;

/// The logs of all members.
pub(in crate::redundant) struct Records {
    array_uuid: Uuid,
    area: u64,
    nonce: u64,
    /// The next sequence.
    next: Cell<u64>,
    /// Below it all are retired, by heads that are durable on all members.
    tail: Cell<u64>,
    /// By the member's number.
    rings: RefCell<BTreeMap<u32, Ring>>,
    /// Sequences from the tail on.
    live: RefCell<BTreeMap<u64, Live>>,
    changed: Signal,
}

struct Live {
    rows: Span,
    /// When it was in place, as the log counts units.
    written: Option<u64>,
}

/// A record to be written: to whom, of what.
struct Share {
    role: u16,
    parts: Vec<Part>,
    payload: Payload,
    len: u64,
}

impl Records {
    pub(super) fn new(array_uuid: Uuid, area: u64, nonce: u64) -> Records {
        Records {
            array_uuid,
            area,
            nonce,
            next: Cell::new(1),
            tail: Cell::new(1),
            rings: RefCell::default(),
            live: RefCell::default(),
            changed: Signal::default(),
        }
    }

    pub(super) fn area(&self) -> u64 {
        self.area
    }

    pub(super) fn array_uuid(&self) -> &Uuid {
        &self.array_uuid
    }

    fn ring_bytes(&self) -> u64 {
        self.area - BLOCK as u64
    }

    /// Of a unit, so that several have room.
    pub(super) fn most_rows(&self) -> u64 {
        let most = (self.ring_bytes() / 4).saturating_sub(BLOCK as u64).max(BLOCK as u64);
        1 << most.ilog2()
    }

    /// Of a unit of a whole stripe: so that it has room at all.
    pub(super) fn most_rows_of_whole(&self) -> u64 {
        let most = self.ring_bytes().saturating_sub(BLOCK as u64).max(BLOCK as u64);
        1 << most.ilog2()
    }

    /// All below `next` is over.
    pub(super) fn start_at(&self, next: u64) {
        self.next.set(next.max(1));
        self.tail.set(next.max(1));
    }

    /// A unit is in place.
    pub(super) fn stored(&self, sequence: u64, written: u64) {
        if let Some(live) = self.live.borrow_mut().get_mut(&sequence) {
            live.written = Some(written);
        }
        self.changed.notify();
    }

    /// The first sequence that may be needed, if what `is_durable` is.
    fn tail_if(&self, is_durable: impl Fn(u64) -> bool) -> u64 {
        let live = self.live.borrow();
        let needed = live.iter().find(|(_, live)| !live.written.is_some_and(&is_durable));
        needed.map_or(self.next.get(), |(sequence, _)| *sequence)
    }

    /// Heads with this tail are durable on all members.
    pub(in crate::redundant) fn retire_below(&self, tail: u64) {
        self.tail.set(tail);
        let mut live = self.live.borrow_mut();
        *live = live.split_off(&tail);
        self.rings.borrow_mut().values_mut().for_each(|ring| ring.retire_below(tail));
        self.changed.notify();
    }

    /// Whether a record of these rows might be replayed.
    fn is_live(&self, rows: Span) -> bool {
        let overlaps = |live: &Live| live.rows.offset < rows.end() && rows.offset < live.rows.end();
        self.live.borrow().values().any(overlaps)
    }

    /// Places for records on all these members, or on none.
    fn place(&self, rows: Span, records: &[(u32, u64)]) -> Option<(u64, Vec<u64>)> {
        let mut rings = self.rings.borrow_mut();
        for (number, len) in records {
            let ring = rings.entry(*number).or_insert_with(|| Ring::new(self.ring_bytes()));
            if !ring.has_room(*len) {
                return None;
            }
        }
        let sequence = self.next.get();
        self.next.set(sequence + 1);
        self.live.borrow_mut().insert(sequence, Live { rows, written: None });
        let places = records.iter().map(|(number, len)| {
            let ring = rings.get_mut(number).expect("looked at above");
            ring.place(sequence, *len).expect("there is room")
        });
        Some((sequence, places.collect()))
    }
}

impl Inner {
    /// Has every member that `unit` changes know what it is to hold.
    pub(super) async fn log_records(
        self: &Rc<Self>,
        records: &Records,
        unit: &mut Unit,
        columns: &mut Columns,
        plan: &Plan,
        memory: Buf,
    ) -> Option<Logged> {
        if !plan.parity.contains(&true) {
            // Without parity there is no hole, but an older record must not be laid over this.
            self.retire_rows(records, unit.rows).await;
            return None;
        }
        let mut shares = shares_of(unit, columns, plan);
        let is_complete = self.readable_roles(unit.rows).iter().all(|is_readable| *is_readable);
        let is_short = unit.is_whole(&columns.geometry) && is_complete;
        if is_short {
            // Of a whole stripe nothing is to be kept: it is enough to know which.
            for share in &mut shares {
                (share.payload, share.len) = (Payload::None, 0);
            }
            self.retire_rows(records, unit.rows).await;
        }
        let holders: Vec<(Rc<Member>, usize)> = {
            let slots = self.slots.borrow();
            let of_role = |(index, share): (usize, &Share)| {
                let written = slots[usize::from(share.role)].written();
                written.map(|member| (Rc::clone(member), index)).collect::<Vec<_>>()
            };
            shares.iter().enumerate().flat_map(of_role).collect()
        };
        let lens: Vec<(u32, u64)> =
            holders.iter().map(|(member, share)| (member.number, shares[*share].len)).collect();
        let (sequence, places) = loop {
            match records.place(unit.rows, &lens) {
                Some(placed) => break placed,
                None if self.broken.get() => return None,
                None => self.retire_records(records).await,
            }
        };
        let areas = self.encode(records, &mut shares, &holders, sequence, &places, memory);
        self.store_log(areas).await;
        Some(Logged::Records { sequence })
    }

    /// The records as they lie in the rings.
    fn encode(
        &self,
        records: &Records,
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
        let participants = shares.iter().map(|share| share.role).collect();
        // Members with the same role store the same payload.
        let mut padding = cut(BLOCK);
        padding.fill(0);
        let mut areas = Vec::with_capacity(holders.len());
        for ((member, index), place) in holders.iter().zip(places) {
            let share = &mut shares[*index];
            let mut header = cut(BLOCK);
            Record {
                array_uuid: records.array_uuid,
                device_number: member.number,
                role: share.role,
                nonce: records.nonce,
                sequence,
                tail: records.tail.get(),
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
            areas.push((Rc::clone(member), member.data_offset - records.area + place, payload));
        }
        areas
    }

    /// Returns when no record of `rows` can be replayed any more: what is written there next has
    /// no record that would come after it.
    async fn retire_rows(self: &Rc<Self>, records: &Records, rows: Span) {
        while records.is_live(rows) && !self.broken.get() {
            self.retire_records(records).await;
        }
    }

    /// Makes room: what is in place becomes durable, and the heads say so.
    async fn retire_records(self: &Rc<Self>, records: &Records) {
        let log = &self.parity().log;
        let before = records.tail.get();
        if records.tail_if(|_| true) == before {
            // All of them are under way.
            records.changed.until(|| records.tail_if(|_| true) > before).await;
        }
        let turn = self.publisher.turn().await;
        if records.tail.get() == before && !self.broken.get() {
            // If somebody is out that the superblocks do not know of, they come first, and the
            // heads with them.
            let flushed = self.flush_written(log.written()).await;
            if let Some(written) = flushed.filter(|_| self.publisher.is_settled()) {
                log.is_flushed(written);
                let failed =
                    self.store_heads(self.publisher.events(), self.written_members()).await;
                for (member, why) in failed {
                    if !self.fail(&member, &why) {
                        self.note(format!("{}: {why}: nothing is written any more", member.label));
                        self.broken.set(true);
                    }
                }
            }
        }
        drop(turn);
        self.fence().await;
    }

    /// Stores the log's heads on `members`, at least all that are written, with what of the log is needed no
    /// more; the turn to write metadata is the caller's. Answers those that failed.
    pub(in crate::redundant) async fn store_heads(
        self: &Rc<Self>,
        events: u64,
        members: Vec<Rc<Member>>,
    ) -> Vec<(Rc<Member>, String)> {
        let Data::Parity(parity) = &self.data else { return Vec::new() };
        let Kind::Records(records) = &parity.log.kind else { return Vec::new() };
        let tail = records.tail_if(|written| parity.log.is_durable(written));
        let synced = self.publisher.synced(self.resync.get());
        let (updated, before) = self.publisher.times();
        let head = |member: Rc<Member>| {
            let head = Head {
                array_uuid: records.array_uuid,
                device_number: member.number,
                area: records.area,
                events,
                tail,
                nonce: records.nonce,
                synced,
                updated,
                before,
            };
            let place = member.data_offset - BLOCK as u64;
            (member, place, head.encode())
        };
        let areas = members.into_iter().map(head).collect();
        let failed = self.store_metadata("log", areas).await;
        if failed.is_empty() {
            records.retire_below(tail);
        }
        failed
    }
}

/// What each role is to store of `unit`.
fn shares_of(unit: &mut Unit, columns: &mut Columns, plan: &Plan) -> Vec<Share> {
    let mut shares = Vec::with_capacity(unit.pieces.len() + 2);
    for piece in &mut unit.pieces {
        let part = Part { offset: piece.rows.offset, len: piece.rows.len as u32 };
        shares.push(Share {
            role: columns.role_of(Column::Data(piece.column)) as u16,
            parts: vec![part],
            payload: piece.payload.share(),
            len: piece.rows.len,
        });
    }
    for role in (0..plan.parity.len()).filter(|role| plan.parity[*role]) {
        let (mut parts, mut payload) = (Vec::new(), Payload::None);
        let mut whole = columns.share(role);
        let mut at = unit.rows.offset;
        for rows in unit.bands.merged() {
            whole.take_front(rows.offset - at);
            payload.append(whole.take_front(rows.len));
            parts.push(Part { offset: rows.offset, len: rows.len as u32 });
            at = rows.end();
        }
        let len = payload.len();
        shares.push(Share { role: role as u16, parts, payload, len });
    }
    shares
}
