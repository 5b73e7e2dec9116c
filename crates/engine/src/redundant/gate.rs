//! The course of an array: what its superblocks say of writes, and whether anything is written at all.
//!
//! ```text
//!   write ──▶ the lane is open? ── yes ──▶ straight to the members
//!               │ no
//!               ▼
//!             the long way: superblocks, locks, bits (`write`)
//!
//!   open = the superblocks say "active", they say all that was required, nothing timed, not stopped
//! ```
//!
//! Invariant: a stopped array is never opened again, and nothing is written to its members.
//!
//! Deliberately absent: the flags that a request's path asks, which are a lane's ([`super::lane`]).

use std::cell::Cell;

use crate::signal::Signal;

/// The flags.
#[derive(Default)]
pub(super) struct Gate {
    /// The superblocks say that writes may be under way, or are about to.
    active: Cell<bool>,
    /// They say so from now on.
    activated: Signal,
    /// A role has no member that is in sync.
    degraded: Cell<bool>,
    /// Nothing is written any more.
    stopped: Cell<bool>,
}

impl Gate {
    #[inline]
    pub(super) fn is_degraded(&self) -> bool {
        self.degraded.get()
    }

    #[inline]
    pub(super) fn is_active(&self) -> bool {
        self.active.get()
    }

    /// Returns whether nothing is written any more.
    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.get()
    }

    /// Returns whether lanes may be open.
    pub(super) fn may_open(&self) -> bool {
        self.active.get() && !self.stopped.get()
    }

    /// Returns when the superblocks are to say "active".
    pub(super) async fn until_active(&self) {
        self.activated.until(|| self.active.get()).await;
    }

    /// Sets what superblocks say from the next publication on; returns what it was.
    pub(super) fn set_active(&self, active: bool) -> bool {
        let before = self.active.replace(active);
        if active && !before {
            self.activated.notify();
        }
        before
    }

    pub(super) fn set_degraded(&self, degraded: bool) {
        self.degraded.set(degraded);
    }

    /// Nothing is written from now on.
    pub(super) fn stop(&self) {
        self.stopped.set(true);
    }
}
