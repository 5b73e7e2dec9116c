//! Reply headers (sections "Simple reply message", "Structured reply chunk
//! message", "Structured reply types").
//!
//! ```text
//!   simple, 16 bytes      structured chunk, 20 bytes   extended chunk, 32 bytes
//!    0 u32 0x67446698      0 u32 0x668e33ef             0 u32 0x6e8a278c
//!    4 u32 error           4 u16 reply flags            4 u16 reply flags
//!    8 u64 cookie          6 u16 type                   6 u16 type
//!   16 (read data)         8 u64 cookie                 8 u64 cookie
//!                         16 u32 payload length        16 u64 offset of the request
//!                         20 (payload)                 24 u64 payload length
//!                                                      32 (payload)
//!
//!   payload of OFFSET_DATA   u64 offset, data         of ERROR         u32 error, u16 n, n bytes
//!              OFFSET_HOLE   u64 offset, u32 length   of ERROR_OFFSET  the same, u64 offset
//!              BLOCK_STATUS      u32 context, (u32 length, u32 status)...
//!              BLOCK_STATUS_EXT  u32 context, u32 count, (u64 length, u64 status)...
//! ```
//!
//! Invariants:
//! - a [`ReplyHeader`] is complete up to where bulk data begin, lives on the
//!   stack and is never longer than [`REPLY_HEADER_MAX`]; data are sent from
//!   their own buffer by scatter-gather;
//! - a read is never answered by a simple reply when chunks were negotiated,
//!   and everything is answered by chunks with extended headers.
//!
//! Absent on purpose: the number and order of replies. The session owns the life of a request: chunks in any
//! order, `done` on the last one only.

use super::constants::*;
use super::errno::NbdErrno;
use super::negotiated::ReplyStyle;

/// Longest header in bytes: extended, `NBD_REPLY_TYPE_ERROR_OFFSET` is 32 + 14.
pub const REPLY_HEADER_MAX: usize = 48;

/// The fields of a request that its reply repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyTo {
    /// The client's name for the request.
    pub cookie: u64,
    /// The request's offset field, which extended replies repeat.
    pub offset: u64,
}

/// A run of bytes with the same status (`NBD_REPLY_TYPE_BLOCK_STATUS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Bytes.
    pub length: u64,
    /// `base:allocation`: `NBD_STATE_HOLE`, `NBD_STATE_ZERO`, or 0.
    pub status: u32,
}

/// A finished header, on the stack.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ReplyHeader {
    bytes: [u8; REPLY_HEADER_MAX],
    len: u8,
}

impl ReplyHeader {
    #[inline]
    const fn empty() -> Self {
        Self { bytes: [0; REPLY_HEADER_MAX], len: 0 }
    }

    /// The bytes to send.
    #[must_use]
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Appends a field. Every sequence in this module fits; see `REPLY_HEADER_MAX`.
    #[inline]
    fn put(mut self, field: &[u8]) -> Self {
        let start = usize::from(self.len);
        self.bytes[start..start + field.len()].copy_from_slice(field);
        self.len += field.len() as u8;
        self
    }

    /// A simple reply; `error` is 0 for success.
    #[inline]
    fn simple(cookie: u64, error: u32) -> Self {
        Self::empty()
            .put(&NBD_SIMPLE_REPLY_MAGIC.to_be_bytes())
            .put(&error.to_be_bytes())
            .put(&cookie.to_be_bytes())
    }

    /// The header of a chunk with `payload` bytes behind it. A structured
    /// payload is below 2^32 because `maximum_payload` and `MAX_EXTENTS` are.
    #[inline]
    fn chunk(extended: bool, to: ReplyTo, kind: u16, done: bool, payload: u64) -> Self {
        debug_assert!(extended || payload <= u64::from(u32::MAX), "payload of {payload}");
        let flags = if done { NBD_REPLY_FLAG_DONE } else { 0 };
        let magic = if extended { NBD_EXTENDED_REPLY_MAGIC } else { NBD_STRUCTURED_REPLY_MAGIC };
        let header = Self::empty()
            .put(&magic.to_be_bytes())
            .put(&flags.to_be_bytes())
            .put(&kind.to_be_bytes())
            .put(&to.cookie.to_be_bytes());
        if extended {
            header.put(&to.offset.to_be_bytes()).put(&payload.to_be_bytes())
        } else {
            header.put(&(payload as u32).to_be_bytes())
        }
    }
}

