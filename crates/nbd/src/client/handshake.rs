//! The client's side of the fixed newstyle handshake.
//!
//! ```text
//!   greeting ─► flags ─► EXTENDED_HEADERS ─ack──────────────┐
//!                             │ error                       ▼
//!                             ├─► STRUCTURED_REPLY ─ack─► SET_META_CONTEXT ─► GO ─► transmission
//!                             │      │ error                                  ▲  │ ERR_UNSUP
//!                             │      └────────────────────────────────────────┘  ▼
//!                             └ (only what `ClientConfig` wants)            EXPORT_NAME
//! ```
//!
//! Invariants: one option is in flight at a time, as the specification
//! demands; the number and length of replies are bounded; what cannot be
//! negotiated is done without, except the export itself.
//!
//! With [`ClientHandshake::starting_tls`] the greeting is followed by STARTTLS only; inside TLS,
//! [`ClientHandshake::secured`] begins with the first option.
//!
//! Absent on purpose: TLS itself; `NBD_OPT_LIST`; a server without fixed newstyle
//! gets `NBD_OPT_EXPORT_NAME` and nothing else.

use crate::protocol::constants::*;
use crate::protocol::option::put_option;
use crate::protocol::{BlockSize, ReplyStyle, be16, be32, be64};

/// Longest option reply, in bytes of data; names and messages have at most 4096.
const MAX_REPLY_BYTES: usize = 1 << 16;
/// Most option replies in one handshake. A server sends a dozen.
const MAX_REPLIES: u32 = 1024;

/// The wishes of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// The export's name; empty for the default one. At most 4096 bytes.
    pub export: String,
    /// The best style to ask for; less is accepted.
    pub style: ReplyStyle,
    /// Select `base:allocation` if replies are chunks.
    pub base_allocation: bool,
}

/// The result of a client's handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientNegotiated {
    /// Size of the export in bytes.
    pub size_bytes: u64,
    /// `NBD_FLAG_*`.
    pub transmission_flags: u16,
    /// The form of replies, and with it of requests.
    pub style: ReplyStyle,
    /// The server's id for `base:allocation`, if selected.
    pub base_allocation: Option<u32>,
    /// The constraints to keep, if the server named them. `maximum_payload`
    /// may be 0xffffffff for "no inherent limit".
    pub block_size: Option<BlockSize>,
}

/// Why there is no transmission.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The fields are the values that the messages name.
pub enum ClientError {
    /// Not a newstyle NBD server.
    #[error("not a newstyle NBD server: {first:#018x} {second:#018x}")]
    BadGreeting { first: u64, second: u64 },
    /// Not an option reply.
    #[error("an option reply starts with {magic:#018x}")]
    BadReplyMagic { magic: u64 },
    /// A reply to something that was not asked.
    #[error("a reply to option {option} while waiting for {expected}")]
    WrongOption { option: u32, expected: u32 },
    /// A reply type that this option does not have.
    #[error("reply type {reply_type:#x} to option {option}")]
    UnexpectedReply { option: u32, reply_type: u32 },
    /// A reply too long to be one.
    #[error("an option reply of {length} bytes")]
    ReplyTooLong { length: u32 },
    /// The server never comes to an end.
    #[error("more than {MAX_REPLIES} option replies")]
    TooManyReplies,
    /// A reply whose data are shorter or longer than its type says.
    #[error("an information item or context of {length} bytes")]
    BadReplyLength { length: usize },
    /// The server accepts the export without describing it.
    #[error("the server did not tell the export's size")]
    NoExportInfo,
    /// Constraints that break the specification's rules.
    #[error("block sizes {0:?} make no sense")]
    BadBlockSize(BlockSize),
    /// TLS was asked for, and the server has none. Nothing is sent without it.
    #[error("the server does not offer TLS")]
    NoTls,
    /// The server says no. The output ends with `NBD_OPT_ABORT`.
    #[error("the server refused option {option} with {reply_type:#x}: {message}")]
    Refused { option: u32, reply_type: u32, message: String },
}

