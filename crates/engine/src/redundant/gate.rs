//! The gate of an array: whether superblocks say "active", and whether anything may be written.
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
//! Deliberately absent: the flags on the path of a request, which are a lane's ([`super::lane`]).

use std::cell::Cell;

use crate::signal::Signal;

/// The flags of an array.
#[derive(Default)]
pub(super) struct Gate {
    /// The superblocks say that writes may be in flight, or are about to say so.
    active: Cell<bool>,
    /// Notified when they say so.
    activated: Signal,
    /// A role has no member that is in sync.
    degraded: Cell<bool>,
    /// The array is stopped: nothing is written any more.
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

    /// Returns true if the array is stopped.
    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.get()
    }

    /// Returns true if lanes may be open.
    pub(super) fn may_open(&self) -> bool {
        self.active.get() && !self.stopped.get()
    }

    /// Waits until the superblocks are to say "active".
    pub(super) async fn until_active(&self) {
        self.activated.until(|| self.active.get()).await;
    }

    /// Sets the state that superblocks record from the next publication on; returns the earlier one.
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

    /// Stops the array: nothing is written from now on.
    pub(super) fn stop(&self) {
        self.stopped.set(true);
    }
}
