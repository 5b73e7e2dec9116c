//! The words of a line, with their columns.

use crate::SyntaxError;

/// The rest of a line.
#[derive(Clone)]
pub(crate) struct Words<'a> {
    line: u64,
    text: &'a [u8],
    at: usize,
}

/// A word.
#[derive(Clone, Copy)]
pub(crate) struct Word<'a> {
    pub(crate) text: &'a [u8],
    line: u64,
    column: usize,
}

impl<'a> Words<'a> {
    pub(crate) fn new(line: u64, text: &'a [u8]) -> Words<'a> {
        Words { line, text, at: 0 }
    }

    /// The next word: an empty one at the end of the line.
    pub(crate) fn next(&mut self) -> Word<'a> {
        let is_blank = |byte: &u8| byte.is_ascii_whitespace();
        let rest = &self.text[self.at..];
        let start = self.at + rest.iter().take_while(|byte| is_blank(byte)).count();
        let rest = &self.text[start..];
        let len = rest.iter().take_while(|byte| !is_blank(byte)).count();
        self.at = start + len;
        Word { text: &rest[..len], line: self.line, column: start + 1 }
    }

    /// The next word as a number.
    pub(crate) fn number(&mut self, expected: &str) -> Result<u64, SyntaxError> {
        let word = self.next();
        decimal(word.text).ok_or_else(|| word.error(expected))
    }

    /// Nothing but blanks may be left.
    pub(crate) fn end(&mut self) -> Result<(), SyntaxError> {
        let word = self.next();
        if word.is_empty() { Ok(()) } else { Err(word.error("the end of the line")) }
    }
}

impl Word<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(crate) fn error(&self, expected: impl Into<String>) -> SyntaxError {
        SyntaxError::new(self.line, self.column, self.text, expected)
    }
}

/// Digits as a number below 2^64; none if there are no digits, others, or too many.
pub(crate) fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, digit| {
        let digit = char::from(*digit).to_digit(10)?;
        number.checked_mul(10)?.checked_add(digit.into())
    })
}
