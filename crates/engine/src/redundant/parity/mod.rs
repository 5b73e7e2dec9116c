//! Data in stripes with parity: raid4, raid5 and raid6.
//!
//! ```text
//!   read   ──▶ the member that has it ── missing, failed? ──▶ reconstructed from the rest of its rows
//!   write  ──▶ gathered ──▶ units: rows of one stripe
//!                            │ memory ▸ rows entered ▸ old data read ▸ parity computed
//!                            │ ▸ logged, so that no crash leaves half of it ▸ members written
//!                            ▼
//!                          answer
//! ```
//!
//! | file | what |
//! |---|---|
//! | `read`, `heal` | from a member, or reconstructed from the others; what cannot be read is written again |
//! | `store`, `mend` | a write, unit by unit, from its memory to its members; what to do when too many fail |
//! | `gather` | small writes in a row, put together into whole stripes |
//! | `restart` | what a log says after a crash, made good before the first request |
//! | `window` | one window of a pass: filling a member, comparing data with parity |
//!
//! A *row* is the byte at one offset of every member's data. Parity holds row by row, so a change
//! locks rows: writes of the same rows wait for each other, whatever columns they are of, and
//! others do not. Reads of what is there need no lock; what is recovered from several members does.
//!
//! Invariants
//! * Nothing is reconstructed from rows that somebody writes, or that are torn.
//! * A unit takes all its memory at once, before its rows: whoever has rows never waits for memory.
//!   What there is bounds what is under way; the rest waits.
//! * Old parity is believed only where it was made to agree with its data: below the resync's
//!   frontier, and where the bitmap says that nothing was written. What a member that is there
//!   cannot read is not made up from other parity; what a missing member had has to be.
//!
//! Source: Linux `drivers/md/raid5.c` (`handle_stripe_dirtying`, `raid5-ppl.c`).

mod gather;
mod heal;
mod mend;
mod read;
mod restart;
mod store;
mod window;

use std::rc::Rc;

use braid_array::geometry::{Column, Raid1, Raid456};
use braid_array::{ArraySpan, ByRole, Geometry, MemberByte, MemberSpan, Role};
use braid_block::{Errno, Extent, Io, Payload, Span};
use braid_mem::{Buf, Pool};

use super::background::Later;
use super::core::Core;
use super::found::Found;
use super::keeping::{CacheStatus, Finder, Inner, Keeping, Lost};
use super::kind::JobKind;
use super::layout::{SyncByte, SyncSpan};
use super::log::{Consistency, Log, LogCost, RestartError};
use super::roster::Member;
use super::write::Finished;
use crate::Pending;
use crate::canary::Canary;
use gather::Gather;

/// Memory of a unit, in bytes: it bounds how many rows a unit has.
const UNIT: u64 = 2 << 20;
/// Bytes of parity that the unit of a whole stripe may have.
const WHOLE_STRIPE: u64 = 1 << 20;

/// Memory for stripes under way, in bytes, if nothing else is asked for.
pub const STRIPE_CACHE: usize = 32 << 20;

/// Stripes and parity, as the array's geometry has them.
pub(super) struct Parity {
    geometry: Raid456,
    cache: Pool,
    gather: Gather,
    log: Option<Rc<dyn Log>>,
}

impl Parity {
    pub(super) fn new(
        geometry: Raid456,
        cache: usize,
        log: Option<Rc<dyn Log>>,
    ) -> std::io::Result<Parity> {
        // At least two of the largest units, so that one never waits for itself.
        let of_log = log.as_deref();
        let largest = unit_memory(&geometry, of_log, rows_of_unit(&geometry), false)
            .max(unit_memory(&geometry, of_log, WHOLE_STRIPE / geometry.parities() as u64, true));
        let least = 2 * largest.next_power_of_two() as usize;
        let cache = Pool::new(cache.max(least).next_power_of_two())?;
        Ok(Parity { geometry, cache, gather: Gather::default(), log })
    }

