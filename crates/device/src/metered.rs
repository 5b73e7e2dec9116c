//! A leaf with a deadline: it times requests, and completes those that the medium does not answer.
//!
//! ```text
//!   working ── a request has had no answer for the deadline ──▶ hanging
//!      ▲         requests in flight complete: ETIMEDOUT            │ new requests complete: ETIMEDOUT
//!      └─────────────── the medium has answered all of them ───────┘
//! ```
//!
//! Invariants
//! * Memory that the medium works on stays with it until it has answered: the caller gets other memory, with
//!   the same bytes for a write.
//! * A leaf gets no request, on any shard, while a request that was completed for it is still in flight. So a late write
//!   lands before every later write.
//! * Without a deadline no request is completed for the medium.
//! * In the steady state a request allocates nothing.
//!
//! Deliberately absent: the consequence. An array takes out a member whose requests fail.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use braid_block::{Completion, Errno, Io, Limits, Op, Payload, Span};
use braid_engine::canary::Canary;
use braid_engine::{CompletionSource, Dev, Device, Extents, Pending, Tasks, Ticket};
use braid_mem::Buf;
use braid_uring::Failures;
use slab::Slab;

use crate::canary::Canary as Planted;
use crate::follow::{Follow, Mark, Whose};
use crate::tally::{Counts, Tally};

/// Requests under way at once that are prepared for.
const UNDER_WAY: usize = 256;

/// Number of checks of a deadline within its time, and the longest interval of checks.
const LOOKS: u32 = 8;
const LONGEST: Duration = Duration::from_secs(1);

/// Least bytes of a request that is timed by itself even if it is answered in the call. What is shorter is over
/// before a clock would show it, and begins and ends with the turn.
const TIMED: u64 = 64 << 10;

/// A device of one shard, whose requests are timed.
pub struct Metered<D> {
    device: D,
    meter: Rc<Meter>,
}

/// Bytes that may be discarded or zeroed in the time of a read.
const DISCARDED: u64 = 64 << 20;

/// The time limit of a medium's requests, and the counter of its failures.
#[derive(Clone, Debug)]
pub struct Deadline {
    /// Limit of a read or a write; it may be exceeded by an eighth, at most by a second. A flush may take twice
    /// as long (as in Linux' sd), a discard as long for each 64 MiB.
    pub limit: Duration,
    /// Counter for requests that are completed for the medium.
    pub failures: Arc<Failures>,
}

struct Meter {
    counts: Arc<Counts>,
    under_way: RefCell<Slab<UnderWay>>,
    deadline: Option<Deadline>,
    /// Requests that were answered for the medium, which still has them, on all shards.
    overdue: Arc<AtomicUsize>,
    tasks: Rc<dyn Tasks>,
    whose: Whose,
    follow: Rc<Follow>,
}

struct UnderWay {
    op: Op,
    bytes: u64,
    mark: Option<Mark>,
    /// On the clock of `tasks`.
    started: Duration,
    state: State,
}

enum State {
    /// The pending request, and the waker of its waiting task, if there is one and there is a deadline.
    Pending(Pending, Option<Waker>),
    /// It is being polled.
    Polled,
    /// Completed, by the medium or for it.
    Done(Completion),
}

impl Deadline {
    /// The limit of members below an array that survives their loss: as long as Linux gives a disk for a
    /// command.
    pub const USUAL: Duration = Duration::from_secs(30);

    fn of(&self, op: Op, bytes: u64) -> Duration {
        match op {
            Op::Read | Op::Write => self.limit,
            Op::Flush => self.limit * 2,
            Op::Discard | Op::WriteZeroes => {
                let times = u32::try_from(bytes.div_ceil(DISCARDED)).unwrap_or(u32::MAX);
                self.limit.saturating_mul(times)
            }
        }
    }
}

