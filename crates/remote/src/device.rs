//! The device on a remote member, and the tasks behind it.
//!
//! ```text
//!   watch      every eighth of a second: deadlines, the wait
//!   wire 0     connect ─▶ handshake ─▶ session up ─▶ receive ──▶ end: all wires end, requests are held
//!   wire n     as soon as the session is up: connect ─▶ handshake ─▶ receive
//! ```
//!
//! If one connection breaks, all are given up and made anew: after that, no answer to an earlier request can come.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use braid_block::{Completion, Errno, Extent, Flags, Io, Limits, Op, Payload, Span};
use braid_engine::{CompletionSource, Device, Extents, Pending, Signal, Tasks, Ticket};
use braid_mem::Pool;
use braid_nbd::protocol::constants::*;
use braid_uring::{Failures, Stream};

use crate::connect::Connect;
use crate::link::{Ended, Inbox, Outbox, Receiver, shake};
use crate::offer::Offer;
use crate::session::Session;
use crate::session::status::Asked;
use crate::traffic::{Traffic, add, set};

/// Interval at which deadlines are looked after.
const LOOK: Duration = Duration::from_millis(125);
/// Pauses between attempts to connect: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));
/// The longest time for a connection and its handshake.
const LONGEST_DIAL: Duration = Duration::from_secs(10);
/// Bytes of acknowledged changes that are kept until a flush.
const JOURNAL: usize = 16 << 20;
/// Most bytes of one discard or zeroing: what 32 bits hold, in whole blocks.
const MOST_ZEROES: u64 = 1 << 31;
/// Most bytes of zeroes in one write, for a server that cannot write zeroes.
const ZEROES: u64 = 256 << 10;

/// The properties of a remote member.
#[derive(Clone)]
pub struct Config {
    /// The export's name; empty for the default export.
    pub export: String,
    /// The offer at the opening, with which later ones are compared.
    pub offer: Offer,
    /// Connections that are wanted.
    pub connections: u32,
    /// Time for which a request may wait.
    pub deadline: Duration,
    /// Nothing is changed, whatever the server allows.
    pub read_only: bool,
    /// Counts of the member.
    pub traffic: Arc<Traffic>,
    /// Counter of failed requests.
    pub failures: Arc<Failures>,
}

/// The device of one shard on a remote member.
pub struct RemoteDevice<C: Connect> {
    inner: Rc<Inner<C>>,
}

struct Inner<C: Connect> {
    config: Config,
    connect: C,
    tasks: Rc<dyn Tasks>,
    pool: Pool,
    session: RefCell<Session>,
    wires: RefCell<Vec<Option<Wire<C::Stream>>>>,
    /// Number of times that the connections were given up.
    generation: Cell<u64>,
    changed: Signal,
    is_dropped: Cell<bool>,
}

/// A connection in use.
struct Wire<S> {
    stream: S,
    outbox: Rc<Outbox>,
    in_flight: Rc<Cell<usize>>,
}

impl<C: Connect> RemoteDevice<C> {
    /// Makes the device, and begins to connect.
    pub fn new(config: Config, connect: C, tasks: Rc<dyn Tasks>, pool: Pool) -> RemoteDevice<C> {
        let is_read_only = config.read_only || config.offer.is_read_only();
        let has_journal = !is_read_only && config.offer.has(NBD_FLAG_SEND_FLUSH);
        let journal = if has_journal { JOURNAL } else { 0 };
        let count = config.offer.connections(config.connections);
        set(&config.traffic.wanted, count.into());
        set(&config.traffic.deadline_us, config.deadline.as_micros() as u64);
        let session = Session::new(tasks.now(), config.deadline, journal, config.offer.block);
        let inner = Rc::new(Inner {
            config,
            connect,
            tasks: Rc::clone(&tasks),
            pool,
            session: RefCell::new(session),
            wires: RefCell::new((0..count).map(|_| None).collect()),
            generation: Cell::new(0),
            changed: Signal::default(),
            is_dropped: Cell::new(false),
        });
        tasks.spawn(Box::pin(watch(Rc::downgrade(&inner), Rc::clone(&tasks))));
        for index in 0..count as usize {
            tasks.spawn(Box::pin(keep_connected(Rc::clone(&inner), index)));
        }
        RemoteDevice { inner }
    }
}

