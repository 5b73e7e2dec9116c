//! The kernel's ublk driver (`drivers/block/ublk_drv.c`): commands to it, and the memory that it shares.
//!
//! ```text
//!  /dev/ublk-control   call        80 bytes of command: a ring of its own for each, of 128-byte entries
//!  /dev/ublkcN         command     16 bytes of command: on the shard's ring
//!                      descriptor  request of a tag, written by the driver         mapped, read-only
//!                      read_at     data of a write, to memory of ours              copied by the driver
//!                      write_at    data of a read, from memory of ours             copied by the driver
//! ```
//!
//! Invariants
//! * No command passes an address of memory that can go before the command has ended.
//! * The driver writes the mapped memory, so it is read by volatile loads, and copied before it is looked at.
//!
//! Deliberately absent: the meaning of commands, parameters and descriptors, which `export-ublk` knows.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr::NonNull;
use std::time::Duration;

use braid_block::{Completion, Errno, Payload};
use braid_engine::{Pending, Ticket};
use io_uring::squeue::Entry128;
use io_uring::types::{Fd as RingFd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode};

use crate::executor::Handle;
use crate::fd::Fd;
use crate::operation::{Operation, Transfer};
use crate::submitted::Submitted;

/// Path of the device that takes control commands.
pub const CONTROL: &str = "/dev/ublk-control";

/// Bytes of a descriptor: `struct ublksrv_io_desc`.
pub const DESCRIPTOR: usize = 24;
/// Most requests of a queue (`UBLK_MAX_QUEUE_DEPTH`), which gives the distance of mapped queues.
const MOST_DEPTH: usize = 4096;
/// The start of the data of requests (`UBLKSRV_IO_BUF_OFFSET`), and the places of tags and queues after that.
const DATA: u64 = 0x8000_0000;
const TAG_SHIFT: u32 = 25;
const QUEUE_SHIFT: u32 = 41;
/// The result of a command that io_uring did not give to the driver, since what it was linked to came to less.
const NOT_BEGUN: i32 = -libc::ECANCELED;
/// `queue_id` of a command that concerns no queue.
const NO_QUEUE: u16 = u16::MAX;

/// A control command: the fields of `struct ublksrv_ctrl_cmd` that differ between commands.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The command's number, as `_IOWR('u', …)` makes it.
    pub command: u32,
    /// Number of the device; all ones for a new device without a wish.
    pub device: u32,
    /// The argument in the command itself.
    pub data: u64,
}

/// Carries out a control command, with `buffer` as its memory in both directions. Waits for at most `limit`.
///
/// # Errors
/// The error of the driver, of `io_uring_setup`, or of opening the device; `TimedOut` if the command still runs.
pub fn call(call: Call, buffer: &mut [u8], limit: Duration) -> io::Result<()> {
    let control = OpenOptions::new().read(true).write(true).open(CONTROL)?;
    let mut ring: IoUring<Entry128, cqueue::Entry> = IoUring::builder().build(1)?;
    // Memory of its own, which can outlive this call.
    let mut memory: Box<[u8]> = buffer.into();
    let length = u16::try_from(memory.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut bytes = [0; 80];
    bytes[0..4].copy_from_slice(&call.device.to_ne_bytes());
    bytes[4..6].copy_from_slice(&NO_QUEUE.to_ne_bytes());
    bytes[6..8].copy_from_slice(&length.to_ne_bytes());
    let address = if memory.is_empty() { 0 } else { memory.as_mut_ptr() as u64 };
    bytes[8..16].copy_from_slice(&address.to_ne_bytes());
    bytes[16..24].copy_from_slice(&call.data.to_ne_bytes());
    let fd = RingFd(control.as_raw_fd());
    let entry = opcode::UringCmd80::new(fd, call.command).cmd(bytes).build();
    // SAFETY: the command works on `memory` and `control`, which stay until it has ended: they are forgotten if it
    // does not end in time.
    unsafe { ring.submission().push(&entry) }.map_err(io::Error::other)?;
    let timeout = Timespec::from(limit);
    let result = loop {
        let waited = ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&timeout));
        if let Some(entry) = ring.completion().next() {
            break entry.result();
        }
        match waited {
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
            Ok(_) => {}
            Err(error) => {
                std::mem::forget((ring, memory, control));
                return Err(match error.raw_os_error() {
                    Some(libc::ETIME) => io::ErrorKind::TimedOut.into(),
                    _ => error,
                });
            }
        }
    };
    if result < 0 {
        return Err(io::Error::from_raw_os_error(-result));
    }
    buffer.copy_from_slice(&memory);
    Ok(())
}

