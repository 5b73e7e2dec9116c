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

/// Copies a fixed field out; the caller has checked that it is there.
#[inline]
fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut field = [0; N];
    field.copy_from_slice(&bytes[at..at + N]);
    field
}

/// Reads a big-endian `u16` at `at`; the caller has checked the length.
#[inline]
pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(field(bytes, at))
}

/// Reads a big-endian `u32` at `at`; the caller has checked the length.
#[inline]
pub(crate) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(field(bytes, at))
}

/// Reads a big-endian `u64` at `at`; the caller has checked the length.
#[inline]
pub(crate) fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(field(bytes, at))
}
