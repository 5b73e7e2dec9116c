//! A simulated disk: a medium with a volatile cache, random latency, faults and a trace.
//!
//! ```text
//!          start            takes effect              completes
//!            |------- drawn ------|-------- drawn --------|        in any order among requests
//!  a crash   |  may leave it                              | may leave it until a flush or FUA
//!  a read    |                    | sees it from here on
//! ```
//!
//! Hostile where the contract leaves it free: a read that fails fills its memory with rubbish, a
//! discard leaves the old contents, zeroes or rubbish, a write that fails has reached some of its
//! blocks, a request that is abandoned is carried out all the same.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use braid_block::{Completion, Errno, Extent, Flags, Io, Limits, Op, Span};
use braid_engine::{CompletionSource, Device, Pending, Ticket};

use crate::client::bytes_of;
use crate::media::{Media, Moment};
use crate::{Faults, Handle, Image, Rng, Witness};

/// Latency is drawn from this range, in nanoseconds.
const LATENCY_NS: std::ops::RangeInclusive<u64> = 5_000..=200_000;
/// One request in this many takes ten times as long.
const SLOW_ONE_IN: u64 = 16;

/// A disk. Cheap to clone, all clones are the same disk.
#[derive(Clone)]
pub struct SimDisk {
    inner: Rc<Inner>,
}

/// One request in a disk's trace; its place in the trace is its index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// What was asked.
    pub op: Op,
    /// Where.
    pub span: Span,
    /// Modifiers.
    pub flags: Flags,
    /// When it came, in nanoseconds.
    pub start_ns: u64,
    /// When it completed, and how.
    pub end: Option<(u64, Result<(), Errno>)>,
}

struct Inner {
    name: String,
    limits: Limits,
    handle: Handle,
    faults: Faults,
    rng: RefCell<Rng>,
    media: RefCell<Media>,
    requests: RefCell<BTreeMap<u32, Request>>,
    trace: RefCell<Vec<Record>>,
    completed: Cell<u64>,
    /// It was pulled: nothing reaches it.
    gone: Cell<bool>,
    /// How much longer than usual everything takes.
    slowness: Cell<u64>,
    /// When a write or a flush last failed, or began that was to fail.
    failed_ns: Cell<Option<u64>>,
    timing: RefCell<Option<Timing>>,
    listener: RefCell<Option<Listener>>,
}

/// Hears of each request, by its number, when it starts and when it completes.
pub type Listener = Box<dyn Fn(u64, &Record)>;

/// How long a request takes: asked with its kind, place and start, answers when it completes, in
/// nanoseconds.
pub type Timing = Box<dyn FnMut(Op, Span, u64) -> u64>;

/// A request from its start until its completion is taken.
struct Request {
    io: Io,
    error: Option<Errno>,
    start: Moment,
    state: State,
}

enum State {
    UnderWay(Option<Waker>),
    Abandoned,
    Done(Result<(), Errno>),
}

impl SimDisk {
    /// A disk of zeroes.
    pub fn new(handle: &Handle, name: impl Into<String>, limits: Limits) -> SimDisk {
        SimDisk::with_contents(handle, name, limits, Image::zeroes(limits.size as usize))
    }

    /// A disk that holds `contents`, as after a restart.
    ///
    /// # Panics
    /// If `contents` is not `limits.size` long.
    pub fn with_contents(
        handle: &Handle,
        name: impl Into<String>,
        limits: Limits,
        contents: impl Into<Image>,
    ) -> SimDisk {
        let media = Media::new(contents, limits.logical_block as usize);
        SimDisk::with_media(handle, name, limits, media)
    }

    /// A disk whose cache is not empty, as after the end of a process.
    pub(crate) fn with_media(
        handle: &Handle,
        name: impl Into<String>,
        limits: Limits,
        media: Media,
    ) -> SimDisk {
        assert_eq!(media.current().len() as u64, limits.size, "the contents of a disk");
        let inner = Rc::new(Inner {
            name: name.into(),
            limits,
            handle: handle.clone(),
            faults: Faults::default(),
            rng: RefCell::new(handle.fork_rng()),
            media: RefCell::new(media),
            requests: RefCell::default(),
            trace: RefCell::default(),
            completed: Cell::new(0),
            gone: Cell::new(false),
            slowness: Cell::new(1),
            failed_ns: Cell::new(None),
            timing: RefCell::default(),
            listener: RefCell::default(),
        });
        let weak: Weak<Inner> = Rc::downgrade(&inner);
        handle.add_witness(weak);
        SimDisk { inner }
    }

    /// It is pulled, or its cable is: every request fails from now on, and those under way.
    pub fn vanish(&self) {
        self.inner.gone.set(true);
    }

    /// Whether it was pulled.
    pub fn is_gone(&self) -> bool {
        self.inner.gone.get()
    }

    /// From now on everything takes `times` as long.
    pub fn slow_down(&self, times: u64) {
        self.inner.slowness.set(times);
    }

    /// When a write or a flush last failed, or began that was to fail.
    pub(crate) fn failed_ns(&self) -> Option<u64> {
        self.inner.failed_ns.get()
    }

    /// Whether it takes longer than others.
    pub(crate) fn is_slow(&self) -> bool {
        self.inner.slowness.get() > 1
    }

    /// Has `timing` say how long requests take, instead of the dice.
    pub fn set_timing(&self, timing: Timing) {
        self.inner.timing.replace(Some(timing));
    }

    /// Has `listener` hear of every request.
    pub fn listen(&self, listener: Listener) {
        self.inner.listener.replace(Some(listener));
    }

