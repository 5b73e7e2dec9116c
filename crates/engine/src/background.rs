//! Work that goes on after its caller is gone: of arrays, and of devices that keep changes.
//!
//! A write that a client dropped must still reach every copy, and a superblock that is half written must be
//! completed. When their futures are dropped they move in here, and a task of the volume polls them.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use braid_block::Completion;

use crate::Pending;
use crate::signal::Signal;

/// A future on the heap.
pub(crate) type Later<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

type Task = Later<'static, ()>;

/// Futures without an owner.
#[derive(Default)]
pub(crate) struct Background {
    taken_in: RefCell<Vec<Task>>,
    running: std::cell::Cell<usize>,
    changed: Signal,
}

impl Background {
    /// Runs `future` to its end.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        self.take_in(Box::pin(future));
    }

    fn take_in(&self, task: Task) {
        self.taken_in.borrow_mut().push(task);
        self.changed.notify();
    }

    /// Returns a request, after the first step of `future`. If the request is dropped, its future is kept and
    /// completed.
    pub(crate) fn request(
        self: &Rc<Self>,
        future: impl Future<Output = Completion> + 'static,
    ) -> Pending {
        let mut future: Pin<Box<dyn Future<Output = Completion>>> = Box::pin(future);
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(completion) => Pending::ready(completion),
            Poll::Pending => {
                let owned = Owned { future: Some(future), background: Rc::downgrade(self) };
                Pending::steps(Box::pin(owned))
            }
        }
    }

    /// Returns `future`, which is kept and completed if it is dropped before its end: an operator that no longer
    /// waits does not leave half a superblock behind.
    pub(crate) fn see_through<T: 'static>(
        self: &Rc<Self>,
        future: impl Future<Output = T> + 'static,
    ) -> Owned<T> {
        let future: Pin<Box<dyn Future<Output = T>>> = Box::pin(future);
        Owned { future: Some(future), background: Rc::downgrade(self) }
    }

    /// Drops all kept futures, and those that these drops add.
    pub(crate) fn abandon(&self) {
        loop {
            let tasks = self.taken_in.take();
            if tasks.is_empty() {
                return;
            }
            drop(tasks);
        }
    }

    /// Returns true if no kept future is left.
    pub(crate) fn is_idle(&self) -> bool {
        self.running.get() == 0 && self.taken_in.borrow().is_empty()
    }

    /// Polls the kept futures, without end.
    pub(crate) async fn run(&self) {
        let mut tasks: Vec<Task> = Vec::new();
        loop {
            let mut waiting = Box::pin(self.changed.until(|| !self.taken_in.borrow().is_empty()));
            poll_fn(|cx| {
                tasks.retain_mut(|task| task.as_mut().poll(cx).is_pending());
                self.running.set(tasks.len());
                waiting.as_mut().poll(cx)
            })
            .await;
            drop(waiting);
            tasks.append(&mut self.taken_in.borrow_mut());
            self.running.set(tasks.len());
        }
    }
}

/// A future that is completed even if it is dropped.
pub(crate) struct Owned<T: 'static> {
    future: Option<Pin<Box<dyn Future<Output = T>>>>,
    background: Weak<Background>,
}

impl<T: 'static> Future for Owned<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let future = self.future.as_mut().expect("polled until it is ready");
        let poll = future.as_mut().poll(cx);
        if poll.is_ready() {
            self.future = None;
        }
        poll
    }
}

impl<T: 'static> Drop for Owned<T> {
    fn drop(&mut self) {
        if let (Some(future), Some(background)) = (self.future.take(), self.background.upgrade()) {
            background.spawn(async move {
                future.await;
            });
        }
    }
}
