//! The replies to requests: the state of one connection. Pure.
//!
//! ```text
//! /            directory, mode 0555, node 1
//! └── volume   regular file, mode 0600 (0400 if read-only), node 2, as long as the volume
//! ```
//!
//! Invariants
//! * Each block request was checked here: its node, its alignment, its range, the permission to write. A device
//!   behind [`braid_engine::Dev`] panics at anything else.
//! * Requests of partial blocks are refused with `EINVAL`, as for `O_DIRECT` elsewhere. The kernel cuts a
//!   transfer above 1 MiB at pages of the caller's memory, so a long transfer from memory that is not aligned
//!   to blocks is refused, too. A loop device sends none.
//! * A session's replies are the same for its life. When the offered device changes (a size, a lock), another
//!   session continues, and the code that made the change makes the kernel read attributes again
//!   ([`crate::AttachedDevice::refresh_size`]): otherwise it may keep names and attributes for ever.
//!
//! Deliberately absent: file handles (openings need no distinction), locks, extended attributes, and a page
//! cache: the file is opened for direct I/O only, so data has reached the volume when `write` returns, and
//! caching is left to the block device on top. A write is durable by FSYNC, or at once if the file was opened
//! with `O_DSYNC` or `O_SYNC`. `RWF_DSYNC` of a single write cannot be honoured: the kernel neither passes it
//! on nor sends an FSYNC.

use braid_block::{Errno, Flags, Limits, Span};

use crate::canary::Canary;
use crate::protocol::{
    Attributes, DirectoryEntry, FileSystemSize, InitReply, MAJOR, MAX_DATA, Malformed, O_DSYNC,
    OLDEST_MINOR, Operation, ROOT_NODE, Reply, Request, falloc, init, open, seek,
};

/// Name of the file that is the volume.
pub const VOLUME: &str = "volume";
const VOLUME_NODE: u64 = 2;

/// Asynchronous requests that the kernel sends before it waits for answers. Its default of 12
/// would be the queue depth of the block device on top; a loop device has at most 128 under way.
const MAX_BACKGROUND: u16 = 1024;

/// The answer to a request.
#[derive(Debug)]
pub enum Answer {
    /// Send this.
    Reply(Reply),
    /// Send nothing.
    Silence,
    /// Read `span` and send what was read.
    Read(Span),
    /// Write the body to `span`, with FUA if that is among the flags, then say so.
    Write(Span, Flags),
    /// Make durable what was written, then say so.
    Flush,
    /// Make `span` read as zeroes, then say so.
    WriteZeroes(Span, Flags),
    /// Find the next data (or, if false, the next hole) from `offset` on, which is inside.
    Seek {
        /// Start in bytes.
        offset: u64,
        /// Data, or a hole.
        data: bool,
    },
}

/// One connection between the kernel and a volume.
#[derive(Debug)]
pub struct Session {
    limits: Limits,
    transport: Transport,
}

/// The way of requests between the kernel and a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// `/dev/fuse`: each request is read, each answer written.
    Device,
    /// Queues of io_uring, one for each processor.
    Uring,
}

impl Transport {
    /// Most bytes of data in a READ or WRITE.
    pub const fn most_data(self) -> usize {
        match self {
            Transport::Device => MAX_DATA,
            // Each entry of a queue has memory of its own for that.
            Transport::Uring => 128 << 10,
        }
    }
}

impl Session {
    /// A session for a volume with these limits.
    pub fn new(limits: Limits) -> Session {
        Session::over(Transport::Device, limits)
    }

    /// A session that agrees to `transport` if the kernel offers it.
    pub fn over(transport: Transport, limits: Limits) -> Session {
        Session { limits, transport }
    }

