//! Texts made fit for display: what cannot be seen is shown as such, what is too long is cut.

use std::borrow::Cow;

/// The text on one line, with everything replaced that would act instead of being read: control
/// characters (terminal escapes), marks that reverse the direction of what follows, and what XML
/// forbids.
pub(super) fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(acts) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(
        text.chars()
            .map(|c| match c {
                '\n' | '\r' | '\t' => ' ',
                c if acts(c) => char::REPLACEMENT_CHARACTER,
                c => c,
            })
            .collect(),
    )
}

fn acts(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_is_shown() {
        assert_eq!(printable("disk é 盘"), "disk é 盘");
        assert_eq!(printable("a\nb\tc"), "a b c");
        assert_eq!(printable("\u{1b}[31mred\u{0}"), "\u{fffd}[31mred\u{fffd}");
        assert_eq!(printable("a\u{202e}txt.exe"), "a\u{fffd}txt.exe");
    }
}
