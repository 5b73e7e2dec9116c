//! One request of a trace.

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Read bytes.
    Read,
    /// Write bytes.
    Write,
    /// Drop the contents of a range.
    Discard,
    /// Make what was written durable; a request without a range.
    Flush,
}

/// A request, without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it was made, in nanoseconds since the trace began.
    pub at_ns: u64,
    /// Its start in bytes; 0 for a flush.
    pub offset: u64,
    /// Its length in bytes: at least 1, but for a flush, which has 0. `offset + length` is below 2^64.
    pub length: u64,
    /// The kind of the request.
    pub kind: Kind,
    /// True if a write must be durable before it is answered (forced unit access).
    pub fua: bool,
}

// The promised memory of a trace.
const _: () = assert!(size_of::<Request>() <= 32);

impl Request {
    /// A flush.
    pub const fn flush(at_ns: u64) -> Request {
        Request { at_ns, offset: 0, length: 0, kind: Kind::Flush, fua: false }
    }

    /// Its end, in bytes.
    pub const fn end(&self) -> u64 {
        self.offset + self.length
    }

    /// The request on a device of `size` bytes that takes multiples of `block` bytes, a power of two: a place
    /// behind the end is counted from the beginning again, and a range is widened to multiples. `None` if the
    /// device is smaller than the request.
    pub fn within(&self, size: u64, block: u64) -> Option<Request> {
        debug_assert!(block.is_power_of_two(), "{block}");
        let length =
            self.length.checked_next_multiple_of(block).filter(|length| *length <= size)?;
        let offset = self.offset % (size - length + 1) / block * block;
        Some(Request { offset, length, ..*self })
    }

    /// True if it moves data.
    pub const fn has_data(&self) -> bool {
        matches!(self.kind, Kind::Read | Kind::Write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lies_within_a_smaller_device() {
        let read = |offset, length| {
            let request = Request { at_ns: 7, offset, length, kind: Kind::Read, fua: false };
            request.within(10_240, 1024).map(|one| (one.at_ns, one.offset, one.length))
        };
        assert_eq!(read(2048, 1024), Some((7, 2048, 1024)));
        assert_eq!(read(9216, 1024), Some((7, 9216, 1024)));
        assert_eq!(read(9217, 1024), Some((7, 0, 1024)), "the first place behind the last");
        assert_eq!(read(1 << 40, 2048).map(|one| one.1 % 1024), Some(0));
        assert_eq!(read(512, 512), Some((7, 0, 1024)), "widened to a block");
        assert_eq!(read(0, 10_240), Some((7, 0, 10_240)));
        assert_eq!(read(0, 10_241), None);
        assert_eq!(read(0, u64::MAX), None);
    }
}
