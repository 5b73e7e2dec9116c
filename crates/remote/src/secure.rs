//! TLS of a connection to a server: its start, in calls that wait, and the streams inside it.
//!
//! ```text
//!   dial ─▶ greeting, STARTTLS ─▶ TLS's handshake ─┬─▶ Talk    calls that wait: the offer, metadata
//!                                                  └─▶ Line    a shard's stream
//! ```
//!
//! Invariants
//! * If TLS is asked for, nothing but STARTTLS is sent outside of it, and nothing that came outside of it counts.
//! * Certificates are read at each connection, so that changed files are used by the next one.

use std::fs::File;
use std::future::Future;
use std::io::{self, IoSlice, Read, Write};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use braid_mem::Buf;
use braid_nbd::client::{ClientHandshake, ClientStep};
use braid_nbd::uri::UriTls;
use braid_tls::{Channel, Secure, Trust};
use braid_uring::{Socket, Stream};

/// Bytes of ciphertext that are received at once.
pub(crate) const CIPHERTEXT: usize = 64 << 10;

/// Asks for TLS and carries out its handshake. The caller limits the time of each call.
pub(crate) fn start(file: &mut File, tls: &UriTls) -> io::Result<Channel> {
    let failed = |error: &dyn std::fmt::Display| io::Error::other(format!("TLS: {error}"));
    let trust = Trust::load(Path::new(&tls.certificates)).map_err(|error| failed(&error))?;
    let mut channel = trust.channel(&tls.host).map_err(|error| failed(&error))?;
    let (mut handshake, mut input, mut output) =
        (ClientHandshake::starting_tls(), Vec::new(), Vec::new());
    loop {
        let progress = handshake.advance(&input, &mut output);
        input.drain(..progress.consumed);
        file.write_all(&output)?;
        output.clear();
        match progress.step {
            ClientStep::StartTls => break,
            ClientStep::NeedMore { .. } => receive(file, &mut input)?,
            ClientStep::Fatal(error) => return Err(failed(&error)),
            ClientStep::Transmission(_) => return Err(failed(&"transmission without TLS")),
        }
    }
    loop {
        let fed = feed(&mut channel, &mut input);
        channel.flush(|parts| file.write_vectored(parts))?;
        fed.map_err(|error| failed(&error))?;
        if !channel.is_handshaking() {
            break;
        }
        receive(file, &mut input)?;
    }
    match input.is_empty() {
        true => Ok(channel),
        false => Err(failed(&"the server spoke first")),
    }
}

/// Feeds as much of `input` as the channel takes.
fn feed(channel: &mut Channel, input: &mut Vec<u8>) -> Result<(), braid_tls::Error> {
    let taken = channel.feed(input)?;
    input.drain(..taken);
    Ok(())
}

/// Receives what is there, at least a byte.
pub(crate) fn receive(stream: &mut dyn Read, input: &mut Vec<u8>) -> io::Result<()> {
    let mut bytes = [0; 4096];
    match stream.read(&mut bytes)? {
        0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")),
        count => {
            input.extend_from_slice(&bytes[..count]);
            Ok(())
        }
    }
}

/// A connection for calls that wait.
pub(crate) trait Talk: Read + Write + Send {}

impl Talk for File {}
impl Talk for Secured {}

/// A connection inside TLS for calls that wait.
pub(crate) struct Secured {
    file: File,
    channel: Channel,
    input: Vec<u8>,
}

impl Secured {
    pub(crate) fn new(file: File, channel: Channel) -> Secured {
        Secured { file, channel, input: Vec::new() }
    }
}

impl Read for Secured {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(count) = self.channel.read(into)? {
                return Ok(count);
            }
            if self.input.is_empty() {
                receive(&mut self.file, &mut self.input)?;
            }
            let fed = feed(&mut self.channel, &mut self.input);
            self.flush()?;
            fed.map_err(io::Error::other)?;
        }
    }
}

impl Write for Secured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Secured { file, channel, .. } = self;
        channel.send(&[IoSlice::new(bytes)], |parts| file.write_vectored(parts))
    }

    fn flush(&mut self) -> io::Result<()> {
        let Secured { file, channel, .. } = self;
        channel.flush(|parts| file.write_vectored(parts))
    }
}

/// A connection on a shard, inside TLS or not. Clones are the same connection.
#[derive(Clone)]
pub enum Line {
    /// Without TLS.
    Plain(Socket),
    /// Inside TLS.
    Tls(Secure<Socket>),
}

impl Line {
    /// Returns the stream of `socket`, inside TLS if there is a channel.
    pub(crate) fn new(socket: Socket, channel: Option<Channel>) -> io::Result<Line> {
        Ok(match channel {
            None => Line::Plain(socket),
            Some(channel) => Line::Tls(Secure::new(socket, channel, Buf::apart(CIPHERTEXT)?)),
        })
    }
}

/// A receive under way.
pub enum Receive {
    /// Without TLS.
    Plain(<Socket as Stream>::Receive),
    /// Inside TLS.
    Tls(<Secure<Socket> as Stream>::Receive),
}

impl Future for Receive {
    type Output = (io::Result<usize>, Buf);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Receive::Plain(receive) => Pin::new(receive).poll(cx),
            Receive::Tls(receive) => Pin::new(receive).poll(cx),
        }
    }
}

impl Stream for Line {
    type Receive = Receive;

    fn receive(&self, buf: Buf, from: usize, wait_first: bool) -> Receive {
        match self {
            Line::Plain(stream) => Receive::Plain(stream.receive(buf, from, wait_first)),
            Line::Tls(stream) => Receive::Tls(stream.receive(buf, from, wait_first)),
        }
    }

    fn receive_whole(&self, buf: Buf, from: usize) -> Receive {
        match self {
            Line::Plain(stream) => Receive::Plain(stream.receive_whole(buf, from)),
            Line::Tls(stream) => Receive::Tls(stream.receive_whole(buf, from)),
        }
    }

    fn try_send(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Line::Plain(stream) => stream.try_send(parts),
            Line::Tls(stream) => stream.try_send(parts),
        }
    }

    fn writable(&self) -> impl Future<Output = io::Result<()>> + 'static {
        let line = self.clone();
        async move {
            match line {
                Line::Plain(stream) => stream.writable().await,
                Line::Tls(stream) => stream.writable().await,
            }
        }
    }

    fn turn(&self) -> impl Future<Output = ()> + 'static {
        let line = self.clone();
        async move {
            match line {
                Line::Plain(stream) => stream.turn().await,
                Line::Tls(stream) => stream.turn().await,
            }
        }
    }

    fn close(&self) {
        match self {
            Line::Plain(stream) => stream.close(),
            Line::Tls(stream) => stream.close(),
        }
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + 'static {
        let line = self.clone();
        async move {
            match line {
                Line::Plain(stream) => stream.sleep(duration).await,
                Line::Tls(stream) => stream.sleep(duration).await,
            }
        }
    }
}
