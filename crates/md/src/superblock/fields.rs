//! Numbers at fixed places in bytes, in either byte order.
//!
//! Places are constants and the slices are as long as a superblock or another block of metadata,
//! which is checked before one of these is made.

/// In which order a number's bytes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum ByteOrder {
    /// The least significant first: version 1 always, and 0.90 of most hosts.
    #[default]
    Little,
    /// The most significant first: 0.90 written by a big-endian host.
    Big,
}

/// Takes numbers out of bytes.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    bytes: &'a [u8],
    order: ByteOrder,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8], order: ByteOrder) -> Fields<'a> {
        Fields { bytes, order }
    }

    pub(crate) fn array<const N: usize>(self, at: usize) -> [u8; N] {
        let mut array = [0; N];
        array.copy_from_slice(&self.bytes[at..at + N]);
        array
    }

    pub(crate) fn u8(self, at: usize) -> u8 {
        self.bytes[at]
    }

    pub(crate) fn u16(self, at: usize) -> u16 {
        match self.order {
            ByteOrder::Little => u16::from_le_bytes(self.array(at)),
            ByteOrder::Big => u16::from_be_bytes(self.array(at)),
        }
    }

    pub(crate) fn u32(self, at: usize) -> u32 {
        match self.order {
            ByteOrder::Little => u32::from_le_bytes(self.array(at)),
            ByteOrder::Big => u32::from_be_bytes(self.array(at)),
        }
    }

    pub(crate) fn i32(self, at: usize) -> i32 {
        self.u32(at).cast_signed()
    }

    pub(crate) fn u64(self, at: usize) -> u64 {
        match self.order {
            ByteOrder::Little => u64::from_le_bytes(self.array(at)),
            ByteOrder::Big => u64::from_be_bytes(self.array(at)),
        }
    }
}

/// Puts numbers into bytes.
pub(crate) struct FieldsMut<'a> {
    pub(crate) bytes: &'a mut [u8],
    order: ByteOrder,
}

impl<'a> FieldsMut<'a> {
    pub(crate) fn new(bytes: &'a mut [u8], order: ByteOrder) -> FieldsMut<'a> {
        FieldsMut { bytes, order }
    }

    pub(crate) fn read(&self) -> Fields<'_> {
        Fields::new(self.bytes, self.order)
    }

    pub(crate) fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    pub(crate) fn put_u16(&mut self, at: usize, value: u16) {
        match self.order {
            ByteOrder::Little => self.put(at, &value.to_le_bytes()),
            ByteOrder::Big => self.put(at, &value.to_be_bytes()),
        }
    }

    pub(crate) fn put_u32(&mut self, at: usize, value: u32) {
        match self.order {
            ByteOrder::Little => self.put(at, &value.to_le_bytes()),
            ByteOrder::Big => self.put(at, &value.to_be_bytes()),
        }
    }

    pub(crate) fn put_i32(&mut self, at: usize, value: i32) {
        self.put_u32(at, value.cast_unsigned());
    }

    pub(crate) fn put_u64(&mut self, at: usize, value: u64) {
        match self.order {
            ByteOrder::Little => self.put(at, &value.to_le_bytes()),
            ByteOrder::Big => self.put(at, &value.to_be_bytes()),
        }
    }
}