impl<C: Connect> Drop for RemoteDevice<C> {
    fn drop(&mut self) {
        self.inner.is_dropped.set(true);
        self.inner.give_up();
    }
}

impl<C: Connect> Device for RemoteDevice<C> {
    fn limits(&self) -> Limits {
        self.inner.config.offer.limits(self.inner.config.read_only)
    }

    fn start(&self, io: Io) -> Pending {
        let (inner, offer) = (&self.inner, &self.inner.config.offer);
        let has_fua = offer.has(NBD_FLAG_SEND_FUA);
        let cannot = match io.op {
            Op::Flush => !offer.has(NBD_FLAG_SEND_FLUSH),
            Op::Discard => !offer.has(NBD_FLAG_SEND_TRIM),
            _ => false,
        };
        if cannot {
            // A server without flush was accepted by the user, and a discard is a hint.
            return Pending::ready(io.complete(Ok(())));
        }
        let most = if io.op.has_data() { offer.most.into() } else { MOST_ZEROES };
        let has_zeroes = io.op != Op::WriteZeroes || offer.has(NBD_FLAG_SEND_WRITE_ZEROES);
        let is_plain = io.span.len <= most && has_zeroes;
        if is_plain && (has_fua || !io.flags.contains(Flags::FUA)) {
            return inner.submit(io);
        }
        Pending::task(Rc::clone(inner).in_steps(io, most))
    }

    /// Asks the server, if it knows holes. One that has none any more, or does not answer, has data.
    fn extents(&self, span: Span) -> Extents {
        let inner = Rc::clone(&self.inner);
        if !inner.config.offer.has_status {
            return Extents::data(span.len);
        }
        Extents::asked(async move {
            let first = Span::new(span.offset, span.len.min(MOST_ZEROES));
            let asked = Asked::new(&inner.session, inner.tasks.now(), first);
            inner.dispatch();
            asked.await.unwrap_or_else(|_| vec![Extent::data(span.len)])
        })
    }
}

impl<C: Connect> Inner<C> {
    fn submit(self: &Rc<Self>, io: Io) -> Pending {
        let now = self.tasks.now();
        let id = self.session.borrow_mut().submit(now, io);
        self.dispatch();
        Pending::Ticket(Ticket::new(Rc::clone(self) as Rc<dyn CompletionSource>, id))
    }

    /// Carries out a request that the server does not take as a whole: piece by piece, and a flush behind it where the
    /// server has no durable writes.
    async fn in_steps(self: Rc<Self>, mut io: Io, most: u64) -> Completion {
        let offer = &self.config.offer;
        let has_fua = offer.has(NBD_FLAG_SEND_FUA);
        let flags = if has_fua { io.flags } else { Flags::NONE };
        let has_zeroes = offer.has(NBD_FLAG_SEND_WRITE_ZEROES);
        let step = if io.op == Op::WriteZeroes && !has_zeroes { ZEROES } else { most };
        let (mut at, mut result, mut done) = (io.span.offset, Ok(()), Payload::None);
        while at < io.span.end() && result.is_ok() {
            let span = Span::new(at, step.min(io.span.end() - at));
            let answer = match io.op {
                Op::WriteZeroes if !has_zeroes => {
                    let mut buf = self.pool.get_wait(span.len as usize).await;
                    buf.fill(0);
                    self.submit(Io::write(at, buf, flags)).await
                }
                op => {
                    let payload = match op.has_data() {
                        true => io.payload.take_front(span.len),
                        false => Payload::None,
                    };
                    self.submit(Io { op, span, flags, payload }).await
                }
            };
            result = answer.result;
            if io.op.has_data() {
                done.append(answer.payload);
            }
            at = span.end();
        }
        done.append(std::mem::take(&mut io.payload));
        let is_durable = io.flags.contains(Flags::FUA) && !has_fua;
        if result.is_ok() && is_durable && offer.has(NBD_FLAG_SEND_FLUSH) {
            result = self.submit(Io::flush()).await.result;
        }
        Completion { result, payload: done }
    }

