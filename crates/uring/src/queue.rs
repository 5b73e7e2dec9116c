//! A queue of FUSE over io_uring: commands that wait in the kernel until it has a request for them.
//!
//! ```text
//!   register ──▶ kernel ──result──▶ poll ──▶ the request is read from the entry's memory
//!                  ▲                                        │
//!                  └────── commit: the answer goes, ◀───────┘  written to the entry's memory
//!                          the next request is awaited
//!
//!   entry | header 288 | … | payload, whole pages |
//! ```
//!
//! Invariants
//! * The kernel uses an entry's memory only while a command of it is in the kernel. The ring holds the memory until
//!   the last of these commands has come back.
//! * An entry is committed only while no command of it is in the kernel.
//! * The commands cannot be cancelled: they come back when the connection ends.
//!
//! Source: `fs/fuse/dev_uring.c`, `include/uapi/linux/fuse.h`. Deliberately absent: the meaning of the bytes.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use braid_mem::{Advice, PAGE, Region};
use io_uring::squeue::Entry128;
use io_uring::{opcode, types};

use crate::executor::Handle;
use crate::fd::Fd;

/// Bytes of `struct fuse_uring_req_header`.
pub const QUEUE_HEADER: usize = 288;
/// Distance between the headers of two entries, in bytes.
const HEADER_STRIDE: usize = 512;

/// `enum fuse_uring_cmd`.
const REGISTER: u32 = 1;
const COMMIT_AND_FETCH: u32 = 2;

/// The queue of one processor, on the ring of one executor.
pub struct Queue {
    handle: Handle,
    inner: Rc<Inner>,
    /// Number of the queue at the ring.
    key: u32,
}

/// The part of a queue that its ring keeps while commands are in the kernel.
pub(crate) struct Inner {
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

impl Queue {
    /// Registers queue `number` of the connection `fd`. Its memory is there from the start, and locked if `is_locked`.
    /// That the kernel refuses is told by the results of its entries.
    ///
    /// # Errors
    /// No memory; or this executor has no io_uring.
    pub fn register(
        handle: &Handle,
        fd: &Fd,
        number: u16,
        shape: QueueShape,
        is_locked: bool,
    ) -> io::Result<Queue> {
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
        let inner = Rc::new(Inner {
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
        });
        let ring = handle.ring().ok_or(io::ErrorKind::Unsupported)?;
        let key = ring.add_queue(&inner);
        for entry in 0..entries {
            ring.push_command(&inner.command(entry, REGISTER, 0), key, entry);
        }
        Ok(Queue { handle: handle.clone(), inner, key })
    }

    /// Number of entries.
    pub fn entries(&self) -> u16 {
        self.inner.entries
    }

    /// Returns the next entry that came back, and the result: an error ends the entry. Pending if there is none.
    pub fn poll(&self, cx: &mut Context<'_>) -> Poll<(u16, io::Result<()>)> {
        if let Some((entry, result)) = self.inner.arrived.borrow_mut().pop_front() {
            let result =
                if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) };
            return Poll::Ready((entry, result));
        }
        let mut waker = self.inner.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Hands the answer in `entry` to the kernel and waits for the next request; `id` is that of the request.
    ///
    /// # Panics
    /// If the entry is in the kernel.
    pub fn commit(&self, entry: u16, id: u64) {
        if let Some(ring) = self.handle.ring() {
            ring.push_command(&self.inner.command(entry, COMMIT_AND_FETCH, id), self.key, entry);
        }
    }

    /// Copies bytes of the header of `entry`, from byte `at` on.
    ///
    /// # Panics
    /// If they are not inside it, or the entry is in the kernel.
    #[inline]
    pub fn read_header(&self, entry: u16, at: usize, into: &mut [u8]) {
        self.inner.memory.read(self.inner.header(entry, at, into.len()), into);
    }

    /// Writes bytes of the header of `entry`, from byte `at` on.
    ///
    /// # Panics
    /// As [`Queue::read_header`].
    #[inline]
    pub fn write_header(&self, entry: u16, at: usize, from: &[u8]) {
        self.inner.memory.write(self.inner.header(entry, at, from.len()), from);
    }

