//! Counts of a remote member, which any thread may read.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of a remote member.
#[derive(Debug, Default)]
pub struct Traffic {
    pub(crate) connections: AtomicU64,
    pub(crate) wanted: AtomicU64,
    pub(crate) reconnects: AtomicU64,
    pub(crate) repeated: AtomicU64,
    pub(crate) overdue: AtomicU64,
    pub(crate) sent: AtomicU64,
    pub(crate) received: AtomicU64,
    pub(crate) round_trip_us: AtomicU64,
    pub(crate) waiting_us: AtomicU64,
    pub(crate) deadline_us: AtomicU64,
    trouble: Mutex<Option<String>>,
}

/// Counts of a remote member at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrafficRead {
    /// Connections that are in use.
    pub connections: u64,
    /// Connections that are to be in use.
    pub wanted: u64,
    /// Times that the connections broke and came back.
    pub reconnects: u64,
    /// Changes that were sent again.
    pub repeated: u64,
    /// Requests that failed with the deadline.
    pub overdue: u64,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
    /// Time from the last question of a handshake to its answer, in microseconds.
    pub round_trip_us: u64,
    /// Time for which the oldest request waits that is not answered, in microseconds, at the last look.
    pub waiting_us: u64,
    /// Time for which a request may wait, in microseconds.
    pub deadline_us: u64,
    /// Why the last attempt to connect failed, as long as there is no connection.
    pub trouble: Option<String>,
}

pub(crate) fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

pub(crate) fn set(counter: &AtomicU64, value: u64) {
    counter.store(value, Ordering::Relaxed);
}

impl Traffic {
    /// Returns the counts.
    pub fn read(&self) -> TrafficRead {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TrafficRead {
            connections: get(&self.connections),
            wanted: get(&self.wanted),
            reconnects: get(&self.reconnects),
            repeated: get(&self.repeated),
            overdue: get(&self.overdue),
            sent: get(&self.sent),
            received: get(&self.received),
            round_trip_us: get(&self.round_trip_us),
            waiting_us: get(&self.waiting_us),
            deadline_us: get(&self.deadline_us),
            trouble: self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    pub(crate) fn trouble(&self, why: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }
}
