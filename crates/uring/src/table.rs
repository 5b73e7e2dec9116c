//! The operations in flight, and the waker of each.
//!
//! ```text
//! insert ─▶ Submitted ─poll─▶ Waiting ─result─▶ Done ─poll─▶ (free)
//!               └───────────────┴──abandon──▶ Abandoned ─result─▶ (free)
//! ```
//!
//! Invariant: an entry, and with it the memory the kernel works on, leaves the table only after
//! the kernel's result for it came in.

use std::cell::RefCell;
use std::task::{Context, Poll, Waker};

use braid_block::{Completion, Errno, Payload};
use braid_engine::CompletionSource;
use slab::Slab;

use crate::canary::Canary;
use crate::operation::{Operation, Transfer};

#[derive(Default)]
pub(crate) struct Table {
    entries: RefCell<Slab<Entry>>,
}

struct Entry {
    operation: Operation,
    state: State,
}

enum State {
    Submitted,
    Waiting(Waker),
    Abandoned,
    Done(i32),
}

/// The step after a result came in.
pub(crate) enum After {
    /// Nothing more.
    Finished,
    /// Submit the rest of a transfer.
    Resubmit,
}

impl Table {
    pub(crate) fn insert(&self, operation: Operation) -> u32 {
        let entry = Entry { operation, state: State::Submitted };
        self.entries.borrow_mut().insert(entry) as u32
    }

    /// Makes room for `count` at once.
    pub(crate) fn reserve(&self, count: usize) {
        self.entries.borrow_mut().reserve(count);
    }

    /// Operations with memory of ours that the kernel has not answered. Commands have none, and some wait until the ring
    /// is closed: they cannot be cancelled.
    pub(crate) fn in_kernel(&self) -> usize {
        let entries = self.entries.borrow();
        let has_memory = |entry: &Entry| !matches!(entry.operation, Operation::Command { .. });
        let is_in_kernel = |entry: &Entry| !matches!(entry.state, State::Done(_));
        entries.iter().filter(|(_, entry)| is_in_kernel(entry) && has_memory(entry)).count()
    }

    /// Looks at the operation `id`, for a driver that submits it.
    pub(crate) fn with<R>(&self, id: u32, f: impl FnOnce(&mut Operation) -> R) -> R {
        f(&mut self.entries.borrow_mut()[id as usize].operation)
    }

    /// Takes in the kernel's result for `id`: a count, a descriptor, or a negative error number.
    #[inline]
    pub(crate) fn complete(&self, id: u32, result: i32) -> After {
        let mut entries = self.entries.borrow_mut();
        let entry = &mut entries[id as usize];
        let result = match &mut entry.operation {
            Operation::Transfer(transfer) => match transfer.advance(result) {
                None => return After::Resubmit,
                Some(Ok(())) => 0,
                Some(Err(errno)) => {
                    if transfer.durable {
                        transfer.fd.durable_failed(errno);
                    }
                    -errno.raw()
                }
            },
            // Also if no task waits for it any more.
            Operation::Sync(fd) => fd.flushed(result),
            _ => result,
        };
        match std::mem::replace(&mut entry.state, State::Done(result)) {
            State::Waiting(waker) => {
                drop(entries);
                waker.wake();
            }
            State::Abandoned => {
                let entry = entries.remove(id as usize);
                drop(entries);
                drop_abandoned(entry.operation, result);
            }
            State::Submitted | State::Done(_) => {}
        }
        After::Finished
    }

