//! The operations of a driver, and the data that they need.

use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use braid_block::{Completion, Errno, Payload};
use braid_mem::Buf;

use crate::canary::Canary;
use crate::fd::Fd;

/// The event for which a descriptor is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Data, a connection, or the other side's end.
    Readable,
    /// Room.
    Writable,
}

impl Interest {
    pub(crate) fn events(self) -> i16 {
        match self {
            Interest::Readable => libc::POLLIN,
            Interest::Writable => libc::POLLOUT,
        }
    }
}

/// One operation with all the memory and descriptors that the kernel uses for it.
pub(crate) enum Operation {
    Transfer(Transfer),
    /// `fdatasync`.
    Sync(Fd),
    Fallocate {
        fd: Fd,
        mode: i32,
        offset: u64,
        len: u64,
    },
    Recv {
        fd: Fd,
        buf: Buf,
        /// Bytes before this one are kept.
        from: usize,
        /// The socket was empty when last asked: wait before trying.
        wait_first: bool,
        /// Come back when the buffer is full, if the driver can.
        whole: bool,
    },
    Accept(Fd),
    Poll {
        fd: Fd,
        interest: Interest,
    },
    /// A command to the driver of a character device (`uring_cmd`), without memory of ours.
    Command {
        fd: Fd,
        command: u32,
        data: [u8; 16],
    },
    /// A closure on a thread of the pool, whose result comes through `table::complete`.
    Blocking,
}

/// Number of times that the kernel may lack memory for a transfer before that is an error of the file, and the
/// wait before each further attempt: half a minute in all, as long as drivers wait for a disk.
const MOST_LACKS: u32 = 300;
const PAUSE: Duration = Duration::from_millis(100);

/// A read or write at an offset, continued until all of it is done.
pub(crate) struct Transfer {
    pub(crate) fd: Fd,
    pub(crate) write: bool,
    /// Durable before it completes (`RWF_DSYNC`).
    pub(crate) durable: bool,
    pub(crate) offset: u64,
    pub(crate) payload: Payload,
    /// The kernel was told to answer rather than to wait (`RWF_NOWAIT`).
    pub(crate) nowait: bool,
    /// It answered that it would have to wait.
    pub(crate) must_wait: bool,
    /// Number of answers that there is no memory.
    lacks: u32,
    /// The rest, if there is more than one buffer.
    vector: Vec<libc::iovec>,
    done: u64,
    total: u64,
}

impl Transfer {
    pub(crate) fn new(
        fd: Fd,
        write: bool,
        durable: bool,
        offset: u64,
        payload: Payload,
    ) -> Transfer {
        let mut transfer = Transfer {
            fd,
            write,
            durable,
            offset,
            total: payload.len(),
            payload,
            nowait: false,
            must_wait: false,
            lacks: 0,
            vector: Vec::new(),
            done: 0,
        };
        if transfer.payload.bufs().len() > 1 {
            let bufs = transfer.payload.bufs_mut().iter_mut();
            transfer.vector = bufs.map(|buf| iovec_of(buf, write)).collect();
        }
        transfer
    }

    /// Returns the offset of the rest in the file.
    pub(crate) fn position(&self) -> u64 {
        self.offset + self.done
    }

    /// Returns the flags of the transfer for the kernel (`RWF_*`).
    #[inline]
    pub(crate) fn flags(&self) -> i32 {
        let is_durable = self.durable && !Canary::DurableLost.is_planted();
        let durable = if is_durable { libc::RWF_DSYNC } else { 0 };
        durable | if self.nowait { libc::RWF_NOWAIT } else { 0 }
    }

    /// Returns the wait before an attempt, on a thread that may wait.
    pub(crate) fn pause(&self) -> Option<Duration> {
        (self.lacks > 0).then_some(PAUSE)
    }

    /// The one stretch of memory that is left, or the vector of several (at most `IOV_MAX`).
    pub(crate) fn rest(&mut self) -> Rest<'_> {
        if !self.vector.is_empty() {
            return Rest::Many(&self.vector[..self.vector.len().min(libc::UIO_MAXIOV as usize)]);
        }
        match self.payload.bufs_mut() {
            [buf] => {
                let rest = buf.len() - self.done as usize;
                let base = address(buf, self.write).wrapping_add(self.done as usize);
                Rest::One { base, len: rest as u32 }
            }
            _ => Rest::Many(&[]),
        }
    }

    /// Takes in what the kernel answered; `None` when the rest must be submitted again.
    pub(crate) fn advance(&mut self, result: i32) -> Option<Result<(), Errno>> {
        match result {
            // What would have to wait may not be known to the file system before it tries, or may
            // be all that it can do.
            result if self.nowait && [-libc::EAGAIN, -libc::EOPNOTSUPP].contains(&result) => {
                (self.nowait, self.must_wait) = (false, true);
                None
            }
            // The kernel is short of memory: that says nothing of the medium.
            result if result == -libc::ENOMEM && self.lacks < MOST_LACKS => {
                self.lacks += 1;
                (self.nowait, self.must_wait) = (false, true);
                None
            }
            // A signal, or a file system that would have blocked: once more.
            result if result == -libc::EINTR || result == -libc::EAGAIN => None,
            result if result < 0 => Some(Err(Errno::from_raw(-result))),
            // The end of a file that is shorter than its device claims.
            0 if !Canary::EndIsSuccess.is_planted() => Some(Err(Errno::IO)),
            0 => Some(Ok(())),
            count => {
                self.done += count as u64;
                if self.done >= self.total || Canary::ShortIsWhole.is_planted() {
                    return Some(Ok(()));
                }
                self.skip(count as usize);
                None
            }
        }
    }

    fn skip(&mut self, mut count: usize) {
        let whole = self
            .vector
            .iter()
            .take_while(|part| {
                let fits = part.iov_len <= count;
                count -= if fits { part.iov_len } else { 0 };
                fits
            })
            .count();
        self.vector.drain(..whole);
        if let Some(part) = self.vector.first_mut() {
            part.iov_base = part.iov_base.wrapping_byte_add(count);
            part.iov_len -= count;
        }
    }

    pub(crate) fn complete(self, result: Result<(), Errno>) -> Completion {
        Completion { result, payload: self.payload }
    }
}

