//! A device or image file accessed request by request, bypassing the page cache.
//!
//! Invariant: it is opened for writing only if it may be destroyed, and then exclusively, unless
//! the caller holds it already.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use braid_fit::fill;
use braid_probe::{FileKind, MemberFacts};
use rustix::fs::{FlockOperation, OFlags, flock};

use braid_service::failure::{Context, Failure};

/// Alignment of memory for direct I/O on any device, in bytes.
const ALIGNMENT: usize = 4096;

/// Permitted access to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// It is read.
    Read,
    /// Exclusive writing.
    Destroy,
    /// Writing to a device that the caller holds.
    DestroyHeld,
}

/// An open device.
pub(super) struct Direct {
    file: File,
    /// Bytes of it, in whole blocks of 4096.
    pub(super) size: u64,
    /// Unit of offsets and lengths, in bytes.
    pub(super) block: u64,
}

/// Bytes of a request, of which those from the first aligned one on are used.
#[derive(Default)]
pub(super) struct Memory(Vec<u8>);

impl Memory {
    /// So many bytes of it; what it grows by is incompressible.
    pub(super) fn aligned(&mut self, length: usize) -> &mut [u8] {
        let have = self.0.len();
        if have < length + ALIGNMENT {
            self.0.resize(length + ALIGNMENT, 0);
            // Zeroes are not written by every device: what is written has to be something.
            fill(&mut self.0);
        }
        let from = self.0.as_ptr().align_offset(ALIGNMENT);
        &mut self.0[from..from + length]
    }
}

impl Direct {
    /// Opens the device of `facts`.
    ///
    /// # Errors
    /// No direct I/O, a device in use, or an error of the system.
    pub(super) fn open(facts: &MemberFacts, access: Access) -> Result<Direct, Failure> {
        let path = &facts.path;
        let is_file = facts.kind == FileKind::Regular;
        let (writes, alone) = (access != Access::Read, access == Access::Destroy);
        let exclusive = if alone && !is_file { OFlags::EXCL } else { OFlags::empty() };
        let flags = (OFlags::DIRECT | exclusive).bits().cast_signed();
        let opened = OpenOptions::new().read(true).write(writes).custom_flags(flags).open(path);
        let file = match opened {
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
                let text =
                    format!("{} is refused: its file system has no direct I/O", path.display());
                let next = "name a block device, or a file on another file system";
                return Err(
                    Failure::refused(format!("{text}, so memory would be measured")).next(next)
                );
            }
            opened => opened.context(format!("cannot open {}", path.display()))?,
        };
        if alone && is_file {
            flock(&file, FlockOperation::NonBlockingLockExclusive)
                .context(format!("cannot lock {}", path.display()))?;
        }
        let block = u64::from(facts.logical_block_size.unwrap_or(512));
        let mut direct = Direct { file, size: facts.size / 4096 * 4096, block };
        // Some file systems want more than the disk below.
        if facts.size >= 4096 && direct.read(&mut Memory::default(), 0, block).is_err() {
            direct.block = 4096;
        }
        Ok(direct)
    }

    /// Reads `length` bytes from `offset` on.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn read(&self, memory: &mut Memory, offset: u64, length: u64) -> io::Result<()> {
        let length = usize::try_from(length).map_err(io::Error::other)?;
        self.file.read_exact_at(memory.aligned(length), offset)
    }

    /// Writes `length` bytes of something from `offset` on; with `fua` they are durable then.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn write(
        &self,
        memory: &mut Memory,
        offset: u64,
        length: u64,
        fua: bool,
    ) -> io::Result<()> {
        let length = usize::try_from(length).map_err(io::Error::other)?;
        self.file.write_all_at(memory.aligned(length), offset)?;
        if fua { self.flush() } else { Ok(()) }
    }

    /// Makes durable what was written.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn flush(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}
