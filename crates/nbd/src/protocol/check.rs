//! The gate between a client's bytes and the engine: [`RawRequest`] in,
//! [`CheckedRequest`] or [`Refusal`] out.
//!
//! ```text
//!   RawRequest ──► command known? flags allowed? writable? offered? length > 0?
//!                  inside the export? aligned? payload within limits?
//!                    │ yes                        │ no, the first rule broken
//!                    ▼                            ▼
//!              CheckedRequest               Refusal { errno, reason, payload }
//! ```
//!
//! Invariants:
//! - the range of a checked command lies inside the export, is not empty and
//!   is aligned to the minimum block; lengths with a payload fit in
//!   `maximum_payload`; flags mean what they say;
//! - a refusal always says what is to be done with the payload that follows
//!   the header, so that the stream stays in step or is closed.
//!
//! Decisions where the specification leaves one:
//! - **Length 0** is "unspecified, SHOULD NOT disconnect": `NBD_EINVAL`. A block status of nothing has no
//!   answer, and no client means the others.
//! - **A read longer than the maximum payload**: `NBD_EINVAL`, or
//!   `NBD_EOVERFLOW` with `NBD_CMD_FLAG_DF`. Trim, write zeroes, cache and
//!   block status carry no payload and may be as long as the export.
//! - **A refused payload** up to [`MAX_REFUSED_BYTES`] is drained; a longer
//!   one is a denial of service and ends the connection ("MAY initiate a hard
//!   disconnect", section "Block size constraints").
//! - **An extended write without `NBD_CMD_FLAG_PAYLOAD_LEN`** breaks a MUST
//!   and leaves open whether a payload follows. Guessing wrongly would take
//!   data for requests, so the connection ends.
//! - **A disconnect** is honoured whatever its other fields say.
//!
//! Absent on purpose: whether the engine can do it. That answer comes later.

use super::constants::*;
use super::errno::NbdErrno;
use super::export::ExportInfo;
use super::negotiated::{HeaderMode, Negotiated};
use super::reply::ReplyTo;
use super::request::RawRequest;

/// A command that may be acted upon. Offsets and lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `NBD_CMD_READ`.
    Read {
        /// First byte.
        offset: u64,
        /// 1..=`maximum_payload`.
        length: u32,
        /// `NBD_CMD_FLAG_DF`: answer with one content chunk.
        dont_fragment: bool,
    },
    /// `NBD_CMD_WRITE`; `length` bytes of payload follow the header.
    Write {
        /// First byte.
        offset: u64,
        /// 1..=`maximum_payload`.
        length: u32,
        /// Durable before the reply.
        fua: bool,
    },
    /// `NBD_CMD_FLUSH`.
    Flush,
    /// `NBD_CMD_TRIM`: a hint.
    Trim {
        /// First byte.
        offset: u64,
        /// At least 1; may be the whole export.
        length: u64,
        /// Durable before the reply.
        fua: bool,
    },
    /// `NBD_CMD_WRITE_ZEROES`: must read as zeroes afterwards.
    WriteZeroes {
        /// First byte.
        offset: u64,
        /// At least 1; may be the whole export.
        length: u64,
        /// Durable before the reply.
        fua: bool,
        /// `NBD_CMD_FLAG_NO_HOLE`: keep the space allocated.
        no_hole: bool,
        /// `NBD_CMD_FLAG_FAST_ZERO`: `NBD_ENOTSUP` unless faster than writing.
        fast_zero: bool,
    },
    /// `NBD_CMD_CACHE`: a hint to read ahead.
    Cache {
        /// First byte.
        offset: u64,
        /// At least 1; may be the whole export.
        length: u64,
    },
    /// `NBD_CMD_BLOCK_STATUS`; `base:allocation` was selected.
    BlockStatus {
        /// First byte.
        offset: u64,
        /// At least 1; may be the whole export.
        length: u64,
        /// `NBD_CMD_FLAG_REQ_ONE`: answer with exactly one extent.
        one_extent: bool,
    },
    /// `NBD_CMD_DISC`: finish what is in flight and close; no reply.
    Disconnect,
}

impl Command {
    /// Bytes of payload that follow the header of this command.
    #[must_use]
    #[inline]
    pub const fn payload_bytes(&self) -> u32 {
        match self {
            Self::Write { length, .. } => *length,
            _ => 0,
        }
    }

    /// The closest error that section "Error values" lets this command answer:
    /// `NBD_EOVERFLOW` belongs to unfragmented reads and `NBD_ENOTSUP` to fast
    /// zeroes; elsewhere they become `NBD_EIO` and `NBD_EINVAL`.
    #[must_use]
    pub const fn answerable(&self, errno: NbdErrno) -> NbdErrno {
        let unfragmented = matches!(self, Self::Read { dont_fragment: true, .. });
        let fast = matches!(self, Self::WriteZeroes { fast_zero: true, .. });
        match errno {
            NbdErrno::Overflow if !unfragmented => NbdErrno::Io,
            NbdErrno::NotSup if !fast => NbdErrno::Inval,
            other => other,
        }
    }
}

