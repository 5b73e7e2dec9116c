//! Received bytes that are not parsed yet.
//!
//! ```text
//! buf   | parsed | waiting to be parsed | room |
//!                ^start                 ^end
//! ```
//!
//! An inbox may grow, when a receive has filled it: a connection that has little to say holds little memory.

use braid_mem::{Buf, Pool};
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
    /// The size that it may grow to, in bytes, and the memory for that.
    growing: Option<(usize, Pool)>,
}

impl Inbox {
    /// Makes an empty inbox of `buf`.
    pub fn new(buf: Buf) -> Inbox {
        Inbox { buf: Some(buf), start: 0, end: 0, drained: false, growing: None }
    }

    /// Returns it so that it grows to `len` bytes of `pool` while less than half of that is in use.
    #[must_use]
    pub fn growing_to(self, len: usize, pool: Pool) -> Inbox {
        Inbox { growing: Some((len, pool)), ..self }
    }

    /// Returns the larger buffer, if the inbox is to grow now, and there is one at hand.
    fn larger(&mut self) -> Option<Buf> {
        let (len, pool) = self
            .growing
            .take_if(|(len, pool)| pool.free_bytes() >= pool.total_bytes() / 2 + *len)?;
        let buf = pool.get(len);
        if buf.is_none() {
            // The pool has asked for more memory: the next full receive finds it.
            self.growing = Some((len, pool));
        }
        buf
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
        let buf = self.next_buffer();
        stream.receive(buf, self.end, self.drained)
    }

    /// Takes the buffer for the next receive, with what waits to be parsed at its front.
    fn next_buffer(&mut self) -> Buf {
        let mut buf = self.buf.take().expect("one receive at a time");
        let was_filled = self.end == buf.len() && !self.drained;
        match was_filled.then(|| self.larger()).flatten() {
            None => buf.copy_within(self.start..self.end, 0),
            Some(mut larger) => {
                larger[..self.end - self.start].copy_from_slice(&buf[self.start..self.end]);
                buf = larger;
            }
        }
        self.end -= self.start;
        self.start = 0;
        assert!(self.end < buf.len(), "room to receive");
        buf
    }

    /// Takes back the buffer with `count` more bytes in it.
    pub fn received(&mut self, buf: Buf, count: usize) {
        self.end += count;
        self.drained = self.end < buf.len();
        self.buf = Some(buf);
    }
}

#[cfg(test)]
mod tests {
    use braid_mem::Pool;

    use super::*;

    /// A stream whose receives hand over the buffer they were given.
    fn receive(inbox: &mut Inbox, bytes: usize) -> usize {
        let mut buf = inbox.next_buffer();
        let len = buf.len();
        let (from, to) = (inbox.end, (inbox.end + bytes).min(len));
        (from..to).for_each(|at| buf[at] = at as u8);
        inbox.received(buf, to - from);
        len
    }

    #[test]
    fn a_filled_inbox_grows_once_and_keeps_its_bytes() {
        let pool = Pool::new(1 << 20).unwrap();
        let first = pool.get(16 << 10).unwrap();
        let mut inbox = Inbox::new(first).growing_to(64 << 10, pool.clone());
        assert_eq!(receive(&mut inbox, 100), 16 << 10);
        assert_eq!(receive(&mut inbox, 100), 16 << 10, "it was not filled");
        assert_eq!(receive(&mut inbox, 16 << 10), 16 << 10);
        let before = inbox.bytes()[5000..].to_vec();
        inbox.consume(5000);
        assert_eq!(receive(&mut inbox, 64 << 10), 64 << 10);
        assert_eq!(inbox.bytes()[..before.len()], before);
        assert_eq!(pool.total_bytes() - pool.free_bytes(), 64 << 10, "the first one went back");
        inbox.consume(9);
        assert_eq!(receive(&mut inbox, 9), 64 << 10);
    }

    #[test]
    fn an_inbox_does_not_grow_where_others_need_the_memory() {
        let pool = Pool::new(256 << 10).unwrap();
        let mut inbox = Inbox::new(pool.get(16 << 10).unwrap()).growing_to(64 << 10, pool.clone());
        let others = pool.get(64 << 10).unwrap();
        receive(&mut inbox, 16 << 10);
        inbox.consume(16 << 10);
        assert_eq!(receive(&mut inbox, 16 << 10), 16 << 10);
        drop(others);
        inbox.consume(16 << 10);
        assert_eq!(receive(&mut inbox, 1), 64 << 10);
    }
}
