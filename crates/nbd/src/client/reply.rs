//! Replies as a client reads them; the layouts are drawn in
//! [`crate::protocol::reply`].
//!
//! Invariants:
//! - read data are never buffered here: [`Body::Data`] says how many bytes
//!   follow, and the caller receives them where it wants them;
//! - everything else is buffered whole, at most [`MAX_BUFFERED_REPLY`] bytes;
//! - lengths are compared with the chunk's type, to the byte.
//!
//! Absent on purpose: whether the chunk fits the request that it answers.

use crate::protocol::constants::*;
use crate::protocol::{Extent, NbdErrno, ReplyStyle, be16, be32, be64};

/// Longest reply, in bytes with its header, that has to be in the buffer
/// before it can be read: 2^20 extents, the specification's recommended most.
pub const MAX_BUFFERED_REPLY: usize = EXTENDED_REPLY_BYTES + 8 + (16 << 20);

/// The front of a receive buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParsedReply<'a> {
    /// Read until there are at least `at_least` bytes.
    NeedMore {
        /// Bytes in the buffer, in all.
        at_least: usize,
    },
    /// One reply or chunk.
    Reply {
        /// Bytes that it took; data of a read come behind them.
        consumed: usize,
        /// The reply.
        reply: Reply<'a>,
    },
    /// The server broke the protocol: close the connection.
    Fatal(ReplyError),
}

/// One simple reply, or one chunk of a structured or extended reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The request's name.
    pub cookie: u64,
    /// Extended replies repeat the request's offset.
    pub request_offset: Option<u64>,
    /// Nothing more comes for this request.
    pub done: bool,
    /// The content.
    pub body: Body<'a>,
}

/// The content of a reply. Offsets and lengths are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// A simple reply without error. If it answers a read, the read's data follow.
    SimpleOk,
    /// A simple reply with an error, and no data.
    SimpleError(NbdErrno),
    /// `NBD_REPLY_TYPE_NONE`.
    None,
    /// `NBD_REPLY_TYPE_OFFSET_DATA`; `length` bytes of data follow.
    Data {
        /// First byte, in the export.
        offset: u64,
        /// At least 1.
        length: u32,
    },
    /// `NBD_REPLY_TYPE_OFFSET_HOLE`.
    Hole {
        /// First byte, in the export.
        offset: u64,
        /// At least 1.
        length: u32,
    },
    /// `NBD_REPLY_TYPE_BLOCK_STATUS` or `NBD_REPLY_TYPE_BLOCK_STATUS_EXT`.
    BlockStatus {
        /// The metadata context.
        context_id: u32,
        /// The extents, from the request's offset on.
        extents: Extents<'a>,
    },
    /// `NBD_REPLY_TYPE_ERROR`, `NBD_REPLY_TYPE_ERROR_OFFSET`, or an unknown
    /// error type: the request failed, even if other chunks came before.
    Error {
        /// The error value.
        errno: NbdErrno,
        /// For people; usually UTF-8.
        message: &'a [u8],
        /// The offset, if the server names it.
        offset: Option<u64>,
    },
}

/// The extents of a block status chunk, read as they are iterated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extents<'a> {
    bytes: &'a [u8],
    extended: bool,
}

impl Iterator for Extents<'_> {
    type Item = Extent;

    fn next(&mut self) -> Option<Extent> {
        let size = if self.extended { 16 } else { 8 };
        let (extent, rest) = self.bytes.split_at_checked(size)?;
        self.bytes = rest;
        Some(if self.extended {
            Extent {
                length: be64(extent, 0),
                // Contexts in `base:` leave the upper 32 bits zero.
                status: be32(extent, 12),
            }
        } else {
            Extent { length: u64::from(be32(extent, 0)), status: be32(extent, 4) }
        })
    }
}

/// The fault of a server that broke the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The fields are the values that the messages name.
pub enum ReplyError {
    /// Not a reply, or not one of the negotiated layout.
    #[error("a reply starts with {magic:#010x}")]
    BadMagic { magic: u32 },
    /// A type that is neither known nor an error.
    #[error("unknown reply type {kind}")]
    UnknownType { kind: u16 },
    /// The payload's length does not go with the type.
    #[error("reply type {kind} with a payload of {length} bytes")]
    BadLength { kind: u16, length: u64 },
    /// `NBD_REPLY_TYPE_NONE` that is not the last chunk.
    #[error("an empty chunk that does not end its reply")]
    NoneNotDone,
    /// An extent or a hole of no bytes, which MUST NOT be sent.
    #[error("an extent of zero bytes")]
    EmptyExtent,
    /// The descriptor count is neither zero nor right.
    #[error("{count} extents announced, {actual} sent")]
    BadExtentCount { count: u32, actual: u64 },
    /// An error chunk with error 0.
    #[error("an error chunk without an error")]
    ErrorWithoutErrno,
}

