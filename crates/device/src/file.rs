//! Regular files and block devices.
//!
//! Opened for direct I/O, so that what braid acknowledges is not a copy in the page cache of the
//! machine that may be waiting for braid itself; a file system that refuses O_DIRECT is used
//! through the page cache, and says so. A block device is opened exclusively (`O_EXCL`: not
//! mounted, not held); a regular file is locked (`flock`), which keeps two volumes apart.
//!
//! | request      | file                                  | block device            |
//! |--------------|---------------------------------------|-------------------------|
//! | flush        | fdatasync; after one failed all do    | fdatasync               |
//! | read         | io_uring; tmpfs: pread in the call    | io_uring                |
//! | write        | io_uring; tmpfs: pwrite in the call   | io_uring                |
//! | FUA of writes| RWF_DSYNC; FUSE: fdatasync behind them| RWF_DSYNC               |
//! | FUA otherwise| fdatasync behind the request          | the same                |
//! | discard      | fallocate, punch hole                 | BLKDISCARD              |
//! | write zeroes | fallocate, punch hole or zero range;  | the same, or BLKZEROOUT |
//! |              | else zeroes are written               |                         |
//!
//! On a FUSE file system `RWF_DSYNC` makes nothing durable: the kernel sends no FSYNC for a file that its
//! server opened with `FOPEN_DIRECT_IO`, nor, for any file, after an asynchronous direct write.
//!
//! tmpfs takes no request that must not wait (`RWF_NOWAIT`), so io_uring hands each one to another thread, which costs more
//! than the request. It copies from or to memory, as a RAM disk does, and nothing there is ever durable.

mod durable;
mod extents;
mod opening;

