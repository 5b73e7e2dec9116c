//! The data path: requests from `/dev/fuse` to the volume, and replies back.
//!
//! ```text
//!        readv [head 80 | body 1 MiB]                      dev.start
//!  fuse ──────────────────────────────▶ session ──────────────────────────▶ volume
//!    ▲                                                      │ done at once │ later
//!    └──────────── writev [header 16 | data] ◀──────────────┴── in flight ◀┘
//! ```
//!
//! A turn reads requests until there are none left (or a budget is used up, so that the
//! executor can hand over what they started), then waits for one to come or one to be done.
//! A request that the volume answers at once costs two system calls and no copy but the
//! kernel's.
//!
//! Invariants
//! * No more than [`IN_FLIGHT`] requests are under way, and none is read from the kernel before
//!   there is memory for the longest: load beyond that waits in the kernel.
//! * Every request that was read gets exactly one reply, but those that take none.
//! * A request under way when the file system goes away is completed before [`serve`] returns.
//!
//! Several shards may serve one mount, each with a descriptor of its own on the same connection
//! (`FUSE_DEV_IOC_CLONE`): nothing here assumes that it sees every request, INIT included.

use std::future::{Future, poll_fn};
use std::io::{IoSlice, IoSliceMut};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use braid_block::{Completion, Flags, Io, Payload, Span};
use braid_engine::{Dev, InFlight, Offered, Pending, WritePermit};
use braid_mem::{Buf, Pool};
use braid_status::ExportCounts;
use braid_uring::{Fd, Handle, Interest};
use rustix::io::Errno as Os;

use crate::protocol::{self, HEAD, MAX_DATA, Reply};
use crate::seek::find;
use crate::session::{Answer, Session};

/// Most requests under way.
const IN_FLIGHT: usize = 1024;
/// Requests read before the executor gets its turn.
const BUDGET: usize = 64;
/// A WRITE of up to this many bytes is copied to memory of its size, so that a small one does
/// not hold memory for a large one while it is under way. What a copy from the cache costs was
/// not to be told from the noise, at 4 KiB as at 64 KiB.
const COPY_MOST: usize = 64 << 10;
/// Most pieces of memory that one system call takes (`UIO_MAXIOV`).
const MOST_SLICES: usize = 1024;

/// Why a mount is not served any more, other than by being unmounted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Requests of the longest kind would never fit.
    #[error("a pool of {total} bytes is too small for FUSE requests of {needed}")]
    PoolTooSmall {
        /// Bytes that a request takes.
        needed: usize,
        /// Bytes that there are.
        total: usize,
    },
    /// The kernel gives no more requests.
    #[error("cannot receive from /dev/fuse: {0}")]
    Receive(std::io::Error),
    /// The kernel takes no reply.
    #[error("cannot reply to /dev/fuse: {0}")]
    Reply(std::io::Error),
    /// The kernel refuses a queue of io_uring.
    #[error("cannot serve a queue of FUSE over io_uring: {0}")]
    Queue(std::io::Error),
}

/// Serves `dev` over `fd`, a connection from [`crate::Mount::new`], until the file system is
/// unmounted. `pool` is where the data of requests goes; 32 MiB keep a loop device busy.
///
/// # Errors
/// [`ServeError`]. The file system then fails all requests as soon as the executor, which may
/// still watch the descriptor, has ended, or the connection is ended by a [`crate::Aborter`].
pub async fn serve(
    handle: Handle,
    fd: Fd,
    offered: impl Into<Offered>,
    pool: Pool,
    counters: Arc<Counters>,
) -> Result<(), ServeError> {
    if pool.total_bytes() < 2 * MAX_DATA {
        return Err(ServeError::PoolTooSmall { needed: 2 * MAX_DATA, total: pool.total_bytes() });
    }
    Server::new(fd, offered.into(), pool, counters).run(&handle).await
}

/// Counts of the requests of one mount.
pub type Counters = braid_status::Shared<ExportCounts>;

