//! Connections: accepted, greeted, served.
//!
//! One [`Server`] a shard. A listener is accepted from by one shard, which hands connections to
//! all of them in turn; each lives and dies on its shard.
//!
//! ```text
//!   accepted ──▶ newcomer ──handshake──▶ served, for as long as it likes
//!                   │ too slow, or the oldest when there is no room
//!                   ▼
//!                 closed          no room, and no newcomers: told so, and closed
//! ```
//!
//! Invariant: who says nothing takes nobody's place for long: newcomers make room for later ones,
//! and only those that have been through the handshake stay.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use braid_engine::Dev;
use braid_mem::Pool;
use braid_uring::{Fd, Handle, Interest};

use crate::counters::{Counters, Counts};
use crate::handshake::{Handshake, Policy, Step};
use crate::inbox::Inbox;
use crate::protocol::{BlockSize, ExportInfo, Exports, Negotiated};
use crate::session::{End, Parts, Session};
use crate::stop::Stop;

/// What a connection receives into, in bytes: some thousand small requests.
const INBOX: usize = 64 << 10;

/// What a socket may hold for a client to read, in bytes: two of the longest usual replies.
const SEND_BUFFER: usize = 2 << 20;

/// Clients that are told at once that there is no room; more are closed without a word.
const MOST_TURNED_AWAY: usize = 16;

/// How long telling that may take.
const TURNING_AWAY: Duration = Duration::from_secs(2);

/// Bounds on what clients may take.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections of one shard at once. When there are so many, the oldest that has not been
    /// through its handshake makes room; when all have, more are told so and closed.
    pub connections: usize,
    /// How long a client may take for the handshake.
    pub handshake: Duration,
    /// How long a client may take for the next byte of a request.
    pub stall: Duration,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            connections: 256,
            handshake: Duration::from_secs(10),
            stall: Duration::from_secs(30),
        }
    }
}

/// One shard's end of an export.
#[derive(Clone)]
pub struct Server {
    inner: Rc<Inner>,
}

struct Inner {
    handle: Handle,
    dev: Dev,
    pool: Pool,
    /// Buffers that connections keep: apart from those that requests come and go with.
    inboxes: Pool,
    exports: Arc<Exports>,
    export: Arc<ExportInfo>,
    bounds: Bounds,
    counters: Arc<Counters>,
    stop: Stop,
    /// Connections that count.
    open: Cell<usize>,
    /// Those of them that are not through their handshake, oldest first.
    newcomers: RefCell<VecDeque<Rc<Newcomer>>>,
    /// Connections that are being told that there is no room.
    turned_away: Cell<usize>,
    on_end: Box<dyn Fn(&End)>,
}

/// A connection in its handshake.
#[derive(Default)]
struct Newcomer {
    /// Raised when it makes room for a later one; it counts no more from then on.
    gives_way: Stop,
}

impl Server {
    /// Serves `dev` as the one export called `name` to the connections it is given. `on_end`
    /// hears why each ended.
    ///
    /// # Errors
    /// No memory; or a device that NBD cannot describe (as [`io::ErrorKind::InvalidInput`]).
    pub fn new(
        handle: &Handle,
        dev: Dev,
        pool: Pool,
        name: &str,
        bounds: Bounds,
        on_end: impl Fn(&End) + 'static,
    ) -> io::Result<Server> {
        let export = export_of(&dev, name);
        let exports = Exports::new(vec![export.clone()])
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Ok(Server {
            inner: Rc::new(Inner {
                handle: handle.clone(),
                dev,
                pool,
                inboxes: Pool::new((bounds.connections + MOST_TURNED_AWAY) * INBOX)?,
                exports: Arc::new(exports),
                export: Arc::new(export),
                bounds,
                counters: Arc::default(),
                stop: Stop::default(),
                open: Cell::new(0),
                newcomers: RefCell::default(),
                turned_away: Cell::new(0),
                on_end: Box::new(on_end),
            }),
        })
    }