/// Opens the character device at `path`, which one process at a time can have open.
///
/// # Errors
/// `EBUSY` if another process serves it.
pub fn open(path: &Path) -> io::Result<OwnedFd> {
    // The driver never waits when it copies, and io_uring takes it at its word only with this flag.
    let flags = libc::O_NONBLOCK;
    Ok(OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?.into())
}

/// A queue of a device, on the thread of the shard that serves it.
pub struct Queue {
    fd: Fd,
    handle: Handle,
    number: u16,
    depth: u16,
    descriptors: NonNull<u8>,
    len: usize,
}

impl Queue {
    /// Maps queue `number`, which has `depth` tags, of the device that [`open`] opened.
    ///
    /// # Errors
    /// The error of `mmap`.
    pub fn new(handle: &Handle, fd: OwnedFd, number: u16, depth: u16) -> io::Result<Queue> {
        // SAFETY: a call without pointers.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let len = (usize::from(depth) * DESCRIPTOR).next_multiple_of(page);
        let distance = (MOST_DEPTH * DESCRIPTOR).next_multiple_of(page);
        let (flags, offset) =
            (libc::MAP_SHARED | libc::MAP_POPULATE, distance * usize::from(number));
        // SAFETY: a new mapping at an address that the kernel chooses.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ,
                flags,
                fd.as_raw_fd(),
                offset as libc::off_t,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let descriptors = NonNull::new(memory.cast()).ok_or(io::ErrorKind::InvalidData)?;
        let (fd, handle) = (Fd::prompt(fd), handle.clone());
        Ok(Queue { fd, handle, number, depth, descriptors, len })
    }

    /// Number of tags.
    pub fn depth(&self) -> u16 {
        self.depth
    }

    /// Gives `command` for `tag`, with the `result` of the request that the tag had. Returns the driver's answer: 0
    /// for a new request, or a negative error number.
    pub async fn command(&self, command: u32, tag: u16, result: i32) -> i32 {
        self.handle.submit(self.operation(command, tag, result)).await.0
    }

    fn operation(&self, command: u32, tag: u16, result: i32) -> Operation {
        let mut data = [0; 16];
        data[0..2].copy_from_slice(&self.number.to_ne_bytes());
        data[2..4].copy_from_slice(&tag.to_ne_bytes());
        data[4..8].copy_from_slice(&result.to_ne_bytes());
        // The address in the other 8 bytes is 0, as `UBLK_F_USER_COPY` demands.
        Operation::Command { fd: self.fd.clone(), command, data }
    }

    /// Returns the descriptor of the request that `tag` has.
    ///
    /// # Panics
    /// If there is no such tag.
    pub fn descriptor(&self, tag: u16) -> [u8; DESCRIPTOR] {
        assert!(tag < self.depth, "a tag of this queue");
        let mut bytes = [0; DESCRIPTOR];
        for (index, word) in bytes.chunks_exact_mut(4).enumerate() {
            let at = usize::from(tag) * DESCRIPTOR + index * 4;
            // SAFETY: `at` and the 3 bytes after it are within the mapping, which is aligned to pages, and at a multiple
            // of 4. The driver may write meanwhile: the load is volatile, and any bits are a u32.
            let value = unsafe { self.descriptors.add(at).cast::<u32>().read_volatile() };
            word.copy_from_slice(&value.to_ne_bytes());
        }
        bytes
    }

