//! "The volume is going down", told once to all tasks of a shard.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use crate::end::End;

/// A flag that is raised once; clones are the same flag.
#[derive(Clone, Default)]
pub struct Stop {
    inner: Rc<Inner>,
}

#[derive(Default)]
struct Inner {
    raised: Cell<bool>,
    waiting: RefCell<Vec<Waker>>,
}

impl Stop {
    /// Raises it.
    pub fn raise(&self) {
        self.inner.raised.set(true);
        self.inner.waiting.take().into_iter().for_each(Waker::wake);
    }

    /// Returns true if it is raised.
    pub fn is_raised(&self) -> bool {
        self.inner.raised.get()
    }

    /// Waits until it is raised.
    pub async fn wait(&self) {
        let mut registered: Option<Waker> = None;
        std::future::poll_fn(|cx| {
            if self.is_raised() {
                return Poll::Ready(());
            }
            if !registered.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                registered = Some(cx.waker().clone());
                self.inner.waiting.borrow_mut().push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }
}

/// Waits until all must end, or this one, whose place is needed.
pub(crate) async fn end_of(all: Stop, this: Stop) -> End {
    let (mut all, mut this) = (pin!(all.wait()), pin!(this.wait()));
    std::future::poll_fn(|cx| match all.as_mut().poll(cx) {
        Poll::Ready(()) => Poll::Ready(End::Stopped),
        Poll::Pending => this.as_mut().poll(cx).map(|()| End::Idle),
    })
    .await
}
