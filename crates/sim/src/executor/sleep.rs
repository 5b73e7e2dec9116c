//! Waiting for a moment of virtual time.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::{Core, EventKey};

/// Done when the clock is there.
pub(super) struct Sleep {
    core: Rc<Core>,
    deadline_ns: u64,
    key: Option<EventKey>,
}

impl Sleep {
    pub(super) fn until(core: Rc<Core>, deadline_ns: u64) -> Sleep {
        Sleep { core, deadline_ns, key: None }
    }

    fn cancel(&mut self) {
        if let Some(key) = self.key.take() {
            let cancelled = self.core.events.borrow_mut().remove(&key);
            drop(cancelled);
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.cancel();
        if self.core.now_ns.get() >= self.deadline_ns {
            return Poll::Ready(());
        }
        let waker = cx.waker().clone();
        self.key = Some(self.core.schedule(self.deadline_ns, Box::new(move || waker.wake())));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.cancel();
    }
}