    /// What it holds, with its cache.
    pub(crate) fn media(&self) -> std::cell::Ref<'_, Media> {
        self.inner.media.borrow()
    }

    /// Takes what it holds out: the simulation that it was in is over.
    pub(crate) fn take_media(&self) -> Media {
        self.inner
            .media
            .replace(Media::new(Image::default(), self.inner.limits.logical_block as usize))
    }

    /// Has the blocks of `span`, which are only ever written together, be there all or none of
    /// them after a crash.
    pub(crate) fn set_atomic(&self, span: Span) {
        self.inner.media.borrow_mut().set_atomic(span);
    }

    /// The simulation that it is in.
    pub fn handle(&self) -> Handle {
        self.inner.handle.clone()
    }

    /// What befalls its requests.
    pub fn faults(&self) -> &Faults {
        &self.inner.faults
    }

    /// Every request so far.
    pub fn trace(&self) -> Vec<Record> {
        self.inner.trace.borrow().clone()
    }

    /// The trace, a line a request.
    pub fn render_trace(&self) -> String {
        Witness::trace(&*self.inner).join("\n")
    }

    /// Requests completed so far.
    pub fn completed(&self) -> u64 {
        self.inner.completed.get()
    }

    /// What a read of everything would give now.
    pub fn contents(&self) -> Image {
        self.inner.media.borrow().current().clone()
    }

    /// What is sure to be there after a crash now: one of the [`SimDisk::crash_image`]s, as
    /// [`SimDisk::contents`] are.
    pub fn durable(&self) -> Image {
        self.inner.media.borrow().durable().clone()
    }

    /// What a crash now might leave: of every block the durable contents or any that was written
    /// since, acknowledged or not.
    pub fn crash_image(&self, rng: &mut Rng) -> Image {
        self.inner.media.borrow().crash(rng)
    }
}

impl Device for SimDisk {
    fn limits(&self) -> Limits {
        self.inner.limits
    }

    fn start(&self, io: Io) -> Pending {
        let id = Inner::start(&self.inner, io);
        let source: Rc<dyn CompletionSource> = self.inner.clone();
        Pending::Ticket(Ticket::new(source, id))
    }

    /// Blocks that hold zeroes are holes.
    fn extents(&self, span: Span) -> Vec<Extent> {
        const MOST: usize = 16;
        let media = self.inner.media.borrow();
        let block = self.inner.limits.logical_block as usize;
        let mut extents: Vec<Extent> = Vec::new();
        for offset in (span.offset as usize..span.end() as usize).step_by(block) {
            let part = media.current().piece(offset, block);
            let len = part.len() as u64;
            let zero = part.iter().all(|byte| *byte == 0);
            let extent = if zero { Extent::hole(len) } else { Extent::data(len) };
            match extents.last_mut() {
                Some(last) if last.is_like(&extent) => last.len += len,
                _ => extents.push(extent),
            }
        }
        extents.truncate(MOST);
        extents
    }
}

impl Inner {
    fn start(self: &Rc<Inner>, io: Io) -> u32 {
        let now_ns = self.handle.now();
        let index = self.trace.borrow().len() as u64;
        let id = index as u32;
        let record =
            Record { op: io.op, span: io.span, flags: io.flags, start_ns: now_ns, end: None };
        if let Some(listener) = &*self.listener.borrow() {
            listener(index, &record);
        }
        self.trace.borrow_mut().push(record);

        let (effect_ns, done_ns) = self.draw_times(now_ns, &io);
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

        let inner = Rc::clone(self);
        self.handle.call_at(effect_ns, move || inner.take_effect(id));
        let inner = Rc::clone(self);
        self.handle.call_at(done_ns.max(not_before_ns), move || inner.complete(id));
        id
    }

    /// When a request that starts now takes effect, and when it completes.
    fn draw_times(&self, now_ns: u64, io: &Io) -> (u64, u64) {
        let mut rng = self.rng.borrow_mut();
        if let Some(timing) = &mut *self.timing.borrow_mut() {
            let done_ns = timing(io.op, io.span, now_ns).max(now_ns);
            return (rng.within(now_ns..=done_ns), done_ns);
        }
        let slow = if rng.below(SLOW_ONE_IN) == 0 { 10 } else { 1 };
        let latency_ns = rng.within(LATENCY_NS) * slow * self.slowness.get();
        (now_ns + rng.within(0..=latency_ns), now_ns + latency_ns)
    }

    /// What a modifying request makes of its span.
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

impl Witness for Inner {
    fn pending(&self) -> Vec<String> {
        let trace = self.trace.borrow();
        let unfinished = trace.iter().enumerate().filter(|(_, record)| record.end.is_none());
        unfinished.map(|(index, record)| format!("{} #{index} {record}", self.name)).collect()
    }

    fn trace(&self) -> Vec<String> {
        let trace = self.trace.borrow();
        let lines = trace.iter().enumerate();
        lines.map(|(index, record)| format!("{} #{index} {record}", self.name)).collect()
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Record { op, span, flags, start_ns, end } = self;
        let fua = if flags.contains(Flags::FUA) { " fua" } else { "" };
        write!(f, "{op:?} {span}{fua} {start_ns}..")?;
        match end {
            None => write!(f, " under way"),
            Some((end_ns, Ok(()))) => write!(f, "{end_ns} ok"),
            Some((end_ns, Err(errno))) => write!(f, "{end_ns} {errno}"),
        }
    }
}