    /// Fills `payload` with the data of the write that `tag` has.
    pub async fn take_data(&self, tag: u16, payload: Payload) -> Completion {
        self.handle.read_at(&self.fd, self.place(tag), payload).await
    }

    /// Copies `payload` to the pages of the read that `tag` has, and gives `command` with its length as result, as
    /// [`Queue::command`] does. Both go to the driver together. `payload` is given back before the answer is awaited.
    ///
    /// # Errors
    /// The error of the copy: the command was not given.
    ///
    /// # Panics
    /// If `payload` has 2 GiB or more.
    pub async fn give_data(&self, command: u32, tag: u16, payload: Payload) -> Result<i32, Errno> {
        let len = i32::try_from(payload.len()).expect("less than 2 GiB");
        let copy = Transfer::new(self.fd.clone(), true, false, self.place(tag), payload);
        let then = self.operation(command, tag, len);
        let (copied, answered) = linked(&self.handle, Operation::Transfer(copy), then)?;
        copied.await.result?;
        match answered.await.0 {
            // The copy took more than one step.
            NOT_BEGUN => Ok(self.command(command, tag, len).await),
            answer => Ok(answer),
        }
    }

    /// Offset of a tag's data in the character device.
    fn place(&self, tag: u16) -> u64 {
        place(self.number, tag)
    }
}

/// Submits `first`, and `then` for when all of it is done: else the result of `then` is [`NOT_BEGUN`].
///
/// # Errors
/// `EOPNOTSUPP` without io_uring.
fn linked(
    handle: &Handle,
    first: Operation,
    then: Operation,
) -> Result<(Pending, Submitted), Errno> {
    let ring = handle.ring().ok_or(Errno::OPNOTSUPP)?;
    let table = handle.table();
    let (first, then) = (table.insert(first), table.insert(then));
    ring.submit_linked(&table, first, then);
    let first = Pending::Ticket(Ticket::new(handle.table(), first));
    Ok((first, Submitted { table, id: Some(then) }))
}

/// A sum: the bits of tags reach into that of the beginning.
fn place(queue: u16, tag: u16) -> u64 {
    DATA + (u64::from(queue) << QUEUE_SHIFT) + (u64::from(tag) << TAG_SHIFT)
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and no reference to it is given out.
        unsafe { libc::munmap(self.descriptors.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use braid_mem::Pool;

    use super::*;
    use crate::executor::{Config, Executor, Mode};

    fn open_to_write(path: &str) -> Fd {
        Fd::new(OpenOptions::new().write(true).open(path).expect("it is there").into())
    }

    /// `/dev/null` takes every command.
    #[test]
    fn a_command_is_given_after_a_whole_copy_and_after_no_other() {
        let Ok(executor) = Executor::new(Config { mode: Mode::Uring, ..Config::default() }) else {
            println!("skipped: no io_uring");
            return;
        };
        let handle = executor.handle();
        executor.block_on(async move {
            let pool = Pool::new(1 << 20).expect("memory");
            for (path, copied, answered) in [
                ("/dev/null", Ok(()), 0),
                ("/dev/full", Err(Errno::NOSPC), NOT_BEGUN),
                ("/dev/null", Ok(()), 0),
            ] {
                let payload = pool.get(4096).expect("memory").into();
                let copy = Transfer::new(open_to_write(path), true, false, 0, payload);
                let fd = open_to_write("/dev/null");
                let then = Operation::Command { fd, command: 0, data: [0; 16] };
                let (copy, command) =
                    linked(&handle, Operation::Transfer(copy), then).expect("io_uring");
                assert_eq!((copy.await.result, command.await.0), (copied, answered), "{path}");
            }
        });
    }

    #[test]
    fn tags_of_all_queues_have_places_of_their_own() {
        let mut last = DATA - (1 << TAG_SHIFT);
        for (queue, tag) in (0..2).flat_map(|queue| (0..=u16::MAX).map(move |tag| (queue, tag))) {
            assert_eq!(place(queue, tag), last + (1 << TAG_SHIFT));
            last = place(queue, tag);
        }
    }
}
