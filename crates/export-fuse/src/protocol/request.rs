//! Requests: bytes to checked values.

use super::{HEAD, IN_HEADER, opcode};

/// The header of every request (`struct fuse_in_header`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Length of the request in bytes, this header included.
    pub len: u32,
    /// Which operation: a constant of [`opcode`].
    pub opcode: u32,
    /// Ties the reply to the request.
    pub unique: u64,
    /// The file or directory that is meant.
    pub node: u64,
}

/// A request that is what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Its header.
    pub header: Header,
    /// Its arguments.
    pub operation: Operation<'a>,
}

/// The operation of a request. Offsets and lengths are bytes, not compared with the volume's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields of linux/fuse.h under their own names")]
pub enum Operation<'a> {
    /// The first request of a connection.
    Init { major: u32, minor: u32, flags: u32, flags2: u32 },
    /// Which node is `name` in this directory? A name that is too long to be told from its
    /// first 40 bytes comes without them.
    Lookup { name: Option<&'a [u8]> },
    /// Nodes are not needed any more (FORGET, BATCH_FORGET). Takes no reply.
    Forget,
    /// Attributes of a node.
    GetAttr,
    /// Change of attributes, the size among them.
    SetAttr,
    /// Open with the `O_*` bits of `flags`.
    Open { flags: u32 },
    /// Read up to `size` bytes.
    Read { offset: u64, size: u32 },
    /// Write the `size` bytes of the body; `flags` are the `O_*` bits of the open file.
    Write { offset: u64, size: u32, flags: u32 },
    /// A descriptor was closed.
    Flush,
    /// The last descriptor of an open file was closed.
    Release,
    /// Make what was written durable.
    Fsync,
    /// Allocate, punch or zero a range.
    Fallocate { offset: u64, len: u64, mode: u32 },
    /// Size of the file system.
    StatFs,
    /// Open a directory.
    OpenDir,
    /// List a directory from entry `offset` on, in at most `size` bytes.
    ReadDir { offset: u64, size: u32 },
    /// Close a directory.
    ReleaseDir,
    /// Make a directory durable.
    FsyncDir,
    /// May this be accessed?
    Access,
    /// Find data or a hole.
    Lseek { offset: u64, whence: u32 },
    /// A request's caller no longer waits.
    Interrupt,
    /// The last request of a connection.
    Destroy,
    /// An opcode that this file system has no use for.
    Unsupported,
}

/// Why bytes are no request. The kernel never sends such; it is checked because what follows
/// relies on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Too few bytes for a header, so no reply is possible.
    #[error("a request of {received} bytes has no header")]
    NoHeader {
        /// Bytes that came.
        received: usize,
    },
    /// The header claims another length than came.
    #[error("request {unique} came in {received} bytes and claims {claimed}")]
    Length {
        /// Whom to answer.
        unique: u64,
        /// Bytes that came.
        received: usize,
        /// Bytes according to its header.
        claimed: u32,
    },
    /// The arguments are shorter than the opcode requires, or the payload of a WRITE is not as
    /// long as its arguments say.
    #[error("request {unique} with opcode {opcode} came in {received} bytes and takes {needed}")]
    Arguments {
        /// Whom to answer.
        unique: u64,
        /// Which operation.
        opcode: u32,
        /// Bytes that came.
        received: usize,
        /// Bytes that it takes.
        needed: usize,
    },
}

impl Malformed {
    /// Whom to answer, if that is known.
    pub const fn unique(&self) -> Option<u64> {
        match self {
            Malformed::NoHeader { .. } => None,
            Malformed::Length { unique, .. } | Malformed::Arguments { unique, .. } => Some(*unique),
        }
    }
}

/// Understands a request of `received` bytes, of which the first [`HEAD`] (or all, if there are
/// fewer) are in `head`.
///
/// # Errors
/// [`Malformed`] when lengths contradict each other.
pub fn parse(head: &[u8; HEAD], received: usize) -> Result<Request<'_>, Malformed> {
    if received < IN_HEADER {
        return Err(Malformed::NoHeader { received });
    }
    let header = Header {
        len: u32_at(head, 0),
        opcode: u32_at(head, 4),
        unique: u64_at(head, 8),
        node: u64_at(head, 16),
    };
    let unique = header.unique;
    if header.len as usize != received {
        return Err(Malformed::Length { unique, received, claimed: header.len });
    }
    let mut needed = IN_HEADER + argument_bytes(header.opcode);
    if header.opcode == opcode::WRITE && received >= HEAD {
        needed = HEAD + u32_at(head, IN_HEADER + 16) as usize;
        if received > needed {
            return Err(Malformed::Arguments { unique, opcode: opcode::WRITE, received, needed });
        }
    }
    if received < needed {
        return Err(Malformed::Arguments { unique, opcode: header.opcode, received, needed });
    }
    Ok(Request { header, operation: parse_arguments(header.opcode, head, received) })
}

