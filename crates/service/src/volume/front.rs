//! The device that a shard serves, and in front of it, if a trace is recorded, the device that reports to the trace.
//!
//! ```text
//!   export ──▶ Offered ──▶ Tapped ──▶ Dev      with a trace
//!   export ──▶ Offered ─────────────▶ Dev      without
//!                        the volume ──▶ Dev    saves, restores, flushes: never recorded
//! ```
//!
//! Invariant: an exchange of the device, for a cache or a RAM disk of another size, happens behind the trace.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use braid_block::{Flags, Io, Limits, Op, Span};
use braid_engine::{Clock, Dev, Device, Earlier, Extents, Offered, Pending};
use braid_trace::{Kind, Request};
use braid_uring::Handle;

use super::trace::{Lane, ns};

/// Interval between two looks at earlier writes in flight.
const RETRY: Duration = Duration::from_millis(1);

/// The device that a shard serves. Cheap to clone, all clones are the same.
#[derive(Clone)]
pub(super) struct Front {
    offered: Offered,
    tapped: Option<(Rc<RefCell<Dev>>, Rc<Tap>)>,
}

impl Front {
    /// Serves `dev`, and puts each request on `lane`, if there is one, with its time by `clock`.
    pub(super) fn new(dev: Dev, lane: Option<Lane>, clock: impl Clock + 'static) -> Front {
        let Some(lane) = lane else {
            return Front { offered: Offered::from(dev), tapped: None };
        };
        let began = lane.elapsed().saturating_sub(clock.now());
        let tap = Rc::new(Tap { lane, clock: Box::new(clock), began });
        let offered = Offered::from(tap.in_front_of(dev.clone()));
        Front { offered, tapped: Some((Rc::new(RefCell::new(dev)), tap)) }
    }

    /// Returns the device that exports offer.
    pub(super) fn offered(&self) -> &Offered {
        &self.offered
    }

    /// The device itself: what is asked of it is not recorded.
    pub(super) fn dev(&self) -> Dev {
        match &self.tapped {
            Some((dev, _)) => dev.borrow().clone(),
            None => self.offered.dev(),
        }
    }

    /// Serves `dev` from now on; see [`Offered::exchange`].
    pub(super) fn exchange(&self, dev: Dev) -> Earlier {
        match &self.tapped {
            Some((behind, tap)) => {
                behind.replace(dev.clone());
                self.offered.exchange(tap.in_front_of(dev))
            }
            None => self.offered.exchange(dev),
        }
    }
}

/// Waits until what was asked before is answered.
pub(super) async fn answered(handle: &Handle, earlier: &Earlier) {
    while !earlier.are_answered() {
        handle.sleep(RETRY).await;
    }
}

/// The device that reports requests to a trace.
struct Tap {
    lane: Lane,
    clock: Box<dyn Clock>,
    /// The time of the trace when the clock began.
    began: Duration,
}

impl Tap {
    fn in_front_of(self: &Rc<Tap>, dev: Dev) -> Dev {
        Dev::new(Tapped { dev, tap: Rc::clone(self) })
    }

    #[inline]
    fn note(&self, io: &Io) {
        let at_ns = ns(self.began + self.clock.now());
        let kind = match io.op {
            Op::Read => Kind::Read,
            Op::Write => Kind::Write,
            Op::Flush => return self.lane.put(Request::flush(at_ns)),
            Op::Discard => Kind::Discard,
            // It moves no data, and takes space or gives it back: as what is like it elsewhere.
            Op::WriteZeroes if io.flags.contains(Flags::NO_UNMAP) => Kind::Write,
            Op::WriteZeroes => Kind::Discard,
        };
        let fua = kind == Kind::Write && io.flags.contains(Flags::FUA);
        let (offset, length) = (io.span.offset, io.span.len);
        self.lane.put(Request { at_ns, offset, length, kind, fua });
    }
}

struct Tapped {
    dev: Dev,
    tap: Rc<Tap>,
}

impl Device for Tapped {
    fn limits(&self) -> Limits {
        *self.dev.limits()
    }

    fn start(&self, io: Io) -> Pending {
        self.tap.note(&io);
        self.dev.start(io)
    }

    fn extents(&self, span: Span) -> Extents {
        self.dev.extents(span)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::Arc;

    use super::*;
    use crate::volume::trace::{Recording, TraceTo};

    struct Ready;

    impl Device for Ready {
        fn limits(&self) -> Limits {
            Limits::new(1 << 20, 512)
        }

        fn start(&self, io: Io) -> Pending {
            Pending::ready(io.complete(Ok(())))
        }
    }

    /// Ten microseconds later each time.
    #[derive(Default)]
    pub(in crate::volume) struct Steps(std::cell::Cell<u64>);

    impl Clock for Steps {
        fn now(&self) -> Duration {
            self.0.set(self.0.get() + 10);
            Duration::from_micros(self.0.get())
        }

        fn unix_time(&self) -> Duration {
            Duration::ZERO
        }

        fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()>>> {
            Box::pin(std::future::ready(()))
        }
    }

    #[test]
    fn a_request_takes_no_memory_and_waits_for_nobody() {
        let to = TraceTo { path: "none".into(), most: 0 };
        let recording = Arc::new(Recording::new(to, 1));
        let (mut lanes, queues) = recording.lanes(100);
        let front = Front::new(Dev::new(Ready), lanes.pop(), Steps::default());
        let dev = front.offered().dev();
        let span = Span::new(4096, 512);
        let memory = allocation_counter::measure(|| {
            for _ in 0..150 {
                drop(dev.start(Io::discard(span, Flags::FUA)));
            }
        });
        assert_eq!(memory.count_total, 0);
        let put: Vec<Request> = queues[0].try_iter().collect();
        assert_eq!((put.len(), recording.status().dropped), (100, 50));
        let expected =
            |at_ns| Request { at_ns, offset: 4096, length: 512, kind: Kind::Discard, fua: false };
        assert!(put.is_sorted_by(|one, next| next.at_ns == one.at_ns + 10_000));
        assert!(put.iter().all(|one| *one == expected(one.at_ns)));
        // What is asked of the device itself is not recorded.
        drop(front.dev().start(Io::flush()));
        assert_eq!(queues[0].try_iter().count(), 0);
        recording.stop("a test".to_owned());
        drop(dev.start(Io::flush()));
        assert_eq!((queues[0].try_iter().count(), recording.status().dropped), (0, 51));
    }
}