use std::cell::Cell;
use std::fs::{File as StdFile, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use braid_block::{Completion, Errno, Flags, Io, Limits, Op, Payload, Span};
use braid_engine::{Device, Extents, Pending};
use braid_mem::Pool;
use braid_uring::{Failures, Fd, Handle};
use rustix::fs::{FallocateFlags, OFlags};

use durable::Durable;
pub use opening::Access;
use opening::{limits_of, open_direct};

use crate::canary::Canary;

/// `f_type` of FUSE file systems, from `linux/magic.h`.
const FUSE_SUPER_MAGIC: rustix::fs::FsWord = 0x6573_5546;
/// `f_type` of tmpfs.
const TMPFS_MAGIC: rustix::fs::FsWord = 0x0102_1994;

/// Bytes that [`File::read_at`] reads at once.
const PIECE: usize = 64 << 10;

/// An open file or block device.
#[derive(Clone, Debug)]
pub struct File {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    file: StdFile,
    path: PathBuf,
    /// The part of it that is used, in bytes.
    window: Span,
    /// Length of that part before it was cut to whole blocks, in bytes.
    exact: u64,
    limits: Limits,
    block_device: bool,
    direct: bool,
    /// True on a FUSE file system, virtiofs included.
    is_on_fuse: bool,
    is_on_tmpfs: bool,
    failures: Arc<Failures>,
}

impl File {
    /// Opens `path` and uses `length` bytes of it from `offset` on (all that follow, if `None`).
    ///
    /// # Errors
    /// What `open` answers: `EBUSY` for a block device that is in use; `EWOULDBLOCK` for a file
    /// that is locked. What is neither a regular file nor a block device. Those of [`File::part`]; a file that is
    /// shorter than a block can be opened whole to be read, and has a size of 0.
    pub fn open(path: &Path, access: Access, offset: u64, length: Option<u64>) -> io::Result<File> {
        let kind = std::fs::metadata(path)?.file_type();
        let block_device = kind.is_block_device();
        if !block_device && !kind.is_file() {
            return Err(io::Error::other("it is neither a regular file nor a block device"));
        }
        let (file, direct) = open_direct(path, access, block_device)?;
        let is_lockable = !block_device && !Canary::NotLocked.is_planted();
        if access == Access::Exclusive && is_lockable {
            rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
        }
        let (limits, exact) = limits_of(&file, access, block_device, direct)?;
        let failures = if direct { Failures::default() } else { Failures::of_cached() };
        let file_system = match block_device {
            true => None,
            false => Some(rustix::fs::fstatfs(&file)?.f_type),
        };
        let whole = File {
            shared: Arc::new(Shared {
                file,
                path: path.to_owned(),
                window: Span::new(0, limits.size),
                exact,
                limits,
                block_device,
                direct,
                is_on_fuse: file_system == Some(FUSE_SUPER_MAGIC),
                is_on_tmpfs: file_system == Some(TMPFS_MAGIC),
                failures: Arc::new(failures),
            }),
        };
        match (offset, length) {
            (0, None) if limits.size > 0 || limits.read_only => Ok(whole),
            _ => whole.part(offset, length),
        }
    }

    /// Returns `length` bytes of the file from `offset` on (all that follow, if `None`) as a file, with the same lock.
    ///
    /// # Errors
    /// `EINVAL` if the part is empty, unaligned or past the end; `EMFILE`.
    pub fn part(&self, offset: u64, length: Option<u64>) -> io::Result<File> {
        let Shared { file, path, window, exact, .. } = &*self.shared;
        let mut limits = self.shared.limits;
        let available = window.len.checked_sub(offset).ok_or(io::ErrorKind::InvalidInput)?;
        let wanted = length.unwrap_or(available);
        let block = u64::from(limits.logical_block);
        let start = if Canary::PartAtStart.is_planted() { 0 } else { window.offset + offset };
        let window = Span::new(start, wanted / block * block);
        let is_inside = wanted <= available || Canary::PartBeyondEnd.is_planted();
        if window.is_empty() || !is_inside || !offset.is_multiple_of(block) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        limits.size = window.len;
        let shared = Shared {
            file: file.try_clone()?,
            path: path.clone(),
            window,
            exact: length.unwrap_or(exact - offset),
            limits,
            failures: Arc::clone(&self.shared.failures),
            ..*self.shared
        };
        Ok(File { shared: Arc::new(shared) })
    }

    /// Size in bytes; [`File::limits`] has that of its whole blocks.
    pub fn size(&self) -> u64 {
        self.shared.exact
    }

    /// Reads `bytes` from `offset` on, in the call.
    ///
    /// # Errors
    /// `UnexpectedEof` behind the last whole block.
    pub fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let window = self.shared.window;
        let end = offset.checked_add(bytes.len() as u64).filter(|end| *end <= window.len);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let block = u64::from(self.shared.limits.logical_block);
        let mut buf = Pool::new(PIECE)?.get(PIECE).ok_or(io::ErrorKind::OutOfMemory)?;
        let (mut at, mut rest) = (offset, bytes);
        while at < end {
            let start = at / block * block;
            let len = (end.next_multiple_of(block) - start).min(PIECE as u64);
            let piece = &mut buf[..len as usize];
            self.shared.file.read_exact_at(piece, window.offset + start)?;
            let found = &piece[(at - start) as usize..];
            let (now, later) = rest.split_at_mut(found.len().min(rest.len()));
            now.copy_from_slice(&found[..now.len()]);
            (at, rest) = (start + len, later);
        }
        Ok(())
    }

    /// A device on this file for the shard of `handle`; `pool` lends zeroes to write where the
    /// file system cannot make them.
    ///
    /// # Errors
    /// `EMFILE` when the process has too many open files.
    pub fn device(&self, handle: &Handle, pool: &Pool) -> io::Result<FileDevice> {
        let fd = self.own_descriptor()?;
        Ok(FileDevice {
            inner: Rc::new(Inner {
                handle: handle.clone(),
                pool: pool.clone(),
                fd: Fd::counted(fd, Arc::clone(&self.shared.failures)),
                shared: Arc::clone(&self.shared),
                no_punch_hole: Cell::new(false),
                no_zero_range: Cell::new(false),
                no_discard: Cell::new(false),
            }),
        })
    }

    /// A descriptor with a description of its own (open(2)) where one can be had: the kernel tells
    /// each once that data was lost, and shards must not take that word from each other.
    fn own_descriptor(&self) -> io::Result<OwnedFd> {
        let shared = &self.shared;
        let flags = if shared.direct { OFlags::DIRECT } else { OFlags::empty() };
        let again = OpenOptions::new()
            .read(true)
            .write(!shared.limits.read_only)
            .custom_flags(flags.bits() as i32)
            .open(format!("/proc/self/fd/{}", shared.file.as_raw_fd()));
        match again {
            Ok(file) => Ok(file.into()),
            // Without /proc, or rights that have changed: the same description for all.
            Err(_) => shared.file.as_fd().try_clone_to_owned(),
        }
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Its file system's device number and inode, or for a block device those of its node; and
    /// how many names it has: none if it was deleted since.
    ///
    /// # Errors
    /// What `fstat` answers.
    pub fn identity(&self) -> io::Result<((u64, u64), u64)> {
        let metadata = self.shared.file.metadata()?;
        Ok(((metadata.dev(), metadata.ino()), metadata.nlink()))
    }

    /// Why its block device is not there any more; none as long as it is, and of a file.
    pub fn vanished(&self) -> Option<&'static str> {
        if !self.shared.block_device {
            return None;
        }
        // What cannot be found out is not said.
        let device = self.shared.file.metadata().ok()?.rdev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let of_kernel = Path::new("/sys/dev/block");
        if of_kernel.is_dir() && !of_kernel.join(format!("{major}:{minor}")).exists() {
            return Some("its device went away");
        }
        match braid_sys::block::size(&self.shared.file) {
            Ok(0) => Some("its device went away: it has no bytes any more"),
            Ok(_) | Err(_) => None,
        }
    }

    /// Returns true for a block device, false for a file of a file system.
    pub fn is_block_device(&self) -> bool {
        self.shared.block_device
    }

    /// Returns true if the page cache is bypassed.
    pub fn is_direct(&self) -> bool {
        self.shared.direct
    }

    /// Capacity and block sizes.
    pub fn limits(&self) -> Limits {
        self.shared.limits
    }

    /// Reads, writes and flushes that failed since it was opened.
    pub fn failures(&self) -> &Arc<Failures> {
        &self.shared.failures
    }
}

