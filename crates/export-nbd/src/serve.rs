//! Connections: accepted, greeted, served.
//!
//! One [`Server`] a shard. A listener is accepted from by one shard, which hands connections to
//! all of them in turn; each lives and dies on its shard.
//!
//! ```text
//!   accepted ──▶ newcomer ──handshake──▶ served, for as long as it likes
//!                   │ too slow                  │ idle longest,
//!                   ▼ or oldest,                ▼ when there is no room
//!                 closed                      closed
//!                                 no room, and all work: waits, is told so, and closed
//! ```
//!
//! Invariants
//! * A client that says nothing takes no place that another one needs. While there are places, a client may be
//!   idle for ever.
//! * A client with a request under way, or that had one within [`Bounds::idle`], keeps its place.
//! * The address with the most connections makes room first. All of a Unix socket count as one; if it lists users, all
//!   of a user.
//! * A local user without rights is turned away before it takes anything.
//! * A TCP peer that is gone without a word is noticed by keepalives.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv6Addr, TcpStream};
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use braid_engine::Offered;
use braid_mem::Pool;
use braid_nbd::handshake::{Admission, Policy, StartTls};
use braid_nbd::protocol::constants::MAX_PAYLOAD_BYTES;
use braid_tls::Inbox;
use braid_uring::{Fd, Handle, Socket};

use crate::connection::{Door, Export, Peer};
use crate::counters::{Counters, Counts};
use crate::end::End;
use crate::overlaps::Overlaps;
use crate::secure::{Lock, Security};
use crate::users::{Rights, Visitor};

/// Size of a new connection's receive buffer in bytes: some hundred small requests.
const INBOX: usize = 16 << 10;
/// Its size once a client has filled it, while less than half of the memory of all is in use.
const LARGE_INBOX: usize = 64 << 10;

/// Size of the receive buffer below TLS, in bytes: more than one whole record.
const TLS_INBOX: usize = 32 << 10;

/// Receive buffers that are there before clients come.
const AT_FIRST: usize = 8;

/// Bytes that a socket may hold for a client: two of the longest usual replies.
const SEND_BUFFER: usize = 2 << 20;

/// Newcomers that are in their handshakes before idle clients make room for more.
const NEWCOMERS: usize = 32;

/// Clients that wait for room, or are told that there is none, at once; more are closed without a word.
const MOST_WAITING: usize = 16;

/// Number of attempts of a client that waits for room, within [`Bounds::idle`].
const TRIES: u32 = 8;

/// Time limit of the message that there is no room.
const TURNING_AWAY: Duration = Duration::from_secs(2);

