//! What is to be woken when.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::task::Waker;
use std::time::Instant;

/// Wakers by deadline; the number tells equal deadlines apart, first come first woken.
#[derive(Default)]
pub(crate) struct Timers {
    queue: RefCell<BTreeMap<(Instant, u64), Waker>>,
    next: Cell<u64>,
}

impl Timers {
    pub(crate) fn insert(&self, deadline: Instant, waker: Waker) -> (Instant, u64) {
        let number = self.next.get();
        self.next.set(number + 1);
        self.queue.borrow_mut().insert((deadline, number), waker);
        (deadline, number)
    }

    pub(crate) fn remove(&self, key: (Instant, u64)) {
        let removed = self.queue.borrow_mut().remove(&key);
        drop(removed);
    }

    /// Forgets all of them.
    pub(crate) fn clear(&self) {
        let forgotten = self.queue.take();
        drop(forgotten);
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.queue.borrow().first_key_value().map(|((deadline, _), _)| *deadline)
    }

    /// Wakes all that is due at `now`.
    pub(crate) fn fire(&self, now: Instant) {
        loop {
            let mut queue = self.queue.borrow_mut();
            match queue.first_entry() {
                Some(first) if first.key().0 <= now => {
                    let waker = first.remove();
                    drop(queue);
                    waker.wake();
                }
                _ => return,
            }
        }
    }
}
