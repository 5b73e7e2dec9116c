//! Logs that close the write hole: an entry describes each write before the write begins.
//!
//! ```text
//!   a crash between the writes of a unit leaves stale parity in its rows; if a member
//!   is lost then, its data of these rows is lost, also data that was not written
//!
//!   Partial   md's partial parity log (raid5): the XOR of the unwritten data goes to the
//!             member that has the parity; parity is recomputed from it and the new data
//!   Records   braid's stripe log: the new contents of each member go to its log first; a write
//!             that is complete in the logs is replayed, an incomplete one never began
//! ```
//!
//! Invariants
//! * A unit is written in place only after its log entry is durable: [`Log::enter`].
//! * Log entries describe the members that superblocks count on: an entry needs their [`CountedOn`].
//! * The log entry of a unit is overwritten only after the unit is durable in place on every member that
//!   superblocks count on: [`Units::forget`] needs that proof.
//!
//! Another log is another file here, and one line in [`new`].

mod partial;
mod records;

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use braid_array::geometry::Raid456;
use braid_array::{ArrayByte, MemberSpan, Role};
use braid_block::{Errno, Flags, Io, Payload, Span};
use braid_md::Uuid;
use braid_mem::Buf;

pub use braid_status::LogCost;

use super::array_id::ArrayId;
use super::core::{Core, Failures, Follower};
use super::flush::Durable;
use super::publish::CountedOn;
use super::roster::Member;
use super::stripe::columns::Columns;
use super::stripe::plan::Plan;
use super::stripe::units::Unit;
use crate::background::Later;
use crate::join_all;

/// The protection of an array's stripes against a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consistency {
    /// None: after a crash the whole array is resynchronised.
    Resync,
    /// The bitmap names the chunks to be resynchronised.
    Bitmap,
    /// md's partial parity log.
    Ppl,
    /// braid's stripe log.
    Log,
}

/// The log for which an array's members have room.
#[derive(Clone, Debug)]
pub enum LogSetup {
    /// The partial parity log of raid5, at the place in each member's superblock.
    Partial {
        /// The signature of headers ([`braid_md::ppl::signature`]).
        signature: u32,
    },
    /// The stripe log, in front of each member's data.
    Records {
        /// The array's identifier.
        array_uuid: Uuid,
        /// Bytes of each member's log, its head included.
        area: u64,
        /// A number that is unknown to users of the array.
        nonce: u64,
    },
}

/// Reasons why the effects of a crash cannot be repaired.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestartError {
    /// Members are missing, and the log of the other members cannot be used.
    #[error(
        "the array was being written when it was left, members are missing, and the log that would \
         make it good cannot be used: {why}"
    )]
    Log {
        /// The fault of the log.
        why: String,
    },
    /// The repair failed.
    #[error("what the log says could not be written: {why}")]
    Write {
        /// The failed operation.
        why: String,
    },
}

/// A unit that is about to be stored, with its old data and parity read.
pub(super) struct Change<'a> {
    pub(super) unit: &'a mut Unit,
    pub(super) columns: &'a mut Columns,
    pub(super) plan: &'a Plan,
    /// True if superblocks may say that parity fits the data of some of the rows.
    pub(super) is_counted_on: bool,
    /// The start of the write.
    pub(super) start: Duration,
}

/// A change of some rows of one data column, whose old data and parity are known.
pub(super) struct SmallChange {
    /// The role that has the parity.
    pub(super) role: Role,
    pub(super) rows: MemberSpan,
    /// The place of the data in the array.
    pub(super) data: ArrayByte,
}

/// A unit in the log.
pub(super) struct Entry {
    /// In the partial parity log the role of the log; in the stripe log the sequence.
    place: u64,
    stored_bytes: u64,
    start: Duration,
}

/// Result of entering a unit in the log. Its parity is computed, except for `Replan`.
pub(super) enum Entered {
    /// The unit is in the log, durably.
    Logged(Entry),
    /// The unit has no write hole.
    NotNeeded,
    /// The membership differs from the one in the unit's plan; the memory comes back.
    Replan(Buf),
}

/// Result of reading a log after a crash.
pub(super) enum Outcome {
    /// The log is valid, with this number of writes to repair.
    Good(usize),
    /// The log cannot be relied on.
    Doubtful(String),
}

