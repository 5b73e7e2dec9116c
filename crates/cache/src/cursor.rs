//! Walks through a payload from its start, across its buffers.
//!
//! Invariant: reading does not borrow a buffer mutably. A write's payload can return from an array
//! while another part of its memory is still in flight to a member: it may be read, but not filled.

use braid_block::Payload;

/// Position in a payload.
pub(crate) struct Cursor<'a> {
    payload: &'a mut Payload,
    buf: usize,
    within: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(payload: &'a mut Payload) -> Cursor<'a> {
        Cursor { payload, buf: 0, within: 0 }
    }

    /// Passes the next `len` bytes to `f` in parts, each with the number of bytes before it.
    pub(crate) fn each(&mut self, len: u64, mut f: impl FnMut(usize, &[u8])) {
        let mut done = 0;
        while done < len as usize {
            let (buf, start, count) = self.next(len as usize - done);
            f(done, &self.payload.bufs()[buf][start..start + count]);
            done += count;
        }
    }

    /// Lets `f` fill the next `len` bytes, in the same way.
    pub(crate) fn fill(&mut self, len: u64, mut f: impl FnMut(usize, &mut [u8])) {
        let mut done = 0;
        while done < len as usize {
            let (buf, start, count) = self.next(len as usize - done);
            f(done, &mut self.payload.bufs_mut()[buf][start..start + count]);
            done += count;
        }
    }

    /// Advances by up to `most` bytes of one buffer. Returns the buffer's index, the offset and the
    /// length.
    fn next(&mut self, most: usize) -> (usize, usize, usize) {
        let (buf, start) = (self.buf, self.within);
        let len = self.payload.bufs()[buf].len();
        let count = (len - start).min(most);
        self.within += count;
        if self.within == len {
            (self.buf, self.within) = (buf + 1, 0);
        }
        (buf, start, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_mem::Pool;

    #[test]
    fn a_lent_payload_is_read() {
        let pool = Pool::new(64 << 10).unwrap();
        let mut buf = pool.get(1000).unwrap();
        buf.fill(7);
        let mut payload = Payload::from(buf);
        let _on_its_way = payload.share();
        let mut read = vec![0; 600];
        Cursor::new(&mut payload).each(600, |done, part| {
            read[done..done + part.len()].copy_from_slice(part);
        });
        assert_eq!(read, [7; 600]);
    }
}
