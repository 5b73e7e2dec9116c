//! An entry point for fuzzers: any bytes as the requests of a connection, to the server of the data path
//! with a socket in the place of `/dev/fuse`.
//!
//! ```text
//!   data │ settings │ how long, head 80 │ how long, head 80 │ …
//! ```
//!
//! Asserted: nothing panics; each request has exactly one reply, and FORGET none; a reply is as long as
//! it says, names its request, and has the length of its operation; what is inside, aligned and allowed
//! is done, and nothing else is; all memory comes back.
//!
//! Absent on purpose: the system calls that receive, the executor, and a fuzzer: `crates/mutate` changes
//! a committed corpus, `fuzz/` has the target for libFuzzer.

use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use braid_block::{Errno, Extent, Io, Limits, Op, Payload, Span};
use braid_engine::{Dev, Device, Extents, Pending};
use braid_mem::Pool;
use braid_uring::Fd;

use crate::protocol::{
    HEAD, Header, MAX_DATA, OUT_HEADER, Operation, ROOT_NODE, falloc, parse, seek,
};
use crate::serve::Server;

/// Bytes of the disk: little, so that requests overlap.
const SIZE: usize = 16 << 10;
/// The node of the file that is the volume.
const VOLUME_NODE: u64 = 2;
/// A failing disk fails each of so many requests.
const FAILS: u32 = 5;

/// Any bytes as settings and requests; see the module's head.
pub fn fuzz_requests(data: &[u8]) {
    let Some((&settings, mut rest)) = data.split_first() else {
        return;
    };
    thread_local!(static POOL: Pool = Pool::new(2 * MAX_DATA).expect("memory for a small pool"));
    POOL.with(|pool| {
        assert_eq!(pool.free_bytes(), 2 * MAX_DATA, "memory of an earlier connection is missing");
        let mut connection = Connection::new(settings, pool);
        while let Some((&how, behind)) = rest.split_first() {
            let (head, behind) = behind.split_at(behind.len().min(HEAD));
            rest = behind;
            connection.ask(how, head);
        }
        drop(connection);
        assert_eq!(pool.free_bytes(), 2 * MAX_DATA, "memory of this connection is missing");
    });
}

struct Connection {
    server: Server,
    kernel: UnixDatagram,
    pool: Pool,
    disk: Rc<Disk>,
    /// Expected contents of the disk.
    contents: Vec<u8>,
}

impl Connection {
    fn new(settings: u8, pool: &Pool) -> Connection {
        let disk = Rc::new(Disk::new(settings));
        let contents = disk.bytes.borrow().clone();
        let (kernel, served) = UnixDatagram::pair().expect("the system has two sockets");
        kernel.set_nonblocking(true).expect("a socket can be told not to wait");
        let fd = Fd::new(OwnedFd::from(served));
        let dev = Dev::new(Shared(Rc::clone(&disk)));
        let server = Server::new(fd, dev.into(), pool.clone(), Arc::default());
        Connection { server, kernel, pool: pool.clone(), disk, contents }
    }

    /// Sends a request that came as long as its header says, or as `how` does.
    fn ask(&mut self, how: u8, bytes: &[u8]) {
        let mut head = [0; HEAD];
        head[..bytes.len()].copy_from_slice(bytes);
        let claimed = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let received = if how & 1 == 0 { claimed.min(HEAD + MAX_DATA) } else { how.into() };
        let mut body =
            self.server.take_body().or_else(|| self.pool.get(MAX_DATA)).expect("memory for a body");
        // More of a payload than the disk takes is not looked at.
        body[..SIZE].fill(how | 1);
        let failures = self.disk.failures.get();
        self.server.serve_one(head, received, body).expect("a socket that takes replies");
        let reply = self.reply();
        let failed = self.disk.failures.get() > failures;
        self.judge(&head, received, how | 1, reply.as_deref(), failed);
    }

