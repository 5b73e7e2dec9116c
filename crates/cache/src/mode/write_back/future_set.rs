//! A set of concurrently polled futures.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

/// Futures of the same type; more can be added.
pub(super) struct FutureSet<'a, T> {
    futures: Vec<Pin<Box<dyn Future<Output = T> + 'a>>>,
}

impl<'a, T> FutureSet<'a, T> {
    pub(super) fn new() -> FutureSet<'a, T> {
        FutureSet { futures: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.futures.len()
    }

    pub(super) fn push(&mut self, future: impl Future<Output = T> + 'a) {
        self.futures.push(Box::pin(future));
    }

    /// Returns the output of the next completed future; pending forever if the set is empty.
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

/// Waits for either future.
pub(super) async fn either(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|cx| match one.as_mut().poll(cx) {
        Poll::Ready(()) => Poll::Ready(()),
        Poll::Pending => other.as_mut().poll(cx),
    })
    .await;
}