impl<D: Device> Metered<D> {
    /// Times the requests to `device`, the member called `label`, on the shard of `tasks`, into `tally`.
    pub fn new(
        device: D,
        label: &str,
        tally: &Tally,
        tasks: Rc<dyn Tasks>,
        deadline: Option<Deadline>,
    ) -> Metered<D> {
        let whose = Whose::Member(label.into());
        let meter = Meter::new(whose, tally, Rc::clone(&tasks), deadline);
        if let Some(deadline) = &meter.deadline {
            let pause = (deadline.limit / LOOKS).clamp(Duration::from_millis(1), LONGEST);
            tasks.spawn(Box::pin(watch(Rc::downgrade(&meter), Rc::clone(&tasks), pause)));
        }
        Metered { device, meter }
    }
}

/// Times what an export of one shard asks for: how long its clients waited for the volume. The devices that it
/// offers, one after the other, count together.
pub struct Stopwatch(Rc<Meter>);

impl Stopwatch {
    /// For the shard of `tasks`, into `tally`.
    pub fn new(tally: &Tally, tasks: Rc<dyn Tasks>) -> Stopwatch {
        Stopwatch(Meter::new(Whose::Export, tally, tasks, None))
    }

    /// `dev` with its requests timed.
    pub fn in_front_of(&self, dev: Dev) -> Dev {
        Dev::new(Metered { device: Behind(dev), meter: Rc::clone(&self.0) })
    }
}

/// A device that is behind the seam already.
struct Behind(Dev);

impl Device for Behind {
    fn limits(&self) -> Limits {
        *self.0.limits()
    }

    #[inline]
    fn start(&self, io: Io) -> Pending {
        self.0.start(io)
    }

    fn extents(&self, span: Span) -> Extents {
        self.0.extents(span)
    }
}

impl<D: Device> Device for Metered<D> {
    fn limits(&self) -> Limits {
        self.device.limits()
    }

    #[inline]
    fn start(&self, io: Io) -> Pending {
        let meter = &self.meter;
        if meter.overdue.load(Acquire) > 0 && !Canary::AskedWhileOverdue.is_planted() {
            meter.time_out(false);
            return Pending::ready(io.complete(Err(Errno::TIMEDOUT)));
        }
        let (op, bytes, is_on) = (io.op, io.span.len, meter.follow.is_on());
        let time = || match is_on || bytes >= TIMED {
            true => meter.tasks.reading(),
            false => meter.tasks.now(),
        };
        let started = time();
        let mark = match is_on {
            true => meter.follow.begin(&meter.whose, op, io.span, started),
            false => None,
        };
        match meter.follow.within(mark, || self.device.start(io)) {
            done @ Pending::Ready(_) => {
                meter.answered(op, bytes, mark, started, time());
                done
            }
            pending => {
                meter.counts.begun();
                let state = State::Pending(pending, None);
                let entry = UnderWay { op, bytes, mark, started, state };
                let id = meter.under_way.borrow_mut().insert(entry);
                let id = u32::try_from(id).expect("fewer requests than there is memory for");
                let source = Rc::clone(meter) as Rc<dyn CompletionSource>;
                Pending::Ticket(Ticket::new(source, id))
            }
        }
    }

    fn extents(&self, span: Span) -> Extents {
        self.device.extents(span)
    }
}

impl CompletionSource for Meter {
    #[inline]
    fn poll_completion(&self, id: u32, cx: &mut Context<'_>) -> Poll<Completion> {
        let key = id as usize;
        let (state, mark) = {
            let entry = &mut self.under_way.borrow_mut()[key];
            (std::mem::replace(&mut entry.state, State::Polled), entry.mark)
        };
        let (mut pending, waker) = match state {
            State::Pending(pending, waker) => (pending, waker),
            State::Done(completion) => {
                self.under_way.borrow_mut().remove(key);
                return Poll::Ready(completion);
            }
            State::Polled => panic!("a request is polled while it is polled"),
        };
        match self.follow.within(mark, || Pin::new(&mut pending).poll(cx)) {
            Poll::Ready(completion) => {
                let UnderWay { op, bytes, started, .. } = self.under_way.borrow_mut().remove(key);
                self.answered(op, bytes, mark, started, self.tasks.now());
                self.counts.ended();
                Poll::Ready(completion)
            }
            Poll::Pending => {
                let waker = match (waker, &self.deadline) {
                    (_, None) => None,
                    (Some(mut waker), _) => {
                        waker.clone_from(cx.waker());
                        Some(waker)
                    }
                    (None, _) => Some(cx.waker().clone()),
                };
                self.under_way.borrow_mut()[key].state = State::Pending(pending, waker);
                Poll::Pending
            }
        }
    }