pub(crate) struct Server {
    fd: Fd,
    offered: Offered,
    /// The changes of it that `dev` and `session` know.
    changes: u64,
    dev: Dev,
    pool: Pool,
    session: Session,
    counters: Arc<Counters>,
    /// Counts that are not in `counters` yet: one locked instruction for many requests.
    counts: ExportCounts,
    inflight: InFlight<(Tag, Option<WritePermit>)>,
    /// The beginning of the request at hand.
    head: [u8; HEAD],
    /// Memory for the payload of the next one, `body_len` bytes.
    body: Option<Buf>,
    pub(crate) body_len: usize,
}

/// Whom to answer, and with what, when a block request is done.
#[derive(Clone, Copy)]
struct Tag {
    unique: u64,
    kind: Kind,
}

/// The reply to a request that succeeds.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// The data.
    Read,
    /// The number of bytes.
    Write(u32),
    /// Nothing more.
    Other,
}

/// Why reading requests stopped.
enum Stop {
    /// There are none.
    Drained,
    /// The budget is used up.
    Budget,
    /// There is no memory, or too much under way.
    NoRoom,
    /// There will be none.
    Unmounted,
}

impl Server {
    pub(crate) fn new(fd: Fd, offered: Offered, pool: Pool, counters: Arc<Counters>) -> Server {
        let (dev, changes) = (offered.dev(), offered.changes());
        let session = Session::new(offered.limits());
        let inflight = InFlight::new(IN_FLIGHT);
        let (head, body, body_len) = ([0; HEAD], None, MAX_DATA);
        let counts = ExportCounts::default();
        Server {
            fd,
            offered,
            changes,
            dev,
            pool,
            session,
            counters,
            counts,
            inflight,
            head,
            body,
            body_len,
        }
    }

    /// Takes over what is offered now. Between two turns nothing is half received.
    fn follow(&mut self) {
        self.changes = self.offered.changes();
        self.dev = self.offered.dev();
        self.session = Session::new(self.offered.limits());
    }

    /// Takes the payload memory of an earlier request, for a receiver by other means.
    pub(crate) fn take_body(&mut self) -> Option<Buf> {
        self.body.take()
    }

    /// Serves a request that was received by other means.
    pub(crate) fn serve_one(
        &mut self,
        head: [u8; HEAD],
        received: usize,
        body: Buf,
    ) -> Result<(), ServeError> {
        self.head = head;
        self.handle(received, body)
    }

    pub(crate) async fn run(mut self, handle: &Handle) -> Result<(), ServeError> {
        loop {
            let stop = self.drain();
            self.counters.add(&mut self.counts);
            match stop? {
                Stop::Drained => self.wait_for_request(handle).await?,
                Stop::Budget => self.yield_to_executor().await?,
                Stop::NoRoom => self.wait_for_room().await?,
                Stop::Unmounted => break,
            }
        }
        while !self.inflight.is_empty() {
            poll_fn(|cx| self.inflight.poll_next(cx)).await;
        }
        Ok(())
    }

    /// Reads requests and starts them.
    fn drain(&mut self) -> Result<Stop, ServeError> {
        if self.changes != self.offered.changes() {
            self.follow();
        }
        for _ in 0..BUDGET {
            if self.inflight.is_full() {
                return Ok(Stop::NoRoom);
            }
            let Some(mut body) = self.body.take().or_else(|| self.pool.get(self.body_len)) else {
                return Ok(Stop::NoRoom);
            };
            let parts = &mut [IoSliceMut::new(&mut self.head), IoSliceMut::new(&mut body)];
            match rustix::io::readv(&self.fd, parts) {
                Ok(received) => self.handle(received, body)?,
                Err(error) => {
                    self.body = Some(body);
                    match error {
                        Os::AGAIN => return Ok(Stop::Drained),
                        // The connection was aborted, or unmounted.
                        Os::NODEV | Os::CONNABORTED => return Ok(Stop::Unmounted),
                        // A request was taken back while it was read; a signal.
                        Os::NOENT | Os::INTR => {}
                        other => return Err(ServeError::Receive(other.into())),
                    }
                }
            }
        }
        Ok(Stop::Budget)
    }

