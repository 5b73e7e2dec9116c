//! Texts that a cell can hold.

use crate::report::render::text::{printable, printable_lines};

/// Most characters of a cell, in the format's own count.
const LONGEST: usize = 32_767;

/// A text on one line.
pub(super) fn cell_text(text: &str) -> String {
    clip(text, LONGEST)
}

/// The lines of a text; a cell shows them if its look wraps.
pub(super) fn cell_lines(text: &str) -> String {
    cut(&printable_lines(text), LONGEST)
}

/// The first characters of a text on one line.
pub(super) fn clip(text: &str, longest: usize) -> String {
    cut(&printable(text), longest)
}

/// The first units of UTF-16, in which the format counts.
fn cut(text: &str, longest: usize) -> String {
    let mut length = 0;
    let fits = |c: &char| {
        length += c.len_utf16();
        length <= longest
    };
    text.chars().take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_holds_32767_units_of_utf_16() {
        assert_eq!(cell_text(&"a".repeat(40_000)).len(), LONGEST);
        assert_eq!(cell_text(&"💾".repeat(20_000)).chars().count(), LONGEST / 2);
        assert_eq!(cell_text("a\u{0}b"), "a\u{fffd}b");
        assert_eq!((cell_text("a\nb"), cell_lines("a\r\nb")), ("a b".into(), "a\nb".into()));
    }
}