    /// The one reply that has come or will, if one does.
    fn reply(&mut self) -> Option<Vec<u8>> {
        let mut buffer = vec![0; SIZE + 2 * OUT_HEADER];
        let mut cx = Context::from_waker(Waker::noop());
        // What is late is so by one turn.
        for _ in 0..3 {
            self.server.poll_completed(&mut cx).expect("a socket that takes replies");
        }
        let received = self.kernel.recv(&mut buffer).ok()?;
        assert!(self.kernel.recv(&mut [0; 1]).is_err(), "two replies to a request");
        buffer.truncate(received);
        Some(buffer)
    }

    /// Computes the expected reply without the session.
    fn judge(
        &mut self,
        head: &[u8; HEAD],
        received: usize,
        fill: u8,
        reply: Option<&[u8]>,
        failed: bool,
    ) {
        let request = match parse(head, received) {
            Ok(request) => request,
            Err(malformed) => {
                assert_eq!(reply.is_some(), malformed.unique().is_some(), "{malformed}");
                if let (Some(reply), Some(unique)) = (reply, malformed.unique()) {
                    assert_eq!(read_reply(reply, unique), (22, &[][..]), "{malformed}");
                }
                return;
            }
        };
        let Header { unique, node, .. } = request.header;
        let Some(reply) = reply else {
            assert_eq!(request.operation, Operation::Forget, "no reply");
            return;
        };
        let (errno, data) = read_reply(reply, unique);
        let is_volume = node == VOLUME_NODE;
        let limits = self.disk.limits;
        let fits =
            |span: Span| span.is_within(limits.size) && span.is_aligned(limits.logical_block);
        let done = |allowed: bool| {
            assert_eq!(
                errno == 0,
                allowed && !failed,
                "{:?} of {node}: {errno}",
                request.operation
            );
            errno == 0
        };
        match request.operation {
            Operation::Read { offset, size } => {
                let len = u64::from(size).min(limits.size.saturating_sub(offset));
                let span = if len == 0 { Span::default() } else { Span::new(offset, len) };
                if done(is_volume && size as usize <= MAX_DATA && fits(span)) {
                    assert!(data == &self.contents[range(span)], "other bytes");
                }
            }
            Operation::Write { offset, size, .. } => {
                let span = Span::new(offset, size.into());
                if done(is_volume && !limits.read_only && fits(span)) {
                    assert_eq!(data[..4], size.to_ne_bytes());
                    self.contents[range(span)].fill(fill);
                }
            }
            Operation::Fallocate { offset, len, mode } => {
                let span = Span::new(offset, len);
                let holes = falloc::PUNCH_HOLE | falloc::KEEP_SIZE;
                let zeroes = mode & !falloc::KEEP_SIZE == falloc::ZERO_RANGE;
                let clears = zeroes || mode == holes && limits.unmaps_zeroes;
                let keeps = mode & !falloc::KEEP_SIZE == 0 && span.is_within(limits.size);
                if done(!limits.read_only && (clears && fits(span) || keeps)) && clears {
                    self.contents[range(span)].fill(0);
                }
            }
            Operation::Lseek { offset, whence } => {
                let known = [seek::DATA, seek::HOLE].contains(&whence);
                if errno == 0 {
                    let found =
                        u64::from_ne_bytes(data.try_into().expect("a chunk of eight bytes"));
                    assert!(known && (offset..=limits.size).contains(&found), "found at {found}");
                } else {
                    assert!(errno == if known { 6 } else { 22 }, "{errno}");
                }
            }
            operation => self.judge_about_files(operation, node, errno, data),
        }
        assert!(*self.disk.bytes.borrow() == self.contents, "the disk holds something else");
    }

    fn judge_about_files(&self, operation: Operation<'_>, node: u64, errno: i32, data: &[u8]) {
        if errno != 0 {
            let must =
                matches!(operation, Operation::StatFs | Operation::Release | Operation::Access);
            assert!(!must, "{operation:?}: {errno}");
            return;
        }
        let expected = match operation {
            Operation::Init { .. } => 64,
            Operation::Lookup { name } => {
                assert!(node == ROOT_NODE && name == Some(b"volume"), "{name:?} of {node}");
                128
            }
            Operation::GetAttr => 104,
            Operation::Open { .. } | Operation::OpenDir => 16,
            Operation::StatFs => 80,
            Operation::ReadDir { size, .. } => {
                assert!(data.len() <= size as usize && data.len().is_multiple_of(8), "a listing");
                data.len()
            }
            Operation::SetAttr | Operation::Interrupt | Operation::Unsupported => {
                panic!("{operation:?} was done")
            }
            _ => 0,
        };
        assert_eq!(data.len(), expected, "{operation:?}");
    }
}