/// A request that passed every check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckedRequest {
    /// Whom to answer.
    pub to: ReplyTo,
    /// The command.
    pub command: Command,
}

/// The treatment of the bytes that follow a refused header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Read this many bytes (perhaps 0) and throw them away, then send the error and
    /// go on: some clients take an answer before that for a fault of the server.
    Drain(u32),
    /// Send the error if there is room, then close: where the next header
    /// begins is unknown or too far away.
    Close,
}

/// A request that is answered with an error and not acted upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Whom to answer.
    pub to: ReplyTo,
    /// The error.
    pub errno: NbdErrno,
    /// The reason, for the log (and for the message of an error chunk).
    pub reason: RefusalReason,
    /// The way to keep the stream in step.
    pub payload: Payload,
}

/// The rule that a refused request broke, with the values that broke it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The fields are the values that the messages name.
pub enum RefusalReason {
    /// The command number is not known.
    #[error("unknown command {kind}")]
    UnknownCommand { kind: u16 },
    /// A flag is unknown, not negotiated, or not valid with this command.
    #[error("flags {flags:#06x} are not allowed with command {kind}")]
    FlagsNotAllowed { kind: u16, flags: u16 },
    /// The command was not offered by the transmission flags.
    #[error("command {kind} was not offered")]
    NotOffered { kind: u16 },
    /// Block status without a selected metadata context.
    #[error("no metadata context was selected")]
    NoMetaContext,
    /// A write to a read-only export.
    #[error("the export is read-only")]
    ReadOnly,
    /// A length of zero.
    #[error("length is zero")]
    ZeroLength,
    /// A flush with an offset or a length.
    #[error("offset {offset} and length {length} must be zero")]
    FieldsNotZero { offset: u64, length: u64 },
    /// The range is not within the export.
    #[error("offset {offset} and length {length} exceed the size {size_bytes}")]
    OutOfRange { offset: u64, length: u64, size_bytes: u64 },
    /// The range is not aligned.
    #[error("offset {offset} or length {length} is not a multiple of {minimum}")]
    Unaligned { offset: u64, length: u64, minimum: u32 },
    /// More data than the export takes or gives at once.
    #[error("length {length} exceeds the maximum payload {maximum_payload}")]
    PayloadTooLong { length: u64, maximum_payload: u32 },
    /// An extended write that does not say that it has a payload.
    #[error("a write without the payload length flag")]
    PayloadLenMissing,
}

/// Checks a header against the export and what was negotiated.
///
/// `export` is the one that `negotiated.export_index` names. Does not
/// allocate. The rules and their order are in the module header; error values
/// are those of section "Error values".
///
/// # Errors
/// The first rule that the request breaks.
#[inline]
pub fn check(
    raw: &RawRequest,
    export: &ExportInfo,
    negotiated: &Negotiated,
) -> Result<CheckedRequest, Refusal> {
    let to = ReplyTo { cookie: raw.cookie, offset: raw.offset };
    match check_command(raw, export, negotiated) {
        Ok(command) => Ok(CheckedRequest { to, command }),
        Err((errno, reason)) => {
            Err(Refusal { to, errno, reason, payload: payload_after_refusal(raw, reason) })
        }
    }
}

/// The refused payload is short enough to read away, or it is not.
fn payload_after_refusal(raw: &RawRequest, reason: RefusalReason) -> Payload {
    if reason == RefusalReason::PayloadLenMissing {
        return Payload::Close;
    }
    match u32::try_from(raw.payload_bytes()) {
        Ok(bytes) if bytes <= MAX_REFUSED_BYTES => Payload::Drain(bytes),
        _ => Payload::Close,
    }
}

