//! Connections: accepted, greeted, served.
//!
//! One [`Server`] a shard. A listener is accepted from by one shard, which hands connections to
//! all of them in turn; each lives and dies on its shard.
//!
//! ```text
//!   accepted ──▶ newcomer ──handshake──▶ served, for as long as it likes
//!                   │ too slow, or the oldest when there is no room
//!                   ▼
//!                 closed          no room, and no newcomers: told so, and closed;
//!                                 as many as are told so, of those that stay idle, are closed
//! ```
//!
//! Invariant: a client that says nothing takes no place for long that another one needs: newcomers
//! make room for later ones at once, idle clients after a while. While there are places, a client may be
//! idle for ever. A TCP peer that is gone without a word is noticed by keepalives.

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

use braid_engine::Offered;
use braid_mem::Pool;
use braid_nbd::handshake::Policy;
use braid_uring::{Fd, Handle};

use crate::connection::{Door, Export};
use crate::counters::{Counters, Counts};
use crate::end::End;
use crate::overlaps::Overlaps;
use crate::stream::Socket;

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
    /// How long a client may be idle once others were turned away.
    pub idle: Duration,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            connections: 256,
            handshake: Duration::from_secs(10),
            stall: Duration::from_secs(30),
            idle: Duration::from_secs(60),
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
    /// Buffers that connections keep: apart from those that requests come and go with.
    inboxes: Pool,
    export: Export,
    bounds: Bounds,
    /// Connections that count.
    open: Cell<usize>,
    /// The doors that they came by, oldest first.
    doors: RefCell<VecDeque<Rc<Door>>>,
    /// Connections that are being told that there is no room.
    turned_away: Cell<usize>,
    /// Clients that were turned away since it was looked for idle ones.
    short: Cell<usize>,
    /// Idle ones are looked for.
    is_looking: Cell<bool>,
    on_end: Box<dyn Fn(&End)>,
}

impl Server {
    /// Serves what is `offered` as the one export called `name` to the connections it is given. The servers of
    /// all shards of a volume have the same `overlaps`. `on_end` hears why each connection ended.
    ///
    /// # Errors
    /// No memory; or a device that NBD cannot describe (as [`io::ErrorKind::InvalidInput`]).
    pub fn new(
        handle: &Handle,
        offered: impl Into<Offered>,
        pool: Pool,
        name: &str,
        bounds: Bounds,
        overlaps: &Overlaps,
        on_end: impl Fn(&End) + 'static,
    ) -> io::Result<Server> {
        let export = Export::new(offered, pool, name, bounds.stall)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?
            .beside(overlaps);
        Ok(Server {
            inner: Rc::new(Inner {
                handle: handle.clone(),
                inboxes: Pool::new((bounds.connections + MOST_TURNED_AWAY) * INBOX)?,
                export,
                bounds,
                open: Cell::new(0),
                doors: RefCell::default(),
                turned_away: Cell::new(0),
                short: Cell::new(0),
                is_looking: Cell::new(false),
                on_end: Box::new(on_end),
            }),
        })
    }

