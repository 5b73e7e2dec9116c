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
//! Deliberately absent: the choice of the writes and the members (`copies/late`), and the limit, which the header of the bitmap
//! has.
//!
//! Source: Linux `drivers/md/raid1.c` (`raid1_write_request`, `alloc_behind_master_bio`).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

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
    behind: Rc<Behind>,
    number: u64,
}

impl Drop for Late {
    fn drop(&mut self) {
        let behind = &self.behind;
        let len = behind.under_way.borrow_mut().remove(&self.number).unwrap_or(0);
        behind.bytes.set(behind.bytes.get() - len);
        behind.changed.notify();
    }
}

impl Behind {
    /// Begins a write of `len` bytes, unless there are `most` already, or too many bytes.
    pub(crate) fn begin(self: &Rc<Self>, most: u32, len: u64) -> Option<Late> {
        if self.count() >= most as usize || self.bytes.get() + len > MOST_BYTES {
            return None;
        }
        let number = self.begun.get();
        self.begun.set(number + 1);
        self.bytes.set(self.bytes.get() + len);
        self.under_way.borrow_mut().insert(number, len);
        Some(Late { behind: Rc::clone(self), number })
    }

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
