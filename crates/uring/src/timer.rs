//! Wakes: at a time, or in turn.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// Wakers by deadline; the number tells equal deadlines apart, first come first woken.
#[derive(Default)]
pub(crate) struct Timers {
    queue: RefCell<BTreeMap<(Instant, u64), Waker>>,
    next: Cell<u64>,
    /// Those that wait for a turn of the executor, first come first woken.
    turns: RefCell<BTreeMap<u64, Waker>>,
}

impl Timers {
    fn number(&self) -> u64 {
        self.next.replace(self.next.get() + 1)
    }

    /// Waits until `deadline`, by the clock `now`.
    pub(crate) fn wait_until<N: Fn() -> Instant>(
        self: &Rc<Timers>,
        deadline: Instant,
        now: N,
    ) -> Sleep<N> {
        Sleep { timers: Rc::clone(self), deadline, now, key: None }
    }

    /// Waits until [`Timers::give_turn`] comes to it.
    pub(crate) fn wait_for_turn(self: &Rc<Timers>) -> Turn {
        Turn { timers: Rc::clone(self), number: None }
    }

    /// Wakes the first that waits for a turn.
    pub(crate) fn give_turn(&self) {
        let first = self.turns.borrow_mut().pop_first();
        first.into_iter().for_each(|(_, waker)| waker.wake());
    }

    pub(crate) fn insert(&self, deadline: Instant, waker: Waker) -> (Instant, u64) {
        let number = self.number();
        self.queue.borrow_mut().insert((deadline, number), waker);
        (deadline, number)
    }

    pub(crate) fn remove(&self, key: (Instant, u64)) {
        let removed = self.queue.borrow_mut().remove(&key);
        drop(removed);
    }

    /// Forgets all of them.
    pub(crate) fn clear(&self) {
        let forgotten = (self.queue.take(), self.turns.take());
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

/// Waits until a deadline.
pub(crate) struct Sleep<N> {
    timers: Rc<Timers>,
    deadline: Instant,
    now: N,
    key: Option<(Instant, u64)>,
}

impl<N: Fn() -> Instant + Unpin> Future for Sleep<N> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(key) = self.key.take() {
            self.timers.remove(key);
        }
        if (self.now)() >= self.deadline {
            return Poll::Ready(());
        }
        self.key = Some(self.timers.insert(self.deadline, cx.waker().clone()));
        Poll::Pending
    }
}

impl<N> Drop for Sleep<N> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.timers.remove(key);
        }
    }
}

/// Waits for a turn of the executor.
pub(crate) struct Turn {
    timers: Rc<Timers>,
    number: Option<u64>,
}

impl Future for Turn {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let timers = Rc::clone(&self.timers);
        let number = *self.number.get_or_insert_with(|| {
            let number = timers.number();
            timers.turns.borrow_mut().insert(number, cx.waker().clone());
            number
        });
        match timers.turns.borrow_mut().get_mut(&number) {
            None => Poll::Ready(()),
            Some(waker) => {
                waker.clone_from(cx.waker());
                Poll::Pending
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let removed = self.number.and_then(|number| self.timers.turns.borrow_mut().remove(&number));
        drop(removed);
    }
}
