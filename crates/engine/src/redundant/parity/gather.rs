//! Joining consecutive small writes into whole stripes.
//!
//! ```text
//!   a client with several writes in flight, each at the end of the previous one
//!
//!        stripe 7                 stripe 8
//!   … | 3 | 4 | 5 | 6 |      | 0 | 1 | 2 | …
//!       └───────────┘          └───────┘
//!        in flight              held until the stripe is full, or HOLD after no other is
//!                               in flight any more
//! ```
//!
//! A whole stripe is written without reads. So a write at the end of another write in flight is held: its
//! client sends more when that write completes, however long members take. Nothing is held for a client that
//! waits for each write, nor if members answer at once. A stream whose stripes do not fill in time is not held
//! for a while.
//!
//! Bounds: one stripe for each stream, held as long as the earlier writes take, and [`HOLD`]; and
//! [`MOST_STREAMS`] streams. A held write completes only after it is stored.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use braid_block::{Errno, Flags, Io, Payload};

use crate::redundant::core::Core;
use crate::redundant::write::Finished;
use crate::signal::Signal;

/// Time for which a write is held after no other write of its stream is in flight.
const HOLD: Duration = Duration::from_millis(1);
/// Largest number of streams.
const MOST_STREAMS: usize = 8;
/// Number of writes of a stream that are not held after a stripe that did not fill.
const PENALTY: u32 = 64;

/// The streams of writes.
#[derive(Default)]
pub(super) struct Gather {
    /// The stream that was written last is at the end.
    streams: RefCell<Vec<Rc<Stream>>>,
}

/// Writes, each at the end of the previous one.
struct Stream {
    /// Offset of the next write in bytes of the array.
    next: Cell<u64>,
    under_way: Cell<u32>,
    /// Number of writes that will not be held.
    penalty: Cell<u32>,
    held: RefCell<Option<Rc<Run>>>,
    /// Notified when a write completes.
    changed: Signal,
}

/// Writes that are held, to be stored as one.
struct Run {
    start: u64,
    /// End of the stripe in which the run starts.
    end: u64,
    flags: Cell<Flags>,
    payload: RefCell<Payload>,
    /// Length of each payload but the first, and the payload once it is stored.
    followers: RefCell<Vec<(u64, Payload)>>,
    /// True if no more writes may join.
    is_closed: Cell<bool>,
    finished: Cell<Option<Finished>>,
    changed: Signal,
}

/// A write of a stream, while it is in flight.
struct UnderWay(Rc<Stream>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.set(self.0.under_way.get() - 1);
        self.0.changed.notify();
    }
}

impl Gather {
    /// Returns the stream that `io` continues, or a new one.
    fn stream_of(&self, io: &Io) -> Rc<Stream> {
        let mut streams = self.streams.borrow_mut();
        let known = streams.iter().position(|stream| stream.next.get() == io.span.offset);
        let stream = match known {
            Some(index) => streams.remove(index),
            None => {
                if streams.len() == MOST_STREAMS {
                    streams.remove(0);
                }
                Rc::new(Stream {
                    next: Cell::new(0),
                    under_way: Cell::new(0),
                    penalty: Cell::new(0),
                    held: RefCell::default(),
                    changed: Signal::default(),
                })
            }
        };
        stream.next.set(io.span.end());
        streams.push(Rc::clone(&stream));
        stream
    }
}

impl Run {
    fn new(io: Io, end: u64) -> Run {
        Run {
            start: io.span.offset,
            end,
            flags: Cell::new(io.flags),
            payload: RefCell::new(io.payload),
            followers: RefCell::default(),
            is_closed: Cell::new(false),
            finished: Cell::new(None),
            changed: Signal::default(),
        }
    }

    /// Returns the number of writes in the run.
    fn count(&self) -> u32 {
        1 + self.followers.borrow().len() as u32
    }

    fn is_full(&self) -> bool {
        self.start + self.payload.borrow().len() >= self.end
    }