/// Bounds on what clients may take.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections of one shard at once. When there are so many, the oldest newcomer makes room, or the client that
    /// was idle longest.
    pub connections: usize,
    /// Time limit of the handshake.
    pub handshake: Duration,
    /// Time limit of the next byte of a request.
    pub stall: Duration,
    /// Time without a request after which a client loses its place if others need it. Others wait as long
    /// before they are told that there is no room.
    pub idle: Duration,
    /// Longest payload of a request, in bytes: at most three quarters of the memory of requests.
    pub payload: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            connections: 256,
            handshake: Duration::from_secs(10),
            stall: Duration::from_secs(30),
            idle: Duration::from_secs(3),
            payload: MAX_PAYLOAD_BYTES as usize,
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
    /// Connections that wait for room, or are being told that there is none.
    waiting: Cell<usize>,
    on_end: Box<dyn Fn(&End)>,
    /// TLS, if it is used.
    lock: OnceCell<Rc<Lock>>,
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
            .beside(overlaps)
            .of_payloads(bounds.payload);
        // Large buffers take no more than half of it.
        let most = 2 * (bounds.connections + MOST_WAITING) * INBOX;
        Ok(Server {
            inner: Rc::new(Inner {
                handle: handle.clone(),
                inboxes: Pool::growing(most.max(4 * LARGE_INBOX), AT_FIRST * INBOX)?,
                export,
                bounds,
                open: Cell::new(0),
                doors: RefCell::default(),
                waiting: Cell::new(0),
                on_end: Box::new(on_end),
                lock: OnceCell::new(),
            }),
        })
    }

    /// Has later connections use TLS. To be called once, before the first.
    ///
    /// # Errors
    /// No memory.
    pub fn secure(&self, security: Security) -> io::Result<()> {
        let inboxes = Pool::growing(self.inner.bounds.connections * TLS_INBOX, TLS_INBOX)?;
        let lock = Lock { security, inboxes, inbox_bytes: TLS_INBOX };
        // A second call changes nothing.
        let _ = self.inner.lock.set(Rc::new(lock));
        Ok(())
    }

    /// Returns the counters.
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

    /// Accepts until it is stopped, giving each connection to `place` that has `rights`.
    ///
    /// # Errors
    /// What `accept` answers, other than for a connection that is gone again or for lack of
    /// descriptors, after which it waits a moment and goes on.
    pub async fn accept(
        &self,
        listener: &Fd,
        rights: &Rights,
        place: impl Fn(OwnedFd, Visitor),
    ) -> io::Result<()> {
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
                Some(Ok(fd)) => match rights.judge(&fd) {
                    Ok(visitor) => place(fd, visitor),
                    Err(end) => {
                        inner.count(Counts { connections_refused: 1, ..Counts::default() });
                        (inner.on_end)(&end);
                    }
                },
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

    /// Serves one connection, in a task of its own, when there is room for it.
    pub fn connect(&self, fd: OwnedFd, visitor: Visitor) {
        let inner = &self.inner;
        inner.count(Counts { connections_accepted: 1, ..Counts::default() });
        if inner.find_room() {
            return self.admit(fd, visitor);
        }
        let refused = Counts { connections_refused: 1, connections_ended: 1, ..Counts::default() };
        if inner.waiting.get() >= MOST_WAITING {
            return inner.count(refused);
        }
        inner.waiting.set(inner.waiting.get() + 1);
        let server = self.clone();
        inner.handle.spawn(async move {
            let inner = &server.inner;
            // Clients that are between two requests now may be idle by then.
            for _ in 0..TRIES {
                inner.handle.sleep(inner.bounds.idle / TRIES).await;
                if inner.find_room() {
                    inner.waiting.set(inner.waiting.get() - 1);
                    return server.admit(fd, visitor);
                }
            }
            inner.count(refused);
            let policy = Policy {
                admission: Admission::Full,
                starttls: StartTls::ForbiddenByPolicy,
                ..Policy::default()
            };
            // However it ends, the client is not served.
            let _ = inner.serve(fd, &Door::new(policy, TURNING_AWAY)).await;
            inner.waiting.set(inner.waiting.get() - 1);
        });
    }

    /// Serves one connection, for which there is room.
    fn admit(&self, fd: OwnedFd, Visitor { user, read_only, is_told }: Visitor) {
        let inner = &self.inner;
        inner.open.set(inner.open.get() + 1);
        // What is asked of the socket has no method of its own for any descriptor.
        let socket = TcpStream::from(fd);
        let machine = socket.peer_addr().ok().map(|peer| Peer::Machine(network(peer.ip())));
        let lock = inner.lock.get().cloned();
        let required =
            lock.as_ref().is_some_and(|lock| lock.security.required.at(machine.is_some()));
        let fd = OwnedFd::from(socket);
        let door = Door::new(Policy::default(), inner.bounds.handshake);
        let door = door.of(machine.or(user.map(Peer::User))).limited(read_only).told(is_told);
        let door = Rc::new(door.locked(lock, required));
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
            inner.count(Counts { connections_ended: 1, protocol_errors, ..Counts::default() });
            (inner.on_end)(&end);
        });
    }
}

/// Whose an address is: of IPv6 a machine has all of a network of 64 bits.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
    }
}

