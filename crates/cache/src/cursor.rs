//! Goes through a payload from its front, whatever buffers it has.

use braid_block::Payload;

/// The next byte of a payload.
pub(crate) struct Cursor<'a> {
    payload: &'a mut Payload,
    buf: usize,
    within: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(payload: &'a mut Payload) -> Cursor<'a> {
        Cursor { payload, buf: 0, within: 0 }
    }

    /// Has `f` see the next `len` bytes, part by part, each with how many there were before it.
    pub(crate) fn each(&mut self, len: u64, mut f: impl FnMut(usize, &mut [u8])) {
        let (mut done, len) = (0, len as usize);
        while done < len {
            let buf = &mut self.payload.bufs_mut()[self.buf];
            let count = (buf.len() - self.within).min(len - done);
            f(done, &mut buf[self.within..self.within + count]);
            done += count;
            self.within += count;
            if self.within == buf.len() {
                (self.buf, self.within) = (self.buf + 1, 0);
            }
        }
    }
}