/// A log of units.
pub(super) trait Log: Follower {
    fn consistency(&self) -> Consistency;

    /// Returns the cost so far.
    fn cost(&self) -> LogCost;

    /// Returns the memory for a unit of `rows`, in bytes.
    fn memory(&self, geometry: &Raid456, rows: u64, is_whole: bool) -> u64;

    /// Returns the largest number of rows of a unit, in bytes: a power of two. `is_whole` for units of whole
    /// stripes.
    fn most_rows(&self, core: &Core, is_whole: bool) -> u64;

    /// Computes the parity of a unit and enters the unit in the log, durably. `memory` has the size that
    /// [`Log::memory`] returns.
    ///
    /// # Errors
    /// The array is stopped.
    fn enter<'a>(
        &'a self,
        core: &'a Rc<Core>,
        change: Change<'a>,
        memory: Buf,
    ) -> Later<'a, Result<Entered, Errno>>;

    /// Returns the place of the partial parity in the memory for [`Log::enter_now`], or `None` if the log enters
    /// nothing within the call.
    fn header_of_small(&self) -> Option<usize> {
        None
    }

    /// Enters a small change in the log within the call, durably. `memory` has the partial parity of its rows behind
    /// [`Log::header_of_small`] bytes. Returns `None` if the change has to be entered in steps, as any other.
    ///
    /// # Panics
    /// If a member that promised to answer within the call does not.
    fn enter_now(&self, _: &Core, _: SmallChange, _memory: Buf) -> Option<Entry> {
        None
    }

    /// Notes that the unit of `entry` is in place.
    fn in_place(&self, core: &Core, entry: Entry);

    /// Notes that the unit of `entry` failed: its rows hold a part of it, with parity that fits. The entry must
    /// not be replayed over later contents of these rows.
    fn failed(&self, core: &Core, entry: Entry);

    /// Reads the members' logs after a crash, and repairs as much as the log itself can. `is_dirty` if
    /// superblocks say that the array was being written.
    fn restart<'a>(
        &'a self,
        core: &'a Rc<Core>,
        geometry: &'a Raid456,
        is_dirty: bool,
    ) -> Later<'a, Result<Restarted, RestartError>>;
}

/// Result of a log's repair after a crash.
pub(super) struct Restarted {
    pub(super) outcome: Outcome,
    /// The extent to which the array is in sync, once the `unfit` rows are repaired.
    pub(super) resync: braid_md::Resync,
    /// Rows whose parity must be recomputed.
    pub(super) unfit: Vec<MemberSpan>,
}

/// Returns the log of `setup`, for the array `id` of `members`.
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

/// Returns `time` in µs, rounded.
fn micros(time: Duration) -> u64 {
    (time + Duration::from_nanos(500)).as_micros() as u64
}

/// Counts of units that were written in place and of those that are durable, and their cost.
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

    /// Counts a unit that is in place; returns its number.
    fn count(&self, core: &Core, entry: &Entry) -> u64 {
        let time = core.clock.now() - entry.start;
        self.add_cost(|cost| {
            cost.writes += 1;
            cost.stored_bytes += entry.stored_bytes;
            cost.time_us += micros(time);
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

    /// Returns true if the first `written` units are durable on all members that superblocks count on.
    fn is_durable(&self, written: u64) -> bool {
        self.durable.get() >= written
    }

    fn add_cost(&self, add: impl FnOnce(&mut LogCost)) {
        let mut cost = self.cost.get();
        add(&mut cost);
        self.cost.set(cost);
    }

    /// Stores the log area of each of these members, durably. A member that fails is taken out, and superblocks
    /// say so when this returns.
    ///
    /// # Errors
    /// The array is stopped.
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
    /// Returns the log entry of the change.
    fn entry(&self, place: u64) -> Entry {
        let rows: u64 = self.unit.bands.iter().map(|band| band.rows.len).sum();
        let data: u64 = self.unit.pieces.iter().map(|piece| piece.rows.len).sum();
        let parities = self.columns.geometry.parities() as u64;
        Entry { place, stored_bytes: data + rows * parities, start: self.start }
    }
}

/// Reads all of `area` of the device of `member`.
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

/// Writes `rows` of `role` to all written members of the role.
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
