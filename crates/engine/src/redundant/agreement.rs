//! Whether members agree: copies with each other, data with its parity.
//!
//! ```text
//!   sync bytes   |■■■■■■■■■■■■■■■■|░░░|■■|░░░░░░░░|■■|░░░░░░░░░░░|
//!                      agree      frontier   └ compared behind it ┘
//! ```
//!
//! Below the resync's frontier members agree, apart from writes under way. Behind it they agree
//! where windows of the running pass are done, which end in any order.
//!
//! *Torn* rows are those of which a write reached some members and not others, and which could
//! not be mended at once. Nothing is ever reconstructed from them.
//!
//! Invariants
//! * The frontier does not pass a place that came to differ while the pass was under way.
//! * Torn rows are never forgotten while the array is up: nothing is written to it any more.
//!
//! Source: Linux `drivers/md/md.c` (`recovery_cp`).

use std::cell::{Cell, RefCell};

use braid_block::Span;
use braid_md::Resync;

use crate::canary::Canary;

/// What is known of members' agreeing.
pub(super) struct Agreement {
    resync: Cell<Resync>,
    /// From where on copies came to differ since the pass that makes them equal began.
    differs: Cell<Option<u64>>,
    /// Behind the frontier: what the running pass is done with.
    compared: RefCell<Vec<Span>>,
    torn: RefCell<Vec<Span>>,
}

fn overlap(a: Span, b: Span) -> bool {
    a.offset < b.end() && b.offset < a.end()
}

impl Agreement {
    pub(super) fn new(resync: Resync) -> Agreement {
        Agreement {
            resync: Cell::new(resync),
            differs: Cell::new(None),
            compared: RefCell::default(),
            torn: RefCell::default(),
        }
    }

    /// How far members agree.
    #[inline]
    pub(super) fn resync(&self) -> Resync {
        self.resync.get()
    }

    pub(super) fn is_clean(&self) -> bool {
        self.resync.get() == Resync::Clean
    }

    /// What a log, or the lack of one, says after a crash.
    pub(super) fn restart_at(&self, resync: Resync) {
        self.resync.set(resync);
        self.compared.borrow_mut().clear();
    }

    /// Members may differ from sync byte `offset` on, because a write failed on the last of them.
    pub(super) fn differ_from(&self, offset: u64) {
        self.compared.borrow_mut().clear();
        self.differs.set(Some(self.differs.get().map_or(offset, |other| other.min(offset))));
        let from = match self.resync.get() {
            Resync::Clean => offset,
            Resync::From(from) => from.min(offset),
        };
        self.resync.set(Resync::From(from));
    }

    /// The array is larger from now on: what lies behind sync byte `before` was never compared.
    pub(super) fn grow_from(&self, before: u64) {
        if self.resync.get() == Resync::Clean {
            self.resync.set(Resync::From(before));
        }
    }

    /// A pass that makes members agree begins: where, in sync bytes of `total`.
    pub(super) fn begin_pass(&self, total: u64) -> u64 {
        self.compared.borrow_mut().clear();
        self.differs.set(None);
        match self.resync.get() {
            Resync::From(from) => from.min(total),
            Resync::Clean => 0,
        }
    }

    /// The pass is done with `rows`, which are still locked.
    pub(super) fn was_compared(&self, rows: Span) {
        if let Resync::From(frontier) = self.resync.get() {
            let mut compared = self.compared.borrow_mut();
            compared.retain(|one| one.end() > frontier);
            compared.push(rows);
            compared.sort_unstable_by_key(|one| one.offset);
        }
    }

    /// The pass is done with all below `frontier`.
    pub(super) fn reached(&self, frontier: u64) {
        if self.resync.get() != Resync::Clean {
            let from = self.differs.get().map_or(frontier, |differs| differs.min(frontier));
            self.resync.set(Resync::From(from));
        }
    }

    /// The pass came to its end. Answers whether members agree: not if they came to differ behind
    /// it, and then another pass has to start there.
    pub(super) fn end_pass(&self) -> bool {
        if self.differs.get().is_some() && !Canary::DoubtOfResyncDropped.is_planted() {
            return false;
        }
        self.resync.set(Resync::Clean);
        self.compared.borrow_mut().clear();
        true
    }

    /// `rows` were half written, and could not be mended.
    pub(super) fn tear(&self, rows: Span) {
        self.torn.borrow_mut().push(rows);
    }

    /// Whether some of `rows` is torn.
    pub(super) fn is_torn(&self, rows: Span) -> bool {
        self.torn.borrow().iter().any(|one| overlap(*one, rows))
    }

    /// Whether the members agree on `rows`, by the pass alone and apart from writes under way.
    pub(super) fn holds_for(&self, rows: Span) -> bool {
        match self.resync.get() {
            Resync::Clean => true,
            Resync::From(frontier) => rows.end() <= frontier || self.is_compared(rows),
        }
    }

    fn is_compared(&self, rows: Span) -> bool {
        let mut from = rows.offset;
        for one in self.compared.borrow().iter() {
            if one.offset <= from {
                from = from.max(one.end());
            }
        }
        from >= rows.end()
    }
}
