//! A request under way.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use braid_array::ArrayByte;
use braid_block::{Completion, Payload};

use crate::contract::Contract;

/// The future of a completion, in the three ways a device can answer.
pub enum Pending {
    /// Done already. `None` once the completion was taken.
    Ready(Option<Completion>),
    /// An operation that an executor's driver has under way.
    Ticket(Ticket),
    /// The same, where somebody looks at the completion before it is handed on.
    Watched(Watched),
    /// Several steps.
    Task(Steps),
}

impl Pending {
    /// Done already.
    #[inline]
    pub fn ready(completion: Completion) -> Pending {
        Pending::Ready(Some(completion))
    }

    /// Several steps, of which the first is made now: to start a request is to start it, whether
    /// anybody waits for it or not. The others are made as the result is polled.
    pub fn task(future: impl Future<Output = Completion> + 'static) -> Pending {
        let mut future = Box::pin(future);
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(completion) => Pending::ready(completion),
            Poll::Pending => Pending::steps(future),
        }
    }

    /// Several steps, of which the first was made.
    pub(crate) fn steps(future: Pin<Box<dyn Future<Output = Completion>>>) -> Pending {
        Pending::Task(Steps { future, contract: Contract::default() })
    }

    /// Holds the answer to `contract`, whenever it comes.
    ///
    /// # Panics
    /// In builds with debug assertions, if the answer is there and breaks the contract.
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

    /// See [`CompletionSource::lend`]; nothing of what is done already or takes several steps.
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

/// Several steps, and what their answer is held to.
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

/// Who looks at the completions of operations that it passed on, so that passing on takes no
/// memory of its own.
pub trait Watch {
    /// The operation of `token` completed: what is to be answered, which may take further steps.
    fn completed(self: Rc<Self>, token: Token, completion: Completion) -> Pending;

    /// Nobody waits for the operation of `token` any more.
    fn abandoned(&self, token: Token);
}

/// What a [`Watch`] needs to know of an operation: which member, and which byte of the array.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    /// The watcher's number for the member that was asked.
    pub member: u32,
    /// Where the request starts.
    pub offset: ArrayByte,
}

/// A ticket, and who looks at its completion.
pub struct Watched {
    ticket: Ticket,
    watch: Option<Rc<dyn Watch>>,
    token: Token,
    contract: Contract,
}

impl Watched {
    /// Has `watch` look at the completion of `ticket`.
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

/// Where an executor keeps the operations it has under way.
pub trait CompletionSource {
    /// The completion of operation `id` if it is there, after which the id is free again;
    /// otherwise the waker is kept.
    fn poll_completion(&self, id: u32, cx: &mut Context<'_>) -> Poll<Completion>;

    /// Nobody waits for `id` any more. The operation goes on, and the source keeps its memory
    /// until it is done.
    fn abandon(&self, id: u32);

    /// What operation `id`, which is under way, stores, once more; nothing if it stores nothing. A
    /// source whose operations all come to their end need not know it.
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
    /// A claim on operation `id`, of which there is one.
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

/// Waits for all of `pending` and answers their completions in the same order.
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

/// Waits for all of `futures` and answers what they did in the same order.
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
