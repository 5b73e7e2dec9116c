//! The device of a shard on an image.
//!
//! ```text
//!   start ──▶ submit ──▶ ... counter ──▶ task: takes answers, wakes waiting requests
//!   a durable write: write ──▶ flush
//! ```
//!
//! The task ends when the device is gone and all its requests are answered, so that memory comes back to the pool.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use braid_block::{Completion, Errno, Flags, Io, Limits, Op, Payload, Span};
use braid_engine::{CompletionSource, Device, Pending, Ticket};
use braid_uring::{Failures, Fd, Handle, Interest};
use slab::Slab;

/// Most bytes of one discard or zeroing. Ceph carries one out object by object, all at once.
const MOST_ZEROES: u64 = 1 << 30;

/// Requests to an image, whatever carries them out.
pub trait Queue: 'static {
    /// Starts a request, whose answer is found by [`Queue::take`] with this number.
    fn submit(&self, id: u32, io: Io);

    /// Adds the answers that have come to `done`.
    fn take(&self, done: &mut Vec<Done>);

    /// Returns a counter (`eventfd`) that is not 0 if answers have come.
    ///
    /// # Errors
    /// `EMFILE`.
    fn events(&self) -> io::Result<OwnedFd>;
}

/// The answer to a request.
pub struct Done {
    /// The number of the request.
    pub id: u32,
    /// The result.
    pub result: Result<(), Errno>,
    /// The memory that came with it.
    pub payload: Payload,
}

/// The device of a shard on an image.
pub struct RbdDevice<Q: Queue> {
    inner: Rc<Inner<Q>>,
}

struct Inner<Q: Queue> {
    queue: Q,
    limits: Limits,
    requests: RefCell<Slab<Request>>,
    failures: Arc<Failures>,
    counter: OwnedFd,
    is_dropped: Cell<bool>,
}

enum Request {
    InFlight(Option<Waker>),
    Abandoned,
    Done(Completion),
}

impl<Q: Queue> RbdDevice<Q> {
    /// Makes the device, and the task that takes answers.
    ///
    /// # Errors
    /// `EMFILE`.
    pub fn new(
        queue: Q,
        limits: Limits,
        failures: Arc<Failures>,
        handle: &Handle,
    ) -> io::Result<RbdDevice<Q>> {
        let (counter, waited) = (queue.events()?, Fd::new(queue.events()?));
        let requests = RefCell::default();
        let is_dropped = Cell::new(false);
        let inner = Rc::new(Inner { queue, limits, requests, failures, counter, is_dropped });
        let (task, waiting) = (Rc::clone(&inner), handle.clone());
        handle.spawn(async move {
            let mut done = Vec::new();
            while !task.is_over() {
                // A failure leaves nothing to wait by. Requests then end by their deadlines.
                if waiting.ready(&waited, Interest::Readable).await.is_err() {
                    return;
                }
                // The count is taken out before the answers: one that comes between the two is told of again.
                let _ = rustix::io::read(waited.as_fd(), &mut [0; 8]);
                task.take(&mut done);
            }
        });
        Ok(RbdDevice { inner })
    }
}

impl<Q: Queue> Drop for RbdDevice<Q> {
    fn drop(&mut self) {
        self.inner.is_dropped.set(true);
        self.inner.wake();
    }
}

impl<Q: Queue> Device for RbdDevice<Q> {
    fn limits(&self) -> Limits {
        self.inner.limits
    }

    fn start(&self, io: Io) -> Pending {
        let is_whole = io.op.has_data() || io.span.len <= MOST_ZEROES;
        if is_whole && !io.flags.contains(Flags::FUA) {
            return self.inner.submit(io);
        }
        Pending::task(Rc::clone(&self.inner).in_steps(io))
    }
}

impl<Q: Queue> Inner<Q> {
    fn submit(self: &Rc<Self>, io: Io) -> Pending {
        let entry = self.requests.borrow_mut().insert(Request::InFlight(None));
        let id = u32::try_from(entry).expect("fewer requests than 32 bits count");
        self.queue.submit(id, io);
        Pending::Ticket(Ticket::new(Rc::clone(self) as Rc<dyn CompletionSource>, id))
    }

    /// Carries out a long request piece by piece, and a flush behind one that is to be durable.
    async fn in_steps(self: Rc<Self>, io: Io) -> Completion {
        let Io { op, span, flags, payload } = io;
        let is_durable = flags.contains(Flags::FUA);
        let mut completion = match op.has_data() {
            true => self.submit(Io { op, span, flags: Flags::NONE, payload }).await,
            false => Completion { result: self.zeroes(op, span).await, payload },
        };
        if is_durable && completion.result.is_ok() {
            completion.result = self.submit(Io::flush()).await.result;
        }
        completion
    }

    async fn zeroes(self: &Rc<Self>, op: Op, span: Span) -> Result<(), Errno> {
        let mut at = span.offset;
        while at < span.end() {
            let span = Span::new(at, MOST_ZEROES.min(span.end() - at));
            let piece = Io { op, span, flags: Flags::NONE, payload: Payload::None };
            self.submit(piece).await.result?;
            at = span.end();
        }
        Ok(())
    }

    /// Passes on the answers that have come.
    fn take(&self, done: &mut Vec<Done>) {
        self.queue.take(done);
        for Done { id, result, payload } in done.drain(..) {
            if let Err(errno) = result {
                self.failures.record(errno);
            }
            let mut requests = self.requests.borrow_mut();
            let done = Request::Done(Completion { result, payload });
            match std::mem::replace(&mut requests[id as usize], done) {
                Request::InFlight(waker) => {
                    drop(requests);
                    waker.into_iter().for_each(Waker::wake);
                }
                Request::Abandoned | Request::Done(_) => drop(requests.remove(id as usize)),
            }
        }
    }

    fn is_over(&self) -> bool {
        let is_in_flight = |(_, one): (usize, &Request)| !matches!(one, Request::Done(_));
        self.is_dropped.get() && !self.requests.borrow().iter().any(is_in_flight)
    }

    /// Has the task look.
    fn wake(&self) {
        // A counter that is full wakes, too.
        let _ = rustix::io::write(&self.counter, &1u64.to_ne_bytes());
    }
}

impl<Q: Queue> CompletionSource for Inner<Q> {
    fn poll_completion(&self, id: u32, cx: &mut Context<'_>) -> Poll<Completion> {
        let mut requests = self.requests.borrow_mut();
        match &mut requests[id as usize] {
            Request::InFlight(waker) => {
                *waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
            Request::Done(_) => {}
            Request::Abandoned => panic!("a request without a claim was polled"),
        }
        match requests.remove(id as usize) {
            Request::Done(completion) => Poll::Ready(completion),
            _ => panic!("it was done above"),
        }
    }

    fn abandon(&self, id: u32) {
        let mut requests = self.requests.borrow_mut();
        match requests[id as usize] {
            Request::Done(_) => drop(requests.remove(id as usize)),
            _ => requests[id as usize] = Request::Abandoned,
        }
    }
}