    /// Returns the answer to `request`.
    #[inline]
    pub fn answer(&self, request: &Request<'_>) -> Answer {
        let node = request.header.node;
        let unique = request.header.unique;
        let answer = match request.operation {
            Operation::Read { offset, size } => self.read(node, offset, size),
            Operation::Write { offset, size, flags } => self.write(node, offset, size, flags),
            Operation::Fsync if node == VOLUME_NODE && !Canary::FsyncIsNothing.is_planted() => {
                Ok(Answer::Flush)
            }
            Operation::Fallocate { offset, len, mode } => self.fallocate(unique, offset, len, mode),
            Operation::Lseek { offset, whence } => self.lseek(offset, whence),
            Operation::Forget => Ok(Answer::Silence),
            _ => self.answer_about_files(request).map(Answer::Reply),
        };
        answer.unwrap_or_else(|errno| Answer::Reply(Reply::error(unique, errno)))
    }

    /// Returns the answer to malformed bytes.
    pub fn answer_malformed(malformed: &Malformed) -> Answer {
        match malformed.unique() {
            Some(unique) => Answer::Reply(Reply::error(unique, Errno::INVAL)),
            None => Answer::Silence,
        }
    }

    /// Returns the reply to a request without block I/O.
    fn answer_about_files(&self, request: &Request<'_>) -> Result<Reply, Errno> {
        let (unique, node) = (request.header.unique, request.header.node);
        match request.operation {
            Operation::Init { major, minor, flags, flags2 } => {
                self.init(unique, (major, minor), (flags, flags2))
            }
            Operation::Lookup { name } => match (node, name) {
                (ROOT_NODE, Some(name)) if name == VOLUME.as_bytes() => {
                    Ok(Reply::entry(unique, &self.attributes(VOLUME_NODE)?))
                }
                _ => Err(NOENT),
            },
            Operation::GetAttr => Ok(Reply::attr(unique, &self.attributes(node)?)),
            Operation::Open { flags } => self.open(unique, node, flags),
            Operation::StatFs => Ok(Reply::statfs(unique, &self.file_system_size())),
            Operation::OpenDir if node == ROOT_NODE => Ok(Reply::open(unique, 0)),
            Operation::ReadDir { offset, size } if node == ROOT_NODE => {
                Ok(list(unique, offset, size))
            }
            // `default_permissions` has the kernel check, and there is nothing to do at the end
            // of an opening: writes are passed on as they come.
            Operation::Access
            | Operation::Flush
            | Operation::Release
            | Operation::Fsync
            | Operation::FsyncDir
            | Operation::ReleaseDir
            | Operation::Destroy => Ok(Reply::ok(unique)),
            Operation::OpenDir | Operation::ReadDir { .. } => Err(NOTDIR),
            // As for a block device, whose size and attributes are not the writer's to change.
            Operation::SetAttr => Err(Errno::PERM),
            // After this the kernel sends no more of the kind, INTERRUPT included.
            _ => Err(NOSYS),
        }
    }

    /// Returns true if `offered` has the queues that this session wants.
    pub(crate) fn agrees_to_queues(&self, (flags, flags2): (u32, u32)) -> bool {
        self.transport == Transport::Uring
            && flags & init::INIT_EXT != 0
            && flags2 & init::OVER_IO_URING != 0
    }

    fn init(
        &self,
        unique: u64,
        (major, minor): (u32, u32),
        offered: (u32, u32),
    ) -> Result<Reply, Errno> {
        if major > MAJOR {
            return Ok(Reply::other_major(unique));
        }
        if major < MAJOR || minor < OLDEST_MINOR {
            return Err(PROTO);
        }
        const WANTED: u32 = init::ASYNC_READ | init::BIG_WRITES | init::ASYNC_DIO | init::MAX_PAGES;
        let (extended, flags2, most) = match self.agrees_to_queues(offered) {
            true => (init::INIT_EXT, init::OVER_IO_URING, Transport::Uring.most_data()),
            false => (0, 0, Transport::Device.most_data()),
        };
        let reply = InitReply {
            max_readahead: most as u32,
            flags: offered.0 & WANTED | extended,
            flags2,
            max_background: MAX_BACKGROUND,
            congestion_threshold: MAX_BACKGROUND / 4 * 3,
            max_write: most as u32,
            max_pages: (most / 4096) as u16,
        };
        Ok(Reply::init(unique, &reply))
    }

