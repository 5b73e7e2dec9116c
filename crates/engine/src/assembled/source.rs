//! Where what a member carries is read from.

use std::io;

/// Where the bytes of a member come from.
pub struct Source<'a> {
    /// The member's size in bytes.
    pub size: u64,
    /// Fills its buffer from an offset; never asked for bytes outside the member.
    pub read: &'a mut dyn FnMut(u64, &mut [u8]) -> io::Result<()>,
}

impl Source<'_> {
    /// Up to `len` bytes from `offset` on, fewer where the member ends.
    pub(super) fn read(&mut self, offset: u64, len: u64) -> io::Result<Vec<u8>> {
        let len = len.min(self.size.saturating_sub(offset));
        let mut bytes = vec![0; usize::try_from(len).map_err(io::Error::other)?];
        (self.read)(offset, &mut bytes)?;
        Ok(bytes)
    }
}
