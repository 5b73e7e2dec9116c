//! What closes the write hole: a log that says what is coming, before any of it does.
//!
//! ```text
//!   a crash between the writes of a unit leaves its rows with parity that does not fit; if a
//!   member is lost then, what it had of these rows is lost, also where nobody wrote
//!
//!   Partial   md's partial parity log (raid5): the XOR of what the write leaves alone goes to the
//!             member that has the parity; parity is computed anew from it and what arrived
//!   Records   braid's stripe log: what each member is to hold goes to that member first; a write
//!             that is complete there is done again, another one never began
//! ```
//!
//! Invariants
//! * No unit is written in place before what the log says of it is durable: [`Log::enter`].
//! * What the log says is of the members that superblocks count on: it needs their [`CountedOn`].
//! * What the log says of a unit is not written over before the unit is durable in place on every
//!   member that superblocks count on: [`Units::forget`] needs that proof.
//!
//! Another log is another file here, and one line in [`new`].

mod partial;
mod records;

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use braid_array::geometry::Raid456;
use braid_array::{MemberSpan, Role};
use braid_block::{Errno, Flags, Io, Payload, Span};
use braid_md::Uuid;
use braid_mem::Buf;

use super::array_id::ArrayId;
use super::background::Later;
use super::core::{Core, Failures, Follower};
use super::flush::Durable;
use super::publish::CountedOn;
use super::roster::Member;
use super::stripe::columns::Columns;
use super::stripe::plan::Plan;
use super::stripe::units::Unit;
use crate::join_all;

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
        /// What headers are signed with ([`braid_md::ppl::signature`]).
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

/// Why what a crash left cannot be made good.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestartError {
    /// Members are missing, and what the log says of the others cannot be used.
    #[error(
        "the array was being written when it was left, members are missing, and the log that would \
         make it good cannot be used: {why}"
    )]
    Log {
        /// What is wrong with the log.
        why: String,
    },
    /// Making it good failed.
    #[error("what the log says could not be written: {why}")]
    Write {
        /// What failed.
        why: String,
    },
}

/// A unit that is about to be stored, its old data and parity read.
pub(super) struct Change<'a> {
    pub(super) unit: &'a mut Unit,
    pub(super) columns: &'a mut Columns,
    pub(super) plan: &'a Plan,
    /// Whether superblocks may say, of some of its rows, that parity fits their data.
    pub(super) is_counted_on: bool,
    /// When it began.
    pub(super) start: Duration,
}

/// A unit that the log knows of.
pub(super) struct Entry {
    /// Of the partial parity log, whose role's; of the stripe log, its sequence.
    place: u64,
    stored_bytes: u64,
    start: Duration,
}

/// What became of a unit that was shown to the log. Its parity is computed, but for `Replan`.
pub(super) enum Entered {
    /// It is in the log, durably.
    Logged(Entry),
    /// There is no hole to be closed.
    NotNeeded,
    /// The membership is not the one that it was planned for any more; the memory comes back.
    Replan(Buf),
}

/// What became of a log's content after a crash.
pub(super) enum Outcome {
    /// As many writes are to be made good, and the log is whole.
    Good(usize),
    /// It cannot be relied on.
    Doubtful(String),
}

/// A log of units.
pub(super) trait Log: Follower {
    fn consistency(&self) -> Consistency;

    /// What it has cost.
    fn cost(&self) -> LogCost;

    /// Memory that it needs for a unit of `rows`, in bytes.
    fn memory(&self, geometry: &Raid456, rows: u64, is_whole: bool) -> u64;

    /// How many rows a unit may have, in bytes: a power of two. `is_whole` if it is of whole
    /// stripes.
    fn most_rows(&self, core: &Core, is_whole: bool) -> u64;

    /// Computes the parity of a unit and has the log know of the unit, durably. `memory` is as
    /// much as [`Log::memory`] asks for.
    ///
    /// # Errors
    /// Nothing is written any more.
    fn enter<'a>(
        &'a self,
        core: &'a Rc<Core>,
        change: Change<'a>,
        memory: Buf,
    ) -> Later<'a, Result<Entered, Errno>>;

    /// The unit of `entry` is in its place.
    fn in_place(&self, core: &Core, entry: Entry);

    /// The unit of `entry` failed: its rows hold some of it, and parity that fits. What the log says
    /// of the unit must not be laid over what these rows hold next.
    fn failed(&self, core: &Core, entry: Entry);

    /// What the members' logs say after a crash, made good as far as the log itself can.
    /// `is_dirty` if superblocks say that the array was being written.
    fn restart<'a>(
        &'a self,
        core: &'a Rc<Core>,
        geometry: &'a Raid456,
        is_dirty: bool,
    ) -> Later<'a, Result<Restarted, RestartError>>;
}

/// What a log did after a crash.
pub(super) struct Restarted {
    pub(super) outcome: Outcome,
    /// How far the array is in sync, once `unfit` are.
    pub(super) resync: braid_md::Resync,
    /// Rows whose parity is to be made to fit their data.
    pub(super) unfit: Vec<MemberSpan>,
}

