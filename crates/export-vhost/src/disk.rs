//! The state that an export and the thread of its connection share.

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use braid_block::Limits;

use crate::message;
use crate::request::SERIAL;
use crate::server::Server;
use crate::socket;

/// A call for the server of a shard.
pub type ForServer = Box<dyn FnOnce(&Server) + Send>;

/// Carries a call to the thread of a shard.
pub type OnShard = Box<dyn Fn(ForServer) + Send + Sync>;

/// Facts for a front-end, and the shards that serve its queues.
pub(crate) struct Disk {
    limits: Mutex<Limits>,
    serial: [u8; SERIAL],
    shards: Vec<OnShard>,
    is_stopped: AtomicBool,
    stream: Mutex<Option<UnixStream>>,
    /// The front-end's socket for messages of the server.
    channel: Mutex<Option<UnixStream>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Disk {
    pub(crate) fn new(limits: Limits, name: &str, shards: Vec<OnShard>) -> Disk {
        let mut serial = [0; SERIAL];
        serial.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
        Disk {
            limits: Mutex::new(limits),
            serial,
            shards,
            is_stopped: AtomicBool::new(false),
            stream: Mutex::default(),
            channel: Mutex::default(),
        }
    }

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

    /// Sets the connection that a stop ends.
    pub(crate) fn set_stream(&self, stream: Option<UnixStream>) {
        *lock(&self.stream) = stream;
    }

    /// Offers other limits, and tells the front-end.
    pub(crate) fn change(&self, limits: Limits) {
        *lock(&self.limits) = limits;
        if let Some(channel) = lock(&self.channel).as_ref() {
            socket::send_now(channel, &message::config_changed());
        }
    }

    /// Ends the connection.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        if let Some(stream) = lock(&self.stream).as_ref() {
            // The front-end may have left.
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }

    /// Carries a call to the shard that serves queue number `queue`.
    pub(crate) fn on_shard(&self, queue: usize, call: impl FnOnce(&Server) + Send + 'static) {
        self.shards[queue % self.shards.len()](Box::new(call));
    }
}