/// The progress of a client's handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientStep {
    /// Send the output; read until there are `at_least` unconsumed bytes.
    NeedMore {
        /// Unconsumed bytes, in all.
        at_least: usize,
    },
    /// Send the output (none after GO), then requests.
    Transmission(ClientNegotiated),
    /// Nothing is left to send. The handshake of TLS is next, and [`ClientHandshake::secured`] within.
    StartTls,
    /// Send the output, then close.
    Fatal(ClientError),
}

/// The result of [`ClientHandshake::advance`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientProgress {
    /// Bytes of the input that are done with.
    pub consumed: usize,
    /// The next step.
    pub step: ClientStep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    Greeting,
    /// Nothing: the first option is to be sent.
    Nothing,
    Reply {
        option: u32,
    },
    ExportName,
}

/// One handshake with a server.
#[derive(Debug)]
pub struct ClientHandshake {
    config: ClientConfig,
    starts_tls: bool,
    awaited: Awaited,
    no_zeroes: bool,
    replies: u32,
    style: ReplyStyle,
    export: Option<(u64, u16)>,
    base_allocation: Option<u32>,
    block_size: Option<BlockSize>,
    ended: Option<ClientStep>,
}

impl ClientHandshake {
    /// A handshake that wants `config`. The server speaks first.
    #[must_use]
    pub fn new(config: ClientConfig) -> Self {
        Self {
            config,
            starts_tls: false,
            awaited: Awaited::Greeting,
            no_zeroes: false,
            replies: 0,
            style: ReplyStyle::Simple,
            export: None,
            base_allocation: None,
            block_size: None,
            ended: None,
        }
    }

    /// Returns a handshake that ends with [`ClientStep::StartTls`], or fails.
    #[must_use]
    pub fn starting_tls() -> Self {
        let config = ClientConfig {
            export: String::new(),
            style: ReplyStyle::Simple,
            base_allocation: false,
        };
        Self { starts_tls: true, ..Self::new(config) }
    }

    /// Returns the handshake inside TLS that wants `config`. The client speaks first.
    #[must_use]
    pub fn secured(config: ClientConfig) -> Self {
        Self { awaited: Awaited::Nothing, ..Self::new(config) }
    }

    /// Takes as many whole messages as `input` holds and appends the answers
    /// to `out`. Once it has ended it consumes nothing and repeats its step.
    pub fn advance(&mut self, input: &[u8], out: &mut Vec<u8>) -> ClientProgress {
        let mut consumed = 0;
        loop {
            if let Some(step) = &self.ended {
                let step = step.clone();
                return ClientProgress { consumed, step };
            }
            match self.take(&input[consumed..], out) {
                Ok(taken) => consumed += taken,
                Err(at_least) => {
                    let step = ClientStep::NeedMore { at_least };
                    return ClientProgress { consumed, step };
                }
            }
        }
    }