    fn open(&self, unique: u64, node: u64, flags: u32) -> Result<Reply, Errno> {
        const ACCESS_MODE: u32 = 3;
        match node {
            VOLUME_NODE if self.limits.read_only && flags & ACCESS_MODE != 0 => Err(ROFS),
            VOLUME_NODE => Ok(Reply::open(unique, open::DIRECT_IO | open::PARALLEL_DIRECT_WRITES)),
            _ => Err(ISDIR),
        }
    }

    /// A read that crosses the end is cut there; one behind it finds nothing.
    #[inline]
    fn read(&self, node: u64, offset: u64, size: u32) -> Result<Answer, Errno> {
        let rest = self.limits.size.saturating_sub(offset);
        let span = Span::new(offset, u64::from(size).min(rest));
        if node != VOLUME_NODE || size as usize > self.transport.most_data() {
            return Err(Errno::INVAL);
        }
        // A span without bytes is not compared with the volume's size by anybody.
        if span.is_empty() {
            Ok(Answer::Read(Span::default()))
        } else {
            self.check(span).map(Answer::Read)
        }
    }

    /// The kernel sends no FSYNC after a write past the page cache, whatever the file was opened
    /// with: `O_DSYNC` and `O_SYNC` must be read from the request.
    #[inline]
    fn write(&self, node: u64, offset: u64, size: u32, flags: u32) -> Result<Answer, Errno> {
        if node != VOLUME_NODE || size as usize > self.transport.most_data() {
            return Err(Errno::INVAL);
        }
        self.check_writable()?;
        let is_durable = flags & O_DSYNC != 0 && !Canary::DsyncLost.is_planted();
        let flags = if is_durable { Flags::FUA } else { Flags::NONE };
        Ok(Answer::Write(self.check(Span::new(offset, size.into()))?, flags))
    }

    /// The loop driver sends `PUNCH_HOLE` for a discard as well as for zeroes that may be
    /// unmapped, and `ZERO_RANGE` for zeroes that may not; all of them with `KEEP_SIZE`. So a
    /// hole has to read as zeroes (`drivers/block/loop.c`, `lo_fallocate`).
    fn fallocate(&self, unique: u64, offset: u64, len: u64, mode: u32) -> Result<Answer, Errno> {
        const HOLE: u32 = falloc::PUNCH_HOLE | falloc::KEEP_SIZE;
        const ZERO: u32 = falloc::ZERO_RANGE;
        self.check_writable()?;
        let inside = Span::new(offset, len).is_within(self.limits.size);
        let may_punch = self.limits.unmaps_zeroes || Canary::HoleWithoutDiscard.is_planted();
        let flags = match mode & !falloc::KEEP_SIZE {
            // What is inside is allocated as far as anybody can tell.
            0 if inside => return Ok(Answer::Reply(Reply::ok(unique))),
            0 => return Err(Errno::NOSPC),
            // Zeroes would be written to the members for each, discards included. The block layer
            // then sends zeroes itself where it needs them.
            falloc::PUNCH_HOLE if mode == HOLE && may_punch => Flags::NONE,
            ZERO if Canary::SpaceGivenUp.is_planted() => Flags::NONE,
            ZERO => Flags::NO_UNMAP,
            _ => return Err(Errno::OPNOTSUPP),
        };
        let span = self.check(Span::new(offset, len))?;
        Ok(Answer::WriteZeroes(span, flags))
    }

    fn lseek(&self, offset: u64, whence: u32) -> Result<Answer, Errno> {
        let data = match whence {
            seek::DATA => true,
            seek::HOLE => false,
            _ => return Err(Errno::INVAL),
        };
        if offset < self.limits.size { Ok(Answer::Seek { offset, data }) } else { Err(NXIO) }
    }

    /// Refuses a request that was checked by an earlier session, if this one would refuse it.
    pub(crate) fn allows(&self, span: Span, is_write: bool) -> Result<(), Errno> {
        if is_write {
            self.check_writable()?;
        }
        self.check(span).map(drop)
    }

    fn check_writable(&self) -> Result<(), Errno> {
        let is_writable = !self.limits.read_only || Canary::ReadOnlyIsWritten.is_planted();
        if is_writable { Ok(()) } else { Err(ROFS) }
    }

