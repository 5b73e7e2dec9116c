//! Reading small structures out of untrusted bytes.

use std::io;

use super::ReadAt;

/// The bytes under examination.
pub(crate) struct Window<'a> {
    bytes: &'a dyn ReadAt,
}

impl<'a> Window<'a> {
    pub(crate) fn new(bytes: &'a dyn ReadAt) -> Self {
        Self { bytes }
    }

    /// The number of bytes.
    pub(crate) fn size(&self) -> u64 {
        self.bytes.size()
    }

    /// `N` bytes at `offset`; `None` when not all of them exist.
    pub(crate) fn read<const N: usize>(&self, offset: u64) -> io::Result<Option<Block<N>>> {
        let mut block = [0; N];
        Ok(self.fill(offset, &mut block)?.then_some(Block(block)))
    }

    /// `N` bytes that begin `distance` before the end; `None` when not all of them exist.
    pub(crate) fn read_from_end<const N: usize>(
        &self,
        distance: u64,
    ) -> io::Result<Option<(u64, Block<N>)>> {
        let Some(offset) = self.size().checked_sub(distance) else { return Ok(None) };
        Ok(self.read(offset)?.map(|block| (offset, block)))
    }

    /// Fills the whole buffer from `offset`; `false` when the end comes first.
    pub(crate) fn fill(&self, offset: u64, buffer: &mut [u8]) -> io::Result<bool> {
        let mut done = 0;
        while done < buffer.len() {
            let Some(position) = offset.checked_add(done as u64) else { return Ok(false) };
            match self.bytes.read_at(position, &mut buffer[done..])? {
                0 => return Ok(false),
                count => done += count,
            }
        }
        Ok(true)
    }
}

/// `N` bytes, taken apart at fixed offsets. Offsets are constants of this crate's code, so one that
/// lies outside is a mistake of the code and panics.
pub(crate) struct Block<const N: usize>(pub(crate) [u8; N]);

impl<const N: usize> Block<N> {
    pub(crate) fn bytes(&self, at: usize, length: usize) -> &[u8] {
        &self.0[at..at + length]
    }

    fn array<const M: usize>(&self, at: usize) -> [u8; M] {
        let mut array = [0; M];
        array.copy_from_slice(self.bytes(at, M));
        array
    }

    pub(crate) fn has(&self, at: usize, magic: &[u8]) -> bool {
        self.bytes(at, magic.len()) == magic
    }

    pub(crate) fn u8(&self, at: usize) -> u8 {
        self.0[at]
    }

    pub(crate) fn le16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    pub(crate) fn le32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    pub(crate) fn le64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }

    pub(crate) fn be16(&self, at: usize) -> u16 {
        u16::from_be_bytes(self.array(at))
    }

    pub(crate) fn be32(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.array(at))
    }

    pub(crate) fn be64(&self, at: usize) -> u64 {
        u64::from_be_bytes(self.array(at))
    }

    /// Text that ends at the first NUL or at `length`, without padding.
    pub(crate) fn text(&self, at: usize, length: usize) -> String {
        let bytes = self.bytes(at, length);
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(length);
        String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
    }

    /// As [`Block::text`], of `length` little-endian UTF-16 units.
    pub(crate) fn text_utf16(&self, at: usize, length: usize) -> String {
        let units =
            (0..length).map(|index| self.le16(at + 2 * index)).take_while(|unit| *unit != 0);
        char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
    }

    /// Sixteen bytes as `8-4-4-4-12` hexadecimal digits.
    pub(crate) fn uuid(&self, at: usize) -> String {
        format_uuid(&self.array(at))
    }

    /// As [`Block::uuid`], with the first three groups little-endian, as Microsoft and EFI write them.
    pub(crate) fn guid(&self, at: usize) -> String {
        let mut bytes: [u8; 16] = self.array(at);
        bytes[0..4].reverse();
        bytes[4..6].reverse();
        bytes[6..8].reverse();
        format_uuid(&bytes)
    }

    /// Sixteen bytes as four groups of eight digits with colons, as mdadm writes them.
    pub(crate) fn md_uuid(&self, at: usize) -> String {
        let words = self.bytes(at, 16).chunks(4);
        words.map(hexadecimal).collect::<Vec<_>>().join(":")
    }
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn format_uuid(bytes: &[u8; 16]) -> String {
    let digits = hexadecimal(bytes);
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}
