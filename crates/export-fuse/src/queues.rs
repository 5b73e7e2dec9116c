//! The data path over io_uring: requests come through queues that each processor has its own of.
//!
//! ```text
//!   loop driver on processor N ──▶ queue N ──result──▶ entry ──▶ session ──▶ volume
//!                                     ▲                                        │
//!                                     └── commit: the answer in the entry ◀────┘
//! ```
//!
//! The first request of a connection comes through `/dev/fuse` nevertheless ([`agree`]), as do those that take no
//! answer: [`crate::serve()`] goes on beside the queues.
//!
//! Invariants
//! * Each entry that brought a request is committed once, with its answer; the kernel gives it no other before.
//! * The data of a request are copied between entry and pool: an entry's memory is the kernel's, and never lent to a
//!   device, which may keep what it is lent when it does not answer in time.
//! * No request holds pool memory while it waits for more.
//!
//! Several shards share the queues of a connection. The kernel sends nothing before every queue is registered.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{Context, Poll};

use braid_block::{Completion, Errno, Flags, Io, Limits, Payload, Span};
use braid_engine::{Dev, InFlight, Offered, Pending, WritePermit};
use braid_mem::Pool;
use braid_status::ExportCounts;
use braid_uring::{Fd, Handle, Queue, QueueShape};
use rustix::io::Errno as Os;

use crate::protocol::{self, HEAD, IN_HEADER, OUT_HEADER, Operation, Reply, entry, opcode};
use crate::seek::find;
use crate::serve::{self, Counters, Kind, ServeError};
use crate::session::{Answer, Session, Transport};

/// The file by which root turns FUSE over io_uring on (`Y`) and off, for connections that are made from then on.
pub const QUEUES_PARAMETER: &str = "/sys/module/fuse/parameters/enable_uring";

/// Requests that a queue can have at once: with fewer, a processor that asks for more waits for answers.
const ENTRIES: u16 = 16;

/// Returns true if this kernel offers FUSE over io_uring, and false if that is turned off; `None` if it has none.
pub fn queues_are_offered() -> Option<bool> {
    std::fs::read_to_string(QUEUES_PARAMETER).ok().map(|text| text.trim() == "Y")
}

/// Answers the first request on `fd`, a connection from [`crate::Mount::new`], for queues of io_uring if the kernel
/// offers them. Returns the way that was agreed on.
///
/// # Errors
/// No request came, or the kernel takes no answer.
pub fn agree(fd: &OwnedFd, limits: Limits) -> Result<Transport, ServeError> {
    // The kernel wants room for the longest request that there may be before anything is agreed on.
    let mut bytes = vec![0; 64 << 10];
    let received =
        rustix::io::read(fd, &mut bytes[..]).map_err(|e| ServeError::Receive(e.into()))?;
    let head = *bytes.first_chunk::<HEAD>().expect("64 KiB hold a head");
    let session = Session::over(Transport::Uring, limits);
    let invalid = || ServeError::Receive(io::ErrorKind::InvalidData.into());
    let request = protocol::parse(&head, received).map_err(|_| invalid())?;
    let Operation::Init { flags, flags2, .. } = request.operation else { return Err(invalid()) };
    let Answer::Reply(reply) = session.answer(&request) else { return Err(invalid()) };
    rustix::io::write(fd, reply.as_bytes()).map_err(|e| ServeError::Reply(e.into()))?;
    match session.agrees_to_queues((flags, flags2)) {
        true => Ok(Transport::Uring),
        false => Ok(Transport::Device),
    }
}

/// Number of queues that the kernel has: one for each processor that the machine may have.
///
/// # Errors
/// The kernel does not say.
pub fn queue_count() -> io::Result<u16> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    let count = text.trim().split(',').try_fold(0u16, |count, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
        count.checked_add(last.checked_sub(first)?)?.checked_add(1)
    });
    count.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Serves `offered` through the queues `numbers` of the connection `fd`, which was agreed on by [`agree`], until the
