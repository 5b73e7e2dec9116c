//! The export: a thread that accepts one front-end at a time, and servers of queues on the shards.
//!
//! ```text
//!   socket ──▶ thread: messages ([`crate::control`]) ──▶ queue 0 on shard 0, queue 1 on shard 1, … in turn
//! ```
//!
//! Invariants
//! * A second front-end waits until the first one has left: two machines that write to one disk destroy its file system.
//! * When it is stopped, no queue takes a request any more.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;

use braid_block::Limits;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use crate::control::Connection;
use crate::disk::{Disk, OnShard};
use crate::end::End;
use crate::server::{Counters, Counts};
use crate::socket;

/// Time until the next attempt to accept when there are no descriptors.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

/// A volume as a disk of one virtual machine, at one socket.
#[derive(Clone)]
pub struct Export {
    inner: Arc<Inner>,
}

/// The parts of an export.
struct Inner {
    disk: Disk,
    counters: Counters,
    on_end: Box<dyn Fn(&End) + Send + Sync>,
    /// Rung when it is stopped.
    stop: OwnedFd,
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
        let inner = Inner {
            disk: Disk::new(limits, name, shards),
            counters: Counters::default(),
            on_end: Box::new(on_end),
            stop: eventfd(0, EventfdFlags::CLOEXEC)?,
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
        self.inner.disk.change(limits);
    }

    /// Accepts no more, and ends the connection.
    pub fn stop(&self) {
        self.inner.disk.stop();
        // A counter that is not 0 wakes as well.
        let _ = rustix::io::write(&self.inner.stop, &1u64.to_ne_bytes());
    }
}

impl Inner {
    fn refuse(&self, error: &io::Error) {
        let error = io::Error::new(error.kind(), format!("no more are accepted: {error}"));
        (self.on_end)(&End(error.into()));
    }

    fn accept(&self, listener: &UnixListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        while !self.disk.is_stopped() {
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

    fn serve(&self, stream: UnixStream) {
        self.count(Counts { connections_accepted: 1, ..Counts::default() });
        let end = match self.prepare(&stream) {
            Ok(()) => Connection::new(&self.disk, stream).serve(),
            Err(error) => End(error.into()),
        };
        self.disk.set_stream(None);
        self.disk.set_channel(None);
        let protocol_errors = u64::from(end.is_protocol_error());
        self.count(Counts { connections_ended: 1, protocol_errors, ..Counts::default() });
        (self.on_end)(&end);
    }

    fn prepare(&self, stream: &UnixStream) -> io::Result<()> {
        // The listener does not wait, and hands that on.
        stream.set_nonblocking(false)?;
        socket::prepare(stream)?;
        self.disk.set_stream(Some(stream.try_clone()?));
        if self.disk.is_stopped() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }

    fn count(&self, mut counts: Counts) {
        self.counters.add(&mut counts);
    }
}