/// A file or block device as one shard sees it.
pub struct FileDevice {
    inner: Rc<Inner>,
}

struct Inner {
    handle: Handle,
    pool: Pool,
    fd: Fd,
    shared: Arc<Shared>,
    /// The file system, or the device, answered once that it cannot.
    no_punch_hole: Cell<bool>,
    no_zero_range: Cell<bool>,
    no_discard: Cell<bool>,
}

impl Device for FileDevice {
    fn limits(&self) -> Limits {
        self.inner.shared.limits
    }

    fn start(&self, io: Io) -> Pending {
        let inner = &self.inner;
        let offset = inner.shared.window.offset + io.span.offset;
        let durable = Durable::of(io.op, io.flags, inner.shared.is_on_fuse);
        match io.op {
            Op::Read | Op::Write if inner.shared.is_on_tmpfs => {
                let mut payload = io.payload;
                let result = inner.carry_out(io.op, offset, &mut payload);
                Pending::ready(Completion { result, payload })
            }
            Op::Read => inner.handle.read_at(&inner.fd, offset, io.payload),
            Op::Write if durable == Durable::Synced => {
                let inner = Rc::clone(inner);
                Pending::task(async move {
                    let write = inner.handle.write_at(&inner.fd, offset, io.payload, false);
                    let mut done = write.await;
                    if done.result.is_ok() {
                        done.result = inner.handle.sync(&inner.fd).await.result;
                    }
                    done
                })
            }
            Op::Write => {
                let durable = durable == Durable::Written;
                inner.handle.write_at(&inner.fd, offset, io.payload, durable)
            }
            Op::Flush => inner.handle.sync(&inner.fd),
            Op::Discard | Op::WriteZeroes => {
                let inner = Rc::clone(inner);
                let span = Span::new(offset, io.span.len);
                Pending::task(async move {
                    let result = match io.op {
                        Op::Discard => inner.discard(span).await,
                        _ => inner.write_zeroes(span, io.flags).await,
                    };
                    let result = match result {
                        Ok(()) if durable == Durable::Synced => {
                            inner.handle.sync(&inner.fd).await.result
                        }
                        result => result,
                    };
                    Completion { result, payload: Payload::None }
                })
            }
        }
    }

