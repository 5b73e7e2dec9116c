//! The memory of a request's data: taken all at once, filled as it comes.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use braid_block::Payload;
use braid_mem::{Buf, Pool};

use braid_uring::Stream;

/// Largest single buffer; a longer payload is made of several, so that it does not depend on
/// finding one long free stretch.
pub(crate) const PIECE: u64 = 1 << 20;

/// Payloads up to this length, in bytes, may take what longer ones leave. As many as a server has connections
/// fit into that.
const SHORT: u64 = 64 << 10;

/// `len` bytes from `pool` in buffers of at most `piece`, or nothing, and then the task is woken
/// when some come back. Unless it is short, a quarter of the pool is left for short ones: clients that
/// announce long payloads, and do not send them, hold up only others with long ones. Short ones leave an eighth:
/// a device that needs memory for the requests that hold theirs gets it.
pub(crate) fn get_payload(
    pool: &Pool,
    len: u64,
    piece: u64,
    cx: &mut Context<'_>,
) -> Poll<Payload> {
    let left = pool.total_bytes() / if len <= SHORT { 8 } else { 4 };
    Payload::poll_take(pool, len as usize, piece as usize, left, cx)
}

/// The payload of a write while it is coming in.
pub(crate) struct Incoming {
    whole: Vec<Buf>,
    /// The buffer being filled (absent while a receive has it), and how far.
    current: Option<Buf>,
    filled: usize,
    rest: VecDeque<Buf>,
}

impl Incoming {
    /// To be filled from the front.
    pub(crate) fn new(payload: Payload) -> Incoming {
        let mut rest = match payload {
            Payload::None => VecDeque::new(),
            Payload::One(buf) => VecDeque::from([buf]),
            Payload::Many(bufs) => bufs.into(),
        };
        Incoming { whole: Vec::new(), current: rest.pop_front(), filled: 0, rest }
    }

    /// Copies from `bytes` what is wanted, and answers how much that was.
    pub(crate) fn fill(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        while let Some(buf) = &mut self.current {
            let count = (buf.len() - self.filled).min(bytes.len() - taken);
            buf[self.filled..self.filled + count].copy_from_slice(&bytes[taken..taken + count]);
            taken += count;
            self.advance(count);
            if taken == bytes.len() {
                break;
            }
        }
        taken
    }

    /// Returns true if nothing is missing.
    pub(crate) fn is_whole(&self) -> bool {
        self.current.is_none() && self.rest.is_empty()
    }

    /// Starts to receive into the buffer being filled.
    ///
    /// # Panics
    /// If nothing is missing, or a receive is under way.
    pub(crate) fn receive<S: Stream>(&mut self, stream: &S) -> S::Receive {
        let buf = self.current.take().expect("one receive at a time, and room for it");
        stream.receive_whole(buf, self.filled)
    }

    /// Takes the buffer back with `count` more bytes in it.
    pub(crate) fn received(&mut self, buf: Buf, count: usize) {
        self.current = Some(buf);
        self.advance(count);
    }

    /// Takes out what has come whole, if anything has.
    pub(crate) fn take_filled(&mut self) -> Option<Payload> {
        match self.whole.len() {
            0 => None,
            1 => self.whole.pop().map(Payload::One),
            _ => Some(Payload::Many(std::mem::take(&mut self.whole))),
        }
    }

    fn advance(&mut self, count: usize) {
        self.filled += count;
        if let Some(buf) = self.current.take_if(|buf| buf.len() == self.filled) {
            self.whole.push(buf);
            self.current = self.rest.pop_front();
            self.filled = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    #[test]
    fn a_long_payload_is_filled_in_whatever_pieces_it_comes() {
        let pool = Pool::new(4 << 20).unwrap();
        let len = (2 << 20) + 5000;
        let mut cx = Context::from_waker(Waker::noop());
        let Poll::Ready(payload) = get_payload(&pool, len, PIECE, &mut cx) else {
            panic!("no memory")
        };
        let mut incoming = Incoming::new(payload);
        let bytes: Vec<u8> = (0..len as usize + 10).map(|index| (index / 7) as u8).collect();
        let mut at = 0;
        for step in [1, 1 << 20, 3, 700_000, 1 << 20].into_iter().cycle() {
            if incoming.is_whole() {
                break;
            }
            at += incoming.fill(&bytes[at..bytes.len().min(at + step)]);
        }
        assert_eq!(at as u64, len, "what follows belongs to the next request");
        let filled = incoming.take_filled().unwrap();
        assert_eq!(filled.to_vec(), bytes[..at]);
        assert!(incoming.take_filled().is_none());
    }

    #[test]
    fn long_payloads_leave_memory_for_short_ones() {
        let pool = Pool::new(4 << 20).unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        let mut get = |len| get_payload(&pool, len, PIECE, &mut cx);
        let long: Vec<_> = (0..3).map(|_| get(1 << 20)).collect();
        assert!(long.iter().all(Poll::is_ready));
        assert!(get(1 << 20).is_pending() && get(SHORT + 1).is_pending());
        let short: Vec<_> = (0..8).map(|_| get(SHORT)).collect();
        assert!(short.iter().all(Poll::is_ready));
        assert!(get(SHORT).is_pending(), "an eighth is the volume's own");
        drop((long, short));
        assert!(get(4 << 20).is_ready(), "what is as long as all of the pool comes in its turn");
    }

    #[test]
    fn all_of_the_memory_or_none() {
        let pool = Pool::new(3 << 20).unwrap();
        let mut cx = Context::from_waker(Waker::noop());
        assert!(get_payload(&pool, 4 << 20, PIECE, &mut cx).is_pending());
        assert_eq!(pool.free_bytes(), 3 << 20);
    }
}
