//! Request headers (section "Request message").
//!
//! ```text
//!   compact, 28 bytes                      extended, 32 bytes
//!    0  u32  0x25609513                     0  u32  0x21e41c71
//!    4  u16  command flags                  4  u16  command flags
//!    6  u16  type                           6  u16  type
//!    8  u64  cookie                         8  u64  cookie
//!   16  u64  offset                        16  u64  offset
//!   24  u32  length                        24  u64  length
//! ```
//!
//! Invariants: [`parse`] looks at one header and allocates nothing; it accepts
//! every value of every field but the magic, because what a value means is
//! the business of [`mod@super::check`].
//!
//! Absent on purpose: the payload of a write. It follows the header, and the
//! session moves it straight to where it belongs.

use super::constants::*;
use super::negotiated::HeaderMode;
use super::{be16, be32, be64};

/// A request header as it arrived: nothing in it is to be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRequest {
    /// The layout that it came in.
    pub mode: HeaderMode,
    /// Command flags, known or not.
    pub flags: u16,
    /// The command, known or not.
    pub kind: u16,
    /// The client's name for this request; goes back in the reply.
    pub cookie: u64,
    /// First byte concerned.
    pub offset: u64,
    /// Bytes concerned, or bytes of payload; at most 2^32 - 1 in compact headers.
    pub length: u64,
}

impl RawRequest {
    /// Bytes of payload that follow the header, if the client keeps to the
    /// protocol: `length` of a write in compact headers; `length` of whatever
    /// has `NBD_CMD_FLAG_PAYLOAD_LEN` in extended ones.
    #[must_use]
    pub const fn payload_bytes(&self) -> u64 {
        let has_payload = match self.mode {
            HeaderMode::Simple => self.kind == NBD_CMD_WRITE,
            HeaderMode::Extended => self.flags & NBD_CMD_FLAG_PAYLOAD_LEN != 0,
        };
        if has_payload { self.length } else { 0 }
    }
}

/// The front of a receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParsedHeader {
    /// Not a whole header yet; it takes `HeaderMode::request_bytes`.
    NeedMore,
    /// A header, in the first `HeaderMode::request_bytes` bytes.
    Request(RawRequest),
    /// Not a request. The stream is out of step and the connection must be
    /// closed: nothing that follows can be trusted to be a header.
    BadMagic(u32),
}

/// Reads the header at the start of `bytes`; ignores what follows it.
///
/// A wrong magic is reported as soon as its four bytes are there.
#[must_use]
#[inline]
pub fn parse(mode: HeaderMode, bytes: &[u8]) -> ParsedHeader {
    if bytes.len() < 4 {
        return ParsedHeader::NeedMore;
    }
    let magic = be32(bytes, 0);
    let expected = match mode {
        HeaderMode::Simple => NBD_REQUEST_MAGIC,
        HeaderMode::Extended => NBD_EXTENDED_REQUEST_MAGIC,
    };
    if magic != expected {
        return ParsedHeader::BadMagic(magic);
    }
    if bytes.len() < mode.request_bytes() {
        return ParsedHeader::NeedMore;
    }
    ParsedHeader::Request(RawRequest {
        mode,
        flags: be16(bytes, 4),
        kind: be16(bytes, 6),
        cookie: be64(bytes, 8),
        offset: be64(bytes, 16),
        length: match mode {
            HeaderMode::Simple => u64::from(be32(bytes, 24)),
            HeaderMode::Extended => be64(bytes, 24),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_header_byte_by_byte() {
        let bytes = [
            0x25, 0x60, 0x95, 0x13, 0, 1, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0x10, 0,
            0, 0, 2, 0, 0xee,
        ];
        for cut in 0..28 {
            assert_eq!(parse(HeaderMode::Simple, &bytes[..cut]), ParsedHeader::NeedMore);
        }
        let expected = RawRequest {
            mode: HeaderMode::Simple,
            flags: NBD_CMD_FLAG_FUA,
            kind: NBD_CMD_WRITE,
            cookie: 0x0102_0304_0506_0708,
            offset: 4096,
            length: 512,
        };
        assert_eq!(expected.payload_bytes(), 512);
        for cut in 28..=29 {
            let parsed = parse(HeaderMode::Simple, &bytes[..cut]);
            assert_eq!(parsed, ParsedHeader::Request(expected));
        }
    }

    #[test]
    fn extended_header_has_a_64_bit_length() {
        let bytes = [
            0x21, 0xe4, 0x1c, 0x71, 0, 0x10, 0, 6, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 0, 1, 0, 0, 0, 0, 0,
        ];
        let ParsedHeader::Request(raw) = parse(HeaderMode::Extended, &bytes) else {
            panic!("a whole header");
        };
        assert_eq!((raw.kind, raw.flags), (NBD_CMD_WRITE_ZEROES, NBD_CMD_FLAG_FAST_ZERO));
        assert_eq!((raw.cookie, raw.length), (9, 1 << 40));
        assert_eq!(raw.payload_bytes(), 0);
        assert_eq!(parse(HeaderMode::Extended, &bytes[..31]), ParsedHeader::NeedMore);
    }

    #[test]
    fn a_wrong_magic_is_seen_at_four_bytes() {
        let bad = ParsedHeader::BadMagic(0x2560_9514);
        assert_eq!(parse(HeaderMode::Simple, &[0x25, 0x60, 0x95, 0x14]), bad);
        // The other mode's magic is wrong, too.
        let extended = NBD_EXTENDED_REQUEST_MAGIC.to_be_bytes();
        let bad = ParsedHeader::BadMagic(NBD_EXTENDED_REQUEST_MAGIC);
        assert_eq!(parse(HeaderMode::Simple, &extended), bad);
    }
}