    /// Whether the parity of `rows` agrees with its data, apart from writes under way. What the
    /// bitmap says beside does not matter to a write: where members are missing its bits stand for
    /// what those lack.
    fn is_parity_trusted(&self, core: &Core, rows: MemberSpan) -> bool {
        // What was written without a log must not be passed by the frontier while it is under
        // way. It is not: rows that nobody is done with are locked before.
        core.agreement.holds_for(in_sync_bytes(rows))
    }

    /// Whether superblocks may say, now or while `rows` are locked, that parity fits some of them: a
    /// resync's frontier may lie between them, and superblocks may be behind what is known here.
    fn is_counted_on(&self, core: &Core, rows: MemberSpan) -> bool {
        let first = in_sync_bytes(rows).offset;
        self.is_parity_trusted(core, rows)
            || core.agreement.frontier().is_none_or(|frontier| first < frontier)
            || core.publisher.may_call_in_sync(first)
    }

    /// Whether what some roles have of `rows` may be worked out from those that are `readable`.
    /// What a missing member had can be had in no other way; what a member that is there cannot
    /// read is not made up from parity that may not fit.
    fn may_reconstruct(&self, core: &Core, rows: MemberSpan, readable: &ByRole<bool>) -> bool {
        if core.agreement.is_torn(in_sync_bytes(rows)) {
            return false;
        }
        let slots = core.roster.slots();
        let is_missing = |role: Role| slots[role].readable().is_none();
        let stripe = self.geometry.stripe_of_row(rows.offset);
        let is_data = |role: &Role| !is_parity(self.geometry.column_of(stripe, *role));
        if readable.roles().filter(is_data).all(|role| readable[role]) {
            return true; // Parity is computed from the data, whatever it was.
        }
        if readable.roles().all(|role| readable[role] || is_missing(role)) {
            return true;
        }
        let is_complete = !readable.roles().any(is_missing);
        let quiet = core.lane.is_needed(in_sync_bytes(rows)) == Some(false);
        Canary::DoubtfulParityBelieved.is_planted()
            || core.agreement.holds_for(in_sync_bytes(rows))
            || (is_complete && quiet)
    }

    /// Memory for a unit of `rows` bytes, its log included; one of a whole stripe reads nothing.
    async fn unit_memory(&self, rows: u64, is_whole: bool) -> Buf {
        let needed = unit_memory(&self.geometry, self.log.as_deref(), rows, is_whole);
        self.cache.get_wait(needed as usize).await
    }
}

fn unit_memory(geometry: &Raid456, log: Option<&dyn Log>, rows: u64, is_whole: bool) -> u64 {
    let columns = if is_whole { geometry.parities() } else { geometry.members() };
    columns as u64 * rows + log.map_or(0, |log| log.memory(geometry, rows, is_whole))
}

/// How many rows a unit has at most, in bytes: a power of two.
fn rows_of_unit(geometry: &Raid456) -> u64 {
    let rows = UNIT / (geometry.members() as u64 + 2);
    (1 << rows.ilog2()).clamp(4096, geometry.chunk())
}

/// Whether `rows` may be read of a role.
fn readable_roles(core: &Core, rows: MemberSpan) -> ByRole<bool> {
    let count = core.roster.slots().len();
    ByRole::new(count, |role| core.is_readable(role, rows))
}

/// Whether a role has a member that is in sync.
fn roles_in_sync(core: &Core) -> ByRole<bool> {
    core.roster.slots().values().map(|slot| slot.readable().is_some()).collect()
}

/// Whether a role has a member that is written.
fn written_roles(core: &Core) -> ByRole<bool> {
    core.roster.slots().values().map(|slot| slot.written().next().is_some()).collect()
}

/// Whether `column` is parity.
fn is_parity(column: Column) -> bool {
    matches!(column, Column::P | Column::Q)
}

/// Members have the same columns up to the end of a chunk.
fn rest_of_chunk(geometry: &Raid456, row: MemberByte) -> SyncSpan {
    let rows = MemberSpan::new(row, geometry.chunk() - row % geometry.chunk());
    in_sync_bytes(rows)
}

