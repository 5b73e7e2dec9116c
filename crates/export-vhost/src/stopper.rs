//! The end of a queue, asked for by another thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Waker};

/// Has a queue stop, from any thread.
#[derive(Debug, Default)]
pub(crate) struct Stopper {
    stopped: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Stopper {
    /// Has the queue take no more requests.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        waker.into_iter().for_each(Waker::wake);
    }

    /// Returns true if it is to stop; otherwise the task is woken when it is.
    pub(crate) fn is_stopped(&self, cx: &Context<'_>) -> bool {
        if !self.stopped.load(Ordering::SeqCst) {
            let mut waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
            if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                *waker = Some(cx.waker().clone());
            }
        }
        self.stopped.load(Ordering::SeqCst)
    }
}
