//! Access to the bytes of a member.

use std::io;

/// Access to the bytes of a member.
pub struct Source<'a> {
    /// The member's size in bytes.
    pub size: u64,
    /// Fills a buffer from an offset. Bytes outside the member are never asked for.
    pub read: &'a mut dyn FnMut(u64, &mut [u8]) -> io::Result<()>,
}

impl Source<'_> {
    /// Reads `len` bytes from `offset` on, or fewer if the member ends before.
    pub(super) fn read(&mut self, offset: u64, len: u64) -> io::Result<Vec<u8>> {
        let len = len.min(self.size.saturating_sub(offset));
        let mut bytes = vec![0; usize::try_from(len).map_err(io::Error::other)?];
        (self.read)(offset, &mut bytes)?;
        Ok(bytes)
    }
}
