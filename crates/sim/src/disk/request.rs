//! One request of a simulated disk: when it takes effect, what it leaves, how it ends.

use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use braid_block::{Completion, Errno, Flags, Io, Op};
use braid_engine::CompletionSource;
use braid_model::Answer;

use super::{Inner, Record};
use crate::client::bytes_of;
use crate::media::Moment;

/// Latency is drawn from this range, in nanoseconds.
const LATENCY_NS: std::ops::RangeInclusive<u64> = 5_000..=200_000;
/// One request in this many takes ten times as long.
const SLOW_ONE_IN: u64 = 16;

/// A request from its start until its completion is taken.
pub(super) struct Request {
    io: Io,
    error: Option<Errno>,
    start: Moment,
    state: State,
}

/// The source of a request's times.
enum Times {
    /// Random: the times of its effect and of its completion.
    Drawn((u64, u64)),
    /// A model, in which it has this number.
    Modelled(u64),
}

enum State {
    UnderWay(Option<Waker>),
    Abandoned,
    Done(Result<(), Errno>),
}

impl Inner {
    pub(super) fn start(self: &Rc<Inner>, io: Io) -> u32 {
        let now_ns = self.handle.now();
        let index = self.trace.borrow().len() as u64;
        let id = index as u32;
        let record =
            Record { op: io.op, span: io.span, flags: io.flags, start_ns: now_ns, end: None };
        if let Some(listener) = &*self.listener.borrow() {
            listener(index, &record);
        }
        self.trace.borrow_mut().push(record);

        let modelled = self.timing.borrow_mut().as_mut().map(|timing| timing.ask(now_ns, &io));
        let times = modelled.map_or_else(|| Times::Drawn(self.draw_times(now_ns)), Times::Modelled);
        let not_before_ns = self.faults.not_before(index, &io);
        let latent = io.op == Op::Read && self.faults.is_latent(io.span);
        let gone = self.gone.get().then_some(Errno::IO);
        let error = gone.or_else(|| self.faults.error_for(index, &io));
        let error = error.or(latent.then_some(Errno::IO));
        if error.is_some() && io.op != Op::Read {
            self.failed_ns.set(Some(now_ns));
        }
        let start = self.media.borrow_mut().moment();
        if let Some(data) = self.data_of(&io) {
            self.media.borrow_mut().begin(index, io.span.offset, data);
        }
        let state = State::UnderWay(None);
        self.requests.borrow_mut().insert(id, Request { io, error, start, state });

        if self.limits.immediate {
            self.take_effect(id);
            self.complete(id);
            return id;
        }
        match times {
            Times::Drawn(times) => self.come(id, self.hang(id, times), not_before_ns),
            Times::Modelled(number) => self.until_done(id, number, not_before_ns),
        }
        id
    }

    /// True if the request is answered, and its completion was not taken.
    pub(super) fn is_done(&self, id: u32) -> bool {
        matches!(self.requests.borrow().get(&id), Some(Request { state: State::Done(_), .. }))
    }

    /// A request takes effect and completes at these times.
    fn come(self: &Rc<Inner>, id: u32, (effect_ns, done_ns): (u64, u64), not_before_ns: u64) {
        let inner = Rc::clone(self);
        self.handle.call_at(effect_ns, move || inner.take_effect(id));
        let inner = Rc::clone(self);
        self.handle.call_at(done_ns.max(not_before_ns), move || inner.complete(id));
    }

    /// When a request takes effect and completes that would do so at `times`.
    fn hang(&self, id: u32, (effect_ns, done_ns): (u64, u64)) -> (u64, u64) {
        let until_ns = self.faults.hangs_until(id.into(), &self.requests.borrow()[&id].io);
        let Some(until_ns) = until_ns.filter(|until_ns| *until_ns > done_ns) else {
            return (effect_ns, done_ns);
        };
        self.hangs_until_ns.set(self.hangs_until_ns.get().max(until_ns));
        let is_late = self.rng.borrow_mut().percent(50);
        (if is_late { until_ns } else { effect_ns }, until_ns)
    }

    /// Asks the model of the device when request `number` is done, until it knows.
    fn until_done(self: &Rc<Inner>, id: u32, number: u64, not_before_ns: u64) {
        let now_ns = self.handle.now();
        let answer = {
            let mut timing = self.timing.borrow_mut();
            timing.as_mut().expect("it was asked").answer(now_ns, number)
        };
        match answer {
            Answer::Done(done_ns) => {
                let done_ns = done_ns.max(now_ns);
                let effect_ns = self.rng.borrow_mut().within(now_ns..=done_ns);
                self.come(id, (effect_ns, done_ns), not_before_ns);
            }
            Answer::Waits(until_ns) => {
                let inner = Rc::clone(self);
                let again = move || inner.until_done(id, number, not_before_ns);
                self.handle.call_at(until_ns, again);
            }
        }
    }