    /// Gives what may be sent to the connections: each request to that with the fewest in flight.
    fn dispatch(&self) {
        let wires = self.wires.borrow();
        loop {
            let least = wires.iter().flatten().min_by_key(|wire| wire.in_flight.get());
            let Some(wire) = least else { return };
            let Some(out) = self.session.borrow_mut().next(self.tasks.now()) else { return };
            wire.in_flight.set(wire.in_flight.get() + 1);
            wire.outbox.push(out);
        }
    }

    /// Ends all connections; requests are held.
    fn give_up(&self) {
        self.generation.set(self.generation.get() + 1);
        let wires: Vec<_> = self.wires.borrow_mut().iter_mut().map(Option::take).collect();
        for wire in wires.into_iter().flatten() {
            wire.stream.close();
            wire.outbox.close();
        }
        let traffic = &self.config.traffic;
        set(&traffic.connections, 0);
        if !self.session.borrow().is_down() {
            add(&traffic.reconnects, 1);
            self.session.borrow_mut().lost(self.tasks.now());
        }
        self.count();
        self.changed.notify();
    }

    fn count(&self) {
        let counted = self.session.borrow().counted();
        set(&self.config.traffic.repeated, counted.repeated);
        set(&self.config.traffic.overdue, counted.overdue);
    }

    /// Looks after deadlines.
    fn look(&self, now: Duration) {
        let has_stalled = self.session.borrow().has_stalled(now);
        if has_stalled {
            self.config.traffic.trouble(Some("the server does not answer".to_owned()));
            self.give_up();
        }
        let before = self.session.borrow().counted().overdue;
        self.session.borrow_mut().expire(now);
        let after = self.session.borrow().counted().overdue;
        (before..after).for_each(|_| self.config.failures.record(Errno::TIMEDOUT));
        let since = self.session.borrow().waiting_since();
        let waiting = since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
        set(&self.config.traffic.waiting_us, waiting.as_micros() as u64);
        self.count();
        self.dispatch();
    }

    /// Connects, and agrees with the server on an offer that keeps the first one's promises.
    async fn dial(&self, limit: Duration) -> Result<(C::Stream, Offer, Inbox), Ended> {
        let late = || io::Error::new(io::ErrorKind::TimedOut, "no answer in time");
        let connecting = self.connect.connect(limit);
        let stream = within(&*self.tasks, limit, connecting).await.ok_or_else(late)??;
        let mut inbox = Inbox::new()?;
        let wanted = (self.config.export.as_str(), self.connect.is_secured());
        let shaking = shake(&stream, &*self.tasks, wanted, &mut inbox);
        let shaken = within(&*self.tasks, limit, shaking).await;
        let agreed = match shaken.ok_or_else(late) {
            Ok(agreed) => agreed,
            Err(error) => Err(error.into()),
        };
        let checked = agreed.and_then(|(offer, round_trip)| {
            self.config.offer.check_again(&offer)?;
            set(&self.config.traffic.round_trip_us, round_trip.as_micros() as u64);
            Ok(offer)
        });
        match checked {
            Ok(offer) => Ok((stream, offer, inbox)),
            Err(error) => {
                stream.close();
                Err(error)
            }
        }
    }

