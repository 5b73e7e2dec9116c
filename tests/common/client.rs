//! An NBD client for what no tool does: pipelining by hand, wrong bytes, sudden ends.
//!
//! [`RawClient`] sends whatever it is told. [`Client`] has been through a handshake and waits for
//! its replies, which it finds by their cookies. Both have a time limit on every read and write.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use braid_nbd::client::{
    Body, ClientConfig, ClientHandshake, ClientNegotiated, ClientStep, ParsedReply, encode_request,
    parse_reply,
};
use braid_nbd::protocol::constants::{NBD_FLAG_READ_ONLY, NBD_OPTS_MAGIC, NBD_REP_MAGIC};
use braid_nbd::protocol::{Command, NbdErrno, ReplyStyle};

use super::tool::{LIMIT, wait_until};

/// A socket, and bytes.
pub(crate) struct RawClient {
    pub(crate) stream: UnixStream,
}

impl RawClient {
    pub(crate) fn connect(socket: &Path) -> io::Result<RawClient> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        Ok(RawClient { stream })
    }

    /// Connects, reads the greeting and answers it with `flags`.
    pub(crate) fn greeted(socket: &Path, flags: u32) -> io::Result<RawClient> {
        let mut raw = RawClient::connect(socket)?;
        raw.receive(18)?;
        raw.stream.write_all(&flags.to_be_bytes())?;
        Ok(raw)
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    pub(crate) fn receive(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Sends an option and reads one reply to it: its type and data.
    pub(crate) fn option(&mut self, option: u32, data: &[u8]) -> io::Result<(u32, Vec<u8>)> {
        let mut bytes = NBD_OPTS_MAGIC.to_be_bytes().to_vec();
        bytes.extend(option.to_be_bytes());
        bytes.extend((data.len() as u32).to_be_bytes());
        bytes.extend(data);
        self.send(&bytes)?;
        self.option_reply(option)
    }

    /// Reads one reply to an option.
    pub(crate) fn option_reply(&mut self, option: u32) -> io::Result<(u32, Vec<u8>)> {
        let header = self.receive(20)?;
        let word = |at: usize| u32::from_be_bytes(header[at..at + 4].try_into().expect("4 bytes"));
        assert_eq!(header[..8], NBD_REP_MAGIC.to_be_bytes(), "the magic of an option's reply");
        assert_eq!(word(8), option, "the option that is answered");
        let data = self.receive(word(16) as usize)?;
        Ok((word(12), data))
    }

    /// Reads to the end that the server makes.
    ///
    /// # Panics
    /// If it does not.
    #[track_caller]
    pub(crate) fn assert_closed(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
            Err(error) => panic!("the server did not close the connection: {error}"),
        }
        rest
    }
}

/// Why a request was not carried out.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The server answered so.
    Answered(NbdErrno),
    /// There is no connection any more.
    Gone(io::Error),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::Gone(error)
    }
}

/// The answer to one request: the data of a read.
pub(crate) type Answer = Result<Vec<u8>, NbdErrno>;

/// A connection in transmission.
pub(crate) struct Client {
    pub(crate) raw: RawClient,
    pub(crate) negotiated: ClientNegotiated,
    received: Vec<u8>,
    /// The unanswered requests: the range of a read.
    waiting: HashMap<u64, (u64, u32)>,
    last_cookie: u64,
}

impl Client {
    /// With structured replies.
    pub(crate) fn connect(socket: &Path) -> io::Result<Client> {
        Client::connect_as(socket, ReplyStyle::Structured)
    }

    pub(crate) fn connect_as(socket: &Path, style: ReplyStyle) -> io::Result<Client> {
        let mut raw = RawClient::connect(socket)?;
        let config = ClientConfig { export: String::new(), style, base_allocation: true };
        let mut handshake = ClientHandshake::new(config);
        let mut received = Vec::new();
        loop {
            let mut answer = Vec::new();
            let progress = handshake.advance(&received, &mut answer);
            received.drain(..progress.consumed);
            raw.send(&answer)?;
            match progress.step {
                ClientStep::NeedMore { .. } => receive_more(&mut raw.stream, &mut received)?,
                ClientStep::Transmission(negotiated) => {
                    let (waiting, last_cookie) = (HashMap::new(), 0);
                    return Ok(Client { raw, negotiated, received, waiting, last_cookie });
                }
                ClientStep::StartTls => return Err(io::Error::other("TLS was not asked for")),
                ClientStep::Fatal(error) => return Err(io::Error::other(error)),
            }
        }
    }

    /// As soon as the server has room for one more.
    #[track_caller]
    pub(crate) fn connect_patiently(socket: &Path) -> Client {
        let mut client = None;
        wait_until("a connection", || {
            client = Client::connect(socket).ok();
            client.is_some()
        });
        client.expect("waited for")
    }

    pub(crate) fn size(&self) -> u64 {
        self.negotiated.size_bytes
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.negotiated.transmission_flags & NBD_FLAG_READ_ONLY != 0
    }

