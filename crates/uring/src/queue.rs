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

use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::entries::{Command, Entries, QueueShape};
use crate::executor::Handle;
use crate::fd::Fd;

/// The queue of one processor, on the ring of one executor.
pub struct Queue {
    handle: Handle,
    inner: Rc<Entries>,
    /// Number of the queue at the ring.
    key: usize,
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
        let inner = Rc::new(Entries::new(fd, number, shape, is_locked)?);
        let ring = handle.ring().ok_or(io::ErrorKind::Unsupported)?;
        let key = ring.add_queue(&inner);
        for entry in 0..inner.count() {
            ring.push_command(&inner.command(entry, Command::Register), key, entry);
        }
        Ok(Queue { handle: handle.clone(), inner, key })
    }

    /// Number of entries.
    pub fn entries(&self) -> u16 {
        self.inner.count()
    }

    /// Returns the next entry that came back, and the result: an error ends the entry. Pending if there is none.
    pub fn poll(&self, cx: &mut Context<'_>) -> Poll<(u16, io::Result<()>)> {
        self.inner.poll(cx)
    }

    /// Hands the answer in `entry` to the kernel and waits for the next request; `id` is that of the request.
    ///
    /// # Panics
    /// If the entry is in the kernel.
    pub fn commit(&self, entry: u16, id: u64) {
        if let Some(ring) = self.handle.ring() {
            ring.push_command(
                &self.inner.command(entry, Command::CommitAndFetch(id)),
                self.key,
                entry,
            );
        }
    }

    /// Copies bytes of the header of `entry`, from byte `at` on.
    ///
    /// # Panics
    /// If they are not inside it, or the entry is in the kernel.
    #[inline]
    pub fn read_header(&self, entry: u16, at: usize, into: &mut [u8]) {
        self.inner.read(self.inner.header(entry, at, into.len()), into);
    }

    /// Writes bytes of the header of `entry`, from byte `at` on.
    ///
    /// # Panics
    /// As [`Queue::read_header`].
    #[inline]
    pub fn write_header(&self, entry: u16, at: usize, from: &[u8]) {
        self.inner.write(self.inner.header(entry, at, from.len()), from);
    }

    /// Copies bytes of the payload of `entry`, from byte `at` on.
    ///
    /// # Panics
    /// As [`Queue::read_header`].
    #[inline]
    pub fn read_payload(&self, entry: u16, at: usize, into: &mut [u8]) {
        self.inner.read(self.inner.body(entry, at, into.len()), into);
    }

    /// Writes bytes of the payload of `entry`, from byte `at` on.
    ///
    /// # Panics
    /// As [`Queue::read_header`].
    #[inline]
    pub fn write_payload(&self, entry: u16, at: usize, from: &[u8]) {
        self.inner.write(self.inner.body(entry, at, from.len()), from);
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.inner.leave();
        if let Some(ring) = self.handle.ring() {
            ring.leave_queue(self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use braid_mem::PAGE;

    use super::*;
    use crate::entries::QUEUE_HEADER;
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