    /// Takes one message, or says how many bytes it needs.
    fn take(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, usize> {
        let (whole, result) = match self.awaited {
            Awaited::Greeting => {
                let bytes = input.get(..GREETING_BYTES).ok_or(GREETING_BYTES)?;
                (GREETING_BYTES, self.handle_greeting(bytes, out))
            }
            Awaited::Nothing => {
                self.send_first(out);
                (0, Ok(()))
            }
            Awaited::ExportName => {
                let zeroes = if self.no_zeroes { 0 } else { EXPORT_NAME_ZEROES };
                let whole = 10 + zeroes;
                let bytes = input.get(..whole).ok_or(whole)?;
                self.export = Some((be64(bytes, 0), be16(bytes, 8)));
                (whole, self.enter_transmission())
            }
            Awaited::Reply { option } => {
                let header =
                    input.get(..OPTION_REPLY_HEADER_BYTES).ok_or(OPTION_REPLY_HEADER_BYTES)?;
                match self.check_reply_header(header, option) {
                    Ok(length) => {
                        let whole = OPTION_REPLY_HEADER_BYTES + length;
                        let data = input.get(OPTION_REPLY_HEADER_BYTES..whole).ok_or(whole)?;
                        self.replies += 1;
                        (whole, self.handle_reply(option, be32(header, 12), data, out))
                    }
                    Err(error) => (0, Err(error)),
                }
            }
        };
        if let Err(error) = result {
            if matches!(error, ClientError::Refused { .. } | ClientError::NoTls) {
                // A client that gives up MUST do it softly.
                put_option(out, NBD_OPT_ABORT, &[]);
            }
            self.ended = Some(ClientStep::Fatal(error));
        }
        Ok(whole)
    }

    fn handle_greeting(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), ClientError> {
        let (first, second) = (be64(bytes, 0), be64(bytes, 8));
        if first != NBD_INIT_MAGIC || second != NBD_OPTS_MAGIC {
            return Err(ClientError::BadGreeting { first, second });
        }
        let offered = be16(bytes, 16);
        let fixed = offered & NBD_FLAG_FIXED_NEWSTYLE != 0;
        if self.starts_tls {
            // Without the flag of no zeroes, which the handshake inside TLS then need not know.
            let flags = if fixed { NBD_FLAG_C_FIXED_NEWSTYLE } else { 0 };
            out.extend_from_slice(&flags.to_be_bytes());
            if !fixed {
                return Err(ClientError::NoTls);
            }
            self.send(NBD_OPT_STARTTLS, &[], out);
            return Ok(());
        }
        self.no_zeroes = offered & NBD_FLAG_NO_ZEROES != 0;
        let mut flags = 0;
        if fixed {
            flags |= NBD_FLAG_C_FIXED_NEWSTYLE;
        }
        if self.no_zeroes {
            flags |= NBD_FLAG_C_NO_ZEROES;
        }
        out.extend_from_slice(&flags.to_be_bytes());
        match fixed {
            false => self.send_export_name(out),
            true => self.send_first(out),
        }
        Ok(())
    }

    /// Sends the first option that the configuration asks for.
    fn send_first(&mut self, out: &mut Vec<u8>) {
        match self.config.style {
            ReplyStyle::Simple => self.send_go(out),
            ReplyStyle::Structured => self.send(NBD_OPT_STRUCTURED_REPLY, &[], out),
            ReplyStyle::Extended => self.send(NBD_OPT_EXTENDED_HEADERS, &[], out),
        }
    }

    /// The length of the reply's data, if the header is one that can be here.
    fn check_reply_header(&self, header: &[u8], expected: u32) -> Result<usize, ClientError> {
        let magic = be64(header, 0);
        if magic != NBD_REP_MAGIC {
            return Err(ClientError::BadReplyMagic { magic });
        }
        let option = be32(header, 8);
        if option != expected {
            return Err(ClientError::WrongOption { option, expected });
        }
        let length = be32(header, 16);
        if length as usize > MAX_REPLY_BYTES {
            return Err(ClientError::ReplyTooLong { length });
        }
        if self.replies >= MAX_REPLIES {
            return Err(ClientError::TooManyReplies);
        }
        Ok(length as usize)
    }

    fn handle_reply(
        &mut self,
        option: u32,
        reply_type: u32,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), ClientError> {
        let failed = reply_type & NBD_REP_FLAG_ERROR != 0;
        match (option, reply_type) {
            (NBD_OPT_STARTTLS, NBD_REP_ACK) => self.ended = Some(ClientStep::StartTls),
            (NBD_OPT_STARTTLS, _) if failed => return Err(ClientError::NoTls),
            (NBD_OPT_EXTENDED_HEADERS, NBD_REP_ACK) => {
                self.style = ReplyStyle::Extended;
                self.send_meta_context_or_go(out);
            }
            (NBD_OPT_EXTENDED_HEADERS, _) if failed => {
                self.send(NBD_OPT_STRUCTURED_REPLY, &[], out);
            }
            (NBD_OPT_STRUCTURED_REPLY, NBD_REP_ACK) => {
                self.style = ReplyStyle::Structured;
                self.send_meta_context_or_go(out);
            }
            (NBD_OPT_STRUCTURED_REPLY, _) if failed => self.send_go(out),
            (NBD_OPT_SET_META_CONTEXT, NBD_REP_META_CONTEXT) => {
                let Some((id, name)) = data.split_at_checked(4) else {
                    let length = data.len();
                    return Err(ClientError::BadReplyLength { length });
                };
                if name == BASE_ALLOCATION.as_bytes() {
                    self.base_allocation = Some(be32(id, 0));
                }
            }
            (NBD_OPT_SET_META_CONTEXT, NBD_REP_ACK) => self.send_go(out),
            (NBD_OPT_SET_META_CONTEXT, _) if failed => {
                // On an error "the client MUST disregard any context replies".
                self.base_allocation = None;
                self.send_go(out);
            }
            (NBD_OPT_GO, NBD_REP_INFO) => self.handle_info(data)?,
            (NBD_OPT_GO, NBD_REP_ACK) => self.enter_transmission()?,
            // Extended headers and EXPORT_NAME exclude each other.
            (NBD_OPT_GO, NBD_REP_ERR_UNSUP) if self.style != ReplyStyle::Extended => {
                self.send_export_name(out);
            }
            (NBD_OPT_GO, _) if failed => {
                let message = String::from_utf8_lossy(data).into_owned();
                return Err(ClientError::Refused { option, reply_type, message });
            }
            _ => return Err(ClientError::UnexpectedReply { option, reply_type }),
        }
        Ok(())
    }

    fn handle_info(&mut self, data: &[u8]) -> Result<(), ClientError> {
        let length = data.len();
        if length < 2 {
            return Err(ClientError::BadReplyLength { length });
        }
        match be16(data, 0) {
            NBD_INFO_EXPORT if length == 12 => {
                self.export = Some((be64(data, 2), be16(data, 10)));
            }
            NBD_INFO_BLOCK_SIZE if length == 14 => {
                let sizes = BlockSize {
                    minimum: be32(data, 2),
                    preferred: be32(data, 6),
                    maximum_payload: be32(data, 10),
                };
                let sound = sizes.minimum.is_power_of_two()
                    && sizes.minimum <= MAX_MINIMUM_BLOCK_BYTES
                    && sizes.preferred.is_power_of_two()
                    && sizes.preferred >= sizes.minimum
                    && sizes.maximum_payload >= sizes.minimum;
                if !sound {
                    return Err(ClientError::BadBlockSize(sizes));
                }
                self.block_size = Some(sizes);
            }
            NBD_INFO_EXPORT | NBD_INFO_BLOCK_SIZE => {
                return Err(ClientError::BadReplyLength { length });
            }
            // Others MUST be ignored.
            _ => {}
        }
        Ok(())
    }

    fn enter_transmission(&mut self) -> Result<(), ClientError> {
        let (size_bytes, transmission_flags) = self.export.ok_or(ClientError::NoExportInfo)?;
        self.ended = Some(ClientStep::Transmission(ClientNegotiated {
            size_bytes,
            transmission_flags,
            style: self.style,
            base_allocation: self.base_allocation,
            block_size: self.block_size,
        }));
        Ok(())
    }

    fn send(&mut self, option: u32, parts: &[&[u8]], out: &mut Vec<u8>) {
        put_option(out, option, parts);
        self.awaited = Awaited::Reply { option };
    }

    fn send_meta_context_or_go(&mut self, out: &mut Vec<u8>) {
        if !self.config.base_allocation {
            return self.send_go(out);
        }
        let name = self.config.export.clone();
        let name_bytes = (name.len() as u32).to_be_bytes();
        let query = BASE_ALLOCATION.as_bytes();
        let query_bytes = (query.len() as u32).to_be_bytes();
        let one = 1_u32.to_be_bytes();
        let parts = [&name_bytes, name.as_bytes(), &one, &query_bytes, query];
        self.send(NBD_OPT_SET_META_CONTEXT, &parts, out);
    }

    fn send_go(&mut self, out: &mut Vec<u8>) {
        let name = self.config.export.clone();
        let name_bytes = (name.len() as u32).to_be_bytes();
        let one = 1_u16.to_be_bytes();
        let item = NBD_INFO_BLOCK_SIZE.to_be_bytes();
        let parts = [&name_bytes, name.as_bytes(), &one, &item];
        self.send(NBD_OPT_GO, &parts, out);
    }

    fn send_export_name(&mut self, out: &mut Vec<u8>) {
        put_option(out, NBD_OPT_EXPORT_NAME, &[self.config.export.as_bytes()]);
        self.awaited = Awaited::ExportName;
    }
}
