//! A request in flight.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use braid_array::ArrayByte;
use braid_block::{Completion, Payload};

use crate::contract::Contract;

/// The future of a completion, in the ways in which a device can answer.
pub enum Pending {
    /// Complete. `None` once the completion was taken.
    Ready(Option<Completion>),
    /// An operation in flight in an executor's driver.
    Ticket(Ticket),
    /// An operation in flight whose completion is passed to a [`Watch`] first.
    Watched(Watched),
    /// Several steps.
    Task(Steps),
}

impl Pending {
    /// Returns a request that is complete.
    #[inline]
    pub fn ready(completion: Completion) -> Pending {
        Pending::Ready(Some(completion))
    }

    /// Returns a request of several steps, and carries out the first one now: a started request makes progress
    /// even if its result is never polled. The other steps are carried out as the result is polled.
    pub fn task(future: impl Future<Output = Completion> + 'static) -> Pending {
        let mut future = Box::pin(future);
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(completion) => Pending::ready(completion),
            Poll::Pending => Pending::steps(future),
        }
    }

    /// Returns a request of several steps of which the first was carried out.
    pub(crate) fn steps(future: Pin<Box<dyn Future<Output = Completion>>>) -> Pending {
        Pending::Task(Steps { future, contract: Contract::default() })
    }

    /// Holds the completion to `contract`, now or later.
    ///
    /// # Panics
    /// In builds with debug assertions, if the completion is there and breaks the contract.
    #[inline(always)]
    pub(crate) fn hold_to(&mut self, mut contract: Contract) {
        if !cfg!(debug_assertions) {
            return;
        }
        match self {
            Pending::Ready(Some(completion)) => contract.check(completion),
            Pending::Ready(None) => panic!("a request was answered with nothing"),
            Pending::Ticket(ticket) => ticket.contract.join(contract),
            Pending::Watched(watched) => watched.contract.join(contract),
            Pending::Task(steps) => steps.contract.join(contract),
        }
    }

    /// See [`CompletionSource::lend`]. Empty for a request that is complete or takes several steps.
    pub fn lend(&self) -> Payload {
        match self {
            Pending::Ticket(ticket) | Pending::Watched(Watched { ticket, .. }) => {
                ticket.source.lend(ticket.id)
            }
            Pending::Ready(_) | Pending::Task(_) => Payload::None,
        }
    }
}

impl Future for Pending {
    type Output = Completion;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Completion> {
        loop {
            match &mut *self {
                Pending::Ready(completion) => {
                    return Poll::Ready(completion.take().expect("a completion is taken once"));
                }
                Pending::Ticket(ticket) => return Pin::new(ticket).poll(cx),
                Pending::Task(steps) => return steps.poll(cx),
                Pending::Watched(watched) => match Pin::new(&mut watched.ticket).poll(cx) {
                    Poll::Ready(completion) => {
                        let contract = std::mem::take(&mut watched.contract);
                        *self = watched.judge(completion);
                        self.hold_to(contract);
                    }
                    Poll::Pending => return Poll::Pending,
                },
            }
        }
    }
}

/// A request of several steps, and the contract of its completion.
pub struct Steps {
    future: Pin<Box<dyn Future<Output = Completion>>>,
    contract: Contract,
}

impl Steps {
    #[inline]
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Completion> {
        self.contract.check_unanswered();
        let poll = self.future.as_mut().poll(cx);
        if let Poll::Ready(completion) = &poll {
            self.contract.check(completion);
        }
        poll
    }
}

/// An observer of the completions of operations that it passed on, so that passing on needs no memory.
pub trait Watch {
    /// Takes the completion of the operation of `token`. Returns the request's own, which may take further
    /// steps.
    fn completed(self: Rc<Self>, token: Token, completion: Completion) -> Pending;

    /// Notes that the request of `token` was dropped.
    fn abandoned(&self, token: Token);
}

