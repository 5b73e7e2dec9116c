//! The server's side of the fixed newstyle handshake (sections "Newstyle
//! negotiation", "Fixed newstyle negotiation", "Option types").
//!
//! ```text
//!   S ► greeting (18 bytes)
//!   C ► client flags (4 bytes)               AwaitFlags
//!   C ► option ─► S ► replies  (repeated)    AwaitOption ⇄ Skipping an oversized one
//!        ├─ STARTTLS ──────────────────────► StartTls: the same again from AwaitOption, encrypted
//!        ├─ GO, EXPORT_NAME ───────────────► Transmission(Negotiated)
//!        ├─ ABORT ─────────────────────────► Aborted
//!        └─ breach of a MUST, too much ────► Fatal(reason)
//! ```
//!
//! Invariants:
//! - no bytes move here: input is a slice, output is appended to a `Vec`;
//! - the result depends on the bytes only and not on how they were split;
//! - a hostile client costs at most [`MAX_OPTIONS`] options, a buffer of
//!   [`MAX_INPUT_BYTES`], and [`MAX_SKIPPED_BYTES`] read and thrown away;
//! - nothing is consumed behind the option that enters transmission: bytes
//!   that were received with it are requests;
//! - nothing that was agreed on before TLS counts after it, but for the client's flags.
//!
//! Absent on purpose: TLS itself, time limits (the session has the clock), nonfixed newstyle beyond `NBD_OPT_EXPORT_NAME`.

mod outcome;

use std::sync::Arc;

use crate::protocol::constants::*;
use crate::protocol::option::{
    OptionError, OptionHeader, parse_info, parse_meta, parse_text, put_option_reply,
};
use crate::protocol::{ExportInfo, Exports, Negotiated, ReplyStyle, be32};

pub use outcome::{Admission, HandshakeError, Policy, Progress, StartTls, Step};

/// Longest option data that is looked at, in bytes; holds a name and a dozen
/// queries of the greatest length. A longer option is skipped and answered
/// with `NBD_REP_ERR_TOO_BIG`.
pub const MAX_OPTION_BYTES: usize = 1 << 16;
/// Most bytes of oversized options that one handshake skips; then it is fatal.
pub const MAX_SKIPPED_BYTES: usize = 1 << 20;
/// Most options in one handshake; then it is fatal. A client needs four.
pub const MAX_OPTIONS: u32 = 256;
/// A receive buffer of this size always lets [`Handshake::advance`] progress.
pub const MAX_INPUT_BYTES: usize = OPTION_HEADER_BYTES + MAX_OPTION_BYTES;
/// The id that this server gives to `base:allocation`.
pub const BASE_ALLOCATION_ID: u32 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    AwaitFlags,
    AwaitOption,
    /// An oversized option; `left` of its bytes are still to come.
    Skipping {
        option: u32,
        left: usize,
    },
}

/// One client's handshake.
#[derive(Debug)]
pub struct Handshake {
    exports: Arc<Exports>,
    policy: Policy,
    state: State,
    fixed: bool,
    no_zeroes: bool,
    is_secured: bool,
    style: ReplyStyle,
    /// The export for which `base:allocation` is selected.
    context_for: Option<usize>,
    options: u32,
    skipped: usize,
    /// Set once, by the step that ends the handshake.
    ended: Option<Step>,
}

impl Handshake {
    /// A handshake for one of `exports`. Send [`Self::greeting`] first.
    #[must_use]
    pub fn new(exports: Arc<Exports>, policy: Policy) -> Self {
        Self {
            exports,
            policy,
            state: State::AwaitFlags,
            fixed: false,
            no_zeroes: false,
            is_secured: false,
            style: ReplyStyle::Simple,
            context_for: None,
            options: 0,
            skipped: 0,
            ended: None,
        }
    }

    /// Returns the handshake that follows [`Step::StartTls`] inside TLS: it begins with an option, and knows of the client
    /// its flags and the number of its options.
    #[must_use]
    pub fn secured(&self, exports: Arc<Exports>, policy: Policy) -> Self {
        Self {
            state: State::AwaitOption,
            fixed: self.fixed,
            no_zeroes: self.no_zeroes,
            is_secured: true,
            options: self.options,
            skipped: self.skipped,
            ..Self::new(exports, policy)
        }
    }

