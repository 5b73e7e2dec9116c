//! What a shard's exports offer: a device, which may be exchanged for one of another size, and
//! whether clients may write to it.
//!
//! ```text
//!   an export's write ──▶ locked? ── no ──▶ permit ──▶ Dev ──▶ answered: the permit goes
//!                            │ yes
//!                            ▼
//!                         refused           quiet: locked for long enough that no permit is left
//! ```
//!
//! Invariants
//! * Only what modifies asks for the lock, and only exports do: what is behind them works on.
//! * A connection goes on with the device that it began with; what is exchanged is for those that
//!   come, and for exports that follow [`Offered::changes`].

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use braid_block::Limits;

use crate::Dev;

/// What exports of one shard offer. Cheap to clone, all clones are the same.
#[derive(Clone)]
pub struct Offered {
    inner: Rc<Inner>,
}

struct Inner {
    dev: RefCell<Dev>,
    locked: Cell<bool>,
    changes: Cell<u64>,
    under_way: Rc<()>,
}

/// A write that was let through, until it is answered.
#[derive(Debug)]
pub struct WritePermit {
    _under_way: Rc<()>,
}

impl From<Dev> for Offered {
    fn from(dev: Dev) -> Offered {
        let (locked, changes) = (Cell::new(false), Cell::new(0));
        let inner = Inner { dev: RefCell::new(dev), locked, changes, under_way: Rc::new(()) };
        Offered { inner: Rc::new(inner) }
    }
}

impl Offered {
    /// The device as it is now.
    pub fn dev(&self) -> Dev {
        self.inner.dev.borrow().clone()
    }

    /// What holds for clients now: nobody may write to what is locked.
    pub fn limits(&self) -> Limits {
        let limits = *self.inner.dev.borrow().limits();
        Limits { read_only: limits.read_only || self.is_locked(), ..limits }
    }

    /// Offers `dev` from now on, which has the content of the one before.
    pub fn exchange(&self, dev: Dev) {
        *self.inner.dev.borrow_mut() = dev;
        self.inner.changes.set(self.inner.changes.get() + 1);
    }

    /// Lets no more writes of clients through, or lets them again.
    pub fn set_locked(&self, locked: bool) {
        self.inner.locked.set(locked);
        self.inner.changes.set(self.inner.changes.get() + 1);
    }

    /// Whether writes of clients are to be refused.
    #[inline]
    pub fn is_locked(&self) -> bool {
        self.inner.locked.get()
    }

    /// How often it changed: the device, or whether it is locked.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.inner.changes.get()
    }

    /// For a write that is let through.
    #[inline]
    pub fn permit(&self) -> WritePermit {
        WritePermit { _under_way: Rc::clone(&self.inner.under_way) }
    }

    /// Whether all writes that were let through are answered.
    pub fn is_quiet(&self) -> bool {
        Rc::strong_count(&self.inner.under_way) == 1
    }
}

#[cfg(test)]
mod tests {
    use braid_block::Io;

    use super::*;
    use crate::{Device, Pending};

    struct Sized(u64);

    impl Device for Sized {
        fn limits(&self) -> Limits {
            Limits::new(self.0, 512)
        }

        fn start(&self, io: Io) -> Pending {
            Pending::ready(io.complete(Ok(())))
        }
    }

    #[test]
    fn it_is_quiet_when_all_that_were_let_through_are_answered() {
        let offered = Offered::from(Dev::new(Sized(512)));
        let other = offered.clone();
        assert!(offered.is_quiet() && !offered.is_locked());
        let permit = other.permit();
        offered.set_locked(true);
        assert!(other.is_locked() && other.limits().read_only);
        assert!(!offered.is_quiet() && !other.is_quiet());
        drop(permit);
        assert!(offered.is_quiet() && other.is_quiet());
        offered.set_locked(false);
        assert!(!other.limits().read_only);
    }

    #[test]
    fn who_has_a_device_keeps_it_and_who_comes_has_the_new_one() {
        let offered = Offered::from(Dev::new(Sized(512)));
        let (before, changes) = (offered.dev(), offered.changes());
        offered.exchange(Dev::new(Sized(1024)));
        assert_eq!((before.limits().size, offered.limits().size), (512, 1024));
        assert_ne!(offered.changes(), changes);
    }
}