    fn abandon(&self, id: u32) {
        let entry = self.under_way.borrow_mut().remove(id as usize);
        if let State::Pending(pending, _) = entry.state {
            let counts = Arc::clone(&self.counts);
            self.tasks.spawn(Box::pin(async move {
                drop(pending.await);
                counts.ended();
            }));
        }
    }

    fn lend(&self, id: u32) -> Payload {
        match &self.under_way.borrow()[id as usize].state {
            State::Pending(pending, _) => pending.lend(),
            State::Polled | State::Done(_) => Payload::None,
        }
    }
}

/// Looks after the deadline of `meter` every `pause`, as long as it is there.
async fn watch(meter: Weak<Meter>, tasks: Rc<dyn Tasks>, pause: Duration) {
    loop {
        let due = tasks.now() + pause;
        tasks.sleep(pause).await;
        let Some(meter) = meter.upgrade() else { return };
        let now = tasks.now();
        if now > due + pause * 2 && !Planted::StandstillCounts.is_planted() {
            meter.forgive(now);
        } else if meter.has_late(now) {
            // What the medium has answered by now is taken in first.
            tasks.sleep(Duration::from_millis(1)).await;
            meter.look(now);
        }
    }
}

impl Meter {
    fn new(
        whose: Whose,
        tally: &Tally,
        tasks: Rc<dyn Tasks>,
        deadline: Option<Deadline>,
    ) -> Rc<Meter> {
        Rc::new(Meter {
            whose,
            follow: Follow::of_thread(),
            counts: tally.of_shard(),
            under_way: RefCell::new(Slab::with_capacity(UNDER_WAY)),
            deadline,
            overdue: tally.overdue(),
            tasks,
        })
    }

    /// Counts a request that was answered.
    #[inline]
    fn answered(&self, op: Op, bytes: u64, mark: Option<Mark>, started: Duration, now: Duration) {
        self.counts.answered(op, bytes, now.saturating_sub(started));
        if let Some(mark) = mark {
            self.follow.end(mark, now);
        }
    }

    fn time_out(&self, has_begun: bool) {
        self.counts.timed_out(has_begun);
        if let Some(deadline) = &self.deadline {
            deadline.failures.record(Errno::TIMEDOUT);
        }
    }

    /// The process, or the machine, stood still, and the medium perhaps with it: what is under way
    /// begins anew.
    fn forgive(&self, now: Duration) {
        self.under_way.borrow_mut().iter_mut().for_each(|(_, entry)| entry.started = now);
    }

    /// Which requests are with the medium, of those that `is_meant`.
    fn pending(&self, is_meant: impl Fn(&UnderWay) -> bool) -> Vec<usize> {
        let under_way = self.under_way.borrow();
        let is_pending = |entry: &UnderWay| matches!(entry.state, State::Pending(..));
        let found = under_way.iter().filter(|(_, entry)| is_pending(entry) && is_meant(entry));
        found.map(|(key, _)| key).collect()
    }

    fn is_late(&self, entry: &UnderWay, now: Duration) -> bool {
        self.deadline.as_ref().is_some_and(|deadline| {
            now.saturating_sub(entry.started) >= deadline.of(entry.op, entry.bytes)
        })
    }