    /// `span`, if the device takes it.
    #[inline]
    fn check(&self, span: Span) -> Result<Span, Errno> {
        let is_taken =
            span.is_within(self.limits.size) && span.is_aligned(self.limits.logical_block);
        if is_taken || Canary::SpanNotChecked.is_planted() { Ok(span) } else { Err(Errno::INVAL) }
    }

    fn attributes(&self, node: u64) -> Result<Attributes, Errno> {
        const DIRECTORY: u32 = 0o040_000;
        const FILE: u32 = 0o100_000;
        let block_size = self.limits.physical_block;
        match node {
            ROOT_NODE => {
                Ok(Attributes { node, size: 0, mode: DIRECTORY | 0o555, links: 2, block_size })
            }
            VOLUME_NODE => {
                let permissions = if self.limits.read_only { 0o400 } else { 0o600 };
                let size = self.limits.size;
                Ok(Attributes { node, size, mode: FILE | permissions, links: 1, block_size })
            }
            _ => Err(STALE),
        }
    }

    /// The block size becomes the loop device's granularity of discards.
    fn file_system_size(&self) -> FileSystemSize {
        let block_size = self.limits.physical_block;
        FileSystemSize { blocks: self.limits.size / u64::from(block_size), block_size }
    }
}

fn list(unique: u64, offset: u64, room: u32) -> Reply {
    const DIRECTORY: u32 = 4;
    const FILE: u32 = 8;
    let entry = |node, next, kind, name| DirectoryEntry { node, next, kind, name };
    let entries = [
        entry(ROOT_NODE, 1, DIRECTORY, "."),
        entry(ROOT_NODE, 2, DIRECTORY, ".."),
        entry(VOLUME_NODE, 3, FILE, VOLUME),
    ];
    let first = usize::try_from(offset).unwrap_or(usize::MAX).min(entries.len());
    Reply::directory(unique, &entries[first..], room)
}

