//! The driver for machines without io_uring: `poll` for what can be waited for, a pool of
//! threads with `preadv2` and `pwritev2` for files.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use crate::eventfd;
use crate::operation::{Interest, Operation, Rest, raw};
use crate::pool::{About, Job, Pool};
use crate::table::Table;

pub(crate) struct Threads {
    /// Operations that wait for their descriptor.
    polled: RefCell<Vec<(u32, RawFd, i16)>>,
    inbox: OwnedFd,
}

impl Threads {
    pub(crate) fn new(inbox: OwnedFd) -> Threads {
        Threads { polled: RefCell::default(), inbox }
    }

    pub(crate) fn submit(&self, table: &Table, id: u32, pool: &Pool) {
        enum Start {
            Poll(RawFd, i16),
            Pool(About, Job),
        }
        let start = table.with(id, |operation| match operation {
            Operation::Recv { fd, .. } => Start::Poll(raw(fd), libc::POLLIN),
            Operation::Accept(fd) => Start::Poll(raw(fd), Interest::Readable.events()),
            Operation::Poll { fd, interest } => Start::Poll(raw(fd), interest.events()),
            file => {
                let (about, job) = job_of(file);
                Start::Pool(about, job)
            }
        });
        match start {
            Start::Poll(fd, events) => self.polled.borrow_mut().push((id, fd, events)),
            Start::Pool(about, job) => pool.run(id, about, job),
        }
    }

    /// Takes in what is ready; waits for something if `wait` says for how long at most.
    pub(crate) fn turn(&self, table: &Table, wait: Option<Option<Duration>>) -> io::Result<()> {
        let mut fds: Vec<libc::pollfd> = vec![pollfd(self.inbox.as_raw_fd(), libc::POLLIN)];
        fds.extend(self.polled.borrow().iter().map(|&(_, fd, events)| pollfd(fd, events)));
        let timeout = match wait {
            None => Some(Duration::ZERO),
            Some(limit) => limit,
        };
        let timeout = timeout.map(|limit| libc::timespec {
            tv_sec: limit.as_secs() as i64,
            tv_nsec: limit.subsec_nanos().into(),
        });
        let pointer = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: `fds` and the timeout live across the call.
        let ready =
            unsafe { libc::ppoll(fds.as_mut_ptr(), fds.len() as u64, pointer, std::ptr::null()) };
        if ready < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) };
        }
        if fds[0].revents != 0 {
            eventfd::drain(&self.inbox);
        }
        let mut index = 0;
        let mut finished = Vec::new();
        self.polled.borrow_mut().retain(|&(id, ..)| {
            index += 1;
            if fds[index].revents == 0 {
                return true;
            }
            match table.with(id, attempt) {
                result if result == -libc::EAGAIN || result == -libc::EINTR => true,
                result => {
                    finished.push((id, result));
                    false
                }
            }
        });
        for (id, result) in finished {
            table.complete(id, result);
        }
        Ok(())
    }

    /// Ends all that waits for a descriptor; what threads are at comes to its own end.
    pub(crate) fn cancel_all(&self, table: &Table) {
        for (id, ..) in self.polled.take() {
            table.complete(id, -libc::ECANCELED);
        }
    }
}

fn pollfd(fd: RawFd, events: i16) -> libc::pollfd {
    libc::pollfd { fd, events, revents: 0 }
}

/// Tries an operation whose descriptor is ready.
fn attempt(operation: &mut Operation) -> i32 {
    let result = match operation {
        Operation::Recv { fd, buf, from, .. } => {
            let rest = &mut buf[*from..];
            // SAFETY: `rest` is valid for writes of its length across the call.
            unsafe {
                libc::recv(raw(fd), rest.as_mut_ptr().cast(), rest.len(), libc::MSG_DONTWAIT) as i32
            }
        }
        Operation::Accept(fd) => {
            // SAFETY: no address is asked for.
            unsafe {
                libc::accept4(
                    raw(fd),
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                    libc::SOCK_CLOEXEC,
                )
            }
        }
        Operation::Poll { .. } => 0,
        _ => unreachable!("files go to the pool"),
    };
    or_errno(result.into())
}

/// Memory and descriptors of an operation, for a thread of the pool.
struct Loan<T>(T);
// SAFETY: what a `Loan` points at is owned by the operation table, which keeps it unchanged
// and unread until the job's result came back to the executor's thread.
unsafe impl<T> Send for Loan<T> {}

impl<T> Loan<T> {
    fn into_inner(self) -> T {
        self.0
    }
}

/// The system call of a file operation, to be made on another thread, and the descriptor that it is about.
pub(crate) fn job_of(operation: &mut Operation) -> (About, Job) {
    let about = match operation {
        Operation::Transfer(transfer) => Some(raw(&transfer.fd)),
        Operation::Sync(fd) | Operation::Fallocate { fd, .. } => Some(raw(fd)),
        _ => None,
    };
    (about, call_of(operation))
}

fn call_of(operation: &mut Operation) -> Job {
    match operation {
        Operation::Transfer(transfer) => {
            let (fd, offset, write) = (raw(&transfer.fd), transfer.position(), transfer.write);
            let flags = transfer.flags();
            let parts: Vec<libc::iovec> = match transfer.rest() {
                Rest::One { base, len } => {
                    vec![libc::iovec { iov_base: base.cast(), iov_len: len as usize }]
                }
                Rest::Many(parts) => parts.to_vec(),
            };
            let (loan, pause) = (Loan(parts), transfer.pause());
            Box::new(move || {
                pause.into_iter().for_each(std::thread::sleep);
                let parts = loan.into_inner();
                let (parts, count) = (parts.as_ptr(), parts.len() as i32);
                let offset = offset as i64;
                // SAFETY: the parts are pool memory on loan (see `Loan`).
                or_errno(unsafe {
                    match write {
                        false => libc::preadv2(fd, parts, count, offset, 0),
                        true => libc::pwritev2(fd, parts, count, offset, flags),
                    }
                } as i64)
            })
        }
        Operation::Sync(fd) => {
            let fd = raw(fd);
            // SAFETY: a call without pointers on a descriptor that the table keeps open.
            Box::new(move || or_errno(unsafe { libc::fdatasync(fd) }.into()))
        }
        Operation::Fallocate { fd, mode, offset, len } => {
            let (fd, mode, offset, len) = (raw(fd), *mode, *offset as i64, *len as i64);
            // SAFETY: as above.
            Box::new(move || or_errno(unsafe { libc::fallocate(fd, mode, offset, len) }.into()))
        }
        // Only io_uring has them.
        Operation::Command { .. } => Box::new(|| -libc::EOPNOTSUPP),
        _ => unreachable!("only files go to the pool"),
    }
}

fn or_errno(result: i64) -> i32 {
    match result {
        -1 => -io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO),
        count => count as i32,
    }
}
