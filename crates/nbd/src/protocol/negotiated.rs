//! The outcome of the handshake, and two properties of the transmission: the length of a request header, and
//! the form of replies.
//!
//! ```text
//!   negotiated            request   reply to READ    reply to others
//!   ------------------    -------   -------------    -------------------------
//!   nothing               28 bytes  simple           simple
//!   structured replies    28 bytes  structured       simple ok, structured error
//!   extended headers      32 bytes  extended         extended
//! ```

use super::constants::{EXTENDED_REQUEST_BYTES, REQUEST_BYTES};
use super::export::ExportInfo;

/// The layout of request headers (section "Request message").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderMode {
    /// 28 bytes, 32-bit length.
    Simple,
    /// 32 bytes, 64-bit length.
    Extended,
}

impl HeaderMode {
    /// Bytes in a request header.
    #[must_use]
    #[inline]
    pub const fn request_bytes(self) -> usize {
        match self {
            Self::Simple => REQUEST_BYTES,
            Self::Extended => EXTENDED_REQUEST_BYTES,
        }
    }
}

/// The layout of replies (sections "Simple reply message" and "Structured
/// reply chunk message"). Its methods, in [`super::reply`], build them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyStyle {
    /// 16-byte header; read data follow it.
    Simple,
    /// 20-byte chunk headers.
    Structured,
    /// 32-byte chunk headers.
    Extended,
}

impl ReplyStyle {
    /// The request layout that goes with this reply layout.
    #[must_use]
    #[inline]
    pub const fn header_mode(self) -> HeaderMode {
        match self {
            Self::Simple | Self::Structured => HeaderMode::Simple,
            Self::Extended => HeaderMode::Extended,
        }
    }

    /// Returns true if replies are chunks, so that reads can be split, holes sent and `NBD_CMD_FLAG_DF` and
    /// `NBD_CMD_BLOCK_STATUS` used.
    #[must_use]
    #[inline]
    pub const fn is_chunked(self) -> bool {
        !matches!(self, Self::Simple)
    }
}

/// The result of a handshake that reached transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// Which export, as an index into the catalogue.
    pub export_index: usize,
    /// The form of replies, and with it of requests.
    pub style: ReplyStyle,
    /// The id given to `base:allocation`, if the client selected it for this export.
    pub base_allocation: Option<u32>,
    /// The client set `NBD_FLAG_C_NO_ZEROES`.
    pub no_zeroes: bool,
    /// The client asked for `NBD_INFO_BLOCK_SIZE` and so promised to keep it.
    pub block_size_promised: bool,
    /// The transmission flags that the client was told.
    pub transmission_flags: u16,
}

impl Negotiated {
    /// Returns the outcome for a client that chose `export` in `style` and asked for nothing else. For tests
    /// and for sessions without a handshake.
    #[must_use]
    pub fn new(export_index: usize, export: &ExportInfo, style: ReplyStyle) -> Self {
        Self {
            export_index,
            style,
            base_allocation: None,
            no_zeroes: false,
            block_size_promised: false,
            transmission_flags: export.transmission_flags(style.is_chunked()),
        }
    }

    /// The layout of request headers from now on.
    #[must_use]
    #[inline]
    pub const fn header_mode(&self) -> HeaderMode {
        self.style.header_mode()
    }
}
