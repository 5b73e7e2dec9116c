//! The device that a shard's exports offer: it may be exchanged for one of another size, and clients may be
//! kept from writing to it.
//!
//! ```text
//!   an export's write ──▶ locked? ── no ──▶ permit ──▶ Dev ──▶ answered: the permit goes
//!                            │ yes
//!                            ▼
//!                         refused           quiet: locked for long enough that no permit is left
//! ```
//!
//! Invariants
//! * Only modifying requests of exports ask for the lock: the layers behind the exports work on.
//! * A device that an export has put in front ([`Offered::seen_through`]) is in front of every device that is
//!   offered later.
//! * A connection keeps the device that it began with, or one of the same shape. A device of another size is
//!   for new connections, and for exports that can tell their client.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use braid_block::Limits;

use crate::Dev;
use crate::canary::OfferedCanary;

/// The device that the exports of one shard offer. Cheap to clone; all clones are the same.
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

/// The time from one exchange of the device to the next. An era is referenced by its writes in flight, by the
/// previous era while that has writes in flight, and by observers. A sole reference proves that all writes up
/// to the end of the era have completed.
#[derive(Debug, Default)]
struct Era {
    next: OnceCell<Rc<Era>>,
}

/// A write that was let through, until it completes.
#[derive(Debug)]
pub struct WritePermit {
    _era: Rc<Era>,
}

/// The writes that were let through before the device was exchanged. Keeping this makes later observers wait.
#[derive(Debug)]
pub struct Earlier {
    era: Rc<Era>,
}

impl Earlier {
    /// Returns true if all of these writes have completed.
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
    /// Returns the device as it is now.
    pub fn dev(&self) -> Dev {
        let dev = self.inner.dev.borrow().clone();
        match &self.front {
            Some(front) if !OfferedCanary::FrontForgotten.is_planted() => front(dev),
            _ => dev,
        }
    }

    /// Returns a handle for one export, which sees the device through the device that `front` puts in front of
    /// it. The limits must stay the same.
    pub fn seen_through(&self, front: impl Fn(Dev) -> Dev + 'static) -> Offered {
        Offered { inner: Rc::clone(&self.inner), front: Some(Rc::new(front)) }
    }

    /// Returns the limits for clients now: a locked device is read-only.
    pub fn limits(&self) -> Limits {
        let limits = *self.inner.dev.borrow().limits();
        let is_locked = self.is_locked() && !OfferedCanary::LockNotTold.is_planted();
        Limits { read_only: limits.read_only || is_locked, ..limits }
    }

    /// Offers `dev` from now on, which has the contents of the previous device. Requests in flight complete on
    /// the previous device.
    pub fn exchange(&self, dev: Dev) -> Earlier {
        *self.inner.dev.borrow_mut() = dev;
        self.inner.changes.set(self.inner.changes.get() + 1);
        let next = Rc::<Era>::default();
        let era = self.inner.era.replace(Rc::clone(&next));
        if !OfferedCanary::ErasApart.is_planted() {
            // The era is new, and so has no successor.
            let _ = era.next.set(next);
        }
        Earlier { era }
    }

    /// Locks out writes of clients, or lets them through again.
    pub fn set_locked(&self, locked: bool) {
        self.inner.locked.set(locked);
        self.inner.changes.set(self.inner.changes.get() + 1);
    }

    /// Returns true if writes of clients are to be refused.
    #[inline]
    pub fn is_locked(&self) -> bool {
        self.inner.locked.get()
    }

    /// Returns the number of changes so far: of the device, or of the lock.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.inner.changes.get()
    }

    /// Returns a permit for a write that is let through.
    #[inline]
    pub fn permit(&self) -> WritePermit {
        if OfferedCanary::NoPermit.is_planted() {
            return WritePermit { _era: Rc::default() };
        }
        WritePermit { _era: Rc::clone(&self.inner.era.borrow()) }
    }

    /// Returns true if all writes that were let through have completed.
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

    /// A wait for the writes before the second of two exchanges includes those before the first.
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
