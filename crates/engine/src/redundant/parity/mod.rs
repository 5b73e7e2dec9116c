//! Levels with stripes and parity: raid4, raid5 and raid6.
//!
//! ```text
//!   read   ──▶ the member that has it ── missing, failed? ──▶ reconstructed from the other members
//!   write  ──▶ gathered ──▶ units: rows of one stripe
//!                            │ memory ▸ rows entered ▸ old data read ▸ parity computed
//!                            │ ▸ logged, so that no crash leaves half of it ▸ members written
//!                            ▼
//!                          answer
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `read`, `heal` | reads from a member, or by reconstruction; rewriting unreadable rows |
//! | `store`, `mend` | writing a unit, from memory to members; repairing rows after too many failures |
//! | `at_once` | writing a small unit within the call, if members answer there |
//! | `gather` | joining consecutive small writes into whole stripes |
//! | `restart` | repair by the log after a crash, before the first request |
//! | `window` | one window of a pass: filling a member, comparing data with parity |
//!
//! A *row* is the byte at one offset of every member's data. Parity holds row by row, so a change locks rows:
//! writes of the same rows wait for each other, whatever their columns; other writes do not. A read from one
//! member needs no lock; a reconstruction from several members does.
//!
//! Invariants
//! * Rows that are being written, or are torn, are never a source of reconstruction.
//! * A unit takes all its memory at once, before its rows: a holder of rows never waits for memory. The memory
//!   bounds the units in flight; other units wait.
//! * Old parity is believed only where it was made to agree with its data: below the resync's frontier, and in
//!   chunks whose bits are clear. Unreadable data of a present member is not reconstructed from other parity;
//!   data of a missing member has to be.
//!
//! Source: Linux `drivers/md/raid5.c` (`handle_stripe_dirtying`, `raid5-ppl.c`).

mod at_once;
mod gather;
mod heal;
mod mend;
mod read;
mod restart;
mod store;
mod window;

use std::cell::Cell;
use std::rc::Rc;

use braid_array::geometry::{Column, Raid1, Raid456};
use braid_array::{ArraySpan, ByRole, Geometry, MemberByte, MemberSpan, Role};
use braid_block::{Errno, Io, Payload, Span};
use braid_mem::{Buf, Pool};

pub(super) use at_once::{Small, take_if_all_done};

use super::core::Core;
use super::found::Found;
use super::keeping::{CacheStatus, Finder, Inner, Keeping, Lost};
use super::kind::JobKind;
use super::layout::{SyncByte, SyncSpan};
use super::log::{Consistency, Log, LogCost, RestartError};
use super::roster::Member;
use super::write::Finished;
use crate::background::Later;
use crate::canary::Canary;
use crate::{Extents, Pending};
use gather::Gather;

/// Memory of a unit, in bytes: it bounds the rows of a unit.
const UNIT: u64 = 2 << 20;
/// Largest size of the parity in the unit of a whole stripe, in bytes.
const WHOLE_STRIPE: u64 = 1 << 20;

/// Zeroes that a client's order stores at once, in bytes: of the memory of passes, of which as much is there from the
/// start. The kernel may wait for that order when it has no more pages.
pub(super) const MOST_ZEROES: u64 = 2 << 20;

/// Whole stripes of zeroes that are entered in a log at once: as many share its headers, and each takes some memory.
const MOST_ZERO_STRIPES: u64 = 64;

/// Default of the memory for stripes in flight, in bytes.
pub const STRIPE_CACHE: usize = 32 << 20;

/// Stripes with parity, placed by the array's geometry.
pub(super) struct Parity {
    geometry: Raid456,
    cache: Pool,
    gather: Gather,
    log: Option<Rc<dyn Log>>,
    /// The membership that was looked at last, and true if each role has one member, in sync.
    complete: Cell<(u64, bool)>,
}

impl Parity {
    pub(super) fn new(
        geometry: Raid456,
        cache: usize,
        log: Option<Rc<dyn Log>>,
    ) -> std::io::Result<Parity> {
        // At least two of the largest units, so that one unit never waits for itself.
        let of_log = log.as_deref();
        let largest = unit_memory(&geometry, of_log, rows_of_unit(&geometry), false)
            .max(unit_memory(&geometry, of_log, WHOLE_STRIPE / geometry.parities() as u64, true));
        let least = 2 * largest.next_power_of_two() as usize;
        let cache = Pool::growing(cache.max(least).next_power_of_two(), least)?;
        let complete = Cell::new((0, false));
        Ok(Parity { geometry, cache, gather: Gather::default(), log, complete })
    }

    /// Returns true if the parity of `rows` agrees with its data, apart from writes in flight. A write need not
    /// look at the bitmap: if members are missing, its bits stand for their missing data.
    fn is_parity_trusted(&self, core: &Core, rows: MemberSpan) -> bool {
        // The frontier must not pass a write without a log in flight. It does not: a pass locks rows before it
        // is done with them.
        core.agreement.holds_for(in_sync_bytes(rows))
    }