/// The log of `setup`, for the array `id` of `members`.
pub(super) fn new(id: ArrayId, setup: LogSetup, members: usize) -> Rc<dyn Log> {
    let units = Units::new(id);
    match setup {
        LogSetup::Partial { signature } => {
            Rc::new(partial::Partial::new(signature, members, units))
        }
        LogSetup::Records { array_uuid, area, nonce } => {
            Rc::new(records::Records::new(array_uuid, area, nonce, units))
        }
    }
}

/// How many units were written in place, how many of them are durable, and what that cost.
struct Units {
    id: ArrayId,
    written: Cell<u64>,
    durable: Cell<u64>,
    cost: Cell<LogCost>,
}

impl Units {
    fn new(id: ArrayId) -> Units {
        let (written, durable, cost) = (Cell::new(0), Cell::new(0), Cell::default());
        Units { id, written, durable, cost }
    }

    /// Another unit is in its place; answers its number.
    fn count(&self, core: &Core, entry: &Entry) -> u64 {
        let time = core.clock.now() - entry.start;
        self.add_cost(|cost| {
            cost.writes += 1;
            cost.stored_bytes += entry.stored_bytes;
            cost.time += time;
        });
        self.written.set(self.written.get() + 1);
        self.written.get()
    }

    fn written(&self) -> u64 {
        self.written.get()
    }

    fn forget(&self, durable: &Durable) {
        self.durable.set(self.durable.get().max(durable.units(self.id, self.written())));
    }

    /// Whether the first `written` units are durable on all members that superblocks count on.
    fn is_durable(&self, written: u64) -> bool {
        self.durable.get() >= written
    }

    fn add_cost(&self, add: impl FnOnce(&mut LogCost)) {
        let mut cost = self.cost.get();
        add(&mut cost);
        self.cost.set(cost);
    }

    /// Stores what the log has for each of these members, durably. Who fails is taken out, and
    /// superblocks say so when this returns.
    ///
    /// # Errors
    /// Nothing is written any more.
    async fn store(
        &self,
        core: &Rc<Core>,
        areas: Vec<(Rc<Member>, u64, Payload)>,
        counted_on: &CountedOn,
    ) -> Result<(), Errno> {
        counted_on.check(self.id, core.roster.generation());
        let mut members = Vec::with_capacity(areas.len());
        let mut started = Vec::with_capacity(areas.len());
        for (member, offset, payload) in areas {
            self.add_cost(|cost| cost.log_bytes += payload.len());
            started.push(member.dev.start(Io::write(offset, payload, Flags::FUA)));
            members.push(member);
        }
        let mut failed = Failures::new();
        for (member, done) in members.into_iter().zip(join_all(started).await) {
            if let Err(errno) = done.result {
                failed.push((member, format!("its log could not be written: {errno}")));
            }
        }
        core.fail_or_stop(failed);
        let _published = core.fence().await?;
        Ok(())
    }
}

impl Change<'_> {
    /// What is known of it afterwards.
    fn entry(&self, place: u64) -> Entry {
        let rows: u64 = self.unit.bands.iter().map(|band| band.rows.len).sum();
        let data: u64 = self.unit.pieces.iter().map(|piece| piece.rows.len).sum();
        let parities = self.columns.geometry.parities() as u64;
        Entry { place, stored_bytes: data + rows * parities, start: self.start }
    }
}

/// Reads `area` of the device of `member`, whole.
async fn read_area(core: &Core, member: &Member, area: Span) -> Result<Vec<u8>, String> {
    const PART: u64 = 1 << 20;
    let mut bytes = Vec::with_capacity(area.len as usize);
    while (bytes.len() as u64) < area.len {
        let done = bytes.len() as u64;
        let len = (area.len - done).min(PART);
        let memory = core.work.pool().get_wait(len as usize).await;
        let read = member.dev.start(Io::read(area.offset + done, memory)).await;
        read.result.map_err(|errno| format!("its log cannot be read: {errno}"))?;
        read.payload.bufs().iter().for_each(|buf| bytes.extend_from_slice(buf));
    }
    Ok(bytes)
}

/// Writes `rows` of `role` to all members that are to have them.
async fn write_role(
    core: &Core,
    role: Role,
    rows: MemberSpan,
    mut payload: Payload,
) -> Result<(), String> {
    let members: Vec<Rc<Member>> = core.roster.slots()[role].written().cloned().collect();
    for member in members {
        let io = Io::write(member.on_device(rows.offset), payload.share(), Flags::NONE);
        let written = member.dev.start(io).await.result;
        written.map_err(|errno| format!("{}: a write failed: {errno}", member.label))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redundant::misuse::{array, assert_refused, now};

    #[test]
    fn counted_on() {
        let (one, other) = (array(), array());
        let units = Units::new(one.id);
        let counted_on = |core: &Rc<Core>| now(core.counted_on_now()).expect("it runs");
        let store = |proof: &CountedOn| now(units.store(&one, Vec::new(), proof)).expect("it runs");
        let proof = counted_on(&one);
        store(&proof);
        assert_refused("a proof of another array", || store(&counted_on(&other)));
        let first = Rc::clone(&one.roster.members()[0]);
        assert!(one.fail(&first, "a test"), "two others have all of it");
        assert_refused("a proof of the membership 1, which is 2 now", || store(&proof));
        assert!(one.counted_on(one.roster.generation()).is_none(), "superblocks count on it");
    }
}
