//! A client of NBD on a [`Pipe`]: the handshake, requests, and replies of every style.
//!
//! Deliberately absent: what the bytes mean; and a table of requests, which is its owner's.

use std::collections::BTreeMap;

use braid_nbd::client::{
    Body, ClientConfig, ClientHandshake, ClientStep, ParsedReply, encode_request, parse_reply,
};
use braid_nbd::protocol::{Command, HeaderMode, ReplyStyle};

use crate::pipe::Pipe;

/// A connection after its handshake.
pub(crate) struct Nbd {
    pipe: Pipe,
    style: ReplyStyle,
    /// The export's size in bytes.
    pub size: u64,
    input: Vec<u8>,
    /// Answers that have come in part: by cookie.
    partial: BTreeMap<u64, Partial>,
}

/// A request whose answer is to come.
struct Partial {
    /// The start of a read, and its result.
    offset: u64,
    data: Option<Vec<u8>>,
    result: Result<(), u32>,
}

/// An answer.
pub(crate) struct Answer {
    /// To which request.
    pub cookie: u64,
    /// `Ok` if all of it was done, or NBD's number of the error.
    pub result: Result<(), u32>,
    /// The read bytes.
    pub data: Option<Vec<u8>>,
}

impl Nbd {
    /// Agrees with the server on the default export and, if it can, on `style`.
    ///
    /// # Errors
    /// The fault, which is never the client's.
    pub(crate) async fn connect(pipe: Pipe, style: ReplyStyle) -> Result<Nbd, String> {
        let config = ClientConfig { export: String::new(), style, base_allocation: false };
        let mut handshake = ClientHandshake::new(config);
        let (mut input, mut output) = (Vec::new(), Vec::new());
        loop {
            let progress = handshake.advance(&input, &mut output);
            input.drain(..progress.consumed);
            pipe.send(&output).await.map_err(|error| error.to_string())?;
            output.clear();
            match progress.step {
                ClientStep::NeedMore { .. } => {
                    if pipe.receive_some(&mut input).await == 0 {
                        return Err("the server left in the handshake".to_owned());
                    }
                }
                ClientStep::Transmission(agreed) => {
                    let (style, size) = (agreed.style, agreed.size_bytes);
                    return Ok(Nbd { pipe, style, size, input, partial: BTreeMap::new() });
                }
                ClientStep::StartTls => return Err("TLS was not asked for".to_owned()),
                ClientStep::Fatal(error) => return Err(error.to_string()),
            }
        }
    }

    fn mode(&self) -> HeaderMode {
        match self.style {
            ReplyStyle::Extended => HeaderMode::Extended,
            _ => HeaderMode::Simple,
        }
    }

    /// Sends a request, and the data of a write.
    ///
    /// # Errors
    /// The server has gone.
    pub(crate) async fn ask(
        &mut self,
        cookie: u64,
        command: &Command,
        data: &[u8],
    ) -> Result<(), String> {
        let header = encode_request(self.mode(), cookie, command).ok_or("too long a request")?;
        let (offset, expected) = match command {
            Command::Read { offset, length, .. } => (*offset, Some(vec![0; *length as usize])),
            _ => (0, None),
        };
        self.partial.insert(cookie, Partial { offset, data: expected, result: Ok(()) });
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend_from_slice(data);
        self.pipe.send(&bytes).await.map_err(|error| error.to_string())
    }

    /// Sends the first bytes of a write, and goes.
    pub(crate) async fn leave_in_the_middle(self, command: &Command, bytes: usize) {
        if let Some(header) = encode_request(self.mode(), u64::MAX, command) {
            let header = header.as_bytes();
            // The server may have gone first.
            let _ = self.pipe.send(&header[..bytes.min(header.len())]).await;
        }
        self.pipe.close();
    }

    /// Says goodbye.
    pub(crate) async fn leave(self) {
        if let Some(header) = encode_request(self.mode(), 0, &Command::Disconnect) {
            let _ = self.pipe.send(header.as_bytes()).await;
        }
        self.pipe.close();
    }

    /// Waits for the next answer that is whole.
    ///
    /// # Errors
    /// The server left, or broke the protocol.
    pub(crate) async fn answer(&mut self) -> Result<Answer, String> {
        loop {
            if let Some(answer) = self.take()? {
                return Ok(answer);
            }
            if self.pipe.receive_some(&mut self.input).await == 0 {
                return Err("the server closed the connection".to_owned());
            }
        }
    }

    /// Takes what has come; an answer, if one is whole by now.
    fn take(&mut self) -> Result<Option<Answer>, String> {
        loop {
            let (consumed, reply) = match parse_reply(self.style, &self.input) {
                ParsedReply::NeedMore { .. } => return Ok(None),
                ParsedReply::Fatal(error) => return Err(error.to_string()),
                ParsedReply::Reply { consumed, reply } => (consumed, reply),
            };
            let (cookie, done) = (reply.cookie, reply.done);
            let asked = self.partial.get_mut(&cookie).ok_or("an answer to nothing")?;
            let mut taken = consumed;
            let mut data_at = None;
            match reply.body {
                Body::SimpleOk => {
                    data_at = asked.data.as_ref().map(|data| (0, data.len()));
                }
                Body::SimpleError(errno) | Body::Error { errno, .. } => {
                    asked.result = Err(errno.to_wire());
                }
                Body::Data { offset, length } => {
                    let at = offset.checked_sub(asked.offset).ok_or("data in front of a read")?;
                    data_at = Some((at as usize, length as usize));
                }
                Body::None | Body::Hole { .. } | Body::BlockStatus { .. } => {}
            }
            if let Some((at, len)) = data_at {
                let Some(bytes) = self.input.get(consumed..consumed + len) else { return Ok(None) };
                let into = asked.data.as_mut().and_then(|data| data.get_mut(at..at + len));
                into.ok_or("data outside of a read")?.copy_from_slice(bytes);
                taken += len;
            }
            self.input.drain(..taken);
            if done {
                let asked = self.partial.remove(&cookie).ok_or("an answer to nothing")?;
                return Ok(Some(Answer { cookie, result: asked.result, data: asked.data }));
            }
        }
    }
}