/// The positive error number of a reply to `unique`, and what is behind its header.
fn read_reply(reply: &[u8], unique: u64) -> (i32, &[u8]) {
    let (header, data) = reply.split_at(OUT_HEADER);
    let word = |at: usize| header[at..at + 4].try_into().expect("a range of four bytes");
    assert_eq!(u32::from_ne_bytes(word(0)) as usize, reply.len(), "the length of a reply");
    assert_eq!(header[8..], unique.to_ne_bytes(), "whom it answers");
    let errno = -i32::from_ne_bytes(word(4));
    // As the kernel checks it (`fuse_dev_do_write`).
    assert!((0..512).contains(&errno) && (errno == 0 || data.is_empty()), "error {errno}");
    (errno, data)
}

fn range(span: Span) -> std::ops::Range<usize> {
    span.offset as usize..(span.offset + span.len) as usize
}

struct Disk {
    bytes: RefCell<Vec<u8>>,
    limits: Limits,
    late: bool,
    fails: bool,
    started: Cell<u32>,
    failures: Cell<u32>,
}

impl Disk {
    fn new(settings: u8) -> Disk {
        let bit = |index: u8| settings >> index & 1 == 1;
        let limits = Limits {
            read_only: bit(0),
            unmaps_zeroes: !bit(1),
            physical_block: 4096,
            ..Limits::new(SIZE as u64, if bit(2) { 4096 } else { 512 })
        };
        Disk {
            bytes: RefCell::new((0..32).flat_map(|block| [block * 8 + 1; SIZE / 32]).collect()),
            limits,
            late: bit(3),
            fails: bit(4),
            started: Cell::default(),
            failures: Cell::default(),
        }
    }

    fn carry_out(&self, io: &mut Io) -> Result<(), Errno> {
        assert!(io.span.is_within(SIZE as u64), "{:?} of {} outside", io.op, io.span);
        assert!(!(self.limits.read_only && io.op.is_modifying()), "{:?}, read-only", io.op);
        self.started.set(self.started.get() + 1);
        if self.fails && self.started.get().is_multiple_of(FAILS) {
            self.failures.set(self.failures.get() + 1);
            return Err(Errno::IO);
        }
        let mut bytes = self.bytes.borrow_mut();
        let bytes = &mut bytes[range(io.span)];
        match io.op {
            Op::Read => io.payload.bufs_mut()[0].copy_from_slice(bytes),
            Op::Write => bytes.copy_from_slice(&io.payload.bufs()[0]),
            Op::Flush => {}
            Op::Discard | Op::WriteZeroes => bytes.fill(0),
        }
        Ok(())
    }
}

struct Shared(Rc<Disk>);

impl Device for Shared {
    fn limits(&self) -> Limits {
        self.0.limits
    }

    fn start(&self, mut io: Io) -> Pending {
        let result = self.0.carry_out(&mut io);
        if !self.0.late {
            return Pending::ready(io.complete(result));
        }
        let (mut waited, mut io) = (false, Some(io));
        Pending::task(std::future::poll_fn(move |_| {
            if !std::mem::replace(&mut waited, true) {
                return Poll::Pending;
            }
            let io = io.take().unwrap_or_else(|| Io::read(0, Payload::None));
            Poll::Ready(io.complete(result))
        }))
    }

    fn extents(&self, span: Span) -> Extents {
        let bytes = self.0.bytes.borrow();
        let blocks = bytes[range(span)].chunks(self.0.limits.logical_block as usize);
        let extents = blocks
            .map(|block| match block.iter().all(|byte| *byte == 0) {
                true => Extent::hole(block.len() as u64),
                false => Extent::data(block.len() as u64),
            })
            .collect();
        Extents::Known(extents)
    }
}
