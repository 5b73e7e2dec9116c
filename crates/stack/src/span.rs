//! The place of a word or expression in the source text.

/// A half-open range of byte offsets into the source text, on character boundaries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset behind the last byte; equal to `start` for a point, such as the end of the text.
    pub end: usize,
}

impl Span {
    /// The range `start..end`.
    #[must_use]
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// The point before the byte at `offset`.
    #[must_use]
    pub const fn at(offset: usize) -> Self {
        Self { start: offset, end: offset }
    }

    /// The 1-based column of the beginning, counted in characters of `source`.
    ///
    /// An offset behind the end, or inside a character, counts as the next boundary.
    #[must_use]
    pub fn column(self, source: &str) -> usize {
        source.char_indices().take_while(|(offset, _)| *offset < self.start).count() + 1
    }

    /// The number of characters of `source` that it covers; at least one, so that there is a place to point at.
    #[must_use]
    pub fn width(self, source: &str) -> usize {
        source
            .char_indices()
            .filter(|(offset, _)| (self.start..self.end).contains(offset))
            .count()
            .max(1)
    }
}
