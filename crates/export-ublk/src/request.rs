//! Descriptors of requests, as the driver writes them: `struct ublksrv_io_desc`.
//!
//! ```text
//!  0        4           8              16         24
//!  | op 8, flags 24 | sectors | first sector | address |
//! ```
//!
//! Invariant: a [`CheckedRequest`] lies inside the device, in whole blocks, and has at most [`MAX_DATA`] bytes of data.
//! The kernel keeps to that, too; but limits may have changed since, and a fault of the driver must not become one of
//! the volume.

use braid_block::{Errno, Flags, Io, Limits, Payload, Span};

/// Most bytes of data in a request.
pub const MAX_DATA: usize = 1 << 20;
/// Bytes of a descriptor.
pub const LEN: usize = 24;

const SECTOR: u64 = 512;
const READ: u8 = 0;
const WRITE: u8 = 1;
const FLUSH: u8 = 2;
const DISCARD: u8 = 3;
const WRITE_ZEROES: u8 = 5;
/// `UBLK_IO_F_FUA` and `UBLK_IO_F_NOUNMAP`, in the word that also has the operation.
const FUA: u32 = 1 << 13;
const NO_UNMAP: u32 = 1 << 15;

/// A descriptor that was not checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRequest {
    op_flags: u32,
    sectors: u32,
    start: u64,
}

/// A request that the volume can carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckedRequest {
    /// Read the span.
    Read(Span),
    /// Write the span.
    Write(Span, Flags),
    /// Make completed writes durable.
    Flush,
    /// Drop the contents of the span.
    Discard(Span, Flags),
    /// Make the span read as zeroes.
    WriteZeroes(Span, Flags),
}

/// Direction of the data of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// There are none.
    None,
    /// So many bytes go to the client.
    Given(usize),
    /// So many bytes come from the client.
    Taken(usize),
}

impl RawRequest {
    /// Takes a descriptor apart. Every sequence of bytes is one.
    pub fn parse(bytes: &[u8; LEN]) -> RawRequest {
        let word = |at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let mut start = [0; 8];
        start.copy_from_slice(&bytes[8..16]);
        RawRequest { op_flags: word(0), sectors: word(4), start: u64::from_ne_bytes(start) }
    }

    fn op(self) -> u8 {
        self.op_flags.to_le_bytes()[0]
    }

    /// Returns the data that the request has, for which memory is needed before it can be checked.
    ///
    /// # Errors
    /// `EINVAL` if it has more than [`MAX_DATA`] bytes, or none where there must be some.
    pub fn data(self) -> Result<Data, Errno> {
        let len = self.sectors as usize * SECTOR as usize;
        match self.op() {
            READ | WRITE if len == 0 || len > MAX_DATA => Err(Errno::INVAL),
            READ => Ok(Data::Given(len)),
            WRITE => Ok(Data::Taken(len)),
            _ => Ok(Data::None),
        }
    }

    /// Checks the request against the present `limits`.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for an operation that the device does not have, `EPERM` for one that changes a read-only device,
    /// `EINVAL` for a span beyond the end or of parts of blocks.
    pub fn check(self, limits: &Limits) -> Result<CheckedRequest, Errno> {
        self.data()?;
        let mut flags = Flags::NONE;
        if self.op_flags & FUA != 0 {
            flags = flags.union(Flags::FUA);
        }
        let checked = match self.op() {
            FLUSH => return Ok(CheckedRequest::Flush),
            READ => return self.span(limits).map(CheckedRequest::Read),
            WRITE => CheckedRequest::Write(self.span(limits)?, flags),
            DISCARD if limits.discard => CheckedRequest::Discard(self.span(limits)?, flags),
            WRITE_ZEROES => {
                if self.op_flags & NO_UNMAP != 0 {
                    flags = flags.union(Flags::NO_UNMAP);
                }
                CheckedRequest::WriteZeroes(self.span(limits)?, flags)
            }
            _ => return Err(Errno::OPNOTSUPP),
        };
        if limits.read_only { Err(Errno::PERM) } else { Ok(checked) }
    }

    fn span(self, limits: &Limits) -> Result<Span, Errno> {
        let len = u64::from(self.sectors) * SECTOR;
        let offset = self.start.checked_mul(SECTOR).ok_or(Errno::INVAL)?;
        let end = offset.checked_add(len).ok_or(Errno::INVAL)?;
        let block = u64::from(limits.logical_block);
        let is_whole = offset.is_multiple_of(block) && len.is_multiple_of(block);
        if len == 0 || end > limits.size || !is_whole {
            Err(Errno::INVAL)
        } else {
            Ok(Span::new(offset, len))
        }
    }
}

