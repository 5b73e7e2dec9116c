//! Inputs of a handshake beside bytes, and its outcomes: the policy, the steps, and the reasons to hang up.
//!
//! Invariants: a step says everything that its reader needs; errors carry the
//! values that caused them. Absent on purpose: any behaviour.

use super::{MAX_OPTIONS, MAX_SKIPPED_BYTES};
use crate::protocol::Negotiated;
use crate::protocol::option::OptionError;

/// The answer to `NBD_OPT_STARTTLS` (sections "NOTLS mode", "SELECTIVETLS mode", "FORCEDTLS mode").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartTls {
    /// `NBD_REP_ERR_UNSUP`: this server has no TLS.
    Unsupported,
    /// `NBD_REP_ERR_POLICY`: not here (a Unix socket, or the loopback).
    ForbiddenByPolicy,
    /// TLS is started if the client asks for it.
    Offered,
    /// The same, and all other options but `NBD_OPT_ABORT` are refused before.
    Required,
}

/// The clients that may enter transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// All.
    Open,
    /// None: there is no room for more.
    Full,
    /// None: this client has no rights to the export.
    Forbidden,
}

impl Admission {
    /// Returns the reason for the client, if it is not admitted.
    pub(super) fn refusal(self) -> Option<&'static str> {
        match self {
            Admission::Open => None,
            Admission::Full => Some("there are as many clients as there may be; try again later"),
            Admission::Forbidden => Some("the certificate gives no rights to this export"),
        }
    }
}

/// The features that this server may negotiate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Grant `NBD_OPT_STRUCTURED_REPLY`.
    pub structured: bool,
    /// Grant `NBD_OPT_EXTENDED_HEADERS`.
    pub extended: bool,
    /// Answer `NBD_OPT_LIST`; else `NBD_REP_ERR_POLICY`.
    pub list: bool,
    /// Offer `base:allocation`.
    pub base_allocation: bool,
    /// Admit only clients that ask for `NBD_INFO_BLOCK_SIZE`. Servers that
    /// "desire maximum interoperability SHOULD NOT require them".
    pub require_block_size: bool,
    /// Which clients are admitted.
    pub admission: Admission,
    /// The answer to a client that asks for TLS.
    pub starttls: StartTls,
}

impl Default for Policy {
    /// Everything is granted and nothing required; no TLS.
    fn default() -> Self {
        Self {
            structured: true,
            extended: true,
            list: true,
            base_allocation: true,
            require_block_size: false,
            admission: Admission::Open,
            starttls: StartTls::Unsupported,
        }
    }
}

/// Why a handshake was cut off ("hard disconnect", section "Termination of
/// the session during option haggling").
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The fields are the values that the messages name.
pub enum HandshakeError {
    /// The server MUST close on client flags that it does not know.
    #[error("client flags {flags:#010x} contain unknown bits")]
    UnknownClientFlags { flags: u32 },
    /// Not an option; the stream is out of step.
    #[error("an option starts with {magic:#018x} and not with IHAVEOPT")]
    BadOptionMagic { magic: u64 },
    /// The client did not ask for fixed newstyle, where options can be answered.
    #[error("option {option} without fixed newstyle")]
    NotFixedNewstyle { option: u32 },
    /// Too long to be skipped as well.
    #[error("option {option} with {length} bytes: oversized options exceed {MAX_SKIPPED_BYTES}")]
    OptionTooLong { option: u32, length: u32 },
    /// The client haggles for ever.
    #[error("more than {MAX_OPTIONS} options")]
    TooManyOptions,
    /// `NBD_OPT_EXPORT_NAME` cannot be answered with an error.
    #[error("export {name:?} does not exist")]
    UnknownExport { name: String },
    /// `NBD_OPT_EXPORT_NAME` cannot be answered with an error.
    #[error("export name: {0}")]
    BadExportName(OptionError),
    /// Extended headers and `NBD_OPT_EXPORT_NAME` exclude each other.
    #[error("NBD_OPT_EXPORT_NAME after extended headers")]
    ExportNameAfterExtendedHeaders,
    /// [`Policy::admission`], which `NBD_OPT_EXPORT_NAME` cannot be told.
    #[error("{reason}")]
    NotAdmitted { reason: &'static str },
    /// `NBD_OPT_EXPORT_NAME` before TLS where it is required.
    #[error("NBD_OPT_EXPORT_NAME without TLS, which is required")]
    TlsRequired,
    /// Bytes behind `NBD_OPT_STARTTLS`, which may come of an attacker on the way.
    #[error("{bytes} bytes follow NBD_OPT_STARTTLS before it was answered")]
    BytesBeforeTls { bytes: usize },
    /// [`Policy::require_block_size`], which `NBD_OPT_EXPORT_NAME` cannot satisfy.
    #[error("NBD_OPT_EXPORT_NAME where block sizes must be negotiated")]
    BlockSizeRequired,
}

/// The progress of a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Read until there are at least `at_least` unconsumed bytes. At most
    /// [`MAX_INPUT_BYTES`](super::MAX_INPUT_BYTES).
    NeedMore {
        /// Unconsumed bytes, in all.
        at_least: usize,
    },
    /// Send the output, start TLS, then go on with [`Handshake::secured`](super::Handshake::secured).
    StartTls,
    /// Send the output, then take requests. Unconsumed bytes are requests.
    Transmission(Negotiated),
    /// The client gave up. Send the output if it still listens, then close.
    Aborted,
    /// Close. Earlier output may be sent.
    Fatal(HandshakeError),
}

/// The result of [`Handshake::advance`](super::Handshake::advance).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the input that are done with.
    pub consumed: usize,
    /// The next step.
    pub step: Step,
}
