//! The memory of a queue's entries, and which of them are in the kernel: the part that the ring keeps.
//!
//! Invariant: memory of an entry whose command is in the kernel is neither read nor written ([`Entries::header`],
//! [`Entries::body`]).

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::os::fd::AsRawFd;
use std::task::{Context, Poll, Waker};

use braid_mem::{Advice, PAGE, Region};
use io_uring::squeue::Entry128;
use io_uring::{opcode, types};

use crate::fd::Fd;

/// Bytes of `struct fuse_uring_req_header`.
pub const QUEUE_HEADER: usize = 288;
/// Distance between the headers of two entries, in bytes.
const HEADER_STRIDE: usize = 512;

/// Commands (`enum fuse_uring_cmd`).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Command {
    /// Hands the memory of an entry over, and waits for a request.
    Register,
    /// Hands the answer to the request of this id over, and waits for the next.
    CommitAndFetch(u64),
}

/// The part of a queue that its ring keeps while commands are in the kernel.
pub(crate) struct Entries {
    fd: Fd,
    number: u16,
    entries: u16,
    payload: usize,
    memory: Region,
    /// For each entry, its header and its payload.
    vectors: Vec<[libc::iovec; 2]>,
    /// True for an entry whose command is in the kernel.
    is_away: RefCell<Vec<bool>>,
    away: Cell<usize>,
    arrived: RefCell<VecDeque<(u16, i32)>>,
    waker: RefCell<Option<Waker>>,
    has_no_user: Cell<bool>,
}

/// Shape of a queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueShape {
    /// Requests that it can have at once.
    pub entries: u16,
    /// Most bytes of data of a request, in whole pages.
    pub payload: usize,
}

impl Entries {
    pub(crate) fn new(
        fd: &Fd,
        number: u16,
        shape: QueueShape,
        is_locked: bool,
    ) -> io::Result<Entries> {
        let QueueShape { entries, payload } = shape;
        assert!(payload.is_multiple_of(PAGE), "payloads are whole pages");
        let headers = (usize::from(entries) * HEADER_STRIDE).next_multiple_of(PAGE);
        let memory = Region::new(headers + usize::from(entries) * payload, Advice::Sparse)?;
        memory.populate_from(0)?;
        if is_locked {
            memory.lock()?;
        }
        let vector =
            |at: usize, len| libc::iovec { iov_base: memory.address(at).cast(), iov_len: len };
        let vectors = (0..usize::from(entries)).map(|entry| {
            [
                vector(entry * HEADER_STRIDE, QUEUE_HEADER),
                vector(headers + entry * payload, payload),
            ]
        });
        Ok(Entries {
            fd: fd.clone(),
            number,
            entries,
            payload,
            vectors: vectors.collect(),
            memory,
            is_away: RefCell::new(vec![false; usize::from(entries)]),
            away: Cell::new(0),
            arrived: RefCell::new(VecDeque::with_capacity(usize::from(entries))),
            waker: RefCell::default(),
            has_no_user: Cell::new(false),
        })
    }

    /// Number of entries.
    pub(crate) fn count(&self) -> u16 {
        self.entries
    }

    /// Returns the next entry that came back, and its result.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<(u16, io::Result<()>)> {
        if let Some((entry, result)) = self.arrived.borrow_mut().pop_front() {
            let result =
                if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) };
            return Poll::Ready((entry, result));
        }
        let mut waker = self.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Notes that results have no receiver from now on.
    pub(crate) fn leave(&self) {
        self.waker.borrow_mut().take();
        self.has_no_user.set(true);
    }

    pub(crate) fn read(&self, at: usize, into: &mut [u8]) {
        self.memory.read(at, into);
    }

    pub(crate) fn write(&self, at: usize, from: &[u8]) {
        self.memory.fill(at, from);
    }

    pub(crate) fn command(&self, entry: u16, command: Command) -> Entry128 {
        let (operation, id) = match command {
            Command::Register => (1, 0),
            Command::CommitAndFetch(id) => (2, id),
        };
        // struct fuse_uring_cmd_req: flags, commit_id, qid, padding.
        let mut argument = [0; 80];
        argument[8..16].copy_from_slice(&id.to_ne_bytes());
        argument[16..18].copy_from_slice(&self.number.to_ne_bytes());
        let vector = self.vectors[usize::from(entry)].as_ptr();
        let mut command = opcode::UringCmd80::new(types::Fd(self.fd.as_raw_fd()), operation);
        command = command.cmd(argument).addr(Some(vector.addr() as u64));
        with_len(command.build(), 2)
    }

    /// Notes that the command of `entry` goes to the kernel.
    pub(crate) fn goes(&self, entry: u16) {
        let before = std::mem::replace(&mut self.is_away.borrow_mut()[usize::from(entry)], true);
        assert!(!before, "entry {entry} is in the kernel already");
        self.away.set(self.away.get() + 1);
    }

    /// Returns true if commands are in the kernel.
    pub(crate) fn is_away(&self) -> bool {
        self.away.get() > 0
    }

    /// Returns true if the results of its commands have no receiver any more.
    pub(crate) fn has_no_user(&self) -> bool {
        self.has_no_user.get()
    }

    /// Takes in the result of the command of `entry`.
    pub(crate) fn comes(&self, entry: u16, result: i32) {
        self.is_away.borrow_mut()[usize::from(entry)] = false;
        self.away.set(self.away.get() - 1);
        self.arrived.borrow_mut().push_back((entry, result));
        // The task keeps its waker for the next time.
        let waker = self.waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn check(&self, entry: u16, at: usize, len: usize, most: usize) {
        assert!(at + len <= most, "{len} bytes at {at} of {most}");
        assert!(!self.is_away.borrow()[usize::from(entry)], "entry {entry} is in the kernel");
    }

    /// Returns the place of bytes of an entry's header in its memory.
    pub(crate) fn header(&self, entry: u16, at: usize, len: usize) -> usize {
        self.check(entry, at, len, QUEUE_HEADER);
        usize::from(entry) * HEADER_STRIDE + at
    }

    /// Returns the place of bytes of an entry's payload in its memory.
    pub(crate) fn body(&self, entry: u16, at: usize, len: usize) -> usize {
        self.check(entry, at, len, self.payload);
        let headers = (usize::from(self.entries) * HEADER_STRIDE).next_multiple_of(PAGE);
        headers + usize::from(entry) * self.payload + at
    }
}

/// Returns the submission with another `len`, the number of vectors, which the builder of commands leaves at 0.
fn with_len(mut entry: Entry128, len: u32) -> Entry128 {
    /// Offset of `len` in `struct io_uring_sqe`.
    const AT: usize = 24;
    // SAFETY: an `Entry128` is laid out as the 128 bytes of a submission (`repr(C)`), all of which are plain data.
    unsafe { std::ptr::from_mut(&mut entry).cast::<u8>().add(AT).cast::<u32>().write(len) };
    entry
}