    /// Sends a request without waiting for its answer; answers its cookie.
    pub(crate) fn send(&mut self, command: Command, payload: &[u8]) -> io::Result<u64> {
        self.last_cookie += 1;
        let cookie = self.last_cookie;
        let header = encode_request(self.negotiated.style.header_mode(), cookie, &command);
        let mut bytes = header.expect("the length fits").as_bytes().to_vec();
        bytes.extend(payload);
        let range = match command {
            Command::Read { offset, length, .. } => (offset, length),
            _ => (0, 0),
        };
        self.waiting.insert(cookie, range);
        self.raw.send(&bytes)?;
        Ok(cookie)
    }

    /// The next answer, to whatever request.
    pub(crate) fn receive(&mut self) -> io::Result<(u64, Answer)> {
        let mut data: HashMap<u64, Vec<u8>> = HashMap::new();
        let mut failed: HashMap<u64, NbdErrno> = HashMap::new();
        loop {
            let style = self.negotiated.style;
            let (consumed, cookie, done, part) = match parse_reply(style, &self.received) {
                ParsedReply::NeedMore { .. } => {
                    receive_more(&mut self.raw.stream, &mut self.received)?;
                    continue;
                }
                ParsedReply::Fatal(error) => return Err(io::Error::other(error)),
                ParsedReply::Reply { consumed, reply } => {
                    let part = match reply.body {
                        Body::SimpleOk | Body::None | Body::BlockStatus { .. } => Part::Nothing,
                        Body::SimpleError(errno) | Body::Error { errno, .. } => Part::Failed(errno),
                        Body::Data { offset, length } => Part::Data(offset, length),
                        Body::Hole { offset, length } => Part::Hole(offset, length),
                    };
                    (consumed, reply.cookie, reply.done, part)
                }
            };
            self.received.drain(..consumed);
            let Some(&(start, length)) = self.waiting.get(&cookie) else {
                return Err(io::Error::other(format!("an answer to unknown cookie {cookie}")));
            };
            let whole = data.entry(cookie).or_insert_with(|| vec![0; length as usize]);
            let at = |offset: u64| (offset - start) as usize;
            match part {
                Part::Failed(errno) => {
                    failed.insert(cookie, errno);
                }
                Part::Data(offset, length) => {
                    let bytes = take(&mut self.raw.stream, &mut self.received, length as usize)?;
                    whole[at(offset)..][..bytes.len()].copy_from_slice(&bytes);
                }
                Part::Hole(offset, length) => whole[at(offset)..][..length as usize].fill(0),
                Part::Nothing if style == ReplyStyle::Simple && length > 0 => {
                    *whole = take(&mut self.raw.stream, &mut self.received, length as usize)?;
                }
                Part::Nothing => {}
            }
            if done {
                self.waiting.remove(&cookie);
                let whole = data.remove(&cookie).unwrap_or_default();
                return Ok((cookie, failed.remove(&cookie).map_or(Ok(whole), Err)));
            }
        }
    }

    /// The number of unanswered requests.
    pub(crate) fn unanswered(&self) -> usize {
        self.waiting.len()
    }

    /// A request and its answer.
    pub(crate) fn request(&mut self, command: Command, payload: &[u8]) -> Result<Vec<u8>, Failed> {
        let sent = self.send(command, payload)?;
        let (cookie, answer) = self.receive()?;
        assert_eq!(cookie, sent, "the answer to the only request under way");
        answer.map_err(Failed::Answered)
    }

    pub(crate) fn read(&mut self, offset: u64, length: u32) -> Result<Vec<u8>, Failed> {
        self.request(Command::Read { offset, length, dont_fragment: false }, &[])
    }

    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8], fua: bool) -> Result<(), Failed> {
        let command = Command::Write { offset, length: bytes.len() as u32, fua };
        self.request(command, bytes).map(drop)
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failed> {
        self.request(Command::Flush, &[]).map(drop)
    }

    /// The error with which the server answered a request that must fail.
    #[track_caller]
    pub(crate) fn refusal(&mut self, command: Command, payload: &[u8]) -> NbdErrno {
        match self.request(command, payload) {
            Err(Failed::Answered(errno)) => errno,
            other => panic!("{command:?} should be refused: {other:?}"),
        }
    }
}

/// The content of one reply or chunk.
enum Part {
    Nothing,
    Failed(NbdErrno),
    Data(u64, u32),
    Hole(u64, u32),
}

fn receive_more(stream: &mut UnixStream, received: &mut Vec<u8>) -> io::Result<()> {
    let mut buffer = [0; 65536];
    match stream.read(&mut buffer)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        count => {
            received.extend(&buffer[..count]);
            Ok(())
        }
    }
}

fn take(stream: &mut UnixStream, received: &mut Vec<u8>, count: usize) -> io::Result<Vec<u8>> {
    while received.len() < count {
        receive_more(stream, received)?;
    }
    let rest = received.split_off(count);
    Ok(std::mem::replace(received, rest))
}