    fn has_late(&self, now: Duration) -> bool {
        !self.pending(|entry| self.is_late(entry, now)).is_empty()
    }

    /// Answers all requests for the medium if one is overdue.
    fn look(self: &Rc<Self>, now: Duration) {
        let late = self.pending(|entry| self.is_late(entry, now));
        // The waiting task may not have taken the answer yet.
        if late.into_iter().all(|key| self.is_done(key, now)) {
            return;
        }
        for key in self.pending(|_| true) {
            if !self.is_done(key, now) {
                self.answer_for(key, now);
            }
        }
    }

    /// Returns true if the medium has answered the request `key`, which is pending.
    fn is_done(&self, key: usize, now: Duration) -> bool {
        let state = std::mem::replace(&mut self.under_way.borrow_mut()[key].state, State::Polled);
        let State::Pending(mut pending, waker) = state else {
            self.under_way.borrow_mut()[key].state = state;
            return true;
        };
        let told = waker.as_ref().unwrap_or(Waker::noop());
        let polled = Pin::new(&mut pending).poll(&mut Context::from_waker(told));
        let entry = &mut self.under_way.borrow_mut()[key];
        match polled {
            Poll::Ready(completion) => {
                self.answered(entry.op, entry.bytes, entry.mark, entry.started, now);
                self.counts.ended();
                entry.state = State::Done(completion);
                true
            }
            Poll::Pending => {
                entry.state = State::Pending(pending, waker);
                false
            }
        }
    }

    /// Answers the request `key`, which is pending, for the medium.
    fn answer_for(self: &Rc<Self>, key: usize, now: Duration) {
        let mut under_way = self.under_way.borrow_mut();
        let entry = &mut under_way[key];
        let State::Pending(pending, _) = &entry.state else { return };
        // Where there is no memory now there may be some when it is looked at again.
        let Ok(payload) = stand_in(entry.op, entry.bytes, &pending.lend()) else { return };
        let done = Completion { result: Err(Errno::TIMEDOUT), payload };
        let state = std::mem::replace(&mut entry.state, State::Done(done));
        self.answered(entry.op, entry.bytes, entry.mark, entry.started, now);
        drop(under_way);
        let State::Pending(pending, waker) = state else { return };
        self.time_out(true);
        self.overdue.fetch_add(1, AcqRel);
        let meter = Rc::clone(self);
        self.tasks.spawn(Box::pin(async move {
            drop(pending.await);
            meter.counts.came_back();
            meter.overdue.fetch_sub(1, AcqRel);
        }));
        waker.into_iter().for_each(Waker::wake);
    }
}

/// Memory in place of what the medium has: as long, and for a write with the bytes of `lent`.
fn stand_in(op: Op, bytes: u64, lent: &Payload) -> std::io::Result<Payload> {
    if !op.has_data() {
        return Ok(Payload::None);
    }
    let len = usize::try_from(bytes).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
    let mut buf = Buf::at_hand(len)?;
    let mut rest = &mut buf[..];
    for from in lent.bufs() {
        let (part, behind) = rest.split_at_mut(from.len());
        if !Planted::BytesOfLateWriteLost.is_planted() {
            part.copy_from_slice(from);
        }
        rest = behind;
    }
    Ok(Payload::One(buf))
}

#[cfg(test)]
mod tests {
    use braid_mem::Pool;

    use super::*;

    #[test]
    fn memory_in_place_of_a_write_has_its_bytes() {
        let pool = Pool::new(1 << 20).expect("memory");
        let mut lent = Payload::None;
        for byte in [3, 4] {
            let mut buf = pool.get(512).expect("memory");
            buf.fill(byte);
            lent.append(buf.into());
        }
        let payload = stand_in(Op::Write, 1024, &lent).expect("memory");
        assert_eq!(payload.to_vec(), lent.to_vec());
        assert_eq!(stand_in(Op::Flush, 0, &Payload::None).expect("none").len(), 0);
    }
}
