//! The format of a store: the file that keeps the changes of a [`super::Cow`].
//!
//! ```text
//!   0        4 KiB              data                        end
//!   | header | table: a bit for | block 0 | block 1 | …     |     sparse: a block that was not changed takes no room
//!   |        | each block       |         |         |       |
//! ```
//!
//! | header, at byte | bytes | meaning |
//! |---|---|---|
//! | 0 | 16 | `braid cow store`, and a zero byte |
//! | 16 | 4 | version, 1 |
//! | 20 | 4 | bytes of a block, 4096 |
//! | 24 | 8 | bytes of the origin |
//! | 4092 | 4 | CRC-32C of the bytes before |
//!
//! Numbers are little-endian. A set bit says that the store has the block. Bits are only ever set, so a page of the
//! table that a crash left half written is right, too: each of its sectors is old or new.

/// Bytes of a block: the unit that the store has, or has not.
pub const BLOCK: u64 = BLOCK_BYTES as u64;
/// The same, as limits and the header have it.
pub(super) const BLOCK_BYTES: u32 = 4096;
/// Bytes of the header, and of a page of the table.
pub const PAGE: u64 = 4096;
/// Blocks whose bits are in one page.
pub(super) const BLOCKS_OF_PAGE: u64 = PAGE * 8;

const MAGIC: &[u8; 16] = b"braid cow store\0";
const VERSION: u32 = 1;
/// Place of the checksum.
const SUM_AT: usize = PAGE as usize - 4;

/// The reason why bytes are no header of a store, or of the store of another device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It does not begin as a store does.
    #[error("it is something else, no store of cow(…)")]
    Foreign,
    /// The checksum is wrong, or a field is out of range.
    #[error("its header is damaged")]
    Damaged,
    /// A later version made it.
    #[error("it is of version {0}, and this one reads version 1")]
    Version(u32),
    /// It belongs to a device of another size.
    #[error("it keeps changes of a device of {store} bytes, and this one has {device}")]
    OtherSize {
        /// Bytes of the device that it belongs to.
        store: u64,
        /// Bytes of the device that it was to be used for.
        device: u64,
    },
    /// It is shorter than its header says.
    #[error("it has {0} bytes, and its data go beyond: is that all of it?")]
    Short(u64),
}

/// The places of a store's parts, which follow from the size of the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of the origin.
    pub origin: u64,
}

impl Layout {
    /// Returns the layout of the store for an origin of `origin` bytes, at most [`Layout::MAX`].
    pub const fn new(origin: u64) -> Layout {
        Layout { origin }
    }

    /// The largest origin in bytes: offsets in files are signed.
    pub const MAX: u64 = 1 << 62;

    /// Place of page `page` of the table in bytes.
    pub(super) const fn page_at(self, page: u64) -> u64 {
        PAGE + page * PAGE
    }

    /// Place of the data of block 0 in bytes.
    pub const fn data_at(self) -> u64 {
        self.page_at(self.origin.div_ceil(BLOCK).div_ceil(BLOCKS_OF_PAGE))
    }

    /// Size of the store in bytes.
    pub const fn size(self) -> u64 {
        self.data_at() + self.origin.next_multiple_of(BLOCK)
    }

    /// Returns the header.
    pub fn header(self) -> [u8; PAGE as usize] {
        let mut bytes = [0; PAGE as usize];
        bytes[..16].copy_from_slice(MAGIC);
        bytes[16..20].copy_from_slice(&VERSION.to_le_bytes());
        bytes[20..24].copy_from_slice(&BLOCK_BYTES.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.origin.to_le_bytes());
        let sum = crc32c::crc32c(&bytes[..SUM_AT]);
        bytes[SUM_AT..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Checks that `header`, in a file of `size` bytes, is that of a store with this layout.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn check(self, header: &[u8; PAGE as usize], size: u64) -> Result<(), StoreError> {
        let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| header[at + byte]));
        let wide = |at: usize| u64::from(number(at)) | u64::from(number(at + 4)) << 32;
        if header[..16] != MAGIC[..] {
            return Err(StoreError::Foreign);
        }
        if crc32c::crc32c(&header[..SUM_AT]) != number(SUM_AT) {
            return Err(StoreError::Damaged);
        }
        match (number(16), number(20)) {
            (VERSION, BLOCK_BYTES) => {}
            (VERSION, _) => return Err(StoreError::Damaged),
            (version, _) => return Err(StoreError::Version(version)),
        }
        let (store, device) = (wide(24), self.origin);
        if store != device {
            return Err(StoreError::OtherSize { store, device });
        }
        if size < self.size() {
            return Err(StoreError::Short(size));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_of_one_device() {
        for origin in [512, 4096, 1 << 30, BLOCKS_OF_PAGE * BLOCK + 512, Layout::MAX] {
            let layout = Layout::new(origin);
            let (header, size) = (layout.header(), layout.size());
            assert_eq!(layout.check(&header, size), Ok(()));
            assert_eq!(layout.check(&header, size - 1), Err(StoreError::Short(size - 1)));
            let other = Layout::new(origin - 512).check(&header, size);
            assert_eq!(other, Err(StoreError::OtherSize { store: origin, device: origin - 512 }));
            assert_eq!(layout.check(&[0; PAGE as usize], size), Err(StoreError::Foreign));
            // Any changed byte is noticed.
            for at in [15, 16, 20, 24, 31, 32, 4091, 4092, 4095] {
                let mut changed = header;
                changed[at] ^= 1;
                let expected = if at < 16 { StoreError::Foreign } else { StoreError::Damaged };
                assert_eq!(layout.check(&changed, size), Err(expected), "byte {at}");
            }
        }
    }

    #[test]
    fn parts_do_not_overlap() {
        let one = Layout::new(BLOCK * BLOCKS_OF_PAGE);
        assert_eq!((one.page_at(0), one.data_at()), (4096, 8192));
        assert_eq!(one.size(), 8192 + one.origin);
        let more = Layout::new(one.origin + 512);
        assert_eq!((more.data_at(), more.size()), (12288, 12288 + one.origin + 4096));
    }
}
