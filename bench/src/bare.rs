//! The bare socket: a server that reads many requests with one call, copies, and answers them
//! with one. No engine, no executor, no concurrency within a connection.
//!
//! It is the floor for a server that copies the data once and sends it: what braid takes above it
//! is what its layers cost. It knows reads of the size that the load generator makes, and says so
//! if it gets anything else.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;

use braid_mem::{Advice, Region};
use braid_nbd::handshake::{Handshake, Policy, Step};
use braid_nbd::protocol::{Command, ExportInfo, Exports, Negotiated, ParsedHeader, check, parse};

use crate::{Error, Result};

/// A listening server and its memory.
pub struct BareServer {
    listener: UnixListener,
    shared: Arc<Shared>,
}

struct Shared {
    memory: Region,
    exports: Arc<Exports>,
    export: ExportInfo,
}

impl BareServer {
    /// Listens at `socket` and serves `size` bytes, which it fills first.
    ///
    /// # Errors
    /// If there is no such memory or the socket exists.
    pub fn listen(socket: &Path, size: usize) -> Result<BareServer> {
        let memory = Region::new(size, Advice::SparseHuge).map_err(Error::io("memory"))?;
        for offset in (0..size).step_by(4096) {
            memory.write(offset, &(offset as u64 | 1).to_le_bytes());
        }
        let export = ExportInfo { read_only: true, ..ExportInfo::new("", size as u64) };
        let exports = Exports::new(vec![export.clone()])
            .map_err(|error| Error::Unexpected(error.to_string()))?;
        let failed = Error::io(format!("socket {}", socket.display()));
        let listener = UnixListener::bind(socket).map_err(failed)?;
        let shared = Arc::new(Shared { memory, exports: Arc::new(exports), export });
        Ok(BareServer { listener, shared })
    }

    /// Serves each connection on a thread of its own, for ever.
    ///
    /// # Errors
    /// The error of `accept`.
    pub fn run(&self) -> Result<()> {
        loop {
            let (stream, _) = self.listener.accept().map_err(Error::io("accept"))?;
            let shared = Arc::clone(&self.shared);
            std::thread::spawn(move || {
                if let Err(error) = shared.serve(stream) {
                    eprintln!("bare server: {error}");
                }
            });
        }
    }
}

impl Shared {
    fn serve(&self, mut stream: UnixStream) -> io::Result<()> {
        let Some(negotiated) = self.negotiate(&mut stream)? else { return Ok(()) };
        let mut input = vec![0; 64 << 10];
        let (mut filled, mut out) = (0, Out::default());
        loop {
            let count = stream.read(&mut input[filled..])?;
            if count == 0 {
                return Ok(());
            }
            filled += count;
            out.len = 0;
            let Some(taken) = self.answer(&negotiated, &input[..filled], &mut out)? else {
                return Ok(());
            };
            input.copy_within(taken..filled, 0);
            filled -= taken;
            stream.write_all(&out.bytes[..out.len])?;
        }
    }

    /// Appends the replies to all whole requests, and answers the bytes these took; `None` for a
    /// request to disconnect.
    fn answer(
        &self,
        negotiated: &Negotiated,
        input: &[u8],
        out: &mut Out,
    ) -> io::Result<Option<usize>> {
        let mode = negotiated.header_mode();
        let mut taken = 0;
        loop {
            let raw = match parse(mode, &input[taken..]) {
                ParsedHeader::NeedMore => return Ok(Some(taken)),
                ParsedHeader::BadMagic(_) => return Err(io::ErrorKind::InvalidData.into()),
                ParsedHeader::Request(raw) => raw,
            };
            let request = check(&raw, &self.export, negotiated)
                .map_err(|refusal| io::Error::other(refusal.reason.to_string()))?;
            match request.command {
                Command::Read { offset, length, .. } => {
                    let header = negotiated.style.read_data(request.to, offset, length, true);
                    out.room(header.as_bytes().len()).copy_from_slice(header.as_bytes());
                    self.memory.read(offset as usize, out.room(length as usize));
                }
                Command::Disconnect => return Ok(None),
                other => return Err(io::Error::other(format!("only reads, not {other:?}"))),
            }
            taken += mode.request_bytes();
        }
    }

    fn negotiate(&self, stream: &mut UnixStream) -> io::Result<Option<Negotiated>> {
        let mut handshake = Handshake::new(Arc::clone(&self.exports), Policy::default());
        let mut answer = handshake.greeting().to_vec();
        let mut input = Vec::new();
        loop {
            stream.write_all(&answer)?;
            answer.clear();
            let mut buf = [0; 4096];
            let count = stream.read(&mut buf)?;
            if count == 0 {
                return Ok(None);
            }
            input.extend_from_slice(&buf[..count]);
            let progress = handshake.advance(&input, &mut answer);
            input.drain(..progress.consumed);
            match progress.step {
                Step::NeedMore { .. } => {}
                // Our generator waits for the answer before its first request.
                Step::Transmission(negotiated) => {
                    stream.write_all(&answer)?;
                    return Ok(Some(negotiated));
                }
                // Without certificates TLS is never started.
                Step::Aborted | Step::StartTls => return Ok(None),
                Step::Fatal(error) => return Err(io::Error::other(error.to_string())),
            }
        }
    }
}

/// Replies of one call. What was once made room for is not cleared again.
#[derive(Default)]
struct Out {
    bytes: Vec<u8>,
    len: usize,
}

impl Out {
    /// The next `len` bytes.
    fn room(&mut self, len: usize) -> &mut [u8] {
        let start = self.len;
        self.len += len;
        if self.bytes.len() < self.len {
            self.bytes.resize(self.len, 0);
        }
        &mut self.bytes[start..self.len]
    }
}