    /// Returns the server's first message: both magics, fixed newstyle, no zeroes.
    #[must_use]
    pub fn greeting(&self) -> [u8; GREETING_BYTES] {
        let mut bytes = [0; GREETING_BYTES];
        bytes[..8].copy_from_slice(&NBD_INIT_MAGIC.to_be_bytes());
        bytes[8..16].copy_from_slice(&NBD_OPTS_MAGIC.to_be_bytes());
        let flags = NBD_FLAG_FIXED_NEWSTYLE | NBD_FLAG_NO_ZEROES;
        bytes[16..].copy_from_slice(&flags.to_be_bytes());
        bytes
    }

    /// Takes as many whole messages as `input` holds and appends the answers
    /// to `out`. The caller drops the consumed bytes and presents the others
    /// again, with more behind them.
    ///
    /// Once it has ended, it consumes nothing and repeats its last step.
    pub fn advance(&mut self, input: &[u8], out: &mut Vec<u8>) -> Progress {
        let mut consumed = 0;
        loop {
            if let Some(step) = &self.ended {
                let step = step.clone();
                return Progress { consumed, step };
            }
            match self.take(&input[consumed..], out) {
                Ok(taken) => consumed += taken,
                Err(at_least) => {
                    let step = Step::NeedMore { at_least };
                    return Progress { consumed, step };
                }
            }
        }
    }

