//! Data in stripes with parity: raid4, raid5 and raid6.
//!
//! ```text
//!   read   ──▶ the member that has it ── missing, failed? ──▶ recovered from the rest of its rows
//!   write  ──▶ gathered ──▶ units: rows of one stripe
//!                            │ memory ▸ rows entered ▸ old data read ▸ parity computed
//!                            │ ▸ logged, so that no crash leaves half of it ▸ members written
//!                            ▼
//!                          answer
//! ```
//!
//! | file | what |
//! |---|---|
//! | `columns` | the rows of a stripe in memory: reading, recovering, computing parity |
//! | `read` | from a member, or recovered from the others |
//! | `units`, `store` | a write as units, and one unit from its memory to its members |
//! | `gather` | small writes in a row, put together into whole stripes |
//! | `log`, `partial`, `records` | what closes the write hole: md's partial parity log, braid's stripe log |
//! | `restart` | what a log says after a crash, made good before the first request |
//! | `window` | one window of a pass: filling a member, comparing data with parity |
//!
//! A *row* is the byte at one offset of every member's data. Parity holds row by row, so a change
//! locks rows: writes of the same rows wait for each other, whatever columns they are of, and
//! others do not. Reads of what is there need no lock; what is recovered from several members does.
//!
//! Invariants
//! * Nothing is recovered from rows that somebody writes.
//! * A unit takes all its memory at once, before its rows: whoever has rows never waits for memory.
//!   What there is bounds what is under way; the rest waits.
//! * Old parity is believed only where it was made to agree with its data: below the resync's
//!   frontier.
//!
//! Source: Linux `drivers/md/raid5.c` (`handle_stripe_dirtying`, `raid5-ppl.c`).

mod columns;
mod gather;
mod log;
mod partial;
mod read;
mod records;
mod restart;
mod store;
mod units;
mod window;

use std::cell::RefCell;

use braid_array::Geometry;
use braid_array::geometry::{Column, Raid456};
use braid_block::Span;
use braid_md::Resync;
use braid_mem::{Buf, Pool};

use super::Inner;
use super::data::Data;
use gather::Gather;

pub use log::{Consistency, LogCost, LogSetup};
pub(super) use log::{Kind, Log};
pub use restart::RestartError;

/// Memory of a unit, in bytes: it bounds how many rows a unit has.
const UNIT: u64 = 2 << 20;
/// Bytes of parity that the unit of a whole stripe may have.
const WHOLE_STRIPE: u64 = 1 << 20;

/// Memory for stripes under way, in bytes, if nothing else is asked for.
pub const STRIPE_CACHE: usize = 32 << 20;

/// Stripes and parity, as the array's geometry has them.
pub(in crate::redundant) struct Parity {
    pub(in crate::redundant) geometry: Raid456,
    cache: Pool,
    gather: Gather,
    pub(in crate::redundant) log: Log,
    /// Rows behind the resync's frontier that it is done with: windows end in any order.
    compared: RefCell<Vec<Span>>,
    /// Rows that were half written without a member: nothing is worked out from them any more.
    torn: RefCell<Vec<Span>>,
}

impl Parity {
    pub(in crate::redundant) fn new(
        geometry: Raid456,
        cache: usize,
        log: Option<LogSetup>,
    ) -> std::io::Result<Parity> {
        let log = Log::new(log, geometry.members());
        // At least two of the largest units, so that one never waits for itself.
        let largest = unit_memory(&geometry, &log, rows_of_unit(&geometry), false)
            .max(unit_memory(&geometry, &log, WHOLE_STRIPE / geometry.parities() as u64, true));
        let least = 2 * largest.next_power_of_two() as usize;
        let cache = Pool::new(cache.max(least).next_power_of_two())?;
        let gather = Gather::default();
        let (compared, torn) = (RefCell::default(), RefCell::default());
        Ok(Parity { geometry, cache, gather, log, compared, torn })
    }