/// `rows` in sync bytes: with parity they are the same.
fn in_sync_bytes(rows: MemberSpan) -> SyncSpan {
    SyncSpan::new(SyncByte::new(rows.offset.get()), rows.len)
}

/// The rows that the sync bytes `span` are.
fn rows_of(span: SyncSpan) -> MemberSpan {
    MemberSpan::new(MemberByte::new(span.offset.get()), span.len)
}

impl Keeping for Parity {
    #[inline]
    fn read(&self, inner: &Rc<Inner>, io: Io) -> Pending {
        self.read_data(inner, io)
    }

    fn read_carefully<'a>(
        &'a self,
        inner: &'a Rc<Inner>,
        span: ArraySpan,
        payload: Payload,
        failed: Option<u32>,
    ) -> Later<'a, (Result<(), Errno>, Payload)> {
        Box::pin(self.read_units(inner, span, payload, failed))
    }

    fn write(&self, inner: &Rc<Inner>, io: Io) -> Pending {
        inner.write_in_steps(io)
    }

    fn store<'a>(&'a self, inner: &'a Rc<Inner>, io: Io) -> Later<'a, (Finished, Payload)> {
        Box::pin(self.store_io(inner, io))
    }

    fn heal<'a>(
        &'a self,
        inner: &'a Rc<Inner>,
        member: Rc<Member>,
        place: SyncSpan,
        finder: Finder,
    ) -> Later<'a, ()> {
        Box::pin(self.rewrite_rows(&inner.core, member, rows_of(place), finder))
    }

    fn piece_of_member(&self, _: Role, offset: MemberByte) -> Option<SyncSpan> {
        Some(rest_of_chunk(&self.geometry, offset))
    }

    fn may_agree(&self, core: &Core) -> bool {
        let slots = core.roster.slots();
        let missing = slots.values().filter(|slot| slot.readable().is_none()).count();
        missing < self.geometry.parities()
    }

    fn piece_to_compare(&self, offset: SyncByte) -> SyncSpan {
        rest_of_chunk(&self.geometry, MemberByte::new(offset.get()))
    }

    fn read_to_fill(&self) -> usize {
        self.geometry.members()
    }

    fn compared(&self) -> usize {
        self.geometry.members() + self.geometry.parities()
    }

    fn fill<'a>(
        &'a self,
        inner: &'a Rc<Inner>,
        members: Vec<Rc<Member>>,
        place: SyncSpan,
        _: MemberByte,
    ) -> Later<'a, Vec<Lost>> {
        Box::pin(self.fill_columns(inner, members, rows_of(place)))
    }

    fn compare<'a>(
        &'a self,
        inner: &'a Rc<Inner>,
        place: SyncSpan,
        kind: JobKind,
    ) -> Later<'a, Found> {
        Box::pin(self.compare_rows(inner, rows_of(place), kind))
    }

    fn extents(&self, _: &Inner, span: Span) -> Vec<Extent> {
        vec![Extent::data(span.len)]
    }

    fn restart<'a>(
        &'a self,
        inner: &'a Rc<Inner>,
    ) -> Later<'a, Result<Option<String>, RestartError>> {
        Box::pin(self.make_good(inner))
    }

    fn reshape(&self, _: Raid1) -> bool {
        false
    }

    fn lost(&self, inner: &Inner) -> Vec<ArraySpan> {
        self.lost_of_rows(&inner.core)
    }

    fn is_lost(&self, core: &Core, _: Role, place: MemberSpan) -> bool {
        let readable = readable_roles(core, place);
        readable.roles_where(|is_readable| !is_readable).count() > self.geometry.parities()
    }

    fn log(&self) -> Option<(Consistency, LogCost)> {
        self.log.as_ref().map(|log| (log.consistency(), log.cost()))
    }

    fn cache_bytes(&self) -> Option<CacheStatus> {
        let total = self.cache.total_bytes();
        Some(CacheStatus { total, used: total - self.cache.free_bytes() })
    }
}