    /// Answers the request in `self.head` and `body`, or starts what answers it.
    #[inline]
    fn handle(&mut self, received: usize, body: Buf) -> Result<(), ServeError> {
        let (unique, answer) = match protocol::parse(&self.head, received) {
            Ok(request) => (request.header.unique, self.session.answer(&request)),
            Err(malformed) => (0, Session::answer_malformed(&malformed)),
        };
        match answer {
            Answer::Read(span) => {
                self.counts.requests += 1;
                self.counts.read_bytes += span.len;
                return self.start_read(unique, span, body);
            }
            Answer::Write(span, flags) => {
                self.counts.requests += 1;
                self.counts.written_bytes += span.len;
                return self.start_write(unique, (span, flags), body);
            }
            _ => self.body = Some(body),
        }
        self.handle_other(unique, answer)
    }

    /// Answers or starts what needs no memory.
    fn handle_other(&mut self, unique: u64, answer: Answer) -> Result<(), ServeError> {
        let io = match answer {
            Answer::Flush => Some(Io::flush()),
            Answer::WriteZeroes(span, flags) => Some(Io::write_zeroes(span, flags)),
            _ => None,
        };
        if let Some(io) = io {
            self.counts.requests += 1;
            return self.start(Tag { unique, kind: Kind::Other }, io).map(drop);
        }
        let reply = match answer {
            Answer::Reply(reply) => reply,
            Answer::Seek { offset, data } => match find(&self.dev, offset, data) {
                Ok(found) => Reply::lseek(unique, found),
                Err(errno) => Reply::error(unique, errno),
            },
            _ => return Ok(()),
        };
        self.send(&[IoSlice::new(reply.as_bytes())])
    }

    fn start_read(&mut self, unique: u64, span: Span, mut body: Buf) -> Result<(), ServeError> {
        let tag = Tag { unique, kind: Kind::Read };
        let len = span.len as usize;
        if len == 0 {
            self.body = Some(body);
            return self.reply(tag, &Io::read(0, Payload::None).complete(Ok(())));
        }
        let data = match self.pool.get(len) {
            Some(data) => {
                self.body = Some(body);
                data
            }
            None => {
                body.truncate(len);
                body
            }
        };
        self.start(tag, Io::read(span.offset, data)).map(drop)
    }

    fn start_write(&mut self, unique: u64, to: (Span, Flags), body: Buf) -> Result<(), ServeError> {
        let ((span, flags), mut body) = (to, body);
        let tag = Tag { unique, kind: Kind::Write(span.len as u32) };
        let len = span.len as usize;
        if len <= COPY_MOST
            && len > 0
            && let Some(mut data) = self.pool.get(len)
        {
            data.copy_from_slice(&body[..len]);
            self.body = Some(body);
            return self.start(tag, Io::write(span.offset, data, flags)).map(drop);
        }
        let rest = body.split_off(len);
        let done = self.start(tag, Io::write(span.offset, body, flags))?;
        // What was written at once gives its memory back: put the body together again.
        if let Some(mut data) = done.and_then(Payload::into_one)
            && data.join(rest).is_ok()
        {
            self.body = Some(data);
        }
        Ok(())
    }

    /// Starts a block request. If it is done at once it is answered, and its memory returned.
    #[inline]
    fn start(&mut self, tag: Tag, io: Io) -> Result<Option<Payload>, ServeError> {
        let is_modifying = io.op.is_modifying();
        match self.dev.start(io) {
            Pending::Ready(Some(completion)) => {
                self.reply(tag, &completion)?;
                Ok(Some(completion.payload))
            }
            pending => {
                let permit = is_modifying.then(|| self.offered.permit());
                self.inflight.push((tag, permit), pending);
                Ok(None)
            }
        }
    }

