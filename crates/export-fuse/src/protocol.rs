//! The FUSE wire format, as far as a file system of one file needs it. Pure: bytes in, values
//! out, and back.
//!
//! ```text
//! request   | fuse_in_header 40 | arguments .. 40 |         payload of a WRITE         |
//!           |<------------- head, 80 ------------>|<-- body, page-aligned, to 1 MiB -->|
//!
//! reply     | fuse_out_header 16 | arguments, or the data of a READ                    |
//! ```
//!
//! The arguments of READ and of WRITE are 40 bytes each, so whatever this crate has to look at
//! lies in the first 80 bytes of a request ([`HEAD`]); all that can lie behind them is the
//! payload of a WRITE, or something that is refused anyway. Reading a request into a head and a
//! page-aligned body therefore puts the payload where direct I/O wants it, without a copy.
//!
//! Invariants
//! * A [`Request`] was checked: its length is what came, and its arguments were all there.
//! * Numbers have the host's byte order, as everywhere in FUSE.
//! * No bytes, whatever they are, make this module panic.
//!
//! Source: `include/uapi/linux/fuse.h`. Written for ABI 7.38 and answering kernels from 7.31 on
//! (Linux 5.4). Deliberately absent: opcodes that change names, attributes or extended
//! attributes; they parse as [`Operation::Unsupported`].

mod reply;
mod request;

pub use reply::{Attributes, DirectoryEntry, FileSystemSize, InitReply, Reply, data_header};
pub use request::{Header, Malformed, Operation, Request, parse};

/// Major version of the ABI.
pub const MAJOR: u32 = 7;
/// Minor version that this module was written for.
pub const MINOR: u32 = 38;
/// Oldest minor version that is answered: of Linux 5.4.
pub const OLDEST_MINOR: u32 = 31;

/// Bytes of `struct fuse_in_header`.
pub const IN_HEADER: usize = 40;
/// Bytes of `struct fuse_out_header`.
pub const OUT_HEADER: usize = 16;
/// Bytes of a request that come before the payload of a WRITE.
pub const HEAD: usize = IN_HEADER + 40;
/// Most bytes of data in one READ or WRITE: 256 pages of 4 KiB, which is also the kernel's own
/// default limit (`fs.fuse.max_pages_limit`).
pub const MAX_DATA: usize = 1 << 20;

/// The parts of an entry of a queue of io_uring (`struct fuse_uring_req_header`).
///
/// ```text
/// header    | in_out 128: fuse_in_header, or fuse_out_header | arguments 128 | id 8+8, length 4 |
/// payload   | the data of a WRITE or READ, other arguments, or the arguments of the answer      |
/// ```
pub mod entry {
    /// The first argument of an operation, but not the name of a LOOKUP.
    pub const ARGUMENTS: usize = 128;
    /// The id by which the answer is committed, 8 bytes.
    pub const ID: usize = 264;
    /// Bytes of the payload that are used, 4 bytes.
    pub const LENGTH: usize = 272;
}

/// The root directory.
pub const ROOT_NODE: u64 = 1;

/// `fuse_init_in.flags` and `fuse_init_out.flags`.
pub mod init {
    /// Several reads at once.
    pub const ASYNC_READ: u32 = 1 << 0;
    /// Writes of more than a page.
    pub const BIG_WRITES: u32 = 1 << 5;
    /// Direct I/O is submitted without waiting for it: what the loop driver lives on.
    pub const ASYNC_DIO: u32 = 1 << 15;
    /// `fuse_init_out.max_pages` counts.
    pub const MAX_PAGES: u32 = 1 << 22;
    /// `flags2` counts.
    pub const INIT_EXT: u32 = 1 << 30;
    /// In `flags2`: requests go through io_uring.
    pub const OVER_IO_URING: u32 = 1 << 9;
}

/// `fuse_write_in.flags`: the bit of `O_DSYNC`, which `O_SYNC` has too.
pub const O_DSYNC: u32 = rustix::fs::OFlags::DSYNC.bits();

/// `fuse_open_out.open_flags`.
pub mod open {
    /// No page cache for this file.
    pub const DIRECT_IO: u32 = 1 << 0;
    /// Direct writes to one file may run beside each other.
    pub const PARALLEL_DIRECT_WRITES: u32 = 1 << 6;
}

/// `fuse_fallocate_in.mode`, from `linux/falloc.h`.
pub mod falloc {
    /// The size stays.
    pub const KEEP_SIZE: u32 = 1;
    /// The range reads as zeroes and its space is given up.
    pub const PUNCH_HOLE: u32 = 2;
    /// The range reads as zeroes and keeps its space.
    pub const ZERO_RANGE: u32 = 16;
}

/// `fuse_lseek_in.whence`, from `linux/fs.h`.
pub mod seek {
    /// The next data.
    pub const DATA: u32 = 3;
    /// The next hole.
    pub const HOLE: u32 = 4;
}

/// `fuse_in_header.opcode`.
#[allow(missing_docs, reason = "the names of linux/fuse.h without FUSE_")]
pub mod opcode {
    pub const LOOKUP: u32 = 1;
    pub const FORGET: u32 = 2;
    pub const GETATTR: u32 = 3;
    pub const SETATTR: u32 = 4;
    pub const OPEN: u32 = 14;
    pub const READ: u32 = 15;
    pub const WRITE: u32 = 16;
    pub const STATFS: u32 = 17;
    pub const RELEASE: u32 = 18;
    pub const FSYNC: u32 = 20;
    pub const FLUSH: u32 = 25;
    pub const INIT: u32 = 26;
    pub const OPENDIR: u32 = 27;
    pub const READDIR: u32 = 28;
    pub const RELEASEDIR: u32 = 29;
    pub const FSYNCDIR: u32 = 30;
    pub const ACCESS: u32 = 34;
    pub const INTERRUPT: u32 = 36;
    pub const DESTROY: u32 = 38;
    pub const BATCH_FORGET: u32 = 42;
    pub const FALLOCATE: u32 = 43;
    pub const LSEEK: u32 = 46;
}