/// connection ends. `is_locked` keeps their memory in place.
///
/// # Errors
/// [`ServeError::Queue`] if the kernel refuses a queue, as it does after FUSE over io_uring was turned off, or an
/// answer. The connection must then be ended: it waits for its queues for ever.
pub async fn serve_queues(
    handle: Handle,
    fd: Fd,
    numbers: Vec<u16>,
    offered: impl Into<Offered>,
    pool: Pool,
    counters: Arc<Counters>,
    is_locked: bool,
) -> Result<(), ServeError> {
    let shape = QueueShape { entries: ENTRIES, payload: Transport::Uring.most_data() };
    let register = |number| Queue::register(&handle, &fd, number, shape, is_locked);
    let queues: io::Result<Vec<Queue>> = numbers.into_iter().map(register).collect();
    let queues = queues.map_err(ServeError::Queue)?;
    let mut server = Server::new(queues, offered.into(), pool, counters);
    poll_fn(|cx| server.turn(cx)).await
}

/// Takes what comes through `fd` beside the queues of [`crate::serve_queues`], until the file system is unmounted.
///
/// # Errors
/// As [`crate::serve()`].
pub async fn serve_beside_queues(
    handle: Handle,
    fd: Fd,
    offered: impl Into<Offered>,
    pool: Pool,
    counters: Arc<Counters>,
) -> Result<(), ServeError> {
    let mut server = serve::Server::new(fd, offered.into(), pool, counters);
    server.body_len = Transport::Uring.most_data();
    server.run(&handle).await
}

struct Server {
    queues: Vec<Queue>,
    /// Entries that the kernel has not ended.
    left: usize,
    offered: Offered,
    /// The changes of it that `dev` and `session` know.
    changes: u64,
    dev: Dev,
    pool: Pool,
    session: Session,
    counters: Arc<Counters>,
    /// Counts that are not in `counters` yet.
    counts: ExportCounts,
    inflight: InFlight<(Tag, Option<WritePermit>)>,
    /// Requests that wait for memory.
    waiting: VecDeque<(Tag, Wish)>,
}

/// The entry to answer, and with what, when a block request is done.
#[derive(Clone, Copy)]
struct Tag {
    queue: usize,
    entry: u16,
    id: u64,
    unique: u64,
    kind: Kind,
}

/// A request that takes memory.
#[derive(Clone, Copy)]
enum Wish {
    Read(Span),
    Write(Span, Flags),
}

impl Wish {
    fn span(self) -> Span {
        let (Wish::Read(span) | Wish::Write(span, _)) = self;
        span
    }
}

impl Server {
    fn new(queues: Vec<Queue>, offered: Offered, pool: Pool, counters: Arc<Counters>) -> Server {
        let (dev, changes) = (offered.dev(), offered.changes());
        let session = Session::over(Transport::Uring, offered.limits());
        let left = queues.iter().map(|queue| usize::from(queue.entries())).sum();
        let (inflight, waiting) = (InFlight::new(left), VecDeque::with_capacity(left));
        let counts = ExportCounts::default();
        Server {
            queues,
            left,
            offered,
            changes,
            dev,
            pool,
            session,
            counters,
            counts,
            inflight,
            waiting,
        }
    }

