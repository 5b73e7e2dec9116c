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
//! * What an export has put in front of it ([`Offered::seen_through`]) is in front of whatever is offered later.
//! * A connection goes on with the device that it began with, or with another of the same shape: one of
//!   another size is for those that come, and for exports that can tell their client.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use braid_block::Limits;

use crate::Dev;

/// What exports of one shard offer. Cheap to clone, all clones are the same.
#[derive(Clone)]
pub struct Offered {
    inner: Rc<Inner>,
    front: Option<Rc<dyn Fn(Dev) -> Dev>>,
}

struct Inner {
    dev: RefCell<Dev>,
    locked: Cell<bool>,
    changes: Cell<u64>,
    era: RefCell<Rc<Era>>,
}

/// From one exchange of the device to the next. It is referred to by its writes under way, by the era
/// before for as long as that has any, and by whoever looks: who alone refers to it knows that all writes
/// up to its end are answered.
#[derive(Debug, Default)]
struct Era {
    next: OnceCell<Rc<Era>>,
}

/// A write that was let through, until it is answered.
#[derive(Debug)]
pub struct WritePermit {
    _era: Rc<Era>,
}

/// The writes that were let through before the device was exchanged. Who keeps it has later ones wait.
#[derive(Debug)]
pub struct Earlier {
    era: Rc<Era>,
}

impl Earlier {
    /// Whether all of them are answered.
    pub fn are_answered(&self) -> bool {
        Rc::strong_count(&self.era) == 1
    }
}

impl From<Dev> for Offered {
    fn from(dev: Dev) -> Offered {
        let (locked, changes, era) = (Cell::new(false), Cell::new(0), RefCell::default());
        let inner = Inner { dev: RefCell::new(dev), locked, changes, era };
        Offered { inner: Rc::new(inner), front: None }
    }
}

impl Offered {
    /// The device as it is now.
    pub fn dev(&self) -> Dev {
        let dev = self.inner.dev.borrow().clone();
        match &self.front {
            Some(front) => front(dev),
            None => dev,
        }
    }

    /// The same for one export, which sees the device through what `front` puts in front of it: something of
    /// the same limits.
    pub fn seen_through(&self, front: impl Fn(Dev) -> Dev + 'static) -> Offered {
        Offered { inner: Rc::clone(&self.inner), front: Some(Rc::new(front)) }
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
        let next = Rc::<Era>::default();
        let era = self.inner.era.replace(Rc::clone(&next));
        // It is new, and so has none after it.
        let _ = era.next.set(next);
        Earlier { era }
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
        Rc::strong_count(&self.inner.era.borrow()) == 1
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

    /// Who waits for the writes before the second of two exchanges waits for those before the first, too.
    #[test]
    fn earlier_writes_are_those_of_all_eras_before() {
        let offered = Offered::from(Dev::new(Sized(512)));
        let permit = offered.permit();
        drop(offered.exchange(Dev::new(Sized(512))));
        let earlier = offered.exchange(Dev::new(Sized(512)));
        assert!(!earlier.are_answered());
        drop(permit);
        assert!(earlier.are_answered());
    }

    #[test]
    fn an_export_sees_what_is_offered_later_through_its_own_front() {
        let offered = Offered::from(Dev::new(Sized(512)));
        let seen = Rc::new(Cell::new(0));
        let count = Rc::clone(&seen);
        let through = offered.seen_through(move |dev| {
            count.set(count.get() + 1);
            dev
        });
        offered.exchange(Dev::new(Sized(1024)));
        assert_eq!((through.dev().limits().size, seen.get()), (1024, 1));
        assert_eq!((offered.dev().limits().size, seen.get()), (1024, 1), "others see it plainly");
        through.set_locked(true);
        assert!(offered.is_locked());
    }
}
