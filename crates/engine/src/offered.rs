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
//! * A connection goes on with the device that it began with, or with another of the same shape: one of
//!   another size is for those that come, and for exports that can tell their client.

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
    /// Of all eras.
    under_way: Rc<()>,
    era: RefCell<Era>,
}

/// From one exchange of the device to the next. There are as many as it has writes under way, and one
/// for whoever looks.
type Era = Rc<Rc<()>>;

/// A write that was let through, until it is answered.
#[derive(Debug)]
pub struct WritePermit {
    _era: Era,
}

/// The writes that were let through before the device was exchanged.
#[derive(Debug)]
pub struct Earlier {
    era: Era,
}

impl Earlier {
    /// Whether all of them are answered.
    pub fn are_answered(&self) -> bool {
        Rc::strong_count(&self.era) == 1
    }
}

impl From<Dev> for Offered {
    fn from(dev: Dev) -> Offered {
        let (locked, changes) = (Cell::new(false), Cell::new(0));
        let under_way = Rc::new(());
        let era = RefCell::new(Rc::new(Rc::clone(&under_way)));
        let inner = Inner { dev: RefCell::new(dev), locked, changes, under_way, era };
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

    /// Offers `dev` from now on, which has the content of the one before. What is under way in that one
    /// goes on there.
    pub fn exchange(&self, dev: Dev) -> Earlier {
        *self.inner.dev.borrow_mut() = dev;
        self.inner.changes.set(self.inner.changes.get() + 1);
        let next = Rc::new(Rc::clone(&self.inner.under_way));
        Earlier { era: self.inner.era.replace(next) }
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
        WritePermit { _era: Rc::clone(&self.inner.era.borrow()) }
    }

    /// Whether all writes that were let through are answered.
    pub fn is_quiet(&self) -> bool {
        // What offers it, and this era, which nobody else has; of the eras before none has a write left.
        let era = Rc::strong_count(&self.inner.era.borrow());
        Rc::strong_count(&self.inner.under_way) == 2 && era == 1
    }
}