    /// What it counts.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.inner.counters)
    }

    /// Connections now.
    pub fn open_connections(&self) -> usize {
        self.inner.open.get()
    }

    /// Takes no more requests; answers those that are under way, then closes.
    pub fn stop(&self) {
        self.inner.stop.raise();
    }

    /// Waits until it is stopped.
    pub async fn stopped(&self) {
        self.inner.stop.wait().await;
    }

    /// Accepts until it is stopped, giving each connection to `place`.
    ///
    /// # Errors
    /// What `accept` answers, other than for a connection that is gone again or for lack of
    /// descriptors, after which it waits a moment and goes on.
    pub async fn accept(&self, listener: &Fd, place: impl Fn(OwnedFd)) -> io::Result<()> {
        let inner = &self.inner;
        loop {
            let accepted = {
                let mut stopped = pin!(inner.stop.wait());
                let mut accept = pin!(inner.handle.accept(listener));
                std::future::poll_fn(|cx| {
                    if stopped.as_mut().poll(cx).is_ready() {
                        return Poll::Ready(None);
                    }
                    accept.as_mut().poll(cx).map(Some)
                })
                .await
            };
            match accepted {
                None => return Ok(()),
                Some(Ok(fd)) => place(fd),
                Some(Err(error)) => match rustix::io::Errno::from_io_error(&error) {
                    Some(rustix::io::Errno::CONNABORTED | rustix::io::Errno::INTR) => {}
                    Some(
                        rustix::io::Errno::MFILE
                        | rustix::io::Errno::NFILE
                        | rustix::io::Errno::NOBUFS
                        | rustix::io::Errno::NOMEM,
                    ) => inner.handle.sleep(Duration::from_millis(100)).await,
                    _ => return Err(error),
                },
            }
        }
    }

    /// Serves one connection, in a task of its own.
    pub fn connect(&self, fd: OwnedFd) {
        let inner = &self.inner;
        let is_full = inner.open.get() >= inner.bounds.connections;
        if is_full && !inner.make_room() {
            return self.turn_away(fd);
        }
        inner.open.set(inner.open.get() + 1);
        inner.counters.add(&mut Counts { connections: 1, ..Counts::default() });
        let newcomer = Rc::new(Newcomer::default());
        inner.newcomers.borrow_mut().push_back(Rc::clone(&newcomer));
        let server = self.clone();
        inner.handle.spawn(async move {
            let fd = Fd::new(fd);
            let inner = &server.inner;
            let end = inner.serve(&fd, &newcomer).await;
            close(&fd);
            // One that made room does not count any more.
            if !newcomer.gives_way.is_raised() {
                inner.open.set(inner.open.get() - 1);
            }
            let protocol_errors = u64::from(end.is_protocol_error());
            let mut counts = Counts { disconnections: 1, protocol_errors, ..Counts::default() };
            inner.counters.add(&mut counts);
            (inner.on_end)(&end);
        });
    }

    /// Tells a client that there is no room, if it goes through a handshake to hear it.
    fn turn_away(&self, fd: OwnedFd) {
        let inner = &self.inner;
        let mut counts = Counts {
            connections: 1,
            connections_refused: 1,
            disconnections: 1,
            ..Counts::default()
        };
        inner.counters.add(&mut counts);
        if inner.turned_away.get() >= MOST_TURNED_AWAY {
            return;
        }
        inner.turned_away.set(inner.turned_away.get() + 1);
        let server = self.clone();
        inner.handle.spawn(async move {
            let fd = Fd::new(fd);
            let inner = &server.inner;
            let policy = Policy { full: true, ..Policy::default() };
            // However it ends, nobody is served.
            let _ = inner.greet(&fd, policy, TURNING_AWAY, &Stop::default()).await;
            close(&fd);
            inner.turned_away.set(inner.turned_away.get() - 1);
        });
    }
}

/// A receive that is still under way holds the descriptor, and memory: this ends it. The client may
/// have ended the connection already.
fn close(fd: &Fd) {
    let _ = rustix::net::shutdown(fd, rustix::net::Shutdown::Both);
}

impl Inner {
    /// Has the oldest connection that is not through its handshake make room, if there is one.
    fn make_room(&self) -> bool {
        let oldest = self.newcomers.borrow_mut().pop_front();
        oldest.is_some_and(|newcomer| {
            newcomer.gives_way.raise();
            self.open.set(self.open.get() - 1);
            true
        })
    }

    async fn serve(&self, fd: &Fd, newcomer: &Rc<Newcomer>) -> End {
        let limit = self.bounds.handshake;
        let greeted = self.greet(fd, Policy::default(), limit, &newcomer.gives_way).await;
        self.newcomers.borrow_mut().retain(|other| !Rc::ptr_eq(other, newcomer));
        let (negotiated, inbox) = match greeted {
            Ok(greeted) => greeted,
            Err(end) => return end,
        };
        let parts = Parts {
            handle: self.handle.clone(),
            fd: fd.clone(),
            dev: self.dev.clone(),
            pool: self.pool.clone(),
            export: Arc::clone(&self.export),
            negotiated,
            stall_limit: self.bounds.stall,
            stop: self.stop.clone(),
            counters: Arc::clone(&self.counters),
        };
        Session::new(parts, inbox).await
    }