impl AsRef<[u8]> for ReplyHeader {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl std::fmt::Debug for ReplyHeader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ReplyHeader").field(&self.as_bytes()).finish()
    }
}

impl ReplyStyle {
    #[inline]
    const fn extended(self) -> bool {
        matches!(self, Self::Extended)
    }

    /// Success without data: the whole reply to a write, flush, trim, write
    /// zeroes or cache. Not for reads; see [`Self::read_done`].
    ///
    /// With structured replies this is a simple reply, which the
    /// specification allows and which is four bytes shorter.
    #[must_use]
    #[inline]
    pub fn ok(self, to: ReplyTo) -> ReplyHeader {
        match self {
            Self::Simple | Self::Structured => ReplyHeader::simple(to.cookie, 0),
            Self::Extended => self.read_done(to),
        }
    }

    /// Failure of the whole request, as the last chunk: valid for every
    /// command, and after other chunks of a read.
    #[must_use]
    pub fn error(self, to: ReplyTo, errno: NbdErrno) -> ReplyHeader {
        self.error_header(to, errno, 0)
    }

    /// As [`Self::error`], with a message for the person at the other end,
    /// appended to `out`. Simple replies have no room for it. A message over
    /// 4096 bytes is cut at a character boundary; NUL bytes become spaces.
    pub fn error_message(self, to: ReplyTo, errno: NbdErrno, message: &str, out: &mut Vec<u8>) {
        if self == Self::Simple {
            out.extend_from_slice(self.error(to, errno).as_bytes());
            return;
        }
        let message = &message[..message.floor_char_boundary(MAX_STRING_BYTES)];
        let header = self.error_header(to, errno, message.len() as u16);
        out.extend_from_slice(header.as_bytes());
        out.extend(message.bytes().map(|byte| if byte == 0 { b' ' } else { byte }));
    }

    fn error_header(self, to: ReplyTo, errno: NbdErrno, message_bytes: u16) -> ReplyHeader {
        if self == Self::Simple {
            return ReplyHeader::simple(to.cookie, errno.to_wire());
        }
        let payload = 6 + u64::from(message_bytes);
        ReplyHeader::chunk(self.extended(), to, NBD_REPLY_TYPE_ERROR, true, payload)
            .put(&errno.to_wire().to_be_bytes())
            .put(&message_bytes.to_be_bytes())
    }

    /// Failure at `offset`, which lies within the request; what was sent
    /// before that offset stays valid. Simple replies say only that it failed.
    #[must_use]
    pub fn error_offset(
        self,
        to: ReplyTo,
        errno: NbdErrno,
        offset: u64,
        done: bool,
    ) -> ReplyHeader {
        if self == Self::Simple {
            return ReplyHeader::simple(to.cookie, errno.to_wire());
        }
        ReplyHeader::chunk(self.extended(), to, NBD_REPLY_TYPE_ERROR_OFFSET, done, 14)
            .put(&errno.to_wire().to_be_bytes())
            .put(&0_u16.to_be_bytes())
            .put(&offset.to_be_bytes())
    }

    /// The header before `length` bytes of read data from `offset`; send the
    /// data right behind it.
    ///
    /// A simple reply has exactly one of these, for the whole request
    /// (`done`, `offset` the request's). `length` is at least 1, and set
    /// `done` only if no error can appear any more.
    #[must_use]
    #[inline]
    pub fn read_data(self, to: ReplyTo, offset: u64, length: u32, done: bool) -> ReplyHeader {
        if self == Self::Simple {
            return ReplyHeader::simple(to.cookie, 0);
        }
        let payload = 8 + u64::from(length);
        ReplyHeader::chunk(self.extended(), to, NBD_REPLY_TYPE_OFFSET_DATA, done, payload)
            .put(&offset.to_be_bytes())
    }