    /// Bytes of the stripe cache, and how many of them are in use.
    pub(in crate::redundant) fn cache_bytes(&self) -> (usize, usize) {
        let total = self.cache.total_bytes();
        (total, total - self.cache.free_bytes())
    }

    /// `rows` were half written while a member was missing.
    pub(in crate::redundant) fn mark_torn(&self, rows: Span) {
        self.torn.borrow_mut().push(rows);
    }

    /// Whether what a member lacks of `rows` can still be worked out.
    fn can_be_worked_out(&self, rows: Span) -> bool {
        let overlaps = |one: &Span| one.offset < rows.end() && rows.offset < one.end();
        !self.torn.borrow().iter().any(overlaps)
    }

    /// The resync is done with `rows`, which are still locked; its frontier is at `frontier`.
    fn was_compared(&self, rows: Span, frontier: u64) {
        let mut compared = self.compared.borrow_mut();
        compared.retain(|one| one.end() > frontier);
        compared.push(rows);
        compared.sort_unstable_by_key(|one| one.offset);
    }

    /// Whether the resync is done with all of `rows`.
    fn is_compared(&self, rows: Span) -> bool {
        let mut from = rows.offset;
        for one in self.compared.borrow().iter() {
            if one.offset <= from {
                from = from.max(one.end());
            }
        }
        from >= rows.end()
    }

    /// Memory for a unit of `rows` bytes, its log included; one of a whole stripe reads nothing.
    async fn unit_memory(&self, rows: u64, is_whole: bool) -> Buf {
        self.cache.get_wait(unit_memory(&self.geometry, &self.log, rows, is_whole) as usize).await
    }
}

fn unit_memory(geometry: &Raid456, log: &Log, rows: u64, is_whole: bool) -> u64 {
    let columns = if is_whole { geometry.parities() } else { geometry.members() };
    columns as u64 * rows + log.memory(geometry, rows, is_whole)
}

/// How many rows a unit has at most, in bytes: a power of two.
fn rows_of_unit(geometry: &Raid456) -> u64 {
    let rows = UNIT / (geometry.members() as u64 + 2);
    (1 << rows.ilog2()).clamp(4096, geometry.chunk())
}

impl Inner {
    /// Asked only where there is parity.
    #[inline]
    fn parity(&self) -> &Parity {
        match &self.data {
            Data::Parity(parity) => parity,
            Data::Copies(_) => unreachable!("an array of copies has no parity"),
        }
    }

    /// The members by role from which `rows` may be read.
    fn readable_roles(&self, rows: Span) -> Vec<bool> {
        let slots = self.slots.borrow();
        let is_good = |slot: &super::member::Slot| {
            slot.readable().is_some_and(|member| !member.is_bad(rows.offset, rows.len))
        };
        slots.iter().map(is_good).collect()
    }

    /// The roles whose members are written.
    fn written_roles(&self) -> Vec<bool> {
        self.slots.borrow().iter().map(|slot| slot.written().next().is_some()).collect()
    }

    /// Whether the parity of `rows` agrees with its data, apart from writes under way. What the
    /// bitmap says beside does not matter: where members are missing its bits stand for what those
    /// lack.
    fn is_parity_trusted(&self, rows: Span) -> bool {
        match self.resync.get() {
            Resync::Clean => true,
            // What was written without a log must not be passed by the frontier while it is under
            // way. It is not: rows that nobody is done with are locked before.
            Resync::From(from) => rows.end() <= from || self.parity().is_compared(rows),
        }
    }

    /// A resync begins anew, or rows that it is done with are in doubt again.
    pub(super) fn forget_compared(&self) {
        if let Data::Parity(parity) = &self.data {
            parity.compared.borrow_mut().clear();
        }
    }
}

/// Whether `column` is parity.
fn is_parity(column: Column) -> bool {
    matches!(column, Column::P | Column::Q)
}
