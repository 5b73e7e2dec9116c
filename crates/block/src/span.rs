//! A range of bytes on a device.

/// `len` bytes from `offset` on. A span may be empty; its end never overflows once it has been
/// checked against a device's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

impl Span {
    /// `len` bytes from `offset` on.
    #[inline]
    pub const fn new(offset: u64, len: u64) -> Span {
        Span { offset, len }
    }

    /// The byte after the last one.
    #[inline]
    pub const fn end(self) -> u64 {
        self.offset + self.len
    }

    /// True if it has no bytes.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// True if it lies inside a device of `size` bytes (false also if its end would overflow).
    #[inline]
    pub const fn is_within(self, size: u64) -> bool {
        self.offset <= size && self.len <= size - self.offset
    }

    /// True if the spans share a byte.
    #[inline]
    pub const fn overlaps(self, other: Span) -> bool {
        self.offset < other.end() && other.offset < self.end()
    }

    /// True if both ends are multiples of `block`, a power of two.
    #[inline]
    pub const fn is_aligned(self, block: u32) -> bool {
        (self.offset | self.len) & (block as u64 - 1) == 0
    }
}

impl std::fmt::Display for Span {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}+{}", self.offset, self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_whose_end_overflows_is_not_within_anything() {
        assert!(!Span::new(u64::MAX, 2).is_within(u64::MAX));
        assert!(Span::new(u64::MAX, 0).is_within(u64::MAX));
        assert!(Span::new(10, 5).is_within(15));
        assert!(!Span::new(10, 6).is_within(15));
    }

    #[test]
    fn neighbours_do_not_overlap() {
        let span = Span::new(10, 5);
        for (offset, len, overlaps) in
            [(5, 5, false), (5, 6, true), (11, 1, true), (14, 9, true), (15, 1, false)]
        {
            let other = Span::new(offset, len);
            assert_eq!((span.overlaps(other), other.overlaps(span)), (overlaps, overlaps));
        }
    }
}
