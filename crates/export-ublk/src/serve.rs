//! The data path of a queue: requests of its tags to the volume, and results back.
//!
//! ```text
//!            fetch, then commit-and-fetch                 dev.start
//!   driver ───────────────────────────────▶ slot ──────────────────────▶ volume
//!     ▲  └── data of a write: take_data ──▶  │ ◀──────────────────────────┘
//!     └──── data of a read, with the commit: ─┘      a slot is a task: one for each tag
//!           give_data
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

use braid_block::{Completion, Errno, Payload};
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
        let mut answer = self.queue.command(FETCH, tag, 0).await;
        // The driver answers with an error when it ends the queue.
        while answer == 0 {
            answer = match self.carry_out(tag, &mut seen).await {
                Ok(answer) => answer,
                Err(errno) => {
                    self.counters.add(&mut ExportCounts { errors: 1, ..ExportCounts::default() });
                    self.queue.command(COMMIT_AND_FETCH, tag, -errno.raw()).await
                }
            };
        }
    }

    /// Carries out and commits the request of `tag`. Returns the driver's answer, which comes with the next request.
    ///
    /// # Errors
    /// The failure of the request, which is not committed.
    async fn carry_out(&self, tag: u16, seen: &mut Seen) -> Result<i32, Errno> {
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
        let Completion { result, payload } = pending.await;
        drop(permit);
        result?;
        let len = match data {
            Data::Given(_) => return self.queue.give_data(COMMIT_AND_FETCH, tag, payload).await,
            Data::Taken(len) => i32::try_from(len).expect("a request has at most 1 MiB"),
            Data::None => 0,
        };
        drop(payload);
        Ok(self.queue.command(COMMIT_AND_FETCH, tag, len).await)
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
