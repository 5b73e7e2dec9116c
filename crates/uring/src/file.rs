//! Reads, writes and their like at offsets of files and block devices.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use braid_block::{Errno, Payload};
use braid_engine::{Pending, Ticket};

use crate::Handle;
use crate::operation::{Operation, Transfer};

/// A descriptor that stays open as long as a clone or an operation holds it.
#[derive(Clone, Debug)]
pub struct Fd(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    fd: OwnedFd,
    failures: Arc<Failures>,
}

/// What failed on a medium, counted from any thread, over all descriptors of it.
///
/// A flush that failed is remembered: the kernel tells of lost data once, and then takes the pages
/// for clean, so a later flush that succeeds says nothing about what was written before. All flushes
/// fail from then on, on every descriptor.
#[derive(Debug, Default)]
pub struct Failures {
    count: AtomicU64,
    last: AtomicI32,
    /// Of the first flush that failed; 0 if none has.
    lost: AtomicI32,
    /// Writes that are to be durable tell of what others have lost, too.
    is_cached: bool,
}

impl Failures {
    /// Counts one.
    pub fn record(&self, errno: Errno) {
        self.last.store(errno.raw(), Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Release);
    }

    /// Of a medium that is used through the page cache.
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

    /// How many there were.
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
        Fd(Rc::new(Inner { fd, failures }))
    }

    pub(crate) fn record(&self, errno: Errno) {
        self.0.failures.record(errno);
    }

    /// What a flush is answered with that the kernel answered with `result`.
    pub(crate) fn flushed(&self, result: i32) -> i32 {
        if result < 0 {
            self.0.failures.lose(Errno::from_raw(-result));
        }
        self.0.failures.lost().map_or(result, |errno| -errno.raw())
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

impl Handle {
    /// Fills `payload` from `offset` on. A file that ends before is an error.
    pub fn read_at(&self, fd: &Fd, offset: u64, payload: Payload) -> Pending {
        self.transfer(Transfer::new(fd.clone(), false, false, offset, payload))
    }

    /// Stores `payload` at `offset`; with `durable`, on stable storage before it completes.
    pub fn write_at(&self, fd: &Fd, offset: u64, payload: Payload, durable: bool) -> Pending {
        self.transfer(Transfer::new(fd.clone(), true, durable, offset, payload))
    }

    /// Makes completed writes to `fd` durable (`fdatasync`).
    pub fn sync(&self, fd: &Fd) -> Pending {
        self.ticket(Operation::Sync(fd.clone()))
    }

    /// `fallocate` with the `FALLOC_FL_*` bits of `mode`.
    pub async fn fallocate(&self, fd: &Fd, mode: i32, offset: u64, len: u64) -> Result<(), Errno> {
        let operation = Operation::Fallocate { fd: fd.clone(), mode, offset, len };
        match self.submit(operation).await.0 {
            result if result < 0 => Err(Errno::from_raw(-result)),
            _ => Ok(()),
        }
    }

    /// Runs a closure that may block on another thread.
    pub async fn blocking(
        &self,
        job: impl FnOnce() -> std::io::Result<()> + Send + 'static,
    ) -> Result<(), Errno> {
        let answer = move || match job() {
            Ok(()) => 0,
            Err(error) => -Errno::from(error).raw(),
        };
        match self.submit_blocking(Box::new(answer)).await.0 {
            result if result < 0 => Err(Errno::from_raw(-result)),
            _ => Ok(()),
        }
    }

    fn transfer(&self, transfer: Transfer) -> Pending {
        self.ticket(Operation::Transfer(transfer))
    }

    fn ticket(&self, operation: Operation) -> Pending {
        let id = self.start(operation);
        Pending::Ticket(Ticket::new(self.completion_source(), id))
    }
}
