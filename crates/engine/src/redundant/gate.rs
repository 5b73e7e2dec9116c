//! What lets requests through: the few flags that a request's path asks, and who may set them.
//!
//! ```text
//!   write ──▶ open? ── yes ──▶ straight to the members
//!               │ no
//!               ▼
//!             the long way: superblocks, locks, bits (`write`)
//!
//!   open = the superblocks say "active", they say all that was required, nothing timed, not stopped
//! ```
//!
//! Invariant: a stopped array is never opened again, and nothing is written to its members.

use std::cell::Cell;
use std::rc::Rc;

use crate::signal::Signal;

/// The flags.
#[derive(Default)]
pub(super) struct Gate {
    /// The superblocks say that writes may be under way, or are about to.
    active: Cell<bool>,
    /// They say so from now on.
    activated: Signal,
    /// Writes that were let in, or are about to be.
    writers: Cell<u32>,
    /// Something was written since this was last reset.
    touched: Cell<bool>,
    /// A role has no member that is in sync.
    degraded: Cell<bool>,
    /// Every member that is written answers in the call that asks.
    immediate: Cell<bool>,
    /// A write may go straight to the members if no lock and no bit is in its way.
    open: Cell<bool>,
    /// Nothing is written any more.
    stopped: Cell<bool>,
}

impl Gate {
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.open.get()
    }

    #[inline]
    pub(super) fn is_degraded(&self) -> bool {
        self.degraded.get()
    }

    #[inline]
    pub(super) fn is_immediate(&self) -> bool {
        self.immediate.get()
    }

    #[inline]
    pub(super) fn is_active(&self) -> bool {
        self.active.get()
    }

    /// Whether nothing is written any more.
    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.get()
    }

    /// Something was written.
    #[inline]
    pub(super) fn touch(&self) {
        self.touched.set(true);
    }

    /// Whether nothing was written since this was asked before, and nothing is under way.
    pub(super) fn was_quiet(&self) -> bool {
        !self.touched.replace(false) && self.writers.get() == 0
    }

    pub(super) fn has_writers(&self) -> bool {
        self.writers.get() > 0
    }

    /// Returns when the superblocks are to say "active".
    pub(super) async fn until_active(&self) {
        self.activated.until(|| self.active.get()).await;
    }

    /// What superblocks say from the next publication on; answers what it was.
    pub(super) fn set_active(&self, active: bool) -> bool {
        let before = self.active.replace(active);
        if active && !before {
            self.activated.notify();
        }
        before
    }

    pub(super) fn set_members(&self, degraded: bool, immediate: bool) {
        self.degraded.set(degraded);
        self.immediate.set(immediate);
    }

    pub(super) fn set_open(&self, open: bool) {
        self.open.set(open && self.active.get() && !self.stopped.get());
    }

    /// Nothing is written from now on.
    pub(super) fn stop(&self) {
        self.stopped.set(true);
        self.open.set(false);
    }
}

/// A write that keeps the array from being marked clean.
pub(super) struct Writer {
    gate: Rc<Gate>,
}

impl Writer {
    pub(super) fn new(gate: &Rc<Gate>) -> Writer {
        gate.writers.set(gate.writers.get() + 1);
        Writer { gate: Rc::clone(gate) }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.gate.writers.set(self.gate.writers.get() - 1);
    }
}
