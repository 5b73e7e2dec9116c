//! Waiting for a condition that other tasks of the same thread bring about.

use std::cell::RefCell;
use std::task::{Poll, Waker};

/// Tasks that wait until something changed.
#[derive(Default)]
pub struct Signal {
    waiting: RefCell<Vec<Waker>>,
}

impl Signal {
    /// Wakes every waiting task to check its condition.
    pub fn notify(&self) {
        if !self.waiting.borrow().is_empty() {
            let waiting = self.waiting.take();
            waiting.into_iter().for_each(Waker::wake);
        }
    }

    /// Waits until `condition` holds, which is checked now and after each [`Signal::notify`].
    pub async fn until(&self, mut condition: impl FnMut() -> bool) {
        std::future::poll_fn(|cx| {
            if condition() {
                return Poll::Ready(());
            }
            let mut waiting = self.waiting.borrow_mut();
            if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                waiting.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }
}
