//! Write-behind: members that are marked write-mostly carry a write out after its answer.
//!
//! ```text
//!   write ──▶ the other members ──▶ answer
//!     └─────▶ write-mostly members, from a copy of the bytes ──▶ its range and its bits are let go
//!   flush ──▶ waits for the writes that are behind ──▶ flush of every member ──▶ answer
//! ```
//!
//! Invariants
//! * A write that is behind keeps its [`super::write::Guard`] until each member has it, or is out. So no write overlaps it, no
//!   pass copies or compares its bytes, no bit of it is cleared, and a read of them from a late member waits.
//! * A member in sync has the write at its answer.
//! * What is flushed, and each write with FUA, is on every member. Only what a crash may take back anyway is behind. (The
//!   kernel's md does not wait for it.)
//! * The writes that are behind, and their bytes, have a limit: one beyond it is carried out by all members at once.
//!
//! Deliberately absent: raid10, as in the kernel; and the limit, which the header of the bitmap has.
//!
//! Source: Linux `drivers/md/raid1.c` (`raid1_write_request`, `alloc_behind_master_bio`).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use braid_array::Mirrored;
use braid_block::{Flags, Io, Op, Payload};

use super::core::Core;
use super::layout::Layout;
use super::roster::Member;
use super::work::POOL;
use crate::canary::Canary;
use crate::signal::Signal;

/// Bytes that are behind, at most: half of the memory that passes have, too.
const MOST_BYTES: u64 = (POOL / 2) as u64;

/// The writes that members carry out after the answer.
#[derive(Default)]
pub(crate) struct Behind {
    begun: Cell<u64>,
    /// Their bytes, by the number that they began with.
    under_way: RefCell<BTreeMap<u64, u64>>,
    bytes: Cell<u64>,
    changed: Signal,
}

/// A write that is behind, until this is dropped.
pub(crate) struct Late {
    core: Rc<Core>,
    number: u64,
}

impl Late {
    /// Begins `io`, and returns it with a copy of its bytes for the members that are late; `None` if all members have to
    /// carry it out at once.
    pub(crate) fn begin(core: &Rc<Core>, io: &Io) -> Option<(Late, Io)> {
        let most = core.lane.most_behind();
        let is_one = matches!(io.op, Op::Write | Op::WriteZeroes) && !io.flags.contains(Flags::FUA);
        // A shard that has not heard of write-behind may read from a late member.
        if most == 0 || !is_one || !core.has_late_members() || !core.readers.have_seen() {
            return None;
        }
        let (behind, pool) = (&core.behind, core.work.pool());
        let len = io.payload.len();
        let is_full = behind.count() >= most as usize || behind.bytes.get() + len > MOST_BYTES;
        if is_full || pool.is_wanted() {
            return None;
        }
        let payload = match &io.payload {
            Payload::None => Payload::None,
            payload => {
                let mut copy = pool.get(payload.len() as usize)?;
                let mut at = 0;
                for buf in payload.bufs() {
                    copy[at..at + buf.len()].copy_from_slice(buf);
                    at += buf.len();
                }
                Payload::One(copy)
            }
        };
        let number = behind.begun.get();
        behind.begun.set(number + 1);
        behind.bytes.set(behind.bytes.get() + len);
        behind.under_way.borrow_mut().insert(number, len);
        let Io { op, span, flags, .. } = *io;
        Some((Late { core: Rc::clone(core), number }, Io { op, span, flags, payload }))
    }

    /// Returns the array.
    pub(crate) fn core(&self) -> &Rc<Core> {
        &self.core
    }
}

impl Core {
    /// Returns true if a member of a raid1 may be late, and another that is in sync is not. A write over a place that is known
    /// to be bad also changes a log.
    fn has_late_members(&self) -> bool {
        if !matches!(&*self.layout.borrow(), Layout::Copies(geometry) if is_raid1(&**geometry)) {
            return false;
        }
        let slots = self.roster.slots();
        let any = |is_one: &dyn Fn(&Member) -> bool| {
            slots.values().flat_map(|slot| slot.written()).any(|member| is_one(member))
        };
        any(&|member| member.write_mostly)
            && any(&|one| one.is_in_sync() && !one.write_mostly)
            && !any(&|one| one.has_bad_blocks.get())
    }
}

/// Returns true if each member has all bytes.
fn is_raid1(geometry: &dyn Mirrored) -> bool {
    geometry.copies() == geometry.members()
}

impl Drop for Late {
    fn drop(&mut self) {
        let behind = &self.core.behind;
        let len = behind.under_way.borrow_mut().remove(&self.number).unwrap_or(0);
        behind.bytes.set(behind.bytes.get() - len);
        behind.changed.notify();
    }
}

impl Behind {
    /// Returns true if no write is behind.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.get() == 0 && self.under_way.borrow().is_empty()
    }

    /// Returns the number of writes that are behind.
    pub(crate) fn count(&self) -> usize {
        self.under_way.borrow().len()
    }

    /// Waits for the writes that are behind now.
    pub(crate) async fn until_caught_up(&self) {
        if self.is_empty() || Canary::FlushLeavesBehind.is_planted() {
            return;
        }
        let begun = self.begun.get();
        let first = || self.under_way.borrow().first_key_value().map(|(number, _)| *number);
        self.changed.until(|| first().is_none_or(|first| first >= begun)).await;
    }
}