/// Bytes of arguments that are looked at; the kernel may send more.
const fn argument_bytes(opcode: u32) -> usize {
    match opcode {
        opcode::INIT => 16,
        opcode::LOOKUP => 1,
        opcode::OPEN => 8,
        opcode::READ | opcode::WRITE | opcode::READDIR => 40,
        opcode::FALLOCATE => 32,
        opcode::LSEEK => 24,
        _ => 0,
    }
}

/// The arguments, of which there are enough.
fn parse_arguments(opcode: u32, head: &[u8; HEAD], received: usize) -> Operation<'_> {
    let u32_at = |at| u32_at(head, IN_HEADER + at);
    let u64_at = |at| u64_at(head, IN_HEADER + at);
    match opcode {
        opcode::INIT => Operation::Init {
            major: u32_at(0),
            minor: u32_at(4),
            flags: u32_at(12),
            // Kernels before 5.17 have none.
            flags2: if received >= IN_HEADER + 20 { u32_at(16) } else { 0 },
        },
        opcode::LOOKUP => Operation::Lookup { name: name_in(&head[IN_HEADER..received.min(HEAD)]) },
        opcode::FORGET | opcode::BATCH_FORGET => Operation::Forget,
        opcode::GETATTR => Operation::GetAttr,
        opcode::SETATTR => Operation::SetAttr,
        opcode::OPEN => Operation::Open { flags: u32_at(0) },
        opcode::READ => Operation::Read { offset: u64_at(8), size: u32_at(16) },
        opcode::WRITE => {
            Operation::Write { offset: u64_at(8), size: u32_at(16), flags: u32_at(32) }
        }
        opcode::STATFS => Operation::StatFs,
        opcode::RELEASE => Operation::Release,
        opcode::FSYNC => Operation::Fsync,
        opcode::FLUSH => Operation::Flush,
        opcode::OPENDIR => Operation::OpenDir,
        opcode::READDIR => Operation::ReadDir { offset: u64_at(8), size: u32_at(16) },
        opcode::RELEASEDIR => Operation::ReleaseDir,
        opcode::FSYNCDIR => Operation::FsyncDir,
        opcode::ACCESS => Operation::Access,
        opcode::INTERRUPT => Operation::Interrupt,
        opcode::DESTROY => Operation::Destroy,
        opcode::FALLOCATE => {
            Operation::Fallocate { offset: u64_at(8), len: u64_at(16), mode: u32_at(24) }
        }
        opcode::LSEEK => Operation::Lseek { offset: u64_at(8), whence: u32_at(16) },
        _ => Operation::Unsupported,
    }
}

/// The bytes before the first NUL, if there is one.
fn name_in(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some(&bytes[..end])
}

fn u32_at(bytes: &[u8; HEAD], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("a range of four bytes"))
}