    /// Asks the file system where its holes are. The answer comes from metadata that is in
    /// memory after the first question, so it is asked from the shard's own thread, which others
    /// wait for: some hundred system calls at most.
    fn extents(&self, span: Span) -> Extents {
        let shared = &self.inner.shared;
        if shared.block_device {
            return Extents::data(span.len);
        }
        let start = shared.window.offset + span.offset;
        Extents::Known(extents::of(&shared.file, Span::new(start, span.len)))
    }
}

impl Inner {
    /// Reads or writes in the call.
    fn carry_out(&self, op: Op, mut offset: u64, payload: &mut Payload) -> Result<(), Errno> {
        let file = &self.shared.file;
        for buf in payload.bufs_mut() {
            let done = match op {
                Op::Read => file.read_exact_at(buf, offset),
                _ => file.write_all_at(buf, offset),
            };
            done.map_err(|error| {
                let errno = error.raw_os_error().map_or(Errno::IO, Errno::from_raw);
                self.shared.failures.record(errno);
                errno
            })?;
            offset += buf.len() as u64;
        }
        Ok(())
    }

    /// A hint: a device that cannot is left as it is.
    async fn discard(&self, span: Span) -> Result<(), Errno> {
        if self.no_discard.get() {
            return Ok(());
        }
        let result = if self.shared.block_device {
            let shared = Arc::clone(&self.shared);
            let discard = move || braid_sys::block::discard(&shared.file, span.offset, span.len);
            self.handle.blocking(discard).await
        } else {
            self.fallocate(FallocateFlags::PUNCH_HOLE, span).await
        };
        match result {
            Err(Errno::OPNOTSUPP) => {
                self.no_discard.set(true);
                Ok(())
            }
            result => result,
        }
    }

    async fn write_zeroes(&self, span: Span, flags: Flags) -> Result<(), Errno> {
        let keep = flags.contains(Flags::NO_UNMAP);
        let (mode, cannot) = match keep {
            true => (FallocateFlags::ZERO_RANGE, &self.no_zero_range),
            false => (FallocateFlags::PUNCH_HOLE, &self.no_punch_hole),
        };
        if !cannot.get() {
            match self.fallocate(mode, span).await {
                Err(Errno::OPNOTSUPP) => cannot.set(true),
                result => return result,
            }
        }
        if self.shared.block_device {
            let shared = Arc::clone(&self.shared);
            let zero = move || braid_sys::block::zero_out(&shared.file, span.offset, span.len);
            return self.handle.blocking(zero).await;
        }
        self.write_zero_buffers(span).await
    }

    async fn write_zero_buffers(&self, span: Span) -> Result<(), Errno> {
        const STEP: u64 = 256 << 10;
        let step = STEP.min(span.len).min(self.pool.largest() as u64);
        let mut buf = self.pool.get_wait(step as usize).await;
        buf.fill(0);
        let mut payload = Payload::One(buf);
        let mut offset = span.offset;
        while offset < span.end() {
            let len = payload.len().min(span.end() - offset);
            let part = payload.take_front(len);
            let done = self.handle.write_at(&self.fd, offset, part, false).await;
            done.result?;
            payload = done.payload;
            offset += len;
        }
        Ok(())
    }

    async fn fallocate(&self, mode: FallocateFlags, span: Span) -> Result<(), Errno> {
        let mode = mode | FallocateFlags::KEEP_SIZE;
        self.handle.fallocate(&self.fd, mode.bits() as i32, span.offset, span.len).await
    }
}

#[cfg(test)]
mod tests {
    use braid_uring::{Config, Executor};

    use super::*;