fn check_command(
    raw: &RawRequest,
    export: &ExportInfo,
    negotiated: &Negotiated,
) -> Result<Command, (NbdErrno, RefusalReason)> {
    use NbdErrno::{Inval, Perm};
    let RawRequest { kind, flags, offset, length, .. } = *raw;
    let told = |flag: u16| negotiated.transmission_flags & flag != 0;

    // FUA is valid with every command once offered, even where it means nothing.
    let fua_flag = if told(NBD_FLAG_SEND_FUA) { NBD_CMD_FLAG_FUA } else { 0 };
    let (own_flags, offered_by, writes) = match kind {
        NBD_CMD_READ if told(NBD_FLAG_SEND_DF) => (NBD_CMD_FLAG_DF, 0, false),
        NBD_CMD_READ => (0, 0, false),
        NBD_CMD_WRITE if raw.mode == HeaderMode::Extended => (NBD_CMD_FLAG_PAYLOAD_LEN, 0, true),
        NBD_CMD_WRITE => (0, 0, true),
        NBD_CMD_DISC => return Ok(Command::Disconnect),
        NBD_CMD_FLUSH => (0, NBD_FLAG_SEND_FLUSH, false),
        NBD_CMD_TRIM => (0, NBD_FLAG_SEND_TRIM, true),
        NBD_CMD_CACHE => (0, NBD_FLAG_SEND_CACHE, false),
        NBD_CMD_WRITE_ZEROES if told(NBD_FLAG_SEND_FAST_ZERO) => {
            (NBD_CMD_FLAG_NO_HOLE | NBD_CMD_FLAG_FAST_ZERO, NBD_FLAG_SEND_WRITE_ZEROES, true)
        }
        NBD_CMD_WRITE_ZEROES => (NBD_CMD_FLAG_NO_HOLE, NBD_FLAG_SEND_WRITE_ZEROES, true),
        NBD_CMD_BLOCK_STATUS => (NBD_CMD_FLAG_REQ_ONE, 0, false),
        _ => return Err((Inval, RefusalReason::UnknownCommand { kind })),
    };
    // Before anything else that may fail: it decides whether the stream is in step.
    if kind == NBD_CMD_WRITE
        && raw.mode == HeaderMode::Extended
        && flags & NBD_CMD_FLAG_PAYLOAD_LEN == 0
    {
        return Err((Inval, RefusalReason::PayloadLenMissing));
    }
    let wrong = flags & !(own_flags | fua_flag);
    if wrong != 0 {
        return Err((Inval, RefusalReason::FlagsNotAllowed { kind, flags: wrong }));
    }
    if writes && export.read_only {
        return Err((Perm, RefusalReason::ReadOnly));
    }
    if offered_by != 0 && !told(offered_by) {
        return Err((Inval, RefusalReason::NotOffered { kind }));
    }
    if kind == NBD_CMD_BLOCK_STATUS && negotiated.base_allocation.is_none() {
        return Err((Inval, RefusalReason::NoMetaContext));
    }
    if kind == NBD_CMD_FLUSH {
        if offset != 0 || length != 0 {
            return Err((Inval, RefusalReason::FieldsNotZero { offset, length }));
        }
        return Ok(Command::Flush);
    }
    check_range(raw, export)?;

    let fua = flags & NBD_CMD_FLAG_FUA != 0;
    Ok(match kind {
        NBD_CMD_READ => {
            let dont_fragment = flags & NBD_CMD_FLAG_DF != 0;
            let errno = if dont_fragment { NbdErrno::Overflow } else { Inval };
            Command::Read { offset, length: check_payload(length, export, errno)?, dont_fragment }
        }
        NBD_CMD_WRITE => {
            Command::Write { offset, length: check_payload(length, export, Inval)?, fua }
        }
        NBD_CMD_TRIM => Command::Trim { offset, length, fua },
        NBD_CMD_WRITE_ZEROES => Command::WriteZeroes {
            offset,
            length,
            fua,
            no_hole: flags & NBD_CMD_FLAG_NO_HOLE != 0,
            fast_zero: flags & NBD_CMD_FLAG_FAST_ZERO != 0,
        },
        NBD_CMD_CACHE => Command::Cache { offset, length },
        // The match above has let only this one through.
        _ => Command::BlockStatus { offset, length, one_extent: flags & NBD_CMD_FLAG_REQ_ONE != 0 },
    })
}

/// Not empty, inside the export, aligned.
fn check_range(raw: &RawRequest, export: &ExportInfo) -> Result<(), (NbdErrno, RefusalReason)> {
    let RawRequest { offset, length, .. } = *raw;
    let size_bytes = export.size_bytes;
    if length == 0 {
        return Err((NbdErrno::Inval, RefusalReason::ZeroLength));
    }
    // A sum that does not fit in 64 bits is beyond every end.
    if offset.checked_add(length).is_none_or(|end| end > size_bytes) {
        let errno = match raw.kind {
            NBD_CMD_WRITE | NBD_CMD_WRITE_ZEROES => NbdErrno::NoSpc,
            _ => NbdErrno::Inval,
        };
        let reason = RefusalReason::OutOfRange { offset, length, size_bytes };
        return Err((errno, reason));
    }
    // The minimum is a power of two (`ExportInfo::check`), so the low bits tell.
    let minimum = export.block_size.minimum;
    if (offset | length) & (u64::from(minimum).wrapping_sub(1)) != 0 {
        let reason = RefusalReason::Unaligned { offset, length, minimum };
        return Err((NbdErrno::Inval, reason));
    }
    Ok(())
}

/// The length of a payload, once it is within the export's maximum.
fn check_payload(
    length: u64,
    export: &ExportInfo,
    errno: NbdErrno,
) -> Result<u32, (NbdErrno, RefusalReason)> {
    let maximum_payload = export.block_size.maximum_payload;
    match u32::try_from(length) {
        Ok(short) if short <= maximum_payload => Ok(short),
        _ => Err((errno, RefusalReason::PayloadTooLong { length, maximum_payload })),
    }
}
