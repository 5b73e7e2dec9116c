//! Descriptors, and what failed on their media.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use braid_block::Errno;

use crate::canary::Canary;

/// A descriptor that stays open as long as a clone or an operation holds it.
#[derive(Clone, Debug)]
pub struct Fd(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    fd: OwnedFd,
    failures: Arc<Failures>,
    /// Reads and writes never wait, and so need no thread that may.
    is_prompt: bool,
}

/// Failures of a medium, counted from any thread, over all descriptors of it.
///
/// A flush that failed is remembered: the kernel tells of lost data once, and then takes the pages
/// for clean, so a later flush that succeeds says nothing about what was written before. All flushes
/// fail from then on, on every descriptor.
#[derive(Debug, Default)]
pub struct Failures {
    count: AtomicU64,
    last: AtomicI32,
    /// Error of the first flush that failed; 0 if none has.
    lost: AtomicI32,
    /// Writes that are to be durable also report lost writes of others.
    is_cached: bool,
}

impl Failures {
    /// Counts one.
    pub fn record(&self, errno: Errno) {
        self.last.store(errno.raw(), Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Release);
    }

    /// Returns the counter of a medium that is used through the page cache.
    pub fn of_cached() -> Failures {
        Failures { is_cached: true, ..Failures::default() }
    }

    /// Why what was written before may not be there: the first flush that failed.
    pub fn lost(&self) -> Option<Errno> {
        match self.lost.load(Ordering::Acquire) {
            0 => None,
            errno => Some(Errno::from_raw(errno)),
        }
    }

    fn lose(&self, errno: Errno) {
        let (new, success, failure) = (errno.raw(), Ordering::AcqRel, Ordering::Acquire);
        // Only the first counts: what the others lost was lost by then.
        let _ = self.lost.compare_exchange(0, new, success, failure);
    }

    /// Returns the number of failures.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// The last one.
    pub fn last(&self) -> Option<Errno> {
        (self.count() > 0).then(|| Errno::from_raw(self.last.load(Ordering::Relaxed)))
    }
}

impl Fd {
    /// Takes the descriptor over.
    pub fn new(fd: OwnedFd) -> Fd {
        Fd::counted(fd, Arc::default())
    }

    /// Takes the descriptor over; reads, writes and flushes that fail are counted.
    pub fn counted(fd: OwnedFd, failures: Arc<Failures>) -> Fd {
        Fd(Rc::new(Inner { fd, failures, is_prompt: false }))
    }

    /// Takes over a descriptor that is open with `O_NONBLOCK`, whose reads and writes never wait.
    pub(crate) fn prompt(fd: OwnedFd) -> Fd {
        Fd(Rc::new(Inner { fd, failures: Arc::default(), is_prompt: true }))
    }

    pub(crate) fn is_prompt(&self) -> bool {
        self.0.is_prompt
    }

    pub(crate) fn record(&self, errno: Errno) {
        self.0.failures.record(errno);
    }

    /// Returns the result of a flush for which the kernel returned `result`.
    pub(crate) fn flushed(&self, result: i32) -> i32 {
        if result < 0 {
            self.0.failures.lose(Errno::from_raw(-result));
        }
        let lost = self.0.failures.lost().filter(|_| !Canary::LossForgotten.is_planted());
        lost.map_or(result, |errno| -errno.raw())
    }

    /// Takes in that a write which was to be durable failed.
    pub(crate) fn durable_failed(&self, errno: Errno) {
        if self.0.failures.is_cached && errno == Errno::IO {
            self.0.failures.lose(errno);
        }
    }
}

impl From<OwnedFd> for Fd {
    fn from(fd: OwnedFd) -> Fd {
        Fd::new(fd)
    }
}

impl AsFd for Fd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.fd.as_fd()
    }
}

impl AsRawFd for Fd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.fd.as_raw_fd()
    }
}