/// Memory that a [`Transfer`] has still to move.
pub(crate) enum Rest<'a> {
    One { base: *mut u8, len: u32 },
    Many(&'a [libc::iovec]),
}

fn iovec_of(buf: &mut Buf, write: bool) -> libc::iovec {
    libc::iovec { iov_base: address(buf, write).cast(), iov_len: buf.len() }
}

/// Returns the address of the bytes for the kernel. Bytes that it only reads may be lent to several operations.
fn address(buf: &mut Buf, write: bool) -> *mut u8 {
    match write {
        true => buf.as_ptr().cast_mut(),
        false => buf.as_mut_ptr(),
    }
}

pub(crate) fn raw(fd: &Fd) -> RawFd {
    fd.as_raw_fd()
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_mem::Pool;

    fn transfer(lens: &[usize]) -> Transfer {
        let pool = Pool::new(1 << 20).unwrap();
        let mut payload = Payload::None;
        for len in lens {
            // Different blocks, so that they stay apart.
            payload.append(pool.get(*len).unwrap().into());
        }
        let fd = Fd::new(std::fs::File::open("/dev/null").unwrap().into());
        Transfer::new(fd, false, false, 1000, payload)
    }

    #[test]
    fn short_results_continue_where_they_stopped() {
        let mut one = transfer(&[4096, 512, 4096]);
        assert_eq!(one.advance(4096 + 100), None);
        let Rest::Many(rest) = one.rest() else { panic!() };
        assert_eq!(rest.iter().map(|part| part.iov_len).collect::<Vec<_>>(), [412, 4096]);
        assert_eq!(one.position(), 1000 + 4196);
        assert_eq!(one.advance(412), None);
        let Rest::Many(rest) = one.rest() else { panic!() };
        assert_eq!(rest.len(), 1);
        assert_eq!(one.advance(4096), Some(Ok(())));
    }

    #[test]
    fn the_kernel_is_told_that_a_write_is_to_be_durable() {
        let mut write = transfer(&[512]);
        assert_eq!(write.flags(), 0);
        (write.write, write.durable) = (true, true);
        assert_eq!(write.flags(), libc::RWF_DSYNC);
        write.nowait = true;
        assert_eq!(write.flags(), libc::RWF_DSYNC | libc::RWF_NOWAIT);
    }

    #[test]
    fn what_would_have_to_wait_waits_elsewhere() {
        for answer in [libc::EAGAIN, libc::EOPNOTSUPP] {
            let mut one = transfer(&[4096]);
            one.nowait = true;
            assert_eq!(one.advance(-answer), None);
            assert!(one.must_wait && !one.nowait);
            assert_eq!(one.advance(-libc::EOPNOTSUPP), Some(Err(Errno::OPNOTSUPP)), "a real one");
        }
    }

    #[test]
    fn a_kernel_without_memory_is_asked_again_and_not_for_ever() {
        let mut one = transfer(&[4096]);
        assert_eq!(one.pause(), None);
        for _ in 0..MOST_LACKS {
            assert_eq!(one.advance(-libc::ENOMEM), None);
            assert!(one.pause().is_some() && one.must_wait);
        }
        assert_eq!(one.advance(-libc::ENOMEM), Some(Err(Errno::from_raw(libc::ENOMEM))));
        let mut other = transfer(&[4096]);
        assert_eq!(other.advance(-libc::ENOMEM), None);
        assert_eq!(other.advance(4096), Some(Ok(())));
    }

    #[test]
    fn the_end_of_the_file_is_an_error_and_a_signal_is_not() {
        let mut one = transfer(&[4096]);
        assert_eq!(one.advance(-libc::EINTR), None);
        assert_eq!(one.advance(1000), None);
        let Rest::One { len, .. } = one.rest() else { panic!() };
        assert_eq!(len, 3096);
        assert_eq!(one.advance(0), Some(Err(Errno::IO)));
        assert_eq!(transfer(&[512]).advance(-libc::ENOSPC), Some(Err(Errno::NOSPC)));
    }
}
