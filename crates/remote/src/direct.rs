//! A connection of one thread, in calls that wait: the offer of a server, and metadata before a member is at work.
//!
//! Invariant: each call ends within the limit of the opening, whatever the server does.

use std::io;
use std::time::Duration;

use braid_block::{Flags, Op, Span};
use braid_nbd::client::{
    Body, ClientConfig, ClientError, ClientHandshake, ClientStep, ParsedReply, encode_request,
    parse_reply,
};
use braid_nbd::protocol::{Command, ReplyStyle};

use crate::connect::{Address, limit_calls};
use crate::link::{command_of, os_error};
use crate::offer::{Offer, Unfit};
use crate::secure::{Secured, Talk, receive};
use crate::session::{Ask, Outgoing};

/// Why a server is not to be had.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what went wrong")]
pub enum DirectError {
    #[error("cannot connect: {0}")]
    Connect(io::Error),
    #[error("the connection failed: {0}")]
    Connection(#[from] io::Error),
    #[error("the server does not speak NBD as it should: {0}")]
    Handshake(#[from] ClientError),
    #[error("{0}")]
    Unfit(#[from] Unfit),
}

/// See the module.
pub struct Direct {
    stream: Box<dyn Talk>,
    offer: Offer,
    cookie: u64,
}

impl Direct {
    /// Connects to the export called `export`.
    ///
    /// # Errors
    /// No server answers within `limit`, or its export is no member.
    pub fn connect(
        address: &Address,
        export: &str,
        limit: Duration,
    ) -> Result<Direct, DirectError> {
        let (file, channel) = address.open(limit).map_err(DirectError::Connect)?;
        limit_calls(&file, Some(limit))?;
        let style = ReplyStyle::Structured;
        let config = ClientConfig { export: export.to_owned(), style, base_allocation: true };
        let (mut stream, mut handshake): (Box<dyn Talk>, _) = match channel {
            None => (Box::new(file), ClientHandshake::new(config)),
            Some(channel) => {
                (Box::new(Secured::new(file, channel)), ClientHandshake::secured(config))
            }
        };
        let (mut input, mut output) = (Vec::new(), Vec::new());
        loop {
            let progress = handshake.advance(&input, &mut output);
            input.drain(..progress.consumed);
            stream.write_all(&output)?;
            output.clear();
            match progress.step {
                ClientStep::Fatal(error) => return Err(error.into()),
                ClientStep::Transmission(agreed) => {
                    let offer = Offer::check(&agreed)?;
                    return Ok(Direct { stream, offer, cookie: 0 });
                }
                ClientStep::NeedMore { .. } => receive(&mut stream, &mut input)?,
                ClientStep::StartTls => return Err(ClientError::NoTls.into()),
            }
        }
    }

    /// Returns the server's offer.
    pub fn offer(&self) -> &Offer {
        &self.offer
    }

    /// Reads `bytes` from `offset` on, which need not be aligned.
    ///
    /// # Errors
    /// `UnexpectedEof` behind the end; the server's error; the connection broke.
    pub fn read_at(&mut self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(bytes.len() as u64).filter(|end| *end <= self.offer.size);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let block = u64::from(self.offer.block);
        let (mut at, mut rest) = (offset, bytes);
        while at < end {
            let start = at / block * block;
            let len = (end.next_multiple_of(block) - start).min(self.offer.most.into());
            let piece = self.exchange(Op::Read, Span::new(start, len), &[])?;
            let found = &piece[(at - start) as usize..];
            let (now, later) = rest.split_at_mut(found.len().min(rest.len()));
            now.copy_from_slice(&found[..now.len()]);
            (at, rest) = (start + len, later);
        }
        Ok(())
    }

    /// Writes whole blocks at `offset`.
    ///
    /// # Errors
    /// `InvalidInput` for parts of blocks, or behind the end; the server's error; the connection broke.
    pub fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let span = Span::new(offset, bytes.len() as u64);
        if !span.is_within(self.offer.size) || !span.is_aligned(self.offer.block) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut at = offset;
        for piece in bytes.chunks(self.offer.most as usize) {
            self.exchange(Op::Write, Span::new(at, piece.len() as u64), piece)?;
            at += piece.len() as u64;
        }
        Ok(())
    }

    /// Makes what was written durable, if the server can.
    ///
    /// # Errors
    /// The server's error; the connection broke.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.offer.has(braid_nbd::protocol::constants::NBD_FLAG_SEND_FLUSH) {
            self.exchange(Op::Flush, Span::default(), &[])?;
        }
        Ok(())
    }

    /// Sends a request and waits for its answer: the data of a read.
    fn exchange(&mut self, op: Op, span: Span, payload: &[u8]) -> io::Result<Vec<u8>> {
        self.cookie += 1;
        let out = Outgoing { cookie: self.cookie, ask: Ask::Io(op), flags: Flags::NONE, span };
        let command: Command = command_of(&out, &self.offer);
        let mode = self.offer.style.header_mode();
        let header = encode_request(mode, self.cookie, &command);
        let header = header.ok_or(io::ErrorKind::InvalidInput)?;
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend_from_slice(payload);
        self.stream.write_all(&bytes)?;
        let is_read = op == Op::Read;
        let mut data = vec![0; if is_read { span.len as usize } else { 0 }];
        let mut left = data.len();
        let mut error = None;
        let mut input = Vec::new();
        loop {
            let (consumed, done, part) = match parse_reply(self.offer.style, &input) {
                ParsedReply::Fatal(error) => return Err(io::Error::other(error)),
                ParsedReply::NeedMore { at_least } => {
                    fill(&mut *self.stream, &mut input, at_least)?;
                    continue;
                }
                ParsedReply::Reply { reply, .. } if reply.cookie != self.cookie => {
                    return Err(io::Error::other("an answer to a request that was not made"));
                }
                ParsedReply::Reply { consumed, reply } => {
                    let part = match reply.body {
                        Body::SimpleOk if is_read => Some((span.offset, span.len, false)),
                        Body::Data { offset, length } => Some((offset, length.into(), false)),
                        Body::Hole { offset, length } => Some((offset, length.into(), true)),
                        Body::SimpleError(errno) | Body::Error { errno, .. } => {
                            error = Some(io::Error::from_raw_os_error(os_error(errno).raw()));
                            None
                        }
                        _ => None,
                    };
                    (consumed, reply.done, part)
                }
            };
            input.drain(..consumed);
            if let Some((offset, len, is_hole)) = part {
                let stray = || io::Error::other("data outside of the read that they answer");
                let at = offset.checked_sub(span.offset).ok_or_else(stray)? as usize;
                let len = len as usize;
                let into = at.checked_add(len).and_then(|end| data.get_mut(at..end));
                let into = into.ok_or_else(stray)?;
                left = left.checked_sub(len).ok_or_else(stray)?;
                if !is_hole {
                    fill(&mut *self.stream, &mut input, len)?;
                    into.copy_from_slice(&input[..len]);
                    input.drain(..len);
                }
            }
            match (done, error.take(), left) {
                (true, Some(error), _) => return Err(error),
                (true, None, 0) => return Ok(data),
                (true, None, _) => return Err(io::Error::other("a read without all of its data")),
                (false, found, _) => error = found,
            }
        }
    }
}

/// Receives exactly so much that there are `at_least` bytes.
fn fill(stream: &mut dyn Talk, input: &mut Vec<u8>, at_least: usize) -> io::Result<()> {
    let have = input.len();
    if have < at_least {
        input.resize(at_least, 0);
        stream.read_exact(&mut input[have..])?;
    }
    Ok(())
}
