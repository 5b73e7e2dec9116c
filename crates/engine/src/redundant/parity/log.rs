//! What closes the write hole: a log that says what is coming, before any of it does.
//!
//! ```text
//!   a crash between the writes of a unit leaves its rows with parity that does not fit; if a
//!   member is lost then, what it had of these rows is lost, also where nobody wrote
//!
//!   Partial   md's partial parity log (raid5): the XOR of what the write leaves alone goes to the
//!             member that has the parity; parity is worked out anew from it and what arrived
//!   Records   braid's stripe log: what each member is to hold goes to that member first; a write
//!             that is complete there is done again, another one never began
//! ```
//!
//! Partial parity is not logged where parity is not known to fit: nothing could be made good there.
//!
//! Invariants
//! * No unit is written in place before what the log says of it is durable.
//! * What the log says of a unit is not written over before the unit is durable in place
//!   ([`Log::is_durable`]).

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use braid_array::Geometry;
use braid_array::geometry::Raid456;
use braid_block::{Errno, Flags, Io, Payload};
use braid_md::{Resync, Uuid, ppl};
use braid_mem::Buf;

use super::columns::Columns;
use super::partial::{Partial, room_for_parity};
use super::records::Records;
use super::store::{Plan, compute};
use super::units::Unit;
use crate::join_all;
use crate::redundant::Inner;
use crate::redundant::member::Member;

/// What protects the stripes of an array that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consistency {
    /// Nothing: after a crash all of it is resynchronised.
    Resync,
    /// The bitmap says what is to be resynchronised.
    Bitmap,
    /// md's partial parity log.
    Ppl,
    /// braid's stripe log.
    Log,
}

/// The log that an array's members have room for.
#[derive(Clone, Debug)]
pub enum LogSetup {
    /// Where each member's superblock says, of raid5.
    Partial {
        /// What headers are signed with ([`ppl::signature`]).
        signature: u32,
    },
    /// In front of each member's data.
    Records {
        /// The array's identifier.
        array_uuid: Uuid,
        /// Bytes of each member's log, its head included.
        area: u64,
        /// A number that users of the array do not know.
        nonce: u64,
    },
}

pub(in crate::redundant) enum Kind {
    None,
    Partial(Partial),
    Records(Records),
}

/// What a log has cost since the array was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogCost {
    /// Writes that were logged: units, of a stripe's rows each.
    pub writes: u64,
    /// Bytes of data and parity that they stored in place.
    pub stored_bytes: u64,
    /// Bytes that the log stored for them.
    pub log_bytes: u64,
    /// How long they took, all added up.
    pub time: Duration,
    /// How long of that they waited for the log.
    pub log_time: Duration,
}

/// The log of an array.
pub(in crate::redundant) struct Log {
    pub(in crate::redundant) kind: Kind,
    /// How many units were written in place, and how many of them are durable.
    written: Cell<u64>,
    durable: Cell<u64>,
    cost: Cell<LogCost>,
}

/// A unit that the log knows of.
pub(super) enum Logged {
    Partial { role: usize },
    Records { sequence: u64 },
}

impl Log {
    pub(super) fn new(setup: Option<LogSetup>, members: usize) -> Log {
        let kind = match setup {
            None => Kind::None,
            Some(LogSetup::Partial { signature }) => {
                Kind::Partial(Partial::new(signature, members))
            }
            Some(LogSetup::Records { array_uuid, area, nonce }) => {
                Kind::Records(Records::new(array_uuid, area, nonce))
            }
        };
        Log { kind, written: Cell::new(0), durable: Cell::new(0), cost: Cell::default() }
    }

    pub(super) fn is_none(&self) -> bool {
        matches!(self.kind, Kind::None)
    }

    /// Memory that the log needs for a unit of `rows`, in bytes.
    pub(super) fn memory(&self, geometry: &Raid456, rows: u64, is_whole: bool) -> u64 {
        match &self.kind {
            Kind::None => 0,
            Kind::Partial(_) => ppl::HEADER_BYTES as u64 + if is_whole { 0 } else { rows },
            // What fills payloads up to whole blocks; a header for each member, and for who is to
            // replace it.
            Kind::Records(_) => 4096 * (1 + 2 * geometry.members() as u64),
        }
    }

    /// How many units were written in place so far. If a flush of all members that begins now
    /// succeeds, these are durable: [`Log::is_flushed`] is to be told.
    pub(in crate::redundant) fn written(&self) -> u64 {
        self.written.get()
    }

    pub(in crate::redundant) fn is_flushed(&self, written: u64) {
        self.durable.set(self.durable.get().max(written));
    }

    /// Whether the first `written` units are durable.
    pub(super) fn is_durable(&self, written: u64) -> bool {
        self.durable.get() >= written
    }

    /// What it has cost, if there is one.
    pub(in crate::redundant) fn cost(&self) -> Option<LogCost> {
        (!self.is_none()).then(|| self.cost.get())
    }

    /// Adds to what the log has cost.
    pub(super) fn add_cost(&self, add: impl FnOnce(&mut LogCost)) {
        let mut cost = self.cost.get();
        add(&mut cost);
        self.cost.set(cost);
    }

    fn count_unit(&self) -> u64 {
        self.written.set(self.written.get() + 1);
        self.written.get()
    }
}