    /// Answers what is done, starts what came, and waits for more.
    fn turn(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ServeError>> {
        if self.changes != self.offered.changes() {
            self.follow();
        }
        while let Poll::Ready(((tag, _), completion)) = self.inflight.poll_next(cx) {
            self.answer(tag, &completion);
        }
        self.start_waiting(cx);
        for queue in 0..self.queues.len() {
            while let Poll::Ready((entry, result)) = self.queues[queue].poll(cx) {
                match result {
                    Ok(()) => self.receive(queue, entry, cx),
                    Err(error) => {
                        self.left -= 1;
                        if !is_end(&error) {
                            return Poll::Ready(Err(ServeError::Queue(error)));
                        }
                    }
                }
            }
        }
        // What was started just now, too: its task is woken by this poll alone.
        while let Poll::Ready(((tag, _), completion)) = self.inflight.poll_next(cx) {
            self.answer(tag, &completion);
        }
        self.counters.add(&mut self.counts);
        if self.left == 0 { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Takes over what is offered now, and refuses requests that wait for memory and are not for it.
    fn follow(&mut self) {
        self.changes = self.offered.changes();
        self.dev = self.offered.dev();
        self.session = Session::over(Transport::Uring, self.offered.limits());
        for _ in 0..self.waiting.len() {
            let Some((tag, wish)) = self.waiting.pop_front() else { return };
            match self.session.allows(wish.span(), matches!(wish, Wish::Write(..))) {
                Ok(()) => self.waiting.push_back((tag, wish)),
                Err(errno) => self.send(tag, &Reply::error(tag.unique, errno)),
            }
        }
    }

    /// Takes in the request in `entry`.
    fn receive(&mut self, queue: usize, entry: u16, cx: &mut Context<'_>) {
        let from = &self.queues[queue];
        let (mut head, mut id, mut length) = ([0; HEAD], [0; 8], [0; 4]);
        from.read_header(entry, 0, &mut head[..IN_HEADER]);
        from.read_header(entry, entry::ID, &mut id);
        from.read_header(entry, entry::LENGTH, &mut length);
        let (id, length) = (u64::from_ne_bytes(id), u32::from_ne_bytes(length) as usize);
        let word = |at: usize| {
            let bytes = head[at..].first_chunk().expect("a head has such words");
            u32::from_ne_bytes(*bytes)
        };
        let (claimed, operation) = (word(0) as usize, word(4));
        if operation == opcode::LOOKUP {
            // A name is no argument of the first kind.
            let len = length.min(HEAD - IN_HEADER);
            from.read_payload(entry, 0, &mut head[IN_HEADER..IN_HEADER + len]);
        } else {
            from.read_header(entry, entry::ARGUMENTS, &mut head[IN_HEADER..]);
        }
        // The arguments are there whatever their length; the payload of a WRITE is as long as it says.
        let received = if operation == opcode::WRITE { HEAD + length } else { claimed };
        let (unique, answer) = match protocol::parse(&head, received) {
            Ok(request) => (request.header.unique, self.session.answer(&request)),
            Err(malformed) => (0, Session::answer_malformed(&malformed)),
        };
        let tag = Tag { queue, entry, id, unique, kind: Kind::Other };
        match answer {
            Answer::Read(span) => {
                self.counts.requests += 1;
                self.counts.read_bytes += span.len;
                self.wish(Tag { kind: Kind::Read, ..tag }, Wish::Read(span), cx);
            }
            Answer::Write(span, flags) => {
                self.counts.requests += 1;
                self.counts.written_bytes += span.len;
                let len = u32::try_from(span.len).expect("an entry has room for it");
                let kind = Kind::Write(len);
                self.wish(Tag { kind, ..tag }, Wish::Write(span, flags), cx);
            }
            other => self.handle_other(tag, other),
        }
    }

    /// Answers or starts what needs no memory.
    fn handle_other(&mut self, tag: Tag, answer: Answer) {
        let io = match answer {
            Answer::Flush => Io::flush(),
            Answer::WriteZeroes(span, flags) => Io::write_zeroes(span, flags),
            Answer::Reply(reply) => return self.send(tag, &reply),
            Answer::Seek { offset, data } => {
                let reply = match find(&self.dev, offset, data) {
                    Ok(found) => Reply::lseek(tag.unique, found),
                    Err(errno) => Reply::error(tag.unique, errno),
                };
                return self.send(tag, &reply);
            }
            // An entry takes an answer in any case.
            _ => return self.send(tag, &Reply::error(tag.unique, Errno::INVAL)),
        };
        self.counts.requests += 1;
        self.start(tag, io);
    }

    /// Starts a request, or has it wait for memory behind those that wait already.
    #[inline]
    fn wish(&mut self, tag: Tag, wish: Wish, cx: &mut Context<'_>) {
        if self.waiting.is_empty() && self.start_wish(tag, wish) {
            return;
        }
        self.waiting.push_back((tag, wish));
        self.start_waiting(cx);
    }

    /// Starts requests that waited for memory, in their order, and has the task woken when there is more.
    fn start_waiting(&mut self, cx: &mut Context<'_>) {
        while let Some((tag, wish)) = self.waiting.front().copied() {
            if self.start_wish(tag, wish) {
                self.waiting.pop_front();
            } else if self.pool.poll_get(wish.span().len as usize, cx).is_pending() {
                return;
            }
        }
    }

    /// Starts a request if there is memory for it.
    #[inline]
    fn start_wish(&mut self, tag: Tag, wish: Wish) -> bool {
        let span = wish.span();
        if span.is_empty() {
            self.answer(tag, &Io::read(0, Payload::None).complete(Ok(())));
            return true;
        }
        let Some(mut data) = self.pool.get(span.len as usize) else { return false };
        let io = match wish {
            Wish::Read(_) => Io::read(span.offset, data),
            Wish::Write(_, flags) => {
                self.queues[tag.queue].read_payload(tag.entry, 0, &mut data);
                Io::write(span.offset, data, flags)
            }
        };
        self.start(tag, io);
        true
    }

    /// Starts a block request. If it is done at once it is answered.
    #[inline]
    fn start(&mut self, tag: Tag, io: Io) {
        let is_modifying = io.op.is_modifying();
        match self.dev.start(io) {
            Pending::Ready(Some(completion)) => self.answer(tag, &completion),
            pending => {
                let permit = is_modifying.then(|| self.offered.permit());
                self.inflight.push((tag, permit), pending);
            }
        }
    }

    /// Answers a request whose block request is done.
    #[inline]
    fn answer(&mut self, tag: Tag, completion: &Completion) {
        let reply = match (completion.result, tag.kind) {
            (Ok(()), Kind::Read) => {
                let (queue, mut len) = (&self.queues[tag.queue], 0);
                for buf in completion.payload.bufs() {
                    queue.write_payload(tag.entry, len, buf);
                    len += buf.len();
                }
                return self.commit(tag, &protocol::data_header(tag.unique, len), len);
            }
            (Ok(()), Kind::Write(len)) => Reply::written(tag.unique, len),
            (Ok(()), Kind::Other) => Reply::ok(tag.unique),
            (Err(errno), _) => {
                self.counts.errors += 1;
                Reply::error(tag.unique, errno)
            }
        };
        self.send(tag, &reply);
    }

    /// Answers with a reply, whose arguments are payload here.
    fn send(&self, tag: Tag, reply: &Reply) {
        let (header, arguments) = reply.as_bytes().split_at(OUT_HEADER);
        self.queues[tag.queue].write_payload(tag.entry, 0, arguments);
        self.commit(tag, header, arguments.len());
    }

    #[inline]
    fn commit(&self, tag: Tag, header: &[u8], len: usize) {
        let queue = &self.queues[tag.queue];
        let length = u32::try_from(len).expect("an entry has room for it");
        queue.write_header(tag.entry, 0, header);
        queue.write_header(tag.entry, entry::LENGTH, &length.to_ne_bytes());
        queue.commit(tag.entry, tag.id);
    }
}

/// Returns true for the result of an entry that says that the connection has ended.
fn is_end(error: &io::Error) -> bool {
    let ends = [Os::NOTCONN, Os::CONNABORTED, Os::NODEV, Os::CANCELED];
    Os::from_io_error(error).is_some_and(|error| ends.contains(&error))
}