    /// Appends `io` to the run; returns its index among the followers.
    fn join(&self, io: Io) -> usize {
        self.flags.set(self.flags.get().union(io.flags));
        let mut followers = self.followers.borrow_mut();
        followers.push((io.span.len, Payload::None));
        self.payload.borrow_mut().append(io.payload);
        followers.len() - 1
    }

    fn close(&self) {
        self.is_closed.set(true);
        self.changed.notify();
    }
}

impl Gather {
    /// Stores a write by `store`, together with adjacent writes if that makes whole stripes of `width` bytes.
    pub(super) async fn write<F: Future<Output = (Finished, Payload)>>(
        &self,
        core: &Core,
        width: u64,
        io: Io,
        store: impl Fn(Io) -> F,
    ) -> (Finished, Payload) {
        if core.lane.is_immediate() || io.span.len >= width {
            return store(io).await;
        }
        let stream = self.stream_of(&io);
        let goes_on = stream.under_way.get() > 0;
        stream.under_way.set(stream.under_way.get() + 1);
        let _under_way = UnderWay(Rc::clone(&stream));
        let held = stream.held.borrow().clone();
        if let Some(run) = held.filter(|run| !run.is_closed.get()) {
            return follow(&run, io).await;
        }
        let end = (io.span.offset / width + 1) * width;
        if goes_on && io.span.end() < end && !take_one(&stream.penalty) {
            stream.lead(core, io, end, store).await
        } else {
            store(io).await
        }
    }
}

impl Stream {
    /// Holds `io` for writes up to `end`, and stores the run by `store`.
    async fn lead<F: Future<Output = (Finished, Payload)>>(
        &self,
        core: &Core,
        io: Io,
        end: u64,
        store: impl Fn(Io) -> F,
    ) -> (Finished, Payload) {
        let len = io.span.len;
        let run = Rc::new(Run::new(io, end));
        self.held.replace(Some(Rc::clone(&run)));
        {
            let mut closed = pin!(run.changed.until(|| run.is_closed.get()));
            let is_alone = || self.under_way.get() <= run.count();
            either(closed.as_mut(), pin!(self.changed.until(is_alone))).await;
            if !run.is_closed.get() {
                either(closed, core.clock.sleep(HOLD)).await;
            }
        }
        run.is_closed.set(true);
        if !run.is_full() {
            self.penalty.set(PENALTY);
        }
        let whole = Io::write(run.start, run.payload.take(), run.flags.get());
        let (finished, mut payload) = store(whole).await;
        let own = payload.take_front(len);
        for (len, part) in run.followers.borrow_mut().iter_mut() {
            *part = payload.take_front(*len);
        }
        run.finished.set(Some(finished));
        run.changed.notify();
        (finished, own)
    }
}

/// Adds `io` to `run` and waits until it is stored. Bytes beyond the stripe's end are stored with it.
async fn follow(run: &Rc<Run>, io: Io) -> (Finished, Payload) {
    let index = run.join(io);
    if run.is_full() {
        run.close();
    }
    run.changed.until(|| run.finished.get().is_some()).await;
    let finished = run.finished.get().unwrap_or(Finished::refused(Errno::IO));
    let payload = std::mem::take(&mut run.followers.borrow_mut()[index].1);
    (finished, payload)
}

/// Waits for one of the futures.
async fn either(
    mut one: impl Future<Output = ()> + Unpin,
    mut other: impl Future<Output = ()> + Unpin,
) {
    poll_fn(|cx| match Pin::new(&mut one).poll(cx) {
        Poll::Ready(()) => Poll::Ready(()),
        Poll::Pending => Pin::new(&mut other).poll(cx),
    })
    .await;
}

/// Counts down; returns false if the counter was 0.
fn take_one(counter: &Cell<u32>) -> bool {
    let left = counter.get();
    counter.set(left.saturating_sub(1));
    left > 0
}