    /// Uses a connection as number `index` until it ends.
    async fn serve(
        self: &Rc<Self>,
        index: usize,
        stream: C::Stream,
        offer: Offer,
        inbox: Inbox,
    ) -> Ended {
        let (outbox, in_flight) = (Rc::new(Outbox::default()), Rc::new(Cell::new(0)));
        self.wires.borrow_mut()[index] = Some(Wire {
            stream: stream.clone(),
            outbox: Rc::clone(&outbox),
            in_flight: Rc::clone(&in_flight),
        });
        let traffic = &self.config.traffic;
        add(&traffic.connections, 1);
        if index == 0 {
            traffic.trouble(None);
            self.session.borrow_mut().connected(self.tasks.now());
            self.count();
            self.changed.notify();
        }
        self.dispatch();
        let sending = outbox.run(&stream, &offer, &self.session, |sent| add(&traffic.sent, sent));
        let receiving = async {
            let mut receiver = Receiver::new(inbox, offer.style);
            loop {
                let mut answered = |session: &mut Session, cookie| {
                    in_flight.set(in_flight.get() - 1);
                    session.answered(self.tasks.now(), cookie).map(drop)
                };
                match receiver.step(&stream, &self.session, &mut answered).await {
                    Ok(count) => add(&traffic.received, count),
                    Err(ended) => return ended,
                }
                self.dispatch();
            }
        };
        let (mut sending, mut receiving) = (pin!(sending), pin!(receiving));
        let mut is_sending = true;
        std::future::poll_fn(|cx| {
            if is_sending && let Poll::Ready(result) = sending.as_mut().poll(cx) {
                is_sending = false;
                if let Err(ended) = result {
                    return Poll::Ready(ended);
                }
            }
            receiving.as_mut().poll(cx)
        })
        .await
    }
}

impl<C: Connect> CompletionSource for Inner<C> {
    fn poll_completion(&self, id: u32, cx: &mut Context<'_>) -> Poll<Completion> {
        match self.session.borrow_mut().take(id, cx.waker()) {
            Some(completion) => Poll::Ready(completion),
            None => Poll::Pending,
        }
    }

    fn abandon(&self, id: u32) {
        self.session.borrow_mut().abandon(id);
    }
}

/// Keeps connection number `index` until the device is dropped. The first one brings the session up.
async fn keep_connected<C: Connect>(inner: Rc<Inner<C>>, index: usize) {
    let mut pause = PAUSES.0;
    loop {
        if index > 0 {
            let is_due = || inner.is_dropped.get() || !inner.session.borrow().is_down();
            inner.changed.until(is_due).await;
        }
        if inner.is_dropped.get() {
            return;
        }
        let generation = inner.generation.get();
        let limit = inner.config.deadline.min(LONGEST_DIAL);
        match inner.dial(limit).await {
            Ok((stream, ..)) if inner.generation.get() != generation => stream.close(),
            Ok((stream, offer, inbox)) => {
                pause = PAUSES.0;
                let ended = inner.serve(index, stream, offer, inbox).await;
                if inner.generation.get() == generation {
                    inner.config.traffic.trouble(Some(ended.to_string()));
                    inner.give_up();
                }
                continue;
            }
            Err(ended) if index == 0 => inner.config.traffic.trouble(Some(ended.to_string())),
            // Fewer connections than wanted do: `status` shows how many there are.
            Err(_) => pause = PAUSES.1,
        }
        inner.tasks.sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
    }
}

/// Looks after the deadlines of a device as long as it is there.
async fn watch<C: Connect>(inner: Weak<Inner<C>>, tasks: Rc<dyn Tasks>) {
    loop {
        let due = tasks.now() + LOOK;
        tasks.sleep(LOOK).await;
        let Some(inner) = inner.upgrade() else { return };
        if inner.is_dropped.get() {
            return;
        }
        let now = tasks.now();
        if now > due + LOOK * 8 {
            inner.session.borrow_mut().forgive(now);
        }
        inner.look(now);
    }
}

/// Waits for `future`, at most for `limit`.
async fn within<T>(
    tasks: &dyn Tasks,
    limit: Duration,
    future: impl Future<Output = T>,
) -> Option<T> {
    let mut future = pin!(future);
    let mut sleep: Pin<Box<dyn Future<Output = ()>>> = tasks.sleep(limit);
    std::future::poll_fn(|cx| {
        if let Poll::Ready(value) = future.as_mut().poll(cx) {
            return Poll::Ready(Some(value));
        }
        sleep.as_mut().poll(cx).map(|()| None)
    })
    .await
}