/// The facts about an operation that a [`Watch`] needs: the member, and the byte of the array.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    /// The watcher's number for the member.
    pub member: u32,
    /// Start of the request.
    pub offset: ArrayByte,
}

/// A ticket, and the observer of its completion.
pub struct Watched {
    ticket: Ticket,
    watch: Option<Rc<dyn Watch>>,
    token: Token,
    contract: Contract,
}

impl Watched {
    /// Passes the completion of `ticket` to `watch`.
    pub fn new(ticket: Ticket, watch: Rc<dyn Watch>, token: Token) -> Watched {
        Watched { ticket, watch: Some(watch), token, contract: Contract::default() }
    }

    fn judge(&mut self, completion: Completion) -> Pending {
        let watch = self.watch.take().expect("a completion is taken once");
        watch.completed(self.token, completion)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(watch) = self.watch.take() {
            watch.abandoned(self.token);
        }
    }
}

/// The part of an executor that keeps its operations in flight.
pub trait CompletionSource {
    /// Returns the completion of operation `id` if it is there, and frees the id; otherwise keeps the waker.
    fn poll_completion(&self, id: u32, cx: &mut Context<'_>) -> Poll<Completion>;

    /// Gives up the claim on `id`. The operation goes on, and the source keeps its memory until it completes.
    fn abandon(&self, id: u32);

    /// Shares the payload that operation `id`, which is in flight, stores; empty if it stores none. A source
    /// whose operations all complete need not implement this.
    fn lend(&self, _id: u32) -> Payload {
        Payload::None
    }
}

/// A claim on one operation of a [`CompletionSource`].
pub struct Ticket {
    source: Rc<dyn CompletionSource>,
    id: u32,
    taken: bool,
    contract: Contract,
}

impl Ticket {
    /// Returns the claim on operation `id`, of which there is one.
    pub fn new(source: Rc<dyn CompletionSource>, id: u32) -> Ticket {
        Ticket { source, id, taken: false, contract: Contract::default() }
    }
}

impl Future for Ticket {
    type Output = Completion;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Completion> {
        self.contract.check_unanswered();
        let poll = self.source.poll_completion(self.id, cx);
        self.taken = poll.is_ready();
        if let Poll::Ready(completion) = &poll {
            self.contract.check(completion);
        }
        poll
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.taken {
            self.source.abandon(self.id);
        }
    }
}

/// Waits for all of `pending` and returns their completions in the same order.
pub async fn join_all(mut pending: Vec<Pending>) -> Vec<Completion> {
    let mut done: Vec<Option<Completion>> = Vec::new();
    done.resize_with(pending.len(), || None);
    let mut left = pending.len();
    std::future::poll_fn(move |cx| {
        for (pending, done) in pending.iter_mut().zip(&mut done) {
            if done.is_none()
                && let Poll::Ready(completion) = Pin::new(pending).poll(cx)
            {
                *done = Some(completion);
                left -= 1;
            }
        }
        match left {
            0 => Poll::Ready(done.iter_mut().filter_map(Option::take).collect()),
            _ => Poll::Pending,
        }
    })
    .await
}

/// Waits for all of `futures` and returns their outputs in the same order.
pub(crate) async fn join_futures<T>(futures: Vec<Pin<Box<dyn Future<Output = T> + '_>>>) -> Vec<T> {
    let mut futures: Vec<_> = futures.into_iter().map(|future| (Some(future), None)).collect();
    std::future::poll_fn(move |cx| {
        let mut left = 0;
        for (future, done) in &mut futures {
            if let Some(pending) = future {
                match pending.as_mut().poll(cx) {
                    Poll::Ready(value) => (*future, *done) = (None, Some(value)),
                    Poll::Pending => left += 1,
                }
            }
        }
        match left {
            0 => Poll::Ready(futures.iter_mut().filter_map(|(_, done)| done.take()).collect()),
            _ => Poll::Pending,
        }
    })
    .await
}