    /// What it counts.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(self.inner.export.counters())
    }

    /// Connections now.
    pub fn open_connections(&self) -> usize {
        self.inner.open.get()
    }

    /// Takes no more requests; answers those that are under way, then closes.
    pub fn stop(&self) {
        self.inner.export.stop().raise();
    }

    /// Waits until it is stopped.
    pub async fn stopped(&self) {
        self.inner.export.stop().wait().await;
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
                let mut stopped = pin!(inner.export.stop().wait());
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
        inner.export.counters().add(&mut Counts { connections: 1, ..Counts::default() });
        let door = Rc::new(Door::new(Policy::default(), inner.bounds.handshake));
        inner.doors.borrow_mut().push_back(Rc::clone(&door));
        let server = self.clone();
        inner.handle.spawn(async move {
            let inner = &server.inner;
            let end = inner.serve(fd, &door).await;
            inner.doors.borrow_mut().retain(|other| !Rc::ptr_eq(other, &door));
            // One that made room does not count any more.
            if !door.is_closed() {
                inner.open.set(inner.open.get() - 1);
            }
            let protocol_errors = u64::from(end.is_protocol_error());
            let mut counts = Counts { disconnections: 1, protocol_errors, ..Counts::default() };
            inner.export.counters().add(&mut counts);
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
        inner.export.counters().add(&mut counts);
        inner.short.set(inner.short.get() + 1);
        if !inner.is_looking.replace(true) {
            let server = self.clone();
            inner.handle.spawn(async move { server.close_idle().await });
        }
        if inner.turned_away.get() >= MOST_TURNED_AWAY {
            return;
        }
        inner.turned_away.set(inner.turned_away.get() + 1);
        let server = self.clone();
        inner.handle.spawn(async move {
            let inner = &server.inner;
            let policy = Policy { full: true, ..Policy::default() };
            // However it ends, nobody is served.
            let _ = inner.serve(fd, &Door::new(policy, TURNING_AWAY)).await;
            inner.turned_away.set(inner.turned_away.get() - 1);
        });
    }

    /// Closes connections that stay idle, as many as were turned away, until none is.
    async fn close_idle(&self) {
        let inner = &self.inner;
        while inner.short.get() > 0 {
            let idle = inner.idle();
            let mut stopped = pin!(inner.export.stop().wait());
            let mut time = pin!(inner.handle.sleep(inner.bounds.idle));
            std::future::poll_fn(|cx| match stopped.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => time.as_mut().poll(cx),
            })
            .await;
            let free = inner.bounds.connections.saturating_sub(inner.open.get());
            let short = inner.short.take().saturating_sub(free);
            let stayed = idle.into_iter().filter(|(door, moved)| door.idle_at() == Some(*moved));
            stayed.take(short).for_each(|(door, _)| inner.close(&door));
        }
        inner.is_looking.set(false);
    }
}

impl Inner {
    /// Closes the door to the oldest connection that is not through its handshake, if there is one.
    fn make_room(&self) -> bool {
        let oldest = self.doors.borrow().iter().find(|door| !door.is_through()).cloned();
        oldest.inspect(|door| self.close(door)).is_some()
    }

    /// Gives the place of a connection to others.
    fn close(&self, door: &Rc<Door>) {
        let mut doors = self.doors.borrow_mut();
        if let Some(index) = doors.iter().position(|other| Rc::ptr_eq(other, door)) {
            doors.remove(index);
            door.close();
            self.open.set(self.open.get() - 1);
        }
    }

    /// Connections that are idle, oldest first, with what they have moved.
    fn idle(&self) -> Vec<(Rc<Door>, u64)> {
        let idle = |door: &Rc<Door>| Some((Rc::clone(door), door.idle_at()?));
        self.doors.borrow().iter().filter_map(idle).collect()
    }

    async fn serve(&self, fd: OwnedFd, door: &Door) -> End {
        let fd = Fd::new(fd);
        prepare_socket(&fd);
        let Some(buf) = self.inboxes.get(INBOX) else {
            return End::Failed(io::ErrorKind::OutOfMemory.into());
        };
        let end = self.export.serve_by(door, Socket::new(&self.handle, &fd), buf).await;
        // A receive that is still under way holds the descriptor, and memory: this ends it. The
        // client may have ended the connection already.
        let _ = rustix::net::shutdown(&fd, rustix::net::Shutdown::Both);
        end
    }
}

/// Replies leave at once, and long ones find room: with the default of some 200 KiB, a reply of
/// 1 MiB takes seven calls and as many waits. None of it is needed for correctness, so what the
/// kind of socket or the user's rights do not allow is left as it is.
fn prepare_socket(fd: &Fd) {
    use rustix::net::sockopt;
    let _ = sockopt::set_tcp_nodelay(fd, true);
    // A peer that is gone is noticed after two minutes without an answer.
    if sockopt::set_tcp_keepidle(fd, Duration::from_secs(60)).is_ok() {
        let _ = sockopt::set_tcp_keepintvl(fd, Duration::from_secs(10));
        let _ = sockopt::set_tcp_keepcnt(fd, 6);
        let _ = sockopt::set_socket_keepalive(fd, true);
    }
    // Beyond the system's limit only with CAP_NET_ADMIN.
    if sockopt::set_socket_send_buffer_size_force(fd, SEND_BUFFER).is_err() {
        let _ = sockopt::set_socket_send_buffer_size(fd, SEND_BUFFER);
    }
}