fn u64_at(bytes: &[u8; HEAD], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("a range of eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A request as `linux/fuse.h` lays it out: header, arguments, and `payload` bytes unseen.
    fn bytes(opcode: u32, node: u64, arguments: &[u8], payload: usize) -> ([u8; HEAD], usize) {
        let received = IN_HEADER + arguments.len() + payload;
        let mut all = Vec::new();
        all.extend((received as u32).to_ne_bytes());
        all.extend(opcode.to_ne_bytes());
        all.extend(77u64.to_ne_bytes());
        all.extend(node.to_ne_bytes());
        // uid, gid, pid, total_extlen and padding.
        all.extend([0xff; 16]);
        all.extend(arguments);
        all.resize(all.len().max(HEAD), 0xee);
        (all[..HEAD].try_into().unwrap(), received)
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// Arguments whose first three 64-bit words are these, then 32-bit words.
    fn longs(longs: &[u64], then: &[u32]) -> Vec<u8> {
        let mut bytes: Vec<u8> = longs.iter().flat_map(|long| long.to_ne_bytes()).collect();
        bytes.extend(words(then));
        bytes
    }

    #[test]
    fn each_operation_from_its_bytes() {
        use Operation::*;
        let (offset, len) = (0x0102_0304_0506_0708, 0x1112_1314_1516_1718);
        let table: &[(u32, Vec<u8>, usize, Operation<'_>)] = &[
            // fuse_init_in: major, minor, max_readahead, flags, flags2, unused[11].
            (
                26,
                words(&[7, 45, 131_072, 0x73ff_fffb, 1, 0, 0, 0, 0, 0]),
                24,
                Init { major: 7, minor: 45, flags: 0x73ff_fffb, flags2: 1 },
            ),
            (1, b"volume\0".to_vec(), 0, Lookup { name: Some(b"volume") }),
            (1, vec![b'x'; 40], 20, Lookup { name: None }),
            (2, longs(&[1], &[]), 0, Forget),
            (42, longs(&[0, 2, 1], &[]), 0, Forget),
            (3, longs(&[0, 0], &[]), 0, GetAttr),
            (4, vec![0; 40], 48, SetAttr),
            // fuse_open_in: flags, open_flags.
            (14, words(&[0o100_002, 0]), 0, Open { flags: 0o100_002 }),
            // fuse_read_in: fh, offset, size, read_flags, lock_owner, flags, padding.
            (15, longs(&[9, offset], &[4096, 0, 0, 0, 0, 0]), 0, Read { offset, size: 4096 }),
            // fuse_write_in: fh, offset, size, write_flags, lock_owner, flags, padding.
            (
                16,
                longs(&[9, offset], &[512, 0, 0, 0, 0o50_002, 0]),
                512,
                Write { offset, size: 512, flags: 0o50_002 },
            ),
            (17, vec![], 0, StatFs),
            (18, vec![0; 24], 0, Release),
            (20, vec![0; 16], 0, Fsync),
            (25, vec![0; 24], 0, Flush),
            (27, vec![0; 8], 0, OpenDir),
            (28, longs(&[9, 2], &[65_536, 0, 0, 0, 0, 0]), 0, ReadDir { offset: 2, size: 65_536 }),
            (29, vec![0; 24], 0, ReleaseDir),
            (30, vec![0; 16], 0, FsyncDir),
            (34, vec![0; 8], 0, Access),
            (36, vec![0; 8], 0, Interrupt),
            (38, vec![], 0, Destroy),
            // fuse_fallocate_in: fh, offset, length, mode, padding.
            (43, longs(&[9, offset, len], &[3, 0]), 0, Fallocate { offset, len, mode: 3 }),
            // fuse_lseek_in: fh, offset, whence, padding.
            (46, longs(&[9, offset], &[4, 0]), 0, Lseek { offset, whence: 4 }),
            (52, vec![0; 24], 0, Unsupported),
            (u32::MAX, vec![], 0, Unsupported),
        ];
        for (opcode, arguments, payload, expected) in table {
            let (head, received) = bytes(*opcode, 2, arguments, *payload);
            let header = Header { len: received as u32, opcode: *opcode, unique: 77, node: 2 };
            let expected = Request { header, operation: *expected };
            assert_eq!(parse(&head, received), Ok(expected), "opcode {opcode}");
        }
    }

    #[test]
    fn lengths_that_contradict_each_other() {
        let (head, received) = bytes(15, 2, &[0; 40], 0);
        assert_eq!(parse(&head, 39), Err(Malformed::NoHeader { received: 39 }));
        assert_eq!(
            parse(&head, received + 1),
            Err(Malformed::Length { unique: 77, received: 81, claimed: 80 })
        );
        let (head, received) = bytes(15, 2, &[0; 39], 0);
        assert_eq!(
            parse(&head, received),
            Err(Malformed::Arguments { unique: 77, opcode: 15, received: 79, needed: 80 })
        );
        // A WRITE of 512 bytes with 511, and with 513.
        for payload in [511, 513] {
            let (head, received) = bytes(16, 2, &longs(&[0, 0], &[512, 0, 0, 0, 0, 0]), payload);
            assert_eq!(
                parse(&head, received),
                Err(Malformed::Arguments { unique: 77, opcode: 16, received, needed: 592 })
            );
        }
        let (head, received) = bytes(1, 1, b"", 0);
        assert!(parse(&head, received).is_err(), "a name has at least its NUL");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(head in prop::array::uniform32(any::<u8>()), more in prop::collection::vec(any::<u8>(), HEAD - 32), received in 0usize..2_000_000, honest in any::<bool>(), opcode in 0u32..60) {
            let mut bytes: [u8; HEAD] = [0; HEAD];
            bytes[..32].copy_from_slice(&head);
            bytes[32..].copy_from_slice(&more);
            if honest {
                bytes[..4].copy_from_slice(&(received as u32).to_ne_bytes());
                bytes[4..8].copy_from_slice(&opcode.to_ne_bytes());
            }
            if let Ok(request) = parse(&bytes, received) {
                prop_assert_eq!(request.header.len as usize, received);
                if let Operation::Write { size, .. } = request.operation {
                    prop_assert_eq!(size as usize, received - HEAD);
                }
            }
        }
    }
}