    /// A chunk that says that `length` bytes from `offset` read as zeroes.
    /// `None` for simple replies, which must send the zeroes. `length` is at
    /// least 1; not for `NBD_CMD_FLAG_DF` unless the hole is the whole answer.
    #[must_use]
    pub fn read_hole(
        self,
        to: ReplyTo,
        offset: u64,
        length: u32,
        done: bool,
    ) -> Option<ReplyHeader> {
        if self == Self::Simple {
            return None;
        }
        let header = ReplyHeader::chunk(self.extended(), to, NBD_REPLY_TYPE_OFFSET_HOLE, done, 12);
        Some(header.put(&offset.to_be_bytes()).put(&length.to_be_bytes()))
    }

    /// `NBD_REPLY_TYPE_NONE`: the chunk that ends a reply whose other chunks
    /// did not say `done`. A simple reply ends by itself and gets a plain
    /// success, which is right for everything but a read.
    #[must_use]
    #[inline]
    pub fn read_done(self, to: ReplyTo) -> ReplyHeader {
        match self {
            Self::Simple => ReplyHeader::simple(to.cookie, 0),
            _ => ReplyHeader::chunk(self.extended(), to, NBD_REPLY_TYPE_NONE, true, 0),
        }
    }

    /// Appends the whole answer to a block status request of `length` bytes:
    /// one chunk for `context_id`, marked done.
    ///
    /// `extents` are consecutive from the request's offset, their lengths
    /// multiples of the minimum block. What else the
    /// specification demands is done here: neighbours of equal status are
    /// joined, empty ones skipped, the sum cut at `length`, one extent sent
    /// if `one_extent`, and at most [`MAX_EXTENTS`]. If nothing is known, the
    /// answer is one extent of status 0, which is always true.
    ///
    /// Needs chunks (which `check` has made sure of); a simple reply can only
    /// say `NBD_EINVAL`.
    pub fn block_status(
        self,
        to: ReplyTo,
        context_id: u32,
        length: u64,
        one_extent: bool,
        extents: &[Extent],
        out: &mut Vec<u8>,
    ) {
        if self == Self::Simple {
            out.extend_from_slice(self.error(to, NbdErrno::Inval).as_bytes());
            return;
        }
        // Compact lengths have 32 bits, as had the request that asked.
        let length = if self.extended() { length } else { length.min(u64::from(u32::MAX)) };
        let limit = if one_extent { 1 } else { MAX_EXTENTS };
        // Count first, write second: the header comes before and holds the length.
        let count = Joined::new(extents, length).take(limit).count() as u64;
        let (kind, payload) = match self.extended() {
            true => (NBD_REPLY_TYPE_BLOCK_STATUS_EXT, 8 + 16 * count),
            false => (NBD_REPLY_TYPE_BLOCK_STATUS, 4 + 8 * count),
        };
        let header = ReplyHeader::chunk(self.extended(), to, kind, true, payload);
        out.extend_from_slice(header.as_bytes());
        out.extend_from_slice(&context_id.to_be_bytes());
        if self.extended() {
            out.extend_from_slice(&(count as u32).to_be_bytes());
        }
        for extent in Joined::new(extents, length).take(limit) {
            if self.extended() {
                out.extend_from_slice(&extent.length.to_be_bytes());
                out.extend_from_slice(&u64::from(extent.status).to_be_bytes());
            } else {
                out.extend_from_slice(&(extent.length as u32).to_be_bytes());
                out.extend_from_slice(&extent.status.to_be_bytes());
            }
        }
    }
}

/// Extents with neighbours of equal status joined and the sum cut; never empty.
struct Joined<'a> {
    rest: &'a [Extent],
    remaining: u64,
    yielded: bool,
}

impl<'a> Joined<'a> {
    fn new(extents: &'a [Extent], length: u64) -> Self {
        Self { rest: extents, remaining: length, yielded: false }
    }
}

impl Iterator for Joined<'_> {
    type Item = Extent;

    fn next(&mut self) -> Option<Extent> {
        let mut joined: Option<Extent> = None;
        while let Some((first, rest)) = self.rest.split_first() {
            let length = first.length.min(self.remaining);
            match &mut joined {
                _ if length == 0 => {}
                Some(open) if open.status != first.status => break,
                Some(open) => open.length += length,
                None => joined = Some(Extent { length, ..*first }),
            }
            self.remaining -= length;
            self.rest = rest;
        }
        if joined.is_none() && !self.yielded {
            let length = self.remaining;
            joined = Some(Extent { length, status: 0 });
        }
        self.yielded = true;
        joined
    }
}