    /// Takes one message, or says how many bytes it needs.
    fn take(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, usize> {
        match self.state {
            State::AwaitFlags => {
                if input.len() < 4 {
                    return Err(4);
                }
                self.handle_flags(be32(input, 0));
                Ok(4)
            }
            State::Skipping { option, left } => {
                if input.is_empty() {
                    return Err(1);
                }
                let taken = left.min(input.len());
                self.state = State::Skipping { option, left: left - taken };
                if left == taken {
                    self.state = State::AwaitOption;
                    let message = "the option is too long";
                    refuse(out, option, NBD_REP_ERR_TOO_BIG, message);
                }
                Ok(taken)
            }
            State::AwaitOption => {
                let header = OptionHeader::parse(input).ok_or(OPTION_HEADER_BYTES)?;
                if !self.admit(header) {
                    return Ok(0);
                }
                let length = header.length as usize;
                if length > MAX_OPTION_BYTES {
                    self.skipped += length;
                    self.options += 1;
                    self.state = State::Skipping { option: header.option, left: length };
                    return Ok(OPTION_HEADER_BYTES);
                }
                let whole = OPTION_HEADER_BYTES + length;
                let data = input.get(OPTION_HEADER_BYTES..whole).ok_or(whole)?;
                self.options += 1;
                if let Err(error) = self.handle_option(header.option, data, out) {
                    self.fail(error);
                }
                Ok(whole)
            }
        }
    }

    fn fail(&mut self, error: HandshakeError) {
        self.ended = Some(Step::Fatal(error));
    }

    fn handle_flags(&mut self, flags: u32) {
        if flags & !(NBD_FLAG_C_FIXED_NEWSTYLE | NBD_FLAG_C_NO_ZEROES) != 0 {
            self.fail(HandshakeError::UnknownClientFlags { flags });
        }
        self.fixed = flags & NBD_FLAG_C_FIXED_NEWSTYLE != 0;
        self.no_zeroes = flags & NBD_FLAG_C_NO_ZEROES != 0;
        self.state = State::AwaitOption;
    }

    /// Returns true if an option may be read at all; otherwise fails the handshake. It needs the header only,
    /// so a hopeless option ends it without its data.
    fn admit(&mut self, header: OptionHeader) -> bool {
        let OptionHeader { magic, option, length } = header;
        let too_long = length as usize > MAX_OPTION_BYTES;
        let error = if magic != NBD_OPTS_MAGIC {
            HandshakeError::BadOptionMagic { magic }
        } else if self.options >= MAX_OPTIONS {
            HandshakeError::TooManyOptions
        } else if option != NBD_OPT_EXPORT_NAME && !self.fixed {
            HandshakeError::NotFixedNewstyle { option }
        } else if option == NBD_OPT_EXPORT_NAME && length as usize > MAX_STRING_BYTES {
            let bytes = length as usize;
            HandshakeError::BadExportName(OptionError::StringTooLong { bytes })
        } else if too_long && self.skipped.saturating_add(length as usize) > MAX_SKIPPED_BYTES {
            HandshakeError::OptionTooLong { option, length }
        } else {
            return true;
        };
        self.fail(error);
        false
    }

    fn handle_option(
        &mut self,
        option: u32,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), HandshakeError> {
        let is_plain = self.policy.starttls == StartTls::Required && !self.is_secured;
        match option {
            NBD_OPT_EXPORT_NAME if is_plain => return Err(HandshakeError::TlsRequired),
            NBD_OPT_EXPORT_NAME => return self.handle_export_name(data, out),
            NBD_OPT_ABORT => {
                // Data SHOULD be ignored rather than rejected.
                acknowledge(out, option);
                self.ended = Some(Step::Aborted);
            }
            _ if is_plain && option != NBD_OPT_STARTTLS => {
                let message = "TLS is required: NBD_OPT_STARTTLS first";
                refuse(out, option, NBD_REP_ERR_TLS_REQD, message);
            }
            NBD_OPT_INFO | NBD_OPT_GO => self.handle_info(option, data, out),
            NBD_OPT_LIST_META_CONTEXT | NBD_OPT_SET_META_CONTEXT => {
                self.handle_meta_context(option, data, out);
            }
            NBD_OPT_LIST
            | NBD_OPT_STARTTLS
            | NBD_OPT_STRUCTURED_REPLY
            | NBD_OPT_EXTENDED_HEADERS
                if !data.is_empty() =>
            {
                let message = "the option takes no data";
                refuse(out, option, NBD_REP_ERR_INVALID, message);
            }
            NBD_OPT_LIST => self.handle_list(out),
            NBD_OPT_STARTTLS => self.handle_starttls(out),
            NBD_OPT_STRUCTURED_REPLY if self.policy.structured => {
                self.handle_style(option, ReplyStyle::Structured, out);
            }
            NBD_OPT_EXTENDED_HEADERS if self.policy.extended => {
                self.handle_style(option, ReplyStyle::Extended, out);
            }
            _ => refuse(out, option, NBD_REP_ERR_UNSUP, "the option is not supported"),
        }
        Ok(())
    }

    fn handle_starttls(&mut self, out: &mut Vec<u8>) {
        let option = NBD_OPT_STARTTLS;
        match self.policy.starttls {
            _ if self.is_secured => {
                refuse(out, option, NBD_REP_ERR_INVALID, "TLS is in use already");
            }
            StartTls::Unsupported => {
                refuse(out, option, NBD_REP_ERR_UNSUP, "TLS is not supported");
            }
            StartTls::ForbiddenByPolicy => {
                refuse(out, option, NBD_REP_ERR_POLICY, "TLS is not used here");
            }
            StartTls::Offered | StartTls::Required => {
                acknowledge(out, option);
                self.ended = Some(Step::StartTls);
            }
        }
    }

    fn handle_style(&mut self, option: u32, wanted: ReplyStyle, out: &mut Vec<u8>) {
        if self.style == wanted {
            refuse(out, option, NBD_REP_ERR_INVALID, "already negotiated");
        } else if self.style == ReplyStyle::Extended {
            // Extended headers take precedence and cannot be taken back.
            let message = "extended headers are already negotiated";
            refuse(out, option, NBD_REP_ERR_EXT_HEADER_REQD, message);
        } else {
            self.style = wanted;
            acknowledge(out, option);
        }
    }

    fn handle_export_name(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<(), HandshakeError> {
        let name = parse_text(data).map_err(HandshakeError::BadExportName)?;
        if self.style == ReplyStyle::Extended {
            return Err(HandshakeError::ExportNameAfterExtendedHeaders);
        }
        if self.policy.require_block_size {
            return Err(HandshakeError::BlockSizeRequired);
        }
        if let Some(reason) = self.policy.admission.refusal() {
            return Err(HandshakeError::NotAdmitted { reason });
        }
        let Some((index, export)) = find(&self.exports, name) else {
            let name = name.to_owned();
            return Err(HandshakeError::UnknownExport { name });
        };
        let negotiated = self.negotiated(index, export, false);
        out.extend_from_slice(&export.size_bytes.to_be_bytes());
        out.extend_from_slice(&negotiated.transmission_flags.to_be_bytes());
        if !self.no_zeroes {
            out.extend_from_slice(&[0; EXPORT_NAME_ZEROES]);
        }
        self.ended = Some(Step::Transmission(negotiated));
        Ok(())
    }

    fn handle_list(&self, out: &mut Vec<u8>) {
        if !self.policy.list {
            let message = "exports are not listed here";
            return refuse(out, NBD_OPT_LIST, NBD_REP_ERR_POLICY, message);
        }
        for export in self.exports.as_slice() {
            let name = export.name.as_bytes();
            let name_bytes = (name.len() as u32).to_be_bytes();
            let parts = [&name_bytes, name, export.description.as_bytes()];
            put_option_reply(out, NBD_OPT_LIST, NBD_REP_SERVER, &parts);
        }
        acknowledge(out, NBD_OPT_LIST);
    }

    fn handle_info(&mut self, option: u32, data: &[u8], out: &mut Vec<u8>) {
        if let Some(reason) = self.policy.admission.refusal() {
            return refuse(out, option, NBD_REP_ERR_POLICY, reason);
        }
        let request = match parse_info(data) {
            Ok(request) => request,
            Err(error) => return refuse(out, option, NBD_REP_ERR_INVALID, &error.to_string()),
        };
        let Some((index, export)) = find(&self.exports, request.name) else {
            return refuse(out, option, NBD_REP_ERR_UNKNOWN, "no such export");
        };
        let negotiated = self.negotiated(index, export, request.wants_block_size);
        let mut info = |item: u16, parts: [&[u8]; 3]| {
            let parts = [&item.to_be_bytes()[..], parts[0], parts[1], parts[2]];
            put_option_reply(out, option, NBD_REP_INFO, &parts);
        };
        let size = export.size_bytes.to_be_bytes();
        let flags = negotiated.transmission_flags.to_be_bytes();
        info(NBD_INFO_EXPORT, [&size, &flags, &[]]);
        if request.wants_name {
            info(NBD_INFO_NAME, [export.name.as_bytes(), &[], &[]]);
        }
        if request.wants_description {
            info(NBD_INFO_DESCRIPTION, [export.description.as_bytes(), &[], &[]]);
        }
        // Always: "a server with block size constraints other than the default
        // SHOULD advertise" them, asked or not.
        let sizes = export.block_size;
        let minimum = sizes.minimum.to_be_bytes();
        let preferred = sizes.preferred.to_be_bytes();
        let maximum = sizes.maximum_payload.to_be_bytes();
        info(NBD_INFO_BLOCK_SIZE, [&minimum, &preferred, &maximum]);

        if self.policy.require_block_size && !request.wants_block_size {
            let message = "ask for block sizes first";
            return refuse(out, option, NBD_REP_ERR_BLOCK_SIZE_REQD, message);
        }
        acknowledge(out, option);
        if option == NBD_OPT_GO {
            self.ended = Some(Step::Transmission(negotiated));
        }
    }

    fn handle_meta_context(&mut self, option: u32, data: &[u8], out: &mut Vec<u8>) {
        let set = option == NBD_OPT_SET_META_CONTEXT;
        if set {
            // Replaces earlier contexts "including when this command fails".
            self.context_for = None;
        }
        let request = match parse_meta(data) {
            Ok(request) => request,
            Err(error) => return refuse(out, option, NBD_REP_ERR_INVALID, &error.to_string()),
        };
        if !self.style.is_chunked() {
            let message = "structured replies first";
            return refuse(out, option, NBD_REP_ERR_INVALID, message);
        }
        let Some((index, _)) = find(&self.exports, request.name) else {
            return refuse(out, option, NBD_REP_ERR_UNKNOWN, "no such export");
        };
        let matches = request.names_base_allocation
            || (!set && (request.no_queries || request.names_base_wildcard));
        if matches && self.policy.base_allocation {
            // In a list the id is reserved and SHOULD be zero.
            let id = if set { BASE_ALLOCATION_ID } else { 0 }.to_be_bytes();
            let parts = [&id, BASE_ALLOCATION.as_bytes()];
            put_option_reply(out, option, NBD_REP_META_CONTEXT, &parts);
            if set {
                self.context_for = Some(index);
            }
        }
        acknowledge(out, option);
    }

    fn negotiated(
        &self,
        index: usize,
        export: &ExportInfo,
        block_size_promised: bool,
    ) -> Negotiated {
        Negotiated {
            // A context counts only for the export that it was selected for.
            base_allocation: (self.context_for == Some(index)).then_some(BASE_ALLOCATION_ID),
            no_zeroes: self.no_zeroes,
            block_size_promised,
            ..Negotiated::new(index, export, self.style)
        }
    }
}

fn find<'a>(exports: &'a Exports, name: &str) -> Option<(usize, &'a ExportInfo)> {
    let index = exports.find(name)?;
    Some((index, exports.get(index)?))
}

fn acknowledge(out: &mut Vec<u8>, option: u32) {
    put_option_reply(out, option, NBD_REP_ACK, &[]);
}

/// An error reply with a message "suitable for display to the user".
fn refuse(out: &mut Vec<u8>, option: u32, reply_type: u32, message: &str) {
    put_option_reply(out, option, reply_type, &[message.as_bytes()]);
}
