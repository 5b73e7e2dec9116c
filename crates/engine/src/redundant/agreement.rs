//! The agreement of members: of copies with each other, of data with its parity.
//!
//! ```text
//!   sync bytes   |■■■■■■■■■■■■■■■■|░░░|■■|░░░░░░░░|■■|░░░░░░░░░░░|
//!                      agree      frontier   └ compared behind it ┘
//! ```
//!
//! Below the resync's frontier members agree, apart from writes under way. Behind it they agree in the windows
//! that the running pass has done, which end in any order.
//!
//! *Torn* rows were written to some members and not to others, and could not be mended at once. They are never
//! a source of reconstruction.
//!
//! Invariants
//! * The frontier does not pass a place that came to differ while the pass was under way.
//! * Torn rows are never forgotten while the array is up: it is stopped.
//!
//! Source: Linux `drivers/md/md.c` (`recovery_cp`).

use std::cell::{Cell, RefCell};

use braid_md::Resync;

use super::layout::{SyncByte, SyncSpan};
use crate::canary::Canary;

/// The places in which members are known to agree.
pub(super) struct Agreement {
    /// Members agree below it; none if they agree everywhere.
    frontier: Cell<Option<SyncByte>>,
    /// The place from which on copies came to differ since the pass that makes them equal began.
    differs: Cell<Option<SyncByte>>,
    /// The windows behind the frontier that the running pass has done.
    compared: RefCell<Vec<SyncSpan>>,
    torn: RefCell<Vec<SyncSpan>>,
}

fn frontier_of(resync: Resync) -> Option<SyncByte> {
    match resync {
        Resync::Clean => None,
        Resync::From(frontier) => Some(SyncByte::new(frontier)),
    }
}

impl Agreement {
    pub(super) fn new(resync: Resync) -> Agreement {
        Agreement {
            frontier: Cell::new(frontier_of(resync)),
            differs: Cell::new(None),
            compared: RefCell::default(),
            torn: RefCell::default(),
        }
    }

    /// Returns the place below which members agree; none if they agree everywhere.
    #[inline]
    pub(super) fn frontier(&self) -> Option<SyncByte> {
        self.frontier.get()
    }

    /// Returns the frontier as superblocks have it.
    pub(super) fn resync(&self) -> Resync {
        self.frontier.get().map_or(Resync::Clean, |frontier| Resync::From(frontier.get()))
    }

    pub(super) fn is_clean(&self) -> bool {
        self.frontier.get().is_none()
    }

    /// Sets the frontier that the log, or its absence, implies after a crash.
    pub(super) fn restart_at(&self, resync: Resync) {
        self.frontier.set(frontier_of(resync));
        self.compared.borrow_mut().clear();
    }

    /// Notes that members may differ from sync byte `offset` on, because a write failed on the last of them.
    pub(super) fn differ_from(&self, offset: SyncByte) {
        self.compared.borrow_mut().clear();
        self.differs.set(Some(self.differs.get().map_or(offset, |other| other.min(offset))));
        let from = self.frontier.get().map_or(offset, |from| from.min(offset));
        self.frontier.set(Some(from));
    }

    /// Notes that the array has grown: the part behind sync byte `before` was never compared.
    pub(super) fn grow_from(&self, before: SyncByte) {
        if self.is_clean() {
            self.frontier.set(Some(before));
        }
    }

    /// Begins a pass that makes members agree, over an array that ends at `total`. Returns where to start.
    pub(super) fn begin_pass(&self, total: SyncByte) -> SyncByte {
        self.compared.borrow_mut().clear();
        self.differs.set(None);
        self.frontier.get().map_or(SyncByte::START, |from| from.min(total))
    }

    /// Notes that the pass is done with `rows`, which are still locked.
    pub(super) fn was_compared(&self, rows: SyncSpan) {
        if let Some(frontier) = self.frontier.get() {
            let mut compared = self.compared.borrow_mut();
            compared.retain(|one| one.end() > frontier);
            compared.push(rows);
            compared.sort_unstable_by_key(|one| one.offset);
        }
    }

    /// Notes that the pass is done with everything below `frontier`.
    pub(super) fn reached(&self, frontier: SyncByte) {
        if !self.is_clean() {
            let from = self.differs.get().map_or(frontier, |differs| differs.min(frontier));
            self.frontier.set(Some(from));
        }
    }

    /// Ends the pass. Returns false if members came to differ behind it, so that another pass has to start
    /// there.
    pub(super) fn end_pass(&self) -> bool {
        if self.differs.get().is_some() && !Canary::DoubtOfResyncDropped.is_planted() {
            return false;
        }
        self.frontier.set(None);
        self.compared.borrow_mut().clear();
        true
    }

    /// Notes that `rows` were half written, and could not be mended.
    pub(super) fn tear(&self, rows: SyncSpan) {
        self.torn.borrow_mut().push(rows);
    }

    /// Returns true if some of `rows` are torn.
    pub(super) fn is_torn(&self, rows: SyncSpan) -> bool {
        self.torn.borrow().iter().any(|one| one.overlaps(rows))
    }

    /// Returns true if the members agree on `rows`, by the pass alone and apart from writes under way.
    pub(super) fn holds_for(&self, rows: SyncSpan) -> bool {
        self.frontier.get().is_none_or(|frontier| rows.end() <= frontier || self.is_compared(rows))
    }

    fn is_compared(&self, rows: SyncSpan) -> bool {
        let mut from = rows.offset;
        for one in self.compared.borrow().iter() {
            if one.offset <= from {
                from = from.max(one.end());
            }
        }
        from >= rows.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(from: u64, to: u64) -> SyncSpan {
        SyncSpan::new(SyncByte::new(from), to - from)
    }

    #[test]
    fn what_was_compared_before_members_came_to_differ_is_compared_again() {
        let agreement = Agreement::new(Resync::From(0));
        agreement.begin_pass(SyncByte::new(100));
        agreement.was_compared(rows(20, 40));
        agreement.was_compared(rows(60, 80));
        assert!(agreement.holds_for(rows(20, 40)) && agreement.holds_for(rows(60, 80)));
        // A write to rows 30 to 35 reached only some of the members.
        agreement.differ_from(SyncByte::new(30));
        assert!(!agreement.holds_for(rows(30, 35)) && !agreement.holds_for(rows(60, 80)));
        agreement.reached(SyncByte::new(100));
        assert_eq!(agreement.resync(), Resync::From(30), "no farther than where they differ");
        assert!(!agreement.end_pass(), "another pass has to start there");
    }
}