impl Inner {
    /// How many rows a unit may have for the log, in bytes: a power of two. `is_whole` if it is of
    /// whole stripes, which the stripe log has with their data only if a member is missing.
    pub(super) fn most_logged_rows(&self, is_whole: bool) -> u64 {
        match &self.parity().log.kind {
            Kind::None => 1 << 63,
            Kind::Partial(_) if is_whole => 1 << 63,
            Kind::Partial(_) => 1 << room_for_parity(&self.written_members()).max(1).ilog2(),
            Kind::Records(records) if is_whole => records.most_rows_of_whole(),
            Kind::Records(records) => records.most_rows(),
        }
    }

    /// Computes a unit's parity and has the log know of the unit.
    pub(super) async fn log_unit(
        self: &Rc<Self>,
        unit: &mut Unit,
        columns: &mut Columns,
        plan: &Plan,
        memory: Buf,
    ) -> Result<Option<Logged>, Errno> {
        let log = &self.parity().log;
        let start = self.clock.now();
        // Superblocks of an array that nobody ever brought in sync look like those of one that is
        // being written: entries in a log would make a crash call it clean.
        if matches!(log.kind, Kind::Partial(_))
            && self.is_parity_trusted(unit.rows)
            && self.publisher.recorded() == Resync::From(0)
        {
            self.publish().await;
        }
        let logged = match &log.kind {
            Kind::None => {
                compute(unit, columns, plan);
                None
            }
            Kind::Partial(_) if !self.is_parity_trusted(unit.rows) => {
                compute(unit, columns, plan);
                None
            }
            Kind::Partial(partial) => {
                self.log_partial_parity(partial, unit, columns, plan, memory).await
            }
            Kind::Records(records) => {
                compute(unit, columns, plan);
                self.log_records(records, unit, columns, plan, memory).await
            }
        };
        // Who could not be written is out before anybody relies on the log.
        self.fence().await;
        let log_time = self.clock.now() - start;
        log.add_cost(|cost| cost.log_time += log_time);
        if !self.broken.get() {
            return Ok(logged);
        }
        // Nothing is written any more, and nobody is to wait for this unit.
        logged.into_iter().for_each(|logged| self.unit_is_stored(logged, unit, start));
        Err(Errno::IO)
    }

    /// A unit that was logged is in its place, or its write failed, or nothing is written any more;
    /// it began at `start`.
    pub(super) fn unit_is_stored(&self, logged: Logged, unit: &Unit, start: Duration) {
        let log = &self.parity().log;
        let written = log.count_unit();
        let time = self.clock.now() - start;
        let parity = &self.parity().geometry;
        let rows: u64 = unit.bands.iter().map(|band| band.rows.len).sum();
        let data: u64 = unit.pieces.iter().map(|piece| piece.rows.len).sum();
        log.add_cost(|cost| {
            cost.writes += 1;
            cost.stored_bytes += data + rows * parity.parities() as u64;
            cost.time += time;
        });
        match (&log.kind, logged) {
            (Kind::Partial(partial), Logged::Partial { role }) => partial.leave(role, written),
            (Kind::Records(records), Logged::Records { sequence }) => {
                records.stored(sequence, written);
            }
            _ => unreachable!("an array has one log"),
        }
    }

    /// Has the first `written` units durable in place, and the superblocks say who does not have
    /// them; answers whether that is so.
    pub(super) async fn make_durable(self: &Rc<Self>, written: u64) -> bool {
        let flushed = self.flush_written(written).await;
        self.fence().await;
        if let Some(flushed) = flushed.filter(|_| !self.broken.get()) {
            self.parity().log.is_flushed(flushed);
        }
        flushed.is_some() && !self.broken.get()
    }

    /// Flushes the members unless the first `written` units are durable. Answers how many are now
    /// on all members that are not taken out; the log may rely on it when the superblocks say who
    /// is. `None` if nothing is written any more.
    pub(super) async fn flush_written(self: &Rc<Self>, written: u64) -> Option<u64> {
        let log = &self.parity().log;
        if log.is_durable(written) {
            return Some(written);
        }
        let members = self.written_members();
        let now = log.written();
        // What keeps nothing has nothing to be flushed.
        if members.iter().all(|member| member.dev.limits().volatile) {
            return Some(now);
        }
        let flushes = members.iter().map(|member| member.dev.start(Io::flush())).collect();
        let flushed = join_all(flushes).await;
        let mut all = true;
        for (member, flushed) in members.iter().zip(flushed) {
            if let Err(errno) = flushed.result {
                all &= self.fail(member, &format!("a flush failed: {errno}"));
            }
        }
        if !all {
            self.note("a flush of the last members failed: nothing is written any more".to_owned());
            self.broken.set(true);
        }
        all.then_some(now)
    }

    /// Stores what the log has for each of these members, durably. Who fails is taken out; answers
    /// whether that could be done.
    pub(super) async fn store_log(self: &Rc<Self>, areas: Vec<(Rc<Member>, u64, Payload)>) -> bool {
        let mut members = Vec::with_capacity(areas.len());
        let mut started = Vec::with_capacity(areas.len());
        for (member, offset, payload) in areas {
            self.parity().log.add_cost(|cost| cost.log_bytes += payload.len());
            started.push(member.dev.start(Io::write(offset, payload, Flags::FUA)));
            members.push(member);
        }
        let mut all = true;
        for (member, done) in members.into_iter().zip(join_all(started).await) {
            if let Err(errno) = done.result {
                all &= self.fail(&member, &format!("its log could not be written: {errno}"));
            }
        }
        if !all {
            self.note("the log of the last members failed: nothing is written any more".to_owned());
            self.broken.set(true);
        }
        all
    }
}
