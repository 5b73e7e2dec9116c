//! Replies on their way out: gathered, and sent many with one call.
//!
//! ```text
//! parts   | header | payload | header | header | payload | …      one iovec each
//!             ▲ `sent` bytes of the first part have gone
//! ```
//!
//! Invariant: parts leave in the order in which they came, and memory goes back to the pool as
//! soon as its last byte was taken by the socket.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use braid_block::Payload;
use braid_nbd::protocol::ReplyHeader;

use braid_uring::Stream;

/// Most parts handed over at once; the kernel's own limit is 1024.
const MOST_PARTS: usize = 256;

/// Parts of a few replies, for which a shorter array is cleared.
const FEW_PARTS: usize = 8;

enum Part {
    Header(ReplyHeader),
    Bytes(Vec<u8>),
    Data(braid_mem::Buf),
}

impl Part {
    fn bytes(&self) -> &[u8] {
        match self {
            Part::Header(header) => header.as_bytes(),
            Part::Bytes(bytes) => bytes,
            Part::Data(buf) => buf,
        }
    }
}

#[derive(Default)]
pub(crate) struct Outbox {
    parts: VecDeque<Part>,
    sent: usize,
    bytes: usize,
}

impl Outbox {
    pub(crate) fn push_header(&mut self, header: ReplyHeader) {
        self.push(Part::Header(header));
    }

    pub(crate) fn push_bytes(&mut self, bytes: Vec<u8>) {
        self.push(Part::Bytes(bytes));
    }

    pub(crate) fn push_payload(&mut self, payload: Payload) {
        match payload {
            Payload::None => {}
            Payload::One(buf) => self.push(Part::Data(buf)),
            Payload::Many(bufs) => bufs.into_iter().for_each(|buf| self.push(Part::Data(buf))),
        }
    }

    fn push(&mut self, part: Part) {
        self.bytes += part.bytes().len();
        self.parts.push_back(part);
    }

    /// Bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Sends until all has gone (`Ok(true)`) or the socket takes no more (`Ok(false)`), and
    /// answers how many calls took something.
    pub(crate) fn send<S: Stream>(&mut self, stream: &S) -> (u64, io::Result<bool>) {
        let mut sends = 0;
        while !self.parts.is_empty() {
            match self.send_once(stream) {
                Ok(count) => {
                    sends += 1;
                    self.advance(count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return (sends, Ok(false));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return (sends, Err(error)),
            }
        }
        (sends, Ok(true))
    }

    fn send_once<S: Stream>(&self, stream: &S) -> io::Result<usize> {
        match self.parts.len() {
            0..=FEW_PARTS => self.send_parts::<S, FEW_PARTS>(stream),
            _ => self.send_parts::<S, MOST_PARTS>(stream),
        }
    }

    fn send_parts<S: Stream, const MOST: usize>(&self, stream: &S) -> io::Result<usize> {
        let mut slices = [IoSlice::new(&[]); MOST];
        let count = self.parts.len().min(MOST);
        for (slice, part) in slices.iter_mut().zip(&self.parts) {
            *slice = IoSlice::new(part.bytes());
        }
        slices[0] = IoSlice::new(&self.parts[0].bytes()[self.sent..]);
        stream.try_send(&slices[..count])
    }

    fn advance(&mut self, count: usize) {
        self.bytes -= count;
        self.sent += count;
        while let Some(first) = self.parts.front() {
            let len = first.bytes().len();
            if self.sent < len {
                return;
            }
            self.sent -= len;
            self.parts.pop_front();
        }
    }
}
