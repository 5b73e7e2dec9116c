//! The data path of a queue: requests of its tags to the volume, and results back.
//!
//! ```text
//!            fetch, then commit-and-fetch                 dev.start
//!   driver ───────────────────────────────▶ slot ──────────────────────▶ volume
//!     ▲  └── data of a write: take_data ──▶  │ ◀──────────────────────────┘
//!     └───── data of a read: give_data ◀─────┘      a slot is a task: one for each tag
//! ```
//!
//! All operations are on the shard's ring: those that become ready in one turn are handed over by one system call.
//!
//! Invariants
//! * A slot has at most one request. Its memory is taken at once, before the request is started, and for nothing else.
//! * A request is checked against the limits of the device that it is started on, with no wait between.
//! * Every request that was fetched gets one result.
//! * Requests never hold all of the pool, so the volume can take from it what it needs to end one.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;

use braid_block::{Errno, Payload};
use braid_engine::{Dev, Offered, WritePermit};
use braid_mem::Pool;
use braid_status::ExportCounts;
use braid_uring::Handle;
use braid_uring::ublk::Queue;

use crate::request::{CheckedRequest, Data, MAX_DATA, RawRequest};

/// `UBLK_U_IO_FETCH_REQ` and `UBLK_U_IO_COMMIT_AND_FETCH_REQ`: `_IOWR('u', …, 16 bytes)`.
const FETCH: u32 = 0xc010_7520;
const COMMIT_AND_FETCH: u32 = 0xc010_7521;

/// A quarter of the memory is left to what the volume does for requests.
const SHARE_LEFT: usize = 4;

/// Counts of the requests of one queue.
pub type Counters = braid_status::Shared<ExportCounts>;

/// Counts of requests.
pub type Counts = ExportCounts;

/// Why a queue is not served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Requests of the longest kind would never fit.
    #[error("a pool of {total} bytes is too small for ublk requests of {MAX_DATA}")]
    PoolTooSmall {
        /// Bytes that there are.
        total: usize,
    },
    /// Commands of the driver need io_uring.
    #[error("ublk needs io_uring, and this volume is served by threads")]
    NoRing,
}

/// Serves `queue` by tasks of this thread, until the driver ends it. `pool` is where data go. `end` is dropped when the
/// queue is closed.
///
/// # Errors
/// [`ServeError`]; nothing is served.
pub fn serve(
    handle: &Handle,
    queue: Queue,
    offered: Offered,
    pool: Pool,
    counters: Arc<Counters>,
    end: impl Sized + 'static,
) -> Result<(), ServeError> {
    if pool.total_bytes() < MAX_DATA {
        return Err(ServeError::PoolTooSmall { total: pool.total_bytes() });
    }
    if handle.driver_name() != "uring" {
        return Err(ServeError::NoRing);
    }
    let depth = queue.depth();
    let server = Rc::new(Server { queue, offered, pool, counters, _end: end });
    for tag in 0..depth {
        let server = Rc::clone(&server);
        handle.spawn(async move { server.run_slot(tag).await });
    }
    Ok(())
}

struct Server<E> {
    queue: Queue,
    offered: Offered,
    pool: Pool,
    counters: Arc<Counters>,
    /// Goes after the queue.
    _end: E,
}

impl<E> Server<E> {
    async fn run_slot(&self, tag: u16) {
        let mut seen = Seen { changes: self.offered.changes(), dev: self.offered.dev() };
        let (mut command, mut result) = (FETCH, 0);
        // The driver answers with an error when it ends the queue.
        while self.queue.command(command, tag, result).await == 0 {
            result = match self.answer(tag, &mut seen).await {
                Ok(len) => i32::try_from(len).expect("a request has at most 2 GiB"),
                Err(errno) => {
                    self.counters.add(&mut ExportCounts { errors: 1, ..ExportCounts::default() });
                    -errno.raw()
                }
            };
            command = COMMIT_AND_FETCH;
        }
    }

    /// Carries out the request of `tag`, and returns its bytes of data.
    async fn answer(&self, tag: u16, seen: &mut Seen) -> Result<usize, Errno> {
        let raw = RawRequest::parse(&self.queue.descriptor(tag));
        let data = raw.data()?;
        let payload = match data {
            Data::None => Payload::None,
            Data::Given(len) => self.memory(len).await,
            Data::Taken(len) => {
                let taken = self.queue.take_data(tag, self.memory(len).await).await;
                taken.result?;
                taken.payload
            }
        };
        seen.follow(&self.offered);
        let request = raw.check(&self.offered.limits())?;
        self.count(request);
        let io = request.io(payload);
        let is_modifying = io.op.is_modifying();
        let pending = seen.dev.start(io);
        let permit: Option<WritePermit> = is_modifying.then(|| self.offered.permit());
        let done = pending.await;
        drop(permit);
        done.result?;
        match data {
            Data::None => Ok(0),
            Data::Taken(len) => Ok(len),
            Data::Given(len) => self.queue.give_data(tag, done.payload).await.result.map(|()| len),
        }
    }

    /// Takes memory for the data of a request, and leaves some: a device that needs memory for the requests that
    /// hold theirs gets it.
    async fn memory(&self, len: usize) -> Payload {
        let left = self.pool.total_bytes() / SHARE_LEFT;
        poll_fn(|cx| Payload::poll_take(&self.pool, len, MAX_DATA, left, cx)).await
    }

    fn count(&self, request: CheckedRequest) {
        let mut counts = ExportCounts { requests: 1, ..ExportCounts::default() };
        match request {
            CheckedRequest::Read(span) => counts.read_bytes = span.len,
            CheckedRequest::Write(span, _) => counts.written_bytes = span.len,
            _ => {}
        }
        self.counters.add(&mut counts);
    }
}

/// The device as a slot knows it.
struct Seen {
    changes: u64,
    dev: Dev,
}

impl Seen {
    fn follow(&mut self, offered: &Offered) {
        if self.changes != offered.changes() {
            (self.changes, self.dev) = (offered.changes(), offered.dev());
        }
    }
}
