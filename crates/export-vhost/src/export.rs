//! The export: a thread that accepts one front-end at a time, and servers of queues on the shards.
//!
//! ```text
//!   socket ──▶ thread: messages ([`crate::control`]) ──▶ queue 0 on shard 0, queue 1 on shard 1, … in turn
//! ```
//!
//! Invariants
//! * A second front-end waits until the first one has left: two machines that write to one disk destroy its file system.
//! * When it is stopped, no queue takes a request any more.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use braid_block::Limits;
use braid_engine::Offered;
use braid_mem::Pool;
use braid_uring::Handle;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use crate::control::Connection;
use crate::end::{End, QueueFault};
use crate::message;
use crate::queue::{Queue, Setup, Stopper};
use crate::request::SERIAL;
use crate::socket;

/// Time until the next attempt to accept when there are no descriptors.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

/// A reading of [`Counters`].
pub type Counts = braid_status::ExportCounts;

/// Counts of one shard, or of one socket.
pub type Counters = braid_status::Shared<Counts>;

/// A call for the server of a shard.
pub type ForServer = Box<dyn FnOnce(&Server) + Send>;

/// Carries a call to the thread of a shard.
pub type OnShard = Box<dyn Fn(ForServer) + Send + Sync>;

/// One shard's end of an export: the queues that it serves.
#[derive(Clone)]
pub struct Server {
    inner: Rc<ServerInner>,
}

struct ServerInner {
    handle: Handle,
    offered: Offered,
    pool: Pool,
    counters: Arc<Counters>,
    queues: RefCell<Vec<Arc<Stopper>>>,
    is_stopped: Cell<bool>,
}

impl Server {
    /// Serves queues from what is `offered`, with memory of `pool`.
    pub fn new(handle: &Handle, offered: impl Into<Offered>, pool: Pool) -> Server {
        let inner = ServerInner {
            handle: handle.clone(),
            offered: offered.into(),
            pool,
            counters: Arc::default(),
            queues: RefCell::default(),
            is_stopped: Cell::new(false),
        };
        Server { inner: Rc::new(inner) }
    }

    /// Returns the counters.
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.inner.counters)
    }

    /// Returns the limits of what is offered now.
    pub fn limits(&self) -> Limits {
        self.inner.offered.limits()
    }

    /// Queues that are served now.
    pub fn open_queues(&self) -> usize {
        self.inner.queues.borrow().len()
    }

    /// Takes no more requests; answers those that are in flight.
    pub fn stop(&self) {
        self.inner.is_stopped.set(true);
        self.inner.queues.borrow().iter().for_each(|queue| queue.stop());
    }

    /// Serves a queue in a task of its own. `ended` hears of its end, `failed` is called at once when it has a fault.
    pub(crate) fn serve(
        &self,
        setup: Setup,
        ended: Sender<Result<u16, QueueFault>>,
        failed: impl FnOnce() + 'static,
    ) {
        let inner = Rc::clone(&self.inner);
        let stopper = Arc::clone(&setup.stopper);
        if inner.is_stopped.get() {
            stopper.stop();
        }
        let (offered, pool) = (inner.offered.clone(), inner.pool.clone());
        let queue = Queue::new(&inner.handle, offered, pool, self.counters(), setup);
        inner.queues.borrow_mut().push(Arc::clone(&stopper));
        self.inner.handle.spawn(async move {
            let result = match queue {
                Ok(queue) => queue.run(failed).await,
                Err(fault) => Err(fault),
            };
            inner.queues.borrow_mut().retain(|other| !Arc::ptr_eq(other, &stopper));
            // The connection may have ended with its thread.
            let _ = ended.send(result);
        });
    }
}

/// A volume as a disk of one virtual machine, at one socket.
#[derive(Clone)]
pub struct Export {
    inner: Arc<Inner>,
}

/// The parts of an export.
pub(crate) struct Inner {
    limits: Mutex<Limits>,
    serial: [u8; SERIAL],
    shards: Vec<OnShard>,
    counters: Counters,
    on_end: Box<dyn Fn(&End) + Send + Sync>,
    is_stopped: AtomicBool,
    /// Rung when it is stopped.
    stop: OwnedFd,
    stream: Mutex<Option<UnixStream>>,
    /// The front-end's socket for messages of the server.
    channel: Mutex<Option<UnixStream>>,
}

