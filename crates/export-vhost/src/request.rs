//! The meaning of a request of virtio-blk (Virtual I/O Device 1.2, section 5.2.6).
//!
//! ```text
//!   to be read      | type 4 | reserved 4 | sector 8 | data to be written to the disk … |
//!   to be written                             | data read from the disk … | status 1 |
//! ```
//!
//! Deliberately absent: the buffers in which it comes ([`crate::ring`]), and carrying it out ([`crate::queue`]).

use braid_block::{Limits, Span};

/// Length of the header, in bytes.
pub(crate) const HEADER: usize = 16;
/// Length of a segment of a discard, in bytes.
pub(crate) const SEGMENT: usize = 16;
/// Length of a serial number, in bytes.
pub(crate) const SERIAL: usize = 20;
/// Length of a sector, in bytes, whatever the block of the device.
pub(crate) const SECTOR_BYTES: u32 = 512;
/// The same among offsets.
pub(crate) const SECTOR: u64 = SECTOR_BYTES as u64;
/// Most bytes of data of a request: [`crate::config`] announces segments that come to less.
pub(crate) const MOST_DATA: u64 = 32 << 20;

const IN: u32 = 0;
const OUT: u32 = 1;
const FLUSH: u32 = 4;
const GET_ID: u32 = 8;
const DISCARD: u32 = 11;
const WRITE_ZEROES: u32 = 13;

/// The flag of a segment whose space may be given up.
const UNMAP: u32 = 1;

/// The last byte of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Ok,
    IoError,
    Unsupported,
}

impl Status {
    /// As the guest reads it.
    pub(crate) fn byte(self) -> u8 {
        match self {
            Status::Ok => 0,
            Status::IoError => 1,
            Status::Unsupported => 2,
        }
    }
}

/// A request that can be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Read(Span),
    Write(Span),
    Flush,
    Id,
    Discard(Span),
    Zeroes { span: Span, may_unmap: bool },
}

/// The lengths of a request's data, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lengths {
    /// Behind the header.
    pub(crate) given: u64,
    /// Before the status.
    pub(crate) wanted: u64,
}

/// Returns the command with that header; `segment` copies the data of a discard out.
///
/// # Errors
/// The status with which it is answered at once.
pub(crate) fn check(
    header: [u8; HEADER],
    lengths: Lengths,
    limits: &Limits,
    segment: impl FnOnce() -> Option<[u8; SEGMENT]>,
) -> Result<Command, Status> {
    let [a, b, c, d, _, _, _, _, sector @ ..] = header;
    let sector = u64::from_le_bytes(sector);
    let span = |len: u64| span(sector, len, limits);
    match u32::from_le_bytes([a, b, c, d]) {
        IN if lengths.given == 0 => span(lengths.wanted).map(Command::Read),
        OUT if lengths.wanted == 0 => span(lengths.given).map(Command::Write),
        FLUSH => Ok(Command::Flush),
        GET_ID => Ok(Command::Id),
        kind @ (DISCARD | WRITE_ZEROES) => {
            if lengths.given != SEGMENT as u64 {
                return Err(Status::IoError);
            }
            ranged(kind, segment().ok_or(Status::IoError)?, limits)
        }
        IN | OUT => Err(Status::IoError),
        _ => Err(Status::Unsupported),
    }
}

/// A command without data, for the range of one segment.
fn ranged(kind: u32, segment: [u8; SEGMENT], limits: &Limits) -> Result<Command, Status> {
    let [sector @ .., a, b, c, d, e, f, g, h] = segment;
    let sectors = u64::from(u32::from_le_bytes([a, b, c, d]));
    let flags = u32::from_le_bytes([e, f, g, h]);
    // At most 2^32 sectors.
    let range = inside(u64::from_le_bytes(sector), sectors * SECTOR, limits)?;
    match (kind, flags) {
        (DISCARD, 0) => Ok(Command::Discard(range)),
        (WRITE_ZEROES, 0 | UNMAP) => Ok(Command::Zeroes { span: range, may_unmap: flags == UNMAP }),
        _ => Err(Status::Unsupported),
    }
}

fn span(sector: u64, len: u64, limits: &Limits) -> Result<Span, Status> {
    if len > MOST_DATA { Err(Status::IoError) } else { inside(sector, len, limits) }
}

/// `len` bytes from `sector` on, of whole blocks of the device.
fn inside(sector: u64, len: u64, limits: &Limits) -> Result<Span, Status> {
    let offset = sector.checked_mul(SECTOR).ok_or(Status::IoError)?;
    let span = Span::new(offset, len);
    let has_end = offset.checked_add(len).is_some_and(|end| end <= limits.size);
    if has_end && span.is_aligned(limits.logical_block) { Ok(span) } else { Err(Status::IoError) }
}