impl CheckedRequest {
    /// Returns the request to the volume, with `data` for a read or a write.
    pub fn io(self, data: Payload) -> Io {
        match self {
            CheckedRequest::Read(span) => Io::read(span.offset, data),
            CheckedRequest::Write(span, flags) => Io::write(span.offset, data, flags),
            CheckedRequest::Flush => Io::flush(),
            CheckedRequest::Discard(span, flags) => Io::discard(span, flags),
            CheckedRequest::WriteZeroes(span, flags) => Io::write_zeroes(span, flags),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(op_flags: u32, sectors: u32, start: u64) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes[0..4].copy_from_slice(&op_flags.to_ne_bytes());
        bytes[4..8].copy_from_slice(&sectors.to_ne_bytes());
        bytes[8..16].copy_from_slice(&start.to_ne_bytes());
        bytes
    }

    fn raw(op_flags: u32, sectors: u32, start: u64) -> RawRequest {
        RawRequest::parse(&bytes(op_flags, sectors, start))
    }

    #[test]
    fn every_operation_and_flag_is_read() {
        let limits = Limits::new(1 << 20, 512);
        let span = Span::new(1024, 4096);
        let check = |op: u32| raw(op, 8, 2).check(&limits);
        assert_eq!(check(0), Ok(CheckedRequest::Read(span)));
        assert_eq!(check(1), Ok(CheckedRequest::Write(span, Flags::NONE)));
        assert_eq!(check(1 | FUA), Ok(CheckedRequest::Write(span, Flags::FUA)));
        assert_eq!(check(2), Ok(CheckedRequest::Flush));
        assert_eq!(check(3), Ok(CheckedRequest::Discard(span, Flags::NONE)));
        assert_eq!(check(5 | NO_UNMAP), Ok(CheckedRequest::WriteZeroes(span, Flags::NO_UNMAP)));
        for op in [4].into_iter().chain(6..=255) {
            assert_eq!(check(op), Err(Errno::OPNOTSUPP));
        }
    }

    /// All small devices, blocks, places and lengths.
    #[test]
    fn small_worlds_let_nothing_through_that_does_not_fit() {
        for (block, size) in [(512, 0), (512, 4), (1024, 4), (4096, 16)] {
            let limits = Limits::new(size * SECTOR, block);
            for op in 0..=5 {
                for start in (0..20).chain([u64::MAX, u64::MAX / SECTOR, u64::MAX / SECTOR - 1]) {
                    for sectors in (0..20).chain([u32::MAX, 1 << 23]) {
                        let request = raw(op, sectors, start);
                        let (start, sectors) = (u128::from(start), u128::from(sectors));
                        let whole = u128::from(block / 512);
                        let fits = sectors > 0
                            && start + sectors <= u128::from(size)
                            && start % whole == 0
                            && sectors % whole == 0;
                        let expected = op == 2 || op != 4 && fits;
                        assert_eq!(
                            request.check(&limits).is_ok(),
                            expected,
                            "{request:?} {limits:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_read_only_device_is_read_and_flushed() {
        let limits = Limits { read_only: true, ..Limits::new(1 << 20, 512) };
        for op in 0..=5 {
            let is_allowed = raw(op, 8, 0).check(&limits).is_ok();
            assert_eq!(is_allowed, op == 0 || op == 2, "{op}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_lead_beyond_the_device(
            bytes: [u8; LEN], size in 0u64..1 << 45, shift in 9u32..13, discard: bool,
        ) {
            let block = 1 << shift;
            let limits = Limits { discard, ..Limits::new(size >> shift << shift, block) };
            let request = RawRequest::parse(&bytes);
            let data = request.data();
            match request.check(&limits) {
                Ok(CheckedRequest::Flush) => prop_assert_eq!(data, Ok(Data::None)),
                Ok(CheckedRequest::Read(span)) => {
                    prop_assert_eq!(data, Ok(Data::Given(span.len as usize)));
                    prop_assert!(span.len as usize <= MAX_DATA && span.offset + span.len <= size);
                }
                Ok(CheckedRequest::Write(span, _)) => {
                    prop_assert_eq!(data, Ok(Data::Taken(span.len as usize)));
                    prop_assert!(span.len as usize <= MAX_DATA && span.offset + span.len <= size);
                }
                Ok(CheckedRequest::Discard(span, _) | CheckedRequest::WriteZeroes(span, _)) => {
                    prop_assert_eq!(data, Ok(Data::None));
                    prop_assert!(span.len > 0 && span.offset + span.len <= size);
                    prop_assert!(span.offset.is_multiple_of(u64::from(block)));
                }
                Err(_) => {}
            }
        }
    }
}