    /// Copies bytes of the payload of `entry`, from byte `at` on.
    ///
    /// # Panics
    /// As [`Queue::read_header`].
    #[inline]
    pub fn read_payload(&self, entry: u16, at: usize, into: &mut [u8]) {
        self.inner.memory.read(self.inner.body(entry, at, into.len()), into);
    }

    /// Writes bytes of the payload of `entry`, from byte `at` on.
    ///
    /// # Panics
    /// As [`Queue::read_header`].
    #[inline]
    pub fn write_payload(&self, entry: u16, at: usize, from: &[u8]) {
        self.inner.memory.fill(self.inner.body(entry, at, from.len()), from);
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.inner.waker.borrow_mut().take();
        self.inner.has_no_user.set(true);
        if let Some(ring) = self.handle.ring() {
            ring.leave_queue(self.key);
        }
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

impl Inner {
    fn command(&self, entry: u16, command: u32, id: u64) -> Entry128 {
        // struct fuse_uring_cmd_req: flags, commit_id, qid, padding.
        let mut argument = [0; 80];
        argument[8..16].copy_from_slice(&id.to_ne_bytes());
        argument[16..18].copy_from_slice(&self.number.to_ne_bytes());
        let vector = self.vectors[usize::from(entry)].as_ptr();
        let mut command = opcode::UringCmd80::new(types::Fd(self.fd.as_raw_fd()), command);
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

    fn header(&self, entry: u16, at: usize, len: usize) -> usize {
        self.check(entry, at, len, QUEUE_HEADER);
        usize::from(entry) * HEADER_STRIDE + at
    }

    fn body(&self, entry: u16, at: usize, len: usize) -> usize {
        self.check(entry, at, len, self.payload);
        let headers = (usize::from(self.entries) * HEADER_STRIDE).next_multiple_of(PAGE);
        headers + usize::from(entry) * self.payload + at
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;
    use crate::executor::{Config, Executor, Mode};

    const SHAPE: QueueShape = QueueShape { entries: 3, payload: 2 * PAGE };

    fn file() -> Fd {
        Fd::new(std::fs::File::open("/proc/self/stat").expect("it is there").into())
    }

    #[test]
    fn what_takes_no_commands_gives_every_entry_back() {
        let Ok(executor) = Executor::new(Config { mode: Mode::Uring, ..Config::default() }) else {
            println!("skipped: no io_uring");
            return;
        };
        let handle = executor.handle();
        executor.block_on(async move {
            let queue = Queue::register(&handle, &file(), 0, SHAPE, false).expect("memory");
            let mut came = Vec::new();
            for _ in 0..queue.entries() {
                let (entry, result) = poll_fn(|cx| queue.poll(cx)).await;
                assert_eq!(
                    result.map_err(|error| error.raw_os_error()),
                    Err(Some(libc::EOPNOTSUPP))
                );
                came.push(entry);
            }
            came.sort_unstable();
            assert_eq!(came, [0, 1, 2]);
            queue.write_payload(2, PAGE, &[7; PAGE]);
            let mut bytes = [0; PAGE];
            queue.read_payload(2, PAGE, &mut bytes);
            assert_eq!(bytes, [7; PAGE]);
            queue.write_header(2, QUEUE_HEADER - 4, &[8; 4]);
            let mut bytes = [0; 8];
            queue.read_header(2, QUEUE_HEADER - 8, &mut bytes);
            assert_eq!(bytes, [0, 0, 0, 0, 8, 8, 8, 8]);
            assert!(!handle.ring().expect("io_uring").has_commands());
        });
    }

    #[test]
    #[should_panic(expected = "entry 1 is in the kernel")]
    fn memory_of_an_entry_in_the_kernel_is_not_touched() {
        let Ok(executor) = Executor::new(Config { mode: Mode::Uring, ..Config::default() }) else {
            panic!("entry 1 is in the kernel, as far as can be told without io_uring");
        };
        let queue = Queue::register(&executor.handle(), &file(), 0, SHAPE, false).expect("memory");
        queue.write_payload(1, 0, &[0]);
    }

    #[test]
    fn an_executor_of_threads_has_no_queues() {
        let executor = Executor::new(Config { mode: Mode::Threads, ..Config::default() });
        let handle = executor.expect("threads").handle();
        assert!(Queue::register(&handle, &file(), 0, SHAPE, false).is_err());
    }
}