/// The connection of `doors` that makes room for one more at `now`, if one does: of the address with the most
/// connections, the client that was idle longest, and at least for `idle`; or the oldest newcomer, when there are
/// [`NEWCOMERS`], or no client is idle.
fn first_to_go(doors: &VecDeque<Rc<Door>>, idle: Duration, now: Instant) -> Option<&Rc<Door>> {
    let mut shares: BTreeMap<Option<Peer>, usize> = BTreeMap::new();
    doors.iter().for_each(|door| *shares.entry(door.peer()).or_default() += 1);
    let share = |door: &Door| shares.get(&door.peer()).copied();
    let (served, newcomers): (Vec<_>, Vec<_>) = doors.iter().partition(|door| door.is_through());
    let are_many = newcomers.len() >= NEWCOMERS;
    let key = |door: &&Rc<Door>| (share(door), door.idle_for(now));
    let newcomer = newcomers.into_iter().max_by_key(key);
    let is_idle = |door: &&Rc<Door>| door.idle_for(now) >= Some(idle);
    let idle = served.into_iter().filter(is_idle).max_by_key(key);
    if are_many { newcomer } else { idle.or(newcomer) }
}

impl Inner {
    fn count(&self, mut counts: Counts) {
        self.export.counters().add(&mut counts);
    }

    /// Returns true if there is room for another client, which an idle one may make.
    fn find_room(&self) -> bool {
        if self.open.get() < self.bounds.connections {
            return true;
        }
        let mut doors = self.doors.borrow_mut();
        let Some(door) = first_to_go(&doors, self.bounds.idle, Instant::now()).cloned() else {
            return false;
        };
        doors.retain(|other| !Rc::ptr_eq(other, &door));
        door.close();
        self.open.set(self.open.get() - 1);
        true
    }

    async fn serve(&self, fd: OwnedFd, door: &Door) -> End {
        let fd = Fd::new(fd);
        prepare_socket(&fd);
        let buf = self.inboxes.get_wait(INBOX).await;
        let inbox = Inbox::new(buf).growing_to(LARGE_INBOX, self.inboxes.clone());
        let end = self.export.serve_into(door, Socket::new(&self.handle, &fd), inbox).await;
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

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(3);

    /// A client at 10.0.0.`peer`, of which nothing has been under way since `since`.
    fn door(peer: u8, since: Option<Instant>, is_through: bool) -> Rc<Door> {
        let peer = Some(Peer::Machine([10, 0, 0, peer].into()));
        Rc::new(Door::new(Policy::default(), IDLE).of(peer).been(since, is_through))
    }

    #[test]
    fn the_longest_idle_of_the_largest_peer_makes_room_and_one_that_works_never() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let go = |doors: &[Rc<Door>], now| {
            let all = doors.iter().cloned().collect();
            first_to_go(&all, IDLE, at(now))
                .map(|gone| doors.iter().position(|door| Rc::ptr_eq(door, gone)).unwrap())
        };
        let idle = |peer, since| door(peer, Some(at(since)), true);
        let works = |peer| door(peer, None, true);
        let new = |peer, since| door(peer, Some(at(since)), false);
        assert_eq!(go(&[works(1), idle(1, 5), idle(1, 4), works(1)], 9), Some(2));
        assert_eq!(go(&[works(1), idle(1, 5), idle(1, 4)], 6), None, "idle for 2 s");
        assert_eq!(go(&[idle(1, 0), idle(2, 3), idle(2, 2)], 9), Some(2), "2 has more");
        assert_eq!(go(&[idle(1, 0), works(2), works(2)], 9), Some(0), "those of 2 work");
        assert_eq!(go(&[works(1), new(1, 8), new(1, 7)], 9), Some(2), "the oldest newcomer");
        assert_eq!(go(&[idle(1, 0), new(1, 8)], 9), Some(0), "a few newcomers have their time");
        let mut many: Vec<_> = (0..NEWCOMERS).map(|_| new(1, 8)).collect();
        many.extend([idle(1, 0), new(1, 1)]);
        assert_eq!(go(&many, 9), Some(NEWCOMERS + 1), "a crowd of newcomers is their own");
    }

    #[test]
    fn a_network_of_ipv6_is_one_peer() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