    /// Answers a request whose block request is done.
    #[inline]
    fn reply(&self, tag: Tag, completion: &Completion) -> Result<(), ServeError> {
        let reply = match (completion.result, tag.kind) {
            (Ok(()), Kind::Read) => return self.send_data(tag.unique, &completion.payload),
            (Ok(()), Kind::Write(len)) => Reply::written(tag.unique, len),
            (Ok(()), Kind::Other) => Reply::ok(tag.unique),
            (Err(errno), _) => {
                self.counters.add(&mut ExportCounts { errors: 1, ..ExportCounts::default() });
                Reply::error(tag.unique, errno)
            }
        };
        self.send(&[IoSlice::new(reply.as_bytes())])
    }

    #[inline]
    fn send_data(&self, unique: u64, payload: &Payload) -> Result<(), ServeError> {
        let header = protocol::data_header(unique, payload.len() as usize);
        let header = IoSlice::new(&header);
        match payload.bufs() {
            [] => self.send(&[header]),
            [one] => self.send(&[header, IoSlice::new(one)]),
            many if many.len() < MOST_SLICES => {
                let parts: Vec<_> = std::iter::once(header)
                    .chain(many.iter().map(|buf| IoSlice::new(buf)))
                    .collect();
                self.send(&parts)
            }
            many => {
                let whole: Vec<u8> = many.iter().flat_map(|buf| buf.iter().copied()).collect();
                self.send(&[header, IoSlice::new(&whole)])
            }
        }
    }

    /// Hands one reply to the kernel, which takes all of it or none.
    #[inline]
    fn send(&self, parts: &[IoSlice<'_>]) -> Result<(), ServeError> {
        loop {
            match rustix::io::writev(&self.fd, parts) {
                Ok(_) => return Ok(()),
                Err(Os::INTR) => {}
                // No caller waits for it any more; or the file system is gone, which the next read reports.
                Err(Os::NOENT | Os::NODEV | Os::CONNABORTED) => return Ok(()),
                Err(other) => return Err(ServeError::Reply(other.into())),
            }
        }
    }

    /// Waits until the kernel has a request (or no more of them), answering what is done
    /// meanwhile.
    async fn wait_for_request(&mut self, handle: &Handle) -> Result<(), ServeError> {
        let fd = self.fd.clone();
        let mut readable = pin!(handle.ready(&fd, Interest::Readable));
        poll_fn(|cx| {
            if let Err(error) = self.poll_completed(cx) {
                return Poll::Ready(Err(error));
            }
            readable.as_mut().poll(cx).map_err(ServeError::Receive)
        })
        .await
    }

    /// Waits until something under way is done, or there is memory for the next request.
    async fn wait_for_room(&mut self) -> Result<(), ServeError> {
        poll_fn(|cx| {
            match self.poll_completed(cx) {
                Ok(0) => {}
                other => return Poll::Ready(other.map(drop)),
            }
            if self.inflight.is_full() || self.body.is_some() {
                return Poll::Pending;
            }
            self.pool.poll_get(self.body_len, cx).map(|body| {
                self.body = Some(body);
                Ok(())
            })
        })
        .await
    }

    /// Lets the executor hand over what was started, and answers what is done.
    async fn yield_to_executor(&mut self) -> Result<(), ServeError> {
        let mut yielded = false;
        poll_fn(|cx| {
            if std::mem::replace(&mut yielded, true) {
                return Poll::Ready(self.poll_completed(cx).map(drop));
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    }

    /// Answers all that is done, and says how many there were. The task is woken when there
    /// are more.
    pub(crate) fn poll_completed(&mut self, cx: &mut Context<'_>) -> Result<usize, ServeError> {
        let mut completed = 0;
        while let Poll::Ready(((tag, _), completion)) = self.inflight.poll_next(cx) {
            self.reply(tag, &completion)?;
            completed += 1;
        }
        Ok(completed)
    }
}
