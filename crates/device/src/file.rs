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
//! | FUA of writes| RWF_DSYNC; FUSE: fdatasync behind them| RWF_DSYNC               |
//! | FUA otherwise| fdatasync behind the request          | the same                |
//! | discard      | fallocate, punch hole                 | BLKDISCARD              |
//! | write zeroes | fallocate, punch hole or zero range;  | the same, or BLKZEROOUT |
//! |              | else zeroes are written               |                         |
//!
//! On a FUSE file system `RWF_DSYNC` makes nothing durable: the kernel sends no FSYNC for a file that its
//! server opened with `FOPEN_DIRECT_IO`, nor, for any file, after an asynchronous direct write.

use std::cell::Cell;
use std::fs::{File as StdFile, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use braid_block::{Completion, Errno, Extent, Flags, Io, Limits, Op, Payload, Span};
use braid_engine::{Device, Pending};
use braid_mem::Pool;
use braid_uring::{Failures, Fd, Handle};
use rustix::fs::{FallocateFlags, OFlags, SeekFrom};

/// `f_type` of FUSE file systems, from `linux/magic.h`.
const FUSE_SUPER_MAGIC: rustix::fs::FsWord = 0x6573_5546;

/// The mode in which a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// For reading; other processes may have it open.
    ReadOnly,
    /// For reading and writing, by no other process meanwhile.
    Exclusive,
}

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
    limits: Limits,
    block_device: bool,
    direct: bool,
    /// True on a FUSE file system, virtiofs included.
    is_on_fuse: bool,
    failures: Arc<Failures>,
}

impl File {
    /// Opens `path` and uses `length` bytes of it from `offset` on (all that follow, if `None`).
    ///
    /// # Errors
    /// What `open` answers: `EBUSY` for a block device that is in use; `EWOULDBLOCK` for a file
    /// that is locked; `EINVAL` when the window is empty, unaligned or past the end.
    pub fn open(path: &Path, access: Access, offset: u64, length: Option<u64>) -> io::Result<File> {
        let block_device = std::fs::metadata(path)?.file_type().is_block_device();
        let (file, direct) = open_direct(path, access, block_device)?;
        if access == Access::Exclusive && !block_device {
            rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)?;
        }
        let limits = limits_of(&file, access, block_device, direct)?;
        let available = limits.size.checked_sub(offset).ok_or(io::ErrorKind::InvalidInput)?;
        let wanted = length.unwrap_or(available);
        let block = u64::from(limits.logical_block);
        let window = Span::new(offset, wanted / block * block);
        if window.is_empty() || wanted > available || !offset.is_multiple_of(block) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let limits = Limits { size: window.len, ..limits };
        let path = path.to_owned();
        let failures = if direct { Failures::default() } else { Failures::of_cached() };
        let failures = Arc::new(failures);
        let is_on_fuse = !block_device && rustix::fs::fstatfs(&file)?.f_type == FUSE_SUPER_MAGIC;
        let shared =
            Shared { file, path, window, limits, block_device, direct, is_on_fuse, failures };
        Ok(File { shared: Arc::new(shared) })
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

/// Opens with O_DIRECT, or without where the file system refuses it (`EINVAL`).
fn open_direct(path: &Path, access: Access, block_device: bool) -> io::Result<(StdFile, bool)> {
    let exclusive = access == Access::Exclusive;
    let base = if block_device && exclusive { OFlags::EXCL } else { OFlags::empty() };
    let open = |flags: OFlags| {
        OpenOptions::new()
            .read(true)
            .write(exclusive)
            .custom_flags((base | flags).bits() as i32)
            .open(path)
    };
    match open(OFlags::DIRECT) {
        Ok(file) => Ok((file, true)),
        Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw()) => {
            Ok((open(OFlags::empty())?, false))
        }
        Err(error) => Err(error),
    }
}

fn limits_of(
    file: &StdFile,
    access: Access,
    block_device: bool,
    direct: bool,
) -> io::Result<Limits> {
    let read_only = access == Access::ReadOnly;
    if block_device {
        let logical = braid_sys::block::logical_block(file)?.clamp(512, 4096);
        return Ok(Limits {
            physical_block: braid_sys::block::physical_block(file)?.max(logical),
            rotational: braid_sys::block::rotational(file)?,
            read_only,
            ..Limits::new(braid_sys::block::size(file)?, logical)
        });
    }
    let logical = if direct { direct_block(file)? } else { 512 };
    let size = file.metadata()?.len() / u64::from(logical) * u64::from(logical);
    Ok(Limits { physical_block: 4096, read_only, ..Limits::new(size, logical) })
}

/// The block size that direct I/O on a regular file obeys: 512, or 4096 where a read of 512
/// bytes is refused. (Since Linux 6.1 `statx` tells; this works everywhere.)
fn direct_block(file: &StdFile) -> io::Result<u32> {
    let pool = Pool::new(braid_mem::PAGE)?;
    let mut buf = pool.get(512).ok_or(io::ErrorKind::OutOfMemory)?;
    match file.read_at(&mut buf, 0) {
        Ok(_) => Ok(512),
        Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw()) => Ok(4096),
        Err(error) => Err(error),
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
        match io.op {
            Op::Read => inner.handle.read_at(&inner.fd, offset, io.payload),
            Op::Write if io.flags.contains(Flags::FUA) && inner.shared.is_on_fuse => {
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
                let durable = io.flags.contains(Flags::FUA);
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
                        Ok(()) if io.flags.contains(Flags::FUA) => {
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
    fn extents(&self, span: Span) -> Vec<Extent> {
        let shared = &self.inner.shared;
        if shared.block_device {
            return vec![Extent::data(span.len)];
        }
        let start = shared.window.offset + span.offset;
        file_extents(&shared.file, Span::new(start, span.len))
    }
}

impl Inner {
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

fn file_extents(file: &StdFile, span: Span) -> Vec<Extent> {
    const MOST: usize = 128;
    let mut extents = Vec::new();
    let mut offset = span.offset;
    for _ in 0..MOST {
        let (allocated, next) = next_change(file, offset);
        // Where the file system does not say, the rest is data, which is always true.
        let end = next.unwrap_or(span.end()).min(span.end());
        let len = end - offset;
        // It may change between two questions, and then a stretch of data ends where it starts.
        if len > 0 {
            extents.push(if allocated { Extent::data(len) } else { Extent::hole(len) });
        }
        offset = end;
        if offset == span.end() {
            break;
        }
    }
    if extents.is_empty() {
        extents.push(Extent::data(span.len));
    }
    extents
}

/// Returns whether `offset` is allocated, and the offset where that changes, if it is known.
fn next_change(file: &StdFile, offset: u64) -> (bool, Option<u64>) {
    match rustix::fs::seek(file, SeekFrom::Data(offset)) {
        Ok(data) if data > offset => (false, Some(data)),
        Ok(_) => (true, rustix::fs::seek(file, SeekFrom::Hole(offset)).ok()),
        // No data up to the end of the file.
        Err(rustix::io::Errno::NXIO) => (false, None),
        Err(_) => (true, None),
    }
}