/// Reads the reply at the start of `bytes`.
///
/// Simple replies are also valid in [`ReplyStyle::Structured`], except to a
/// read; the caller has to notice that, for it knows the cookie.
#[must_use]
pub fn parse_reply(style: ReplyStyle, bytes: &[u8]) -> ParsedReply<'_> {
    if bytes.len() < 4 {
        return ParsedReply::NeedMore { at_least: 4 };
    }
    let magic = be32(bytes, 0);
    let header_bytes = match (magic, style) {
        (NBD_SIMPLE_REPLY_MAGIC, ReplyStyle::Simple | ReplyStyle::Structured) => SIMPLE_REPLY_BYTES,
        (NBD_STRUCTURED_REPLY_MAGIC, ReplyStyle::Structured) => STRUCTURED_REPLY_BYTES,
        (NBD_EXTENDED_REPLY_MAGIC, ReplyStyle::Extended) => EXTENDED_REPLY_BYTES,
        _ => return ParsedReply::Fatal(ReplyError::BadMagic { magic }),
    };
    let Some((header, rest)) = bytes.split_at_checked(header_bytes) else {
        let at_least = header_bytes;
        return ParsedReply::NeedMore { at_least };
    };
    let cookie = be64(header, 8);
    if header_bytes == SIMPLE_REPLY_BYTES {
        let body = match NbdErrno::from_wire(be32(header, 4)) {
            None => Body::SimpleOk,
            Some(errno) => Body::SimpleError(errno),
        };
        let reply = Reply { cookie, request_offset: None, done: true, body };
        return ParsedReply::Reply { consumed: header_bytes, reply };
    }
    let extended = header_bytes == EXTENDED_REPLY_BYTES;
    let chunk = Chunk {
        done: be16(header, 4) & NBD_REPLY_FLAG_DONE != 0,
        kind: be16(header, 6),
        length: if extended { be64(header, 24) } else { u64::from(be32(header, 16)) },
    };
    let prefix = match chunk.buffered_bytes() {
        Ok(prefix) => prefix,
        Err(error) => return ParsedReply::Fatal(error),
    };
    let consumed = header_bytes + prefix;
    let Some(payload) = rest.get(..prefix) else {
        return ParsedReply::NeedMore { at_least: consumed };
    };
    match chunk.read_body(payload) {
        Ok(body) => ParsedReply::Reply {
            consumed,
            reply: Reply {
                cookie,
                request_offset: extended.then(|| be64(header, 16)),
                done: chunk.done,
                body,
            },
        },
        Err(error) => ParsedReply::Fatal(error),
    }
}

/// The part of a chunk's header that decides how its payload is read.
struct Chunk {
    done: bool,
    kind: u16,
    length: u64,
}

impl Chunk {
    /// Bytes of payload to wait for: all but the data of a read. Checks the
    /// length first, so that nothing is waited for that cannot be right.
    fn buffered_bytes(&self) -> Result<usize, ReplyError> {
        let Self { kind, length, .. } = *self;
        let right = match kind {
            NBD_REPLY_TYPE_NONE => length == 0,
            NBD_REPLY_TYPE_OFFSET_DATA => length >= 9 && length - 8 <= u64::from(u32::MAX),
            NBD_REPLY_TYPE_OFFSET_HOLE => length == 12,
            NBD_REPLY_TYPE_BLOCK_STATUS => length >= 12 && length % 8 == 4,
            NBD_REPLY_TYPE_BLOCK_STATUS_EXT => length >= 24 && length % 16 == 8,
            NBD_REPLY_TYPE_ERROR_OFFSET => length >= 14,
            kind if kind & NBD_REPLY_FLAG_ERROR_TYPE != 0 => length >= 6,
            _ => return Err(ReplyError::UnknownType { kind }),
        };
        if !right {
            return Err(ReplyError::BadLength { kind, length });
        }
        if kind == NBD_REPLY_TYPE_OFFSET_DATA {
            return Ok(8);
        }
        match usize::try_from(length) {
            Ok(bytes) if bytes <= MAX_BUFFERED_REPLY - EXTENDED_REPLY_BYTES => Ok(bytes),
            _ => Err(ReplyError::BadLength { kind, length }),
        }
    }

    /// Reads a payload whose length [`Self::buffered_bytes`] has checked.
    fn read_body<'a>(&self, payload: &'a [u8]) -> Result<Body<'a>, ReplyError> {
        let Self { kind, length, done } = *self;
        Ok(match kind {
            NBD_REPLY_TYPE_NONE if done => Body::None,
            NBD_REPLY_TYPE_NONE => return Err(ReplyError::NoneNotDone),
            NBD_REPLY_TYPE_OFFSET_DATA => {
                Body::Data { offset: be64(payload, 0), length: (length - 8) as u32 }
            }
            NBD_REPLY_TYPE_OFFSET_HOLE => {
                let (offset, length) = (be64(payload, 0), be32(payload, 8));
                if length == 0 {
                    return Err(ReplyError::EmptyExtent);
                }
                Body::Hole { offset, length }
            }
            NBD_REPLY_TYPE_BLOCK_STATUS | NBD_REPLY_TYPE_BLOCK_STATUS_EXT => {
                let extended = kind == NBD_REPLY_TYPE_BLOCK_STATUS_EXT;
                let bytes = &payload[if extended { 8 } else { 4 }..];
                let extents = Extents { bytes, extended };
                if extents.clone().any(|extent| extent.length == 0) {
                    return Err(ReplyError::EmptyExtent);
                }
                if extended {
                    let (count, actual) = (be32(payload, 4), bytes.len() as u64 / 16);
                    if count != 0 && u64::from(count) != actual {
                        return Err(ReplyError::BadExtentCount { count, actual });
                    }
                }
                Body::BlockStatus { context_id: be32(payload, 0), extents }
            }
            _ => {
                let errno = NbdErrno::from_wire(be32(payload, 0));
                let errno = errno.ok_or(ReplyError::ErrorWithoutErrno)?;
                let message_bytes = usize::from(be16(payload, 4));
                let rest = &payload[6..];
                let tail_bytes = if kind == NBD_REPLY_TYPE_ERROR_OFFSET { 8 } else { 0 };
                let message = rest.get(..message_bytes);
                let tail = rest.get(message_bytes..).unwrap_or_default();
                match message {
                    Some(message) if tail.len() >= tail_bytes => Body::Error {
                        errno,
                        message,
                        offset: (tail_bytes != 0).then(|| be64(tail, 0)),
                    },
                    _ => return Err(ReplyError::BadLength { kind, length }),
                }
            }
        })
    }
}
