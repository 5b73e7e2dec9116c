//! The NBD protocol as values: what goes over the wire, and nothing that
//! moves it.
//!
//! Invariants:
//! - no I/O, no clock, no allocation on the path of a request and its reply;
//! - bytes from a client are [`request::RawRequest`] until [`check::check`]
//!   has turned them into a [`check::CheckedRequest`]; nothing else may act
//!   on them;
//! - no input makes any function here panic.
//!
//! Absent on purpose: TLS, oldstyle negotiation, resizing.

pub mod check;
pub mod constants;
pub mod errno;
pub mod export;
pub mod negotiated;
pub mod option;
pub mod reply;
pub mod request;

pub use check::{CheckedRequest, Command, Payload, Refusal, RefusalReason, check};
pub use errno::NbdErrno;
pub use export::{BlockSize, ExportError, ExportInfo, Exports};
pub use negotiated::{HeaderMode, Negotiated, ReplyStyle};
pub use reply::{Extent, ReplyHeader, ReplyTo};
pub use request::{ParsedHeader, RawRequest, parse};

/// Reads a big-endian `u16` at `at`; the caller has checked the length.
pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Reads a big-endian `u32` at `at`; the caller has checked the length.
pub(crate) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from(be16(bytes, at)) << 16 | u32::from(be16(bytes, at + 2))
}

/// Reads a big-endian `u64` at `at`; the caller has checked the length.
pub(crate) fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from(be32(bytes, at)) << 32 | u64::from(be32(bytes, at + 4))
}
