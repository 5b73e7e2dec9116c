//! A connection to an NBD server: to learn that it is ready and the size of its export, and to write an
//! export's first content. `braid_nbd` has the protocol; the socket and its time limits are here.
//!
//! Deliberately absent: reading (the tools do it), more than one request at a time, TLS, structured
//! replies.

use std::fmt::Display;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use braid_nbd::client::{
    Body, ClientConfig, ClientError, ClientHandshake, ClientNegotiated, ClientStep, ParsedReply,
    encode_request, parse_reply,
};
use braid_nbd::protocol::constants::{NBD_FLAG_SEND_FLUSH, SIMPLE_REPLY_BYTES};
use braid_nbd::protocol::{Command, HeaderMode, ReplyStyle};
use braid_nbd::uri::{Socket, Uri};

use crate::error::LabError;

/// Time limit of a write: a member may be slow, and a modelled one is meant to be.
const WRITE_PATIENCE: Duration = Duration::from_secs(120);
/// Time without an answer after which a server is not ready.
const PATIENCE: Duration = Duration::from_secs(2);

/// Connects, reads the size of the export, and disconnects.
///
/// # Errors
///
/// The URI is invalid, nothing listens, or the answer is not NBD.
pub fn query_size(uri: &str) -> Result<u64, LabError> {
    let (mut stream, found) = connect(uri, PATIENCE).map_err(failed(uri))?;
    // The size is known already, so a server that is gone by now does not matter.
    let _ = send(&mut stream, &Command::Disconnect, &[]);
    Ok(found.size_bytes)
}

/// Writes to an export, one request at a time.
pub(crate) struct Writer {
    uri: String,
    stream: Box<dyn Stream>,
    has_flush: bool,
}

impl Writer {
    /// Connects to an export.
    ///
    /// # Errors
    ///
    /// As [`query_size`].
    pub(crate) fn connect(uri: &str) -> Result<Self, LabError> {
        let (stream, found) = connect(uri, WRITE_PATIENCE).map_err(failed(uri))?;
        let has_flush = found.transmission_flags & NBD_FLAG_SEND_FLUSH != 0;
        Ok(Self { uri: uri.to_owned(), stream, has_flush })
    }

    /// Writes at an offset, at most 32 MiB, and waits for the reply.
    ///
    /// # Errors
    ///
    /// The server replies with an error, with another message, or not at all.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), LabError> {
        let command = Command::Write { offset, length: bytes.len() as u32, fua: false };
        exchange(&mut self.stream, &command, bytes).map_err(failed(&self.uri))
    }

    /// Makes the writes durable, and disconnects.
    ///
    /// # Errors
    ///
    /// As [`Writer::write`].
    pub(crate) fn finish(mut self) -> Result<(), LabError> {
        if self.has_flush {
            exchange(&mut self.stream, &Command::Flush, &[]).map_err(failed(&self.uri))?;
        }
        send(&mut self.stream, &Command::Disconnect, &[]).map_err(failed(&self.uri))
    }
}

fn failed<E: Display>(uri: &str) -> impl FnOnce(E) -> LabError {
    move |error| LabError::Reason(format!("the NBD server at {uri} gave no size: {error}"))
}

/// A connection to either kind of socket.
trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// Connects, up to the first request.
fn connect(uri: &str, patience: Duration) -> io::Result<(Box<dyn Stream>, ClientNegotiated)> {
    let address: Uri = uri.parse().map_err(io::Error::other)?;
    let mut stream: Box<dyn Stream> = match address.socket {
        Socket::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(patience))?;
            stream.set_write_timeout(Some(patience))?;
            Box::new(stream)
        }
        Socket::Tcp(host) => {
            let stream = TcpStream::connect(host)?;
            stream.set_read_timeout(Some(patience))?;
            stream.set_write_timeout(Some(patience))?;
            stream.set_nodelay(true)?;
            Box::new(stream)
        }
    };
    let found = greet(&mut stream, address.export)?;
    Ok((stream, found))
}

/// Carries out the client's side of the handshake. No byte behind it is read.
fn greet(mut stream: impl Read + Write, export: String) -> io::Result<ClientNegotiated> {
    let config = ClientConfig { export, style: ReplyStyle::Simple, base_allocation: false };
    let mut handshake = ClientHandshake::new(config);
    let (mut input, mut output) = (Vec::new(), Vec::new());
    loop {
        let progress = handshake.advance(&input, &mut output);
        input.drain(..progress.consumed);
        let sent = stream.write_all(&output);
        output.clear();
        match progress.step {
            ClientStep::Fatal(ClientError::BadGreeting { .. }) => {
                return Err(io::Error::other("it does not speak NBD (newstyle)"));
            }
            // The server's reason is reported even if the server is gone by now.
            ClientStep::Fatal(error) => return Err(io::Error::other(error)),
            ClientStep::Transmission(found) => return sent.map(|()| found),
            ClientStep::StartTls => return Err(io::Error::other("TLS was not asked for")),
            ClientStep::NeedMore { at_least } => {
                sent?;
                let have = input.len();
                input.resize(at_least, 0);
                stream.read_exact(&mut input[have..])?;
            }
        }
    }
}

/// Sends a request. Its cookie is always 0: there is one request at a time.
fn send(mut stream: impl Write, command: &Command, payload: &[u8]) -> io::Result<()> {
    let header = encode_request(HeaderMode::Simple, 0, command);
    stream.write_all(header.ok_or(io::ErrorKind::InvalidInput)?.as_bytes())?;
    stream.write_all(payload)
}

/// Sends a request and reads its simple reply.
fn exchange(mut stream: impl Read + Write, command: &Command, payload: &[u8]) -> io::Result<()> {
    send(&mut stream, command, payload)?;
    let mut bytes = [0; SIMPLE_REPLY_BYTES];
    stream.read_exact(&mut bytes)?;
    match parse_reply(ReplyStyle::Simple, &bytes) {
        ParsedReply::Reply { reply, .. } => match reply.body {
            // NBD's numbers are Linux's.
            Body::SimpleError(errno) => Err(io::Error::from_raw_os_error(errno.to_wire() as i32)),
            _ => Ok(()),
        },
        _ => Err(io::Error::other("its answer is no NBD reply")),
    }
}

#[cfg(test)]
mod tests;
