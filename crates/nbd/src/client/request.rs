//! Request headers as a client sends them; the layout is drawn in
//! [`crate::protocol::request`].
//!
//! Invariants: what this writes, `parse` and `check` read back as the same
//! command. Absent on purpose: a check against the export; the server does it.

use crate::protocol::constants::*;
use crate::protocol::{Command, HeaderMode};

/// A finished request header, on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    bytes: [u8; EXTENDED_REQUEST_BYTES],
    mode: HeaderMode,
}

impl RequestHeader {
    /// The bytes to send; the payload of a write follows them.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.mode.request_bytes()]
    }
}

impl AsRef<[u8]> for RequestHeader {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

/// Writes the header of `command` under the name `cookie`.
///
/// `None` if a compact header cannot hold the length, which has 32 bits
/// there. Extended writes carry `NBD_CMD_FLAG_PAYLOAD_LEN`, as they must.
#[must_use]
pub fn encode_request(mode: HeaderMode, cookie: u64, command: &Command) -> Option<RequestHeader> {
    let flag = |on: bool, flag: u16| if on { flag } else { 0 };
    let fua_flag = |on: bool| flag(on, NBD_CMD_FLAG_FUA);
    let (kind, flags, offset, length) = match *command {
        Command::Read { offset, length, dont_fragment } => {
            let flags = flag(dont_fragment, NBD_CMD_FLAG_DF);
            (NBD_CMD_READ, flags, offset, u64::from(length))
        }
        Command::Write { offset, length, fua } => {
            let has_payload = flag(mode == HeaderMode::Extended, NBD_CMD_FLAG_PAYLOAD_LEN);
            let flags = fua_flag(fua) | has_payload;
            (NBD_CMD_WRITE, flags, offset, u64::from(length))
        }
        Command::Flush => (NBD_CMD_FLUSH, 0, 0, 0),
        Command::Trim { offset, length, fua } => (NBD_CMD_TRIM, fua_flag(fua), offset, length),
        Command::WriteZeroes { offset, length, fua, no_hole, fast_zero } => {
            let flags = fua_flag(fua)
                | flag(no_hole, NBD_CMD_FLAG_NO_HOLE)
                | flag(fast_zero, NBD_CMD_FLAG_FAST_ZERO);
            (NBD_CMD_WRITE_ZEROES, flags, offset, length)
        }
        Command::Cache { offset, length } => (NBD_CMD_CACHE, 0, offset, length),
        Command::BlockStatus { offset, length, one_extent } => {
            let flags = flag(one_extent, NBD_CMD_FLAG_REQ_ONE);
            (NBD_CMD_BLOCK_STATUS, flags, offset, length)
        }
        Command::Disconnect => (NBD_CMD_DISC, 0, 0, 0),
    };
    let mut bytes = [0; EXTENDED_REQUEST_BYTES];
    let magic = match mode {
        HeaderMode::Simple => NBD_REQUEST_MAGIC,
        HeaderMode::Extended => NBD_EXTENDED_REQUEST_MAGIC,
    };
    bytes[..4].copy_from_slice(&magic.to_be_bytes());
    bytes[4..6].copy_from_slice(&flags.to_be_bytes());
    bytes[6..8].copy_from_slice(&kind.to_be_bytes());
    bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
    bytes[16..24].copy_from_slice(&offset.to_be_bytes());
    match mode {
        HeaderMode::Simple => {
            let length = u32::try_from(length).ok()?;
            bytes[24..28].copy_from_slice(&length.to_be_bytes());
        }
        HeaderMode::Extended => bytes[24..].copy_from_slice(&length.to_be_bytes()),
    }
    Some(RequestHeader { bytes, mode })
}
