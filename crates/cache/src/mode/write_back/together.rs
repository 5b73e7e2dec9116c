//! Futures that are polled together.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

/// Some of the same kind, to which others may come.
pub(super) struct Crowd<'a, T> {
    futures: Vec<Pin<Box<dyn Future<Output = T> + 'a>>>,
}

impl<'a, T> Crowd<'a, T> {
    pub(super) fn new() -> Crowd<'a, T> {
        Crowd { futures: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.futures.len()
    }

    pub(super) fn push(&mut self, future: impl Future<Output = T> + 'a) {
        self.futures.push(Box::pin(future));
    }

    /// What the next one does that is done; if there is none, nothing ever.
    pub(super) async fn next(&mut self) -> T {
        poll_fn(|cx| {
            for index in 0..self.futures.len() {
                if let Poll::Ready(value) = self.futures[index].as_mut().poll(cx) {
                    drop(self.futures.swap_remove(index));
                    return Poll::Ready(value);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// Waits for one of the two.
pub(super) async fn either(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|cx| match one.as_mut().poll(cx) {
        Poll::Ready(()) => Poll::Ready(()),
        Poll::Pending => other.as_mut().poll(cx),
    })
    .await;
}