    /// Returns true if superblocks may say, now or while `rows` are locked, that parity fits some of the rows:
    /// a resync's frontier may lie between them, and superblocks may be older than this state.
    fn is_counted_on(&self, core: &Core, rows: MemberSpan) -> bool {
        let first = in_sync_bytes(rows).offset;
        self.is_parity_trusted(core, rows)
            || core.agreement.frontier().is_none_or(|frontier| first < frontier)
            || core.publisher.may_call_in_sync(first)
    }

    /// Returns true if the rows of some roles may be reconstructed from the roles that are `readable`. Data of
    /// a missing member has no other source; data that a present member cannot read is not reconstructed from
    /// parity that may not fit.
    fn may_reconstruct(&self, core: &Core, rows: MemberSpan, readable: &ByRole<bool>) -> bool {
        if core.agreement.is_torn(in_sync_bytes(rows)) {
            return false;
        }
        let slots = core.roster.slots();
        let is_missing = |role: Role| slots[role].readable().is_none();
        let stripe = self.geometry.stripe_of_row(rows.offset);
        let is_data = |role: &Role| !is_parity(self.geometry.column_of(stripe, *role));
        if readable.roles().filter(is_data).all(|role| readable[role]) {
            return true; // Parity is computed from the data, whatever its old value.
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

    /// Waits for the memory of a unit of `rows` bytes, its log included; a unit of a whole stripe reads
    /// nothing.
    async fn unit_memory(&self, rows: u64, is_whole: bool) -> Buf {
        let needed = unit_memory(&self.geometry, self.log.as_deref(), rows, is_whole);
        self.cache.get_wait(needed as usize).await
    }
}

fn unit_memory(geometry: &Raid456, log: Option<&dyn Log>, rows: u64, is_whole: bool) -> u64 {
    let columns = if is_whole { geometry.parities() } else { geometry.members() };
    columns as u64 * rows + log.map_or(0, |log| log.memory(geometry, rows, is_whole))
}

/// Returns the largest number of rows of a unit, in bytes: a power of two.
fn rows_of_unit(geometry: &Raid456) -> u64 {
    let rows = UNIT / (geometry.members() as u64 + 2);
    (1 << rows.ilog2()).clamp(4096, geometry.chunk())
}

/// Returns for each role whether `rows` may be read.
fn readable_roles(core: &Core, rows: MemberSpan) -> ByRole<bool> {
    let count = core.roster.slots().len();
    ByRole::new(count, |role| core.is_readable(role, rows))
}

/// Returns for each role whether it has a member in sync.
fn roles_in_sync(core: &Core) -> ByRole<bool> {
    core.roster.slots().values().map(|slot| slot.readable().is_some()).collect()
}

/// Returns for each role whether it has a written member.
fn written_roles(core: &Core) -> ByRole<bool> {
    core.roster.slots().values().map(|slot| slot.written().next().is_some()).collect()
}

/// Returns true if `column` is parity.
fn is_parity(column: Column) -> bool {
    matches!(column, Column::P | Column::Q)
}

/// Returns the rows up to the end of the chunk: members have the same columns there.
fn rest_of_chunk(geometry: &Raid456, row: MemberByte) -> SyncSpan {
    let rows = MemberSpan::new(row, geometry.chunk() - row % geometry.chunk());
    in_sync_bytes(rows)
}

/// Converts `rows` to sync bytes: with parity they are the same.
pub(super) fn in_sync_bytes(rows: MemberSpan) -> SyncSpan {
    SyncSpan::new(SyncByte::new(rows.offset.get()), rows.len)
}

/// Converts sync bytes to rows.
fn rows_of(span: SyncSpan) -> MemberSpan {
    MemberSpan::new(MemberByte::new(span.offset.get()), span.len)
}

impl Keeping for Rc<Parity> {
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

    #[inline]
    fn write(&self, inner: &Rc<Inner>, io: Io) -> Pending {
        self.write_data(inner, io)
    }

    fn store<'a>(&'a self, inner: &'a Rc<Inner>, io: Io) -> Later<'a, (Finished, Payload)> {
        Box::pin(self.store_io(inner, io))
    }

    fn judge<'a>(
        &'a self,
        inner: &'a Rc<Inner>,
        span: ArraySpan,
        failed: Vec<(Rc<Member>, Errno)>,
    ) -> Later<'a, Finished> {
        // Other shards write rows of one data column only.
        let rows = MemberSpan::new(self.geometry.locate(span.offset).offset, span.len);
        Box::pin(async move {
            let guard = inner.core.take_over(in_sync_bytes(rows));
            let changed = self.judge_writes(inner, rows, Vec::new(), failed).await;
            guard.finish(false, changed.result).await
        })
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

    fn rows(&self, span: SyncSpan) -> Vec<MemberSpan> {
        vec![rows_of(span)]
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

    fn extents(&self, _: &Inner, span: Span) -> Extents {
        Extents::data(span.len)
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