const NOENT: Errno = Errno::from_raw(2);
/// Also what tells a seeker that there is nothing more.
pub(crate) const NXIO: Errno = Errno::from_raw(6);
const NOTDIR: Errno = Errno::from_raw(20);
const ISDIR: Errno = Errno::from_raw(21);
const ROFS: Errno = Errno::from_raw(30);
const NOSYS: Errno = Errno::from_raw(38);
const PROTO: Errno = Errno::from_raw(71);
const STALE: Errno = Errno::from_raw(116);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{HEAD, Header, OUT_HEADER, parse};
    use proptest::prelude::*;

    const SIZE: u64 = 1 << 20;

    fn session(read_only: bool) -> Session {
        Session::new(Limits { read_only, physical_block: 4096, ..Limits::new(SIZE, 512) })
    }

    fn ask(session: &Session, node: u64, operation: Operation<'_>) -> Answer {
        let header = Header { len: 80, opcode: 0, unique: 5, node };
        session.answer(&Request { header, operation })
    }

    /// The positive error number of a reply, 0 for success; `None` for another answer.
    fn errno(answer: &Answer) -> Option<i32> {
        let Answer::Reply(reply) = answer else { return None };
        let bytes = reply.as_bytes();
        assert_eq!(u32::from_ne_bytes(bytes[..4].try_into().unwrap()) as usize, bytes.len());
        Some(-i32::from_ne_bytes(bytes[4..8].try_into().unwrap()))
    }

    #[test]
    fn what_reaches_the_volume() {
        let session = session(false);
        let read = |offset, size| match ask(&session, 2, Operation::Read { offset, size }) {
            Answer::Read(span) => Ok(span),
            other => Err(errno(&other)),
        };
        assert_eq!(read(512, 4096), Ok(Span::new(512, 4096)));
        assert_eq!(read(SIZE - 512, 4096), Ok(Span::new(SIZE - 512, 512)), "cut at the end");
        assert_eq!(read(SIZE, 512), Ok(Span::default()));
        assert_eq!(read(u64::MAX, 512), Ok(Span::default()));
        assert_eq!(read(1, 512), Err(Some(22)));
        assert_eq!(read(0, 100), Err(Some(22)));
        assert_eq!(read(0, 2 << 20), Err(Some(22)), "more than was agreed on");

        let write_by = |offset, size, flags| match ask(
            &session,
            2,
            Operation::Write { offset, size, flags },
        ) {
            Answer::Write(span, flags) => Ok((span, flags)),
            other => Err(errno(&other)),
        };
        let write = |offset, size| write_by(offset, size, 0o40_002);
        let span = Span::new(0, 1 << 20);
        assert_eq!(write(0, 1 << 20), Ok((span, Flags::NONE)));
        assert_eq!(write_by(0, 1 << 20, 0o50_002), Ok((span, Flags::FUA)), "O_DSYNC");
        assert_eq!(write_by(0, 1 << 20, 0o4_010_002), Ok((span, Flags::FUA)), "O_SYNC");
        for (offset, size) in [(SIZE, 512), (SIZE - 512, 1024), (!511, 1024), (3, 512), (0, 7)] {
            assert_eq!(write(offset, size), Err(Some(22)), "{offset}+{size}");
        }
        assert!(matches!(ask(&session, 2, Operation::Fsync), Answer::Flush));
        assert_eq!(errno(&ask(&session, 1, Operation::Read { offset: 0, size: 512 })), Some(22));
    }

    #[test]
    fn holes_and_zeroes() {
        let ask_with = |limits: Limits, mode, offset, len| {
            let operation = Operation::Fallocate { offset, len, mode };
            match ask(&Session::new(limits), 2, operation) {
                Answer::WriteZeroes(span, flags) => Ok((span, flags)),
                other => Err(errno(&other)),
            }
        };
        let limits = Limits::new(SIZE, 512);
        let span = Span::new(4096, 8192);
        assert_eq!(ask_with(limits, 3, 4096, 8192), Ok((span, Flags::NONE)));
        assert_eq!(ask_with(limits, 17, 4096, 8192), Ok((span, Flags::NO_UNMAP)));
        assert_eq!(ask_with(limits, 16, 4096, 8192), Ok((span, Flags::NO_UNMAP)));
        assert_eq!(ask_with(limits, 3, SIZE, 512), Err(Some(22)));
        assert_eq!(ask_with(limits, 3, 0, 100), Err(Some(22)));
        assert_eq!(ask_with(limits, 0, 0, SIZE), Err(Some(0)), "allocated already");
        assert_eq!(ask_with(limits, 1, 0, SIZE + 1), Err(Some(28)), "it does not grow");
        assert_eq!(ask_with(limits, 8, 0, 512), Err(Some(95)), "collapse");
        let plain = Limits { unmaps_zeroes: false, ..limits };
        assert_eq!(ask_with(plain, 3, 0, 512), Err(Some(95)), "not worth writing zeroes for");
        let read_only = Limits { read_only: true, ..limits };
        assert_eq!(ask_with(read_only, 3, 0, 512), Err(Some(30)));
    }

    #[test]
    fn files_and_directories() {
        let both = [session(false), session(true)];
        let table: &[(u64, Operation<'_>, [i32; 2])] = &[
            (1, Operation::Lookup { name: Some(b"volume") }, [0, 0]),
            (1, Operation::Lookup { name: Some(b"other") }, [2, 2]),
            (1, Operation::Lookup { name: None }, [2, 2]),
            (2, Operation::Lookup { name: Some(b"volume") }, [2, 2]),
            (1, Operation::GetAttr, [0, 0]),
            (2, Operation::GetAttr, [0, 0]),
            (3, Operation::GetAttr, [116, 116]),
            (2, Operation::SetAttr, [1, 1]),
            (2, Operation::Open { flags: 0 }, [0, 0]),
            (2, Operation::Open { flags: 1 }, [0, 30]),
            (2, Operation::Open { flags: 0o40_002 }, [0, 30]),
            (1, Operation::Open { flags: 0 }, [21, 21]),
            (2, Operation::Write { offset: 0, size: 512, flags: 0 }, [-1, 30]),
            (2, Operation::Lseek { offset: 0, whence: 0 }, [22, 22]),
            (2, Operation::Lseek { offset: SIZE, whence: 3 }, [6, 6]),
            (1, Operation::OpenDir, [0, 0]),
            (2, Operation::OpenDir, [20, 20]),
            (2, Operation::ReadDir { offset: 0, size: 4096 }, [20, 20]),
            (1, Operation::FsyncDir, [0, 0]),
            (2, Operation::Flush, [0, 0]),
            (2, Operation::Release, [0, 0]),
            (1, Operation::Access, [0, 0]),
            (0, Operation::Destroy, [0, 0]),
            (0, Operation::Interrupt, [38, 38]),
            (2, Operation::Unsupported, [38, 38]),
        ];
        for (node, operation, expected) in table {
            for (session, expected) in both.iter().zip(expected) {
                let answer = ask(session, *node, *operation);
                assert_eq!(errno(&answer).unwrap_or(-1), *expected, "{operation:?} of {node}");
            }
        }
        assert!(matches!(ask(&both[0], 2, Operation::Forget), Answer::Silence));
    }

    #[test]
    fn what_is_agreed_on() {
        let session = session(false);
        let init = |major, minor| {
            ask(&session, 0, Operation::Init { major, minor, flags: u32::MAX, flags2: u32::MAX })
        };
        let Answer::Reply(reply) = init(7, 45) else { panic!() };
        let flags = u32::from_ne_bytes(reply.as_bytes()[28..32].try_into().unwrap());
        assert_eq!(flags, 1 | 1 << 5 | 1 << 15 | 1 << 22);
        assert_eq!(errno(&init(8, 0)), Some(0), "it asks again with our version");
        assert_eq!(errno(&init(7, 30)), Some(71));
        assert_eq!(errno(&init(6, 99)), Some(71));
    }

    #[test]
    fn a_listing_goes_on_where_it_stopped() {
        let session = session(false);
        let list = |offset| match ask(&session, 1, Operation::ReadDir { offset, size: 4096 }) {
            Answer::Reply(reply) => reply.as_bytes().len() - OUT_HEADER,
            _ => panic!(),
        };
        assert_eq!([list(0), list(1), list(2), list(3), list(u64::MAX)], [96, 64, 32, 0, 0]);
    }

    proptest! {
        /// Whatever bytes come, what is started is what a device takes.
        #[test]
        fn no_bytes_get_past_the_checks(bytes in prop::collection::vec(any::<u8>(), HEAD), opcode in prop::sample::select(vec![1u32, 3, 14, 15, 16, 20, 26, 28, 43, 46, 99]), node in 0u64..4, offset in 0u64..3_000_000, size in 0u32..3_000_000, read_only in any::<bool>(), shift in 0u32..12, wild in any::<bool>()) {
            let mut head: [u8; HEAD] = bytes.try_into().unwrap();
            let received = if opcode == 16 { HEAD + size as usize } else { HEAD };
            head[..4].copy_from_slice(&(received as u32).to_ne_bytes());
            head[4..8].copy_from_slice(&opcode.to_ne_bytes());
            head[16..24].copy_from_slice(&node.to_ne_bytes());
            if !wild {
                head[48..56].copy_from_slice(&(offset >> shift << shift).to_ne_bytes());
                head[56..60].copy_from_slice(&(size >> shift << shift).to_ne_bytes());
            }
            let session = session(read_only);
            let Ok(request) = parse(&head, received) else { return Ok(()) };
            match session.answer(&request) {
                Answer::Read(span) => {
                    prop_assert!(span.is_within(SIZE) && span.is_aligned(512));
                }
                Answer::Write(span, _) | Answer::WriteZeroes(span, _) => {
                    prop_assert!(!read_only);
                    prop_assert!(span.is_within(SIZE) && span.is_aligned(512));
                }
                Answer::Seek { offset, .. } => prop_assert!(offset < SIZE),
                Answer::Reply(reply) => prop_assert!(reply.as_bytes().len() >= OUT_HEADER),
                Answer::Flush | Answer::Silence => {}
            }
        }
    }
}