    /// When a request that starts now takes effect, and when it completes.
    fn draw_times(&self, now_ns: u64) -> (u64, u64) {
        let mut rng = self.rng.borrow_mut();
        let slow = if rng.below(SLOW_ONE_IN) == 0 { 10 } else { 1 };
        let latency_ns = rng.within(LATENCY_NS) * slow * self.slowness.get();
        (now_ns + rng.within(0..=latency_ns), now_ns + latency_ns)
    }

    /// The new content of the span of a modifying request.
    fn data_of(&self, io: &Io) -> Option<Vec<u8>> {
        let span = io.span.offset as usize..io.span.end() as usize;
        match io.op {
            Op::Read | Op::Flush => None,
            Op::Write => Some(bytes_of(&io.payload)),
            Op::WriteZeroes => Some(vec![0; span.len()]),
            Op::Discard => Some(match self.rng.borrow_mut().below(3) {
                0 => vec![0; span.len()],
                1 => vec![0xd1; span.len()],
                _ => {
                    let mut old = vec![0; span.len()];
                    self.media.borrow().current().read(span.start, &mut old);
                    old
                }
            }),
        }
    }

    fn take_effect(&self, id: u32) {
        let mut requests = self.requests.borrow_mut();
        let request = requests.get_mut(&id).expect("not completed yet");
        if self.gone.get() {
            request.error = Some(Errno::IO);
        }
        let (span, failing) = (request.io.span, request.error.is_some());
        let mut media = self.media.borrow_mut();
        match request.io.op {
            Op::Read => {
                let mut offset = span.offset as usize;
                for buf in request.io.payload.bufs_mut() {
                    match failing {
                        true => buf.fill(0xee),
                        false => media.current().read(offset, buf),
                    }
                    offset += buf.len();
                }
            }
            Op::Write | Op::WriteZeroes | Op::Discard => {
                let mut rng = self.rng.borrow_mut();
                let gone = self.gone.get();
                media.take_effect(id.into(), || !failing || !gone && rng.percent(50));
                if !failing {
                    self.faults.heal(span);
                }
            }
            Op::Flush => {}
        }
    }

    fn complete(&self, id: u32) {
        let mut requests = self.requests.borrow_mut();
        let request = requests.get_mut(&id).expect("completed once");
        if self.gone.get() {
            request.error = Some(Errno::IO);
        }
        let result = request.error.map_or(Ok(()), Err);
        let io = &request.io;
        if result.is_err() && io.op != Op::Read {
            self.failed_ns.set(Some(self.handle.now()));
        }
        match io.op {
            Op::Read => {}
            Op::Flush if result.is_ok() => self.media.borrow_mut().flush(request.start),
            Op::Flush => self.media.borrow_mut().lose(request.start),
            Op::Write | Op::WriteZeroes | Op::Discard => {
                let durably = result.is_ok() && io.flags.contains(Flags::FUA);
                self.media.borrow_mut().complete(id.into(), durably);
            }
        }
        let record = {
            let record = &mut self.trace.borrow_mut()[id as usize];
            record.end = Some((self.handle.now(), result));
            record.clone()
        };
        if let Some(listener) = &*self.listener.borrow() {
            listener(id.into(), &record);
        }
        self.completed.set(self.completed.get() + 1);
        match std::mem::replace(&mut request.state, State::Done(result)) {
            State::Abandoned => {
                let request = requests.remove(&id);
                drop(requests);
                drop(request);
            }
            State::UnderWay(waker) => {
                drop(requests);
                waker.into_iter().for_each(Waker::wake);
            }
            State::Done(_) => unreachable!("completed once"),
        }
    }
}

impl CompletionSource for Inner {
    fn poll_completion(&self, id: u32, cx: &mut Context<'_>) -> Poll<Completion> {
        let mut requests = self.requests.borrow_mut();
        let request = requests.get_mut(&id).expect("a completion is taken once");
        match &mut request.state {
            State::Done(result) => {
                let result = *result;
                let request = requests.remove(&id).expect("found just now");
                Poll::Ready(request.io.complete(result))
            }
            State::UnderWay(waker) => {
                *waker = Some(cx.waker().clone());
                Poll::Pending
            }
            State::Abandoned => unreachable!("an abandoned request is polled"),
        }
    }

    fn abandon(&self, id: u32) {
        let mut requests = self.requests.borrow_mut();
        let Some(request) = requests.get_mut(&id) else { return };
        let state = std::mem::replace(&mut request.state, State::Abandoned);
        // Its memory and its waker may belong to what is being dropped: let go of them last.
        let done = matches!(state, State::Done(_)).then(|| requests.remove(&id));
        drop(requests);
        drop((state, done));
    }
}
