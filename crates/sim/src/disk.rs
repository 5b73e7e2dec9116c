//! A simulated disk: a medium with a volatile cache, random latency, faults and a trace.
//!
//! ```text
//!          start            takes effect              completes
//!            |------- drawn ------|-------- drawn --------|        in any order among requests
//!  a crash   |  may leave it                              | may leave it until a flush or FUA
//!  a read    |                    | sees it from here on
//! ```
//!
//! It is as hostile as the contract permits: a failed read fills its memory with random bytes, a discard leaves
//! the old contents, zeroes or random bytes, a failed write has reached some of its blocks, and an abandoned
//! request is still carried out. A disk whose limits say so answers in the call, whatever
//! delays are asked for.

mod request;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use braid_block::{Errno, Extent, Flags, Io, Limits, Op, Span};
use braid_engine::{CompletionSource, Device, Extents, Pending, Ticket};
use braid_model::{Answer, Bus, CommandQueue, Timetable, Work};

use request::Request;

use crate::media::Media;
use crate::{Faults, Handle, Image, Rng, Witness};

/// A disk. Cheap to clone, all clones are the same disk.
#[derive(Clone)]
pub struct SimDisk {
    inner: Rc<Inner>,
}

/// One request in a disk's trace; its place in the trace is its index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The kind of the request.
    pub op: Op,
    /// Its range.
    pub span: Span,
    /// Modifiers.
    pub flags: Flags,
    /// The time of its arrival, in nanoseconds.
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
    /// The factor by which all requests take longer than usual.
    slowness: Cell<u64>,
    /// The time until which its present or former requests hang.
    hangs_until_ns: Cell<u64>,
    /// The time of the last failure of a write or a flush, or of its start.
    failed_ns: Cell<Option<u64>>,
    timing: RefCell<Option<Timing>>,
    listener: RefCell<Option<Listener>>,
}

/// Hears of each request, by its number, when it starts and when it completes.
pub type Listener = Box<dyn Fn(u64, &Record)>;

/// The times of requests on a modelled device, which may share its bus.
pub struct Timing {
    queue: CommandQueue,
    bus: Rc<RefCell<Bus>>,
}

impl Timing {
    /// Those of `device` on `bus`.
    pub fn new(device: Timetable, bus: Rc<RefCell<Bus>>) -> Timing {
        Timing { queue: CommandQueue::new(device), bus }
    }

    fn ask(&mut self, now_ns: u64, io: &Io) -> u64 {
        let Span { offset, len: bytes } = io.span;
        let work = match io.op {
            Op::Read => Work::Read { offset, bytes },
            Op::Write => Work::Write { offset, bytes },
            Op::Flush | Op::Discard | Op::WriteZeroes => Work::Command,
        };
        self.queue.ask(now_ns, work)
    }

    fn answer(&mut self, now_ns: u64, number: u64) -> Answer {
        self.queue.answer(&mut self.bus.borrow_mut(), now_ns, number)
    }
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
            hangs_until_ns: Cell::new(0),
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

    /// True if it was pulled.
    pub fn is_gone(&self) -> bool {
        self.inner.gone.get()
    }

    /// True if requests hang, or would hang if they came.
    pub(crate) fn hangs(&self) -> bool {
        let now_ns = self.inner.handle.now();
        self.inner.hangs_until_ns.get() > now_ns || self.inner.faults.hang(now_ns)
    }

    /// True if a request has ever hung.
    pub(crate) fn has_hung(&self) -> bool {
        self.inner.hangs_until_ns.get() > 0
    }

    /// Tells if requests are unanswered, whose memory it keeps.
    pub(crate) fn is_asked(&self) -> bool {
        self.inner.trace.borrow().iter().any(|one| one.end.is_none())
    }

    /// From now on everything takes `times` as long.
    pub fn slow_down(&self, times: u64) {
        self.inner.slowness.set(times);
    }

    /// When a write or a flush last failed, or began that was to fail.
    pub(crate) fn failed_ns(&self) -> Option<u64> {
        self.inner.failed_ns.get()
    }

    /// True if it takes longer than others.
    pub(crate) fn is_slow(&self) -> bool {
        self.inner.slowness.get() > 1
    }

    /// Has a model say how long requests take, instead of the dice.
    pub fn set_timing(&self, timing: Timing) {
        self.inner.timing.replace(Some(timing));
    }

    /// Has `listener` hear of every request.
    pub fn listen(&self, listener: Listener) {
        self.inner.listener.replace(Some(listener));
    }

    /// Its medium, with its cache.
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

    /// The faults of its requests.
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

    /// The result of a read of the whole disk now.
    pub fn contents(&self) -> Image {
        self.inner.media.borrow().current().clone()
    }

    /// Changes the blocks at `offset` without a write; no write of them may be in flight.
    pub(crate) fn rot(&self, offset: u64, bytes: &[u8]) {
        self.inner.media.borrow_mut().rot(offset, bytes);
    }

    /// The certain content after a crash now: one of the [`SimDisk::crash_image`]s, like [`SimDisk::contents`].
    pub fn durable(&self) -> Image {
        self.inner.media.borrow().durable().clone()
    }

    /// A possible content after a crash now: of every block the durable content or any later version,
    /// acknowledged or not.
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
        if self.inner.is_done(id)
            && let Poll::Ready(completion) =
                self.inner.poll_completion(id, &mut Context::from_waker(Waker::noop()))
        {
            return Pending::ready(completion);
        }
        let source: Rc<dyn CompletionSource> = self.inner.clone();
        Pending::Ticket(Ticket::new(source, id))
    }

    /// Blocks that hold zeroes are holes.
    fn extents(&self, span: Span) -> Extents {
        const MOST: usize = 16;
        let media = self.inner.media.borrow();
        let block = self.inner.limits.logical_block as usize;
        let mut extents: Vec<Extent> = Vec::new();
        for offset in (span.offset as usize..span.end() as usize).step_by(block) {
            let len = block as u64;
            let zero = media.current().is_zero(offset, block);
            let extent = if zero { Extent::hole(len) } else { Extent::data(len) };
            let count = extents.len();
            match extents.last_mut() {
                Some(last) if last.is_like(&extent) => last.len += len,
                _ if count == MOST => break,
                _ => extents.push(extent),
            }
        }
        Extents::Known(extents)
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