impl Export {
    /// An export of what the servers of `shards` offer, of the given limits, under the name `name`. `on_end` hears why
    /// each connection ended.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new(
        limits: Limits,
        name: &str,
        shards: Vec<OnShard>,
        on_end: impl Fn(&End) + Send + Sync + 'static,
    ) -> io::Result<Export> {
        let mut serial = [0; SERIAL];
        serial.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
        let inner = Inner {
            limits: Mutex::new(limits),
            serial,
            shards,
            counters: Counters::default(),
            on_end: Box::new(on_end),
            is_stopped: AtomicBool::new(false),
            stop: eventfd(0, EventfdFlags::CLOEXEC)?,
            stream: Mutex::default(),
            channel: Mutex::default(),
        };
        Ok(Export { inner: Arc::new(inner) })
    }

    /// Accepts front-ends on `listener`, on a thread of its own, until it is stopped.
    ///
    /// # Errors
    /// The thread cannot be made.
    pub fn start(&self, listener: OwnedFd) -> io::Result<()> {
        let inner = Arc::clone(&self.inner);
        let listener = UnixListener::from(listener);
        std::thread::Builder::new().name("vhost".to_owned()).spawn(move || {
            if let Err(error) = inner.accept(&listener) {
                inner.refuse(&error);
            }
        })?;
        Ok(())
    }

    /// Returns the counts of connections.
    pub fn counts(&self) -> Counts {
        self.inner.counters.read()
    }

    /// Offers another size, or permission to write, and tells the front-end.
    pub fn change(&self, limits: Limits) {
        *lock(&self.inner.limits) = limits;
        if let Some(channel) = lock(&self.inner.channel).as_ref() {
            socket::send_now(channel, &message::config_changed());
        }
    }

    /// Accepts no more, and ends the connection.
    pub fn stop(&self) {
        self.inner.is_stopped.store(true, Ordering::SeqCst);
        // A counter that is not 0 wakes as well.
        let _ = rustix::io::write(&self.inner.stop, &1u64.to_ne_bytes());
        if let Some(stream) = lock(&self.inner.stream).as_ref() {
            // The front-end may have left.
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    pub(crate) fn limits(&self) -> Limits {
        *lock(&self.limits)
    }

    pub(crate) fn serial(&self) -> [u8; SERIAL] {
        self.serial
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    pub(crate) fn set_channel(&self, channel: Option<UnixStream>) {
        *lock(&self.channel) = channel;
    }

    /// Carries a call to the shard that serves queue number `queue`.
    pub(crate) fn on_shard(&self, queue: usize, call: impl FnOnce(&Server) + Send + 'static) {
        self.shards[queue % self.shards.len()](Box::new(call));
    }

    fn refuse(&self, error: &io::Error) {
        let error = io::Error::new(error.kind(), format!("no more are accepted: {error}"));
        (self.on_end)(&End(error.into()));
    }

    fn accept(self: &Arc<Inner>, listener: &UnixListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        while !self.is_stopped() {
            let mut wakers = [listener.as_fd(), self.stop.as_fd()]
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
            match poll(&mut wakers, None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            match listener.accept() {
                Ok((stream, _)) => self.serve(stream),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Descriptors, or memory, that others give back.
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
        Ok(())
    }

    fn serve(self: &Arc<Inner>, stream: UnixStream) {
        self.count(Counts { connections_accepted: 1, ..Counts::default() });
        let end = match self.prepare(&stream) {
            Ok(()) => Connection::new(self, stream).serve(),
            Err(error) => End(error.into()),
        };
        lock(&self.stream).take();
        self.set_channel(None);
        let protocol_errors = u64::from(end.is_protocol_error());
        self.count(Counts { connections_ended: 1, protocol_errors, ..Counts::default() });
        (self.on_end)(&end);
    }

    fn prepare(&self, stream: &UnixStream) -> io::Result<()> {
        // The listener does not wait, and hands that on.
        stream.set_nonblocking(false)?;
        socket::prepare(stream)?;
        *lock(&self.stream) = Some(stream.try_clone()?);
        if self.is_stopped() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }

    fn count(&self, mut counts: Counts) {
        self.counters.add(&mut counts);
    }
}