    /// The handshake, within `limit`, and while `gives_way` is not raised.
    async fn greet(
        &self,
        fd: &Fd,
        policy: Policy,
        limit: Duration,
        gives_way: &Stop,
    ) -> Result<(Negotiated, Inbox), End> {
        prepare_socket(fd);
        let buf = self.inboxes.get(INBOX);
        let buf = buf.ok_or_else(|| End::Failed(io::ErrorKind::OutOfMemory.into()))?;
        let mut inbox = Inbox::new(buf);
        let negotiated = {
            let mut late = pin!(self.handle.sleep(limit));
            let mut stopped = pin!(self.stop.wait());
            let mut gives_way = pin!(gives_way.wait());
            let mut negotiate = pin!(self.negotiate(fd, policy, &mut inbox));
            std::future::poll_fn(|cx| {
                if let Poll::Ready(result) = negotiate.as_mut().poll(cx) {
                    return Poll::Ready(result);
                }
                if stopped.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Err(End::Stopped));
                }
                if gives_way.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Err(End::GaveWay));
                }
                late.as_mut().poll(cx).map(|()| Err(End::Stalled(limit)))
            })
            .await
        };
        Ok((negotiated?, inbox))
    }

    /// The handshake, up to the first request.
    async fn negotiate(
        &self,
        fd: &Fd,
        policy: Policy,
        inbox: &mut Inbox,
    ) -> Result<Negotiated, End> {
        let mut handshake = Handshake::new(Arc::clone(&self.exports), policy);
        let mut answer = handshake.greeting().to_vec();
        // An option may be longer than the inbox: they are collected here.
        let mut input = Vec::new();
        loop {
            self.send_all(fd, &answer).await?;
            answer.clear();
            let (result, buf) = inbox.receive(&self.handle, fd).await;
            let count = result?;
            inbox.received(buf, count);
            match count {
                0 if input.is_empty() => return Err(End::Disconnected),
                0 => return Err(End::Truncated),
                _ => {}
            }
            input.extend_from_slice(inbox.bytes());
            inbox.consume(inbox.bytes().len());
            let progress = handshake.advance(&input, &mut answer);
            input.drain(..progress.consumed);
            match progress.step {
                Step::NeedMore { .. } => {}
                Step::Transmission(negotiated) => {
                    self.send_all(fd, &answer).await?;
                    inbox.put_back(&input);
                    return Ok(negotiated);
                }
                Step::Aborted => {
                    // The client may have gone already: it said that it would.
                    let _ = self.send_all(fd, &answer).await;
                    return Err(End::Disconnected);
                }
                Step::Fatal(error) => return Err(End::Handshake(error)),
            }
        }
    }

    async fn send_all(&self, fd: &Fd, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.handle.try_send(fd, &[io::IoSlice::new(bytes)]) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.handle.ready(fd, Interest::Writable).await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// How NBD describes a device.
fn export_of(dev: &Dev, name: &str) -> ExportInfo {
    let limits = dev.limits();
    let preferred = limits.physical_block.max(4096).next_power_of_two();
    ExportInfo {
        read_only: limits.read_only,
        can_trim: limits.discard,
        can_cache: true,
        rotational: limits.rotational,
        block_size: BlockSize {
            minimum: limits.logical_block,
            preferred: preferred.min(1 << 20),
            ..BlockSize::default()
        },
        ..ExportInfo::new(name, limits.size)
    }
}

/// Replies leave at once, and long ones find room: with the default of some 200 KiB, a reply of
/// 1 MiB takes seven calls and as many waits. None of it is needed for correctness, so what the
/// kind of socket or the user's rights do not allow is left as it is.
fn prepare_socket(fd: &Fd) {
    use rustix::net::sockopt;
    let _ = sockopt::set_tcp_nodelay(fd, true);
    // Beyond the system's limit only with CAP_NET_ADMIN.
    if sockopt::set_socket_send_buffer_size_force(fd, SEND_BUFFER).is_err() {
        let _ = sockopt::set_socket_send_buffer_size(fd, SEND_BUFFER);
    }
}
