//! The requests in flight of a client, polled only after a wake.
//!
//! A table of slots, each with a waker that is made once, when so many requests are first in flight: waking a slot
//! puts its number on a list and wakes the task that owns the table. In the steady state nothing is allocated, and
//! a client that never has more than one request in flight has one slot.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use braid_block::Completion;

use crate::Pending;

/// A bounded set of requests, each with a tag that comes back with its completion.
pub struct InFlight<T> {
    capacity: usize,
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    shared: Arc<Shared>,
    /// Slots to be polled, in the order in which they were woken or added.
    ready: VecDeque<u32>,
}

struct Slot<T> {
    request: Option<(T, Pending)>,
    waker: Waker,
    signal: Arc<Signal>,
}

/// The part of a slot that its waker touches, from any thread.
struct Signal {
    index: u32,
    queued: AtomicBool,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// True if `woken` lists a slot. False saves the lock.
    any: AtomicBool,
    woken: Mutex<(Vec<u32>, Option<Waker>)>,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.queued.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut woken = self.shared.woken.lock().unwrap_or_else(PoisonError::into_inner);
        woken.0.push(self.index);
        self.shared.any.store(true, Ordering::Release);
        if let Some(task) = woken.1.take() {
            drop(woken);
            task.wake();
        }
    }
}

impl<T> InFlight<T> {
    /// Makes a table for up to `capacity` requests.
    pub fn new(capacity: usize) -> InFlight<T> {
        InFlight {
            capacity,
            slots: Vec::new(),
            free: Vec::new(),
            shared: Arc::default(),
            ready: VecDeque::new(),
        }
    }

    /// Returns the number of requests in flight.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns true if no request is in flight.
    pub fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// Returns true if there is no room for another request.
    pub fn is_full(&self) -> bool {
        self.len() == self.capacity
    }

    /// Adds a request, which is polled at the next [`InFlight::poll_next`].
    ///
    /// # Panics
    /// If the table is full.
    pub fn push(&mut self, tag: T, pending: Pending) {
        let index = self.free.pop().unwrap_or_else(|| self.add_slot());
        let slot = &mut self.slots[index as usize];
        slot.request = Some((tag, pending));
        slot.signal.queued.store(true, Ordering::Release);
        self.ready.push_back(index);
    }

    #[cold]
    fn add_slot(&mut self) -> u32 {
        assert!(self.slots.len() < self.capacity, "room for another request");
        let index = u32::try_from(self.slots.len()).expect("no table has so many");
        let (queued, shared) = (AtomicBool::new(false), Arc::clone(&self.shared));
        let signal = Arc::new(Signal { index, queued, shared });
        self.slots.push(Slot { request: None, waker: Waker::from(Arc::clone(&signal)), signal });
        index
    }

    /// Returns the next completed request, in the order of wakes. Pending if none has completed, also if there
    /// are none at all.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<(T, Completion)> {
        loop {
            // At each step, so that a client that keeps adding requests which complete at once does not starve
            // older ones.
            if self.shared.any.load(Ordering::Acquire) {
                self.take_woken();
            }
            let Some(index) = self.ready.pop_front() else {
                let mut woken = self.shared.woken.lock().unwrap_or_else(PoisonError::into_inner);
                if !woken.0.is_empty() {
                    continue;
                }
                if !woken.1.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                    woken.1 = Some(cx.waker().clone());
                }
                return Poll::Pending;
            };
            let slot = &mut self.slots[index as usize];
            // Before the poll, so that a wake during the poll is not lost.
            slot.signal.queued.store(false, Ordering::Release);
            let Some((_, pending)) = &mut slot.request else { continue };
            let mut slot_cx = Context::from_waker(&slot.waker);
            if let Poll::Ready(completion) = Pin::new(pending).poll(&mut slot_cx) {
                let (tag, _) = slot.request.take().expect("polled just now");
                self.free.push(index);
                return Poll::Ready((tag, completion));
            }
        }
    }

    fn take_woken(&mut self) {
        let mut woken = self.shared.woken.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared.any.store(false, Ordering::Release);
        self.ready.extend(woken.0.drain(..));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_block::{Io, Span};
    use std::cell::Cell;
    use std::rc::Rc;

    fn done() -> Completion {
        Io::discard(Span::new(0, 512), braid_block::Flags::NONE).complete(Ok(()))
    }

    fn poll<T>(inflight: &mut InFlight<T>) -> Option<T> {
        match inflight.poll_next(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready((tag, _)) => Some(tag),
            Poll::Pending => None,
        }
    }

    /// Returns a request that completes when its gate is open, and keeps the waker of its last poll.
    fn gated(gate: &Rc<Cell<Option<Waker>>>, open: &Rc<Cell<bool>>) -> Pending {
        let (gate, open) = (Rc::clone(gate), Rc::clone(open));
        Pending::task(std::future::poll_fn(move |cx| {
            gate.set(Some(cx.waker().clone()));
            if open.get() { Poll::Ready(done()) } else { Poll::Pending }
        }))
    }

    #[test]
    fn only_what_was_woken_is_polled_and_slots_are_used_again() {
        let mut inflight = InFlight::new(2);
        let (gate, open) = (Rc::new(Cell::new(None)), Rc::new(Cell::new(false)));
        inflight.push("slow", gated(&gate, &open));
        inflight.push("fast", Pending::ready(done()));
        assert!(inflight.is_full());
        assert_eq!(poll(&mut inflight), Some("fast"));
        assert_eq!(poll(&mut inflight), None);
        inflight.push("again", Pending::ready(done()));
        assert_eq!(poll(&mut inflight), Some("again"));
        open.set(true);
        assert_eq!(poll(&mut inflight), None, "no wake");
        gate.take().unwrap().wake();
        assert_eq!(poll(&mut inflight), Some("slow"));
        assert!(inflight.is_empty());
    }

    #[test]
    fn what_is_done_at_once_does_not_starve_what_was_there_before() {
        let mut inflight = InFlight::new(2);
        let (gate, open) = (Rc::new(Cell::new(None)), Rc::new(Cell::new(true)));
        inflight.push("old", gated(&gate, &open));
        inflight.push("new", Pending::ready(done()));
        assert_eq!(poll(&mut inflight), Some("old"));
        open.set(false);
        inflight.push("old", gated(&gate, &open));
        assert_eq!(poll(&mut inflight), Some("new"));
        assert_eq!(poll(&mut inflight), None);
        open.set(true);
        gate.take().unwrap().wake();
        // The client adds another request for each completion, and each completes at once.
        inflight.push("new", Pending::ready(done()));
        assert_eq!(poll(&mut inflight), Some("new"));
        inflight.push("new", Pending::ready(done()));
        assert_eq!(poll(&mut inflight), Some("old"));
    }
}