    /// The length is no multiple of a block, and a piece of [`File::read_at`] ends within the range.
    #[test]
    fn any_range_is_read_in_the_call() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.img");
        let content: Vec<u8> =
            (0..(PIECE as u64 * 2 + 4096 + 100)).map(|at| (at / 7) as u8).collect();
        std::fs::write(&path, &content).expect("a file");
        let file = File::open(&path, Access::Exclusive, 0, None).expect("a file");
        assert_eq!(file.size(), content.len() as u64);
        let part = file.part(4096, Some(PIECE as u64 * 2)).expect("a part");
        assert_eq!((part.size(), part.limits().size), (PIECE as u64 * 2, PIECE as u64 * 2));
        for (offset, len) in [(0, 1), (511, 2), (0, PIECE), (PIECE - 1, PIECE), (3, PIECE * 2 - 3)]
        {
            for (file, start) in [(&file, 0), (&part, 4096)] {
                let mut bytes = vec![0; len];
                file.read_at(offset as u64, &mut bytes).expect("bytes of the file");
                assert!(bytes == content[start + offset..][..len], "{offset} + {len} of {start}");
            }
        }
        let behind = part.read_at(PIECE as u64 * 2 - 1, &mut [0; 2]);
        assert_eq!(behind.expect_err("it ends before").kind(), io::ErrorKind::UnexpectedEof);
        drop(file);
        let locked = File::open(&path, Access::Exclusive, 0, None).expect_err("the part is open");
        assert_eq!(locked.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_part_lies_in_its_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.img");
        std::fs::write(&path, [0; 16 << 10]).expect("a file");
        let file = File::open(&path, Access::Exclusive, 4096, Some(8192)).expect("a part");
        assert_eq!(file.part(4096, None).expect("its second half").size(), 4096);
        for (offset, length) in
            [(4096, Some(8192)), (0, Some(8704)), (8192, None), (8704, Some(512)), (100, None)]
        {
            let refused = file.part(offset, length).expect_err("no part of it").kind();
            assert_eq!(refused, io::ErrorKind::InvalidInput, "{length:?} from {offset}");
        }
    }

    #[test]
    fn a_file_without_a_block_can_be_looked_at_only() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.img");
        std::fs::write(&path, [0; 100]).expect("a file");
        let open = |access| File::open(&path, access, 0, None);
        let file = open(Access::ReadOnly).expect("a file");
        assert_eq!((file.size(), file.limits().size), (100, 0));
        let refused = open(Access::Exclusive).expect_err("it has no block");
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn requests_on_tmpfs_are_carried_out_in_the_call() {
        let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
            return println!("skipped: /dev/shm cannot be written");
        };
        if rustix::fs::statfs(folder.path()).expect("a file system").f_type != TMPFS_MAGIC {
            return println!("skipped: /dev/shm is no tmpfs");
        }
        let path = folder.path().join("a.img");
        std::fs::write(&path, [0; 8 << 10]).expect("a file");
        let file = File::open(&path, Access::Exclusive, 4096, None).expect("a file");
        let executor = Executor::new(Config::default()).expect("an executor");
        let pool = Pool::new(64 << 10).expect("a pool");
        let device = file.device(&executor.handle(), &pool).expect("a device");
        let mut buf = pool.get(4096).expect("memory");
        buf.fill(7);
        let written = device.start(Io::write(0, buf, Flags::FUA));
        let now = std::fs::read(&path).expect("its bytes");
        assert!(now[..4096] == [0; 4096] && now[4096..] == [7; 4096], "before it is waited for");
        let read = device.start(Io::read(0, pool.get(4096).expect("memory")));
        std::fs::write(&path, [9; 8 << 10]).expect("other bytes");
        let bytes = executor.block_on(async move {
            written.await.result.expect("it is written");
            read.await
        });
        bytes.result.expect("it is read");
        assert!(bytes.payload.bufs()[0][..] == [7; 4096], "before it is waited for");
        // A file that became shorter.
        std::fs::write(&path, []).expect("no bytes");
        let read = device.start(Io::read(0, pool.get(4096).expect("memory")));
        let ended = executor.block_on(read);
        assert_eq!(ended.result, Err(Errno::IO));
    }
}
