//! Received bytes that are not parsed yet.
//!
//! ```text
//! buf   | parsed | waiting to be parsed | room |
//!                ^start                 ^end
//! ```

use braid_mem::Buf;
use braid_uring::Stream;

/// Memory for received bytes, and the bytes in it that are not parsed yet.
#[derive(Debug)]
pub struct Inbox {
    /// Absent while a receive has it.
    buf: Option<Buf>,
    start: usize,
    end: usize,
    /// The last receive left the socket empty.
    drained: bool,
}

impl Inbox {
    /// Makes an empty inbox of `buf`.
    pub fn new(buf: Buf) -> Inbox {
        Inbox { buf: Some(buf), start: 0, end: 0, drained: false }
    }

    /// Returns the bytes that wait to be parsed.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.buf.as_ref().map_or(&[], |buf| &buf[self.start..self.end])
    }

    /// Returns true if bytes wait to be parsed, also while a receive has the buffer.
    pub fn has_unparsed(&self) -> bool {
        self.start < self.end
    }

    /// Marks the first `count` bytes as parsed.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        self.start += count;
        debug_assert!(self.start <= self.end);
    }

    /// Puts bytes that were taken for a handshake, and belong to the first requests, back.
    ///
    /// # Panics
    /// If there are more than were received at once.
    pub fn put_back(&mut self, bytes: &[u8]) {
        let buf = self.buf.as_mut().expect("no receive is under way");
        buf[..bytes.len()].copy_from_slice(bytes);
        (self.start, self.end) = (0, bytes.len());
    }

    /// Starts to receive behind what is there, which moves to the front.
    ///
    /// # Panics
    /// If there is no room, or a receive is under way.
    pub fn receive<S: Stream>(&mut self, stream: &S) -> S::Receive {
        let mut buf = self.buf.take().expect("one receive at a time");
        buf.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        assert!(self.end < buf.len(), "room to receive");
        stream.receive(buf, self.end, self.drained)
    }

    /// Takes back the buffer with `count` more bytes in it.
    pub fn received(&mut self, buf: Buf, count: usize) {
        self.end += count;
        self.drained = self.end < buf.len();
        self.buf = Some(buf);
    }
}