    /// The result of `id` and the operation with its memory, once it is there.
    #[inline]
    pub(crate) fn poll(&self, id: u32, cx: &mut Context<'_>) -> Poll<(i32, Operation)> {
        let mut entries = self.entries.borrow_mut();
        let entry = &mut entries[id as usize];
        match &mut entry.state {
            State::Done(result) => {
                let result = *result;
                Poll::Ready((result, entries.remove(id as usize).operation))
            }
            State::Waiting(waker) => {
                waker.clone_from(cx.waker());
                Poll::Pending
            }
            State::Submitted | State::Abandoned => {
                entry.state = State::Waiting(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Gives up the result of `id`.
    pub(crate) fn abandon(&self, id: u32) {
        let mut entries = self.entries.borrow_mut();
        if Canary::MemoryFreedEarly.is_planted() {
            return drop(entries.remove(id as usize));
        }
        let entry = &mut entries[id as usize];
        match std::mem::replace(&mut entry.state, State::Abandoned) {
            State::Done(result) => {
                let entry = entries.remove(id as usize);
                drop(entries);
                drop_abandoned(entry.operation, result);
            }
            // The waker's task may be the one that is being dropped: let go of it last.
            State::Waiting(waker) => {
                drop(entries);
                drop(waker);
            }
            State::Submitted | State::Abandoned => {}
        }
    }
}

/// Closes an abandoned accepted connection, which must not stay open.
fn drop_abandoned(operation: Operation, result: i32) {
    if matches!(operation, Operation::Accept(_)) && result >= 0 {
        // SAFETY: the kernel handed this descriptor to the operation, whose waiter is gone, so
        // nothing else owns it.
        drop(unsafe { <std::os::fd::OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(result) });
    }
}

impl CompletionSource for Table {
    #[inline]
    fn poll_completion(&self, id: u32, cx: &mut Context<'_>) -> Poll<Completion> {
        self.poll(id, cx).map(|(result, operation)| {
            let result = if result < 0 { Err(Errno::from_raw(-result)) } else { Ok(()) };
            if let (Err(errno), Operation::Transfer(Transfer { fd, .. }) | Operation::Sync(fd)) =
                (result, &operation)
            {
                fd.record(errno);
            }
            match operation {
                Operation::Transfer(transfer) => transfer.complete(result),
                _ => Completion { result, payload: Payload::None },
            }
        })
    }

    fn abandon(&self, id: u32) {
        Table::abandon(self, id);
    }

    fn lend(&self, id: u32) -> Payload {
        self.with(id, |operation| match operation {
            // What the kernel only reads can be read beside it.
            Operation::Transfer(transfer) if transfer.write => transfer.payload.share(),
            _ => Payload::None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::IntoRawFd;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    use braid_mem::Pool;

    use super::*;
    use crate::fd::{Failures, Fd};

    fn fd(failures: Failures) -> Fd {
        Fd::counted(
            std::fs::File::open("/dev/null").expect("it is there").into(),
            Arc::new(failures),
        )
    }

    /// Through the page cache a durable write may be told of what others have lost, and the flush after it of nothing.
    #[test]
    fn a_durable_write_that_fails_tells_of_the_page_cache() {
        for (failures, expected) in [(Failures::of_cached(), -libc::EIO), (Failures::default(), 0)]
        {
            let (table, fd) = (Table::default(), fd(failures));
            let write = Transfer::new(fd.clone(), true, true, 0, Payload::None);
            let id = table.insert(Operation::Transfer(write));
            table.complete(id, -libc::EIO);
            let id = table.insert(Operation::Sync(fd));
            table.complete(id, 0);
            let flushed = table.poll(id, &mut Context::from_waker(Waker::noop()));
            assert!(matches!(flushed, Poll::Ready((result, _)) if result == expected));
        }
    }

    #[test]
    fn memory_is_lent_to_the_kernel_until_its_result_comes() {
        let (table, pool) = (Table::default(), Pool::new(4096).expect("memory"));
        let payload = pool.get(4096).expect("memory").into();
        let read = Transfer::new(fd(Failures::default()), false, false, 0, payload);
        let id = table.insert(Operation::Transfer(read));
        table.abandon(id);
        assert!(pool.get(4096).is_none(), "the kernel may still write to it");
        table.complete(id, 4096);
        assert!(pool.get(4096).is_some());
    }

    #[test]
    fn a_connection_that_nobody_wants_any_more_is_closed() {
        let (accepted, mut peer) = UnixStream::pair().expect("sockets");
        peer.set_nonblocking(true).expect("a socket");
        let table = Table::default();
        let id = table.insert(Operation::Accept(fd(Failures::default())));
        table.abandon(id);
        table.complete(id, accepted.into_raw_fd());
        assert_eq!(peer.read(&mut [0]).expect("the end"), 0);
    }
}
