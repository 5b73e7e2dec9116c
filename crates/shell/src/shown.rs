//! Text as it is shown: what would steer a terminal, begin another line or turn the direction of writing is
//! written as an escape. The names of files, and the names of arrays on disks, may be anything.
//!
//! The escapes are those of JSON, so a line of JSON stays one, with the same meaning.

use std::borrow::Cow;
use std::fmt::Write as _;

/// True if a character is not shown as it is: control characters (C0, DEL, C1), separators of lines and
/// paragraphs, and those that change the direction of writing (Unicode's `Bidi_Control`).
#[must_use]
pub fn is_odd(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns || matches!(c, '\u{2028}' | '\u{2029}')
}

/// A name, or a sentence with names, as one line.
#[must_use]
pub fn shown(text: &str) -> Cow<'_, str> {
    escaped(text, is_odd)
}

/// Text whose lines and tabs are its own.
#[must_use]
pub fn shown_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_odd(c) && c != '\n' && c != '\t')
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            _ if !is_escaped(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            _ => write!(out, "\\u{:04x}", u32::from(c)).expect("a string takes everything"),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_odd_is_escaped_and_nothing_else() {
        for plain in ["", "/dev/sdb", "Ünïcode ⚠ 日本 עברית", "a\\b"] {
            assert!(matches!(shown(plain), Cow::Borrowed(text) if text == plain));
        }
        let odd = "new\nline\x1b[31mred\x7f\u{9b}2J\u{202e}gmi.\u{2028}\t\r";
        let escaped = r"new\nline\u001b[31mred\u007f\u009b2J\u202egmi.\u2028\t\r";
        assert_eq!(shown(odd), escaped);
        assert_eq!(shown_lines("a\tb\nc\x1b"), "a\tb\nc\\u001b");
        assert!(
            !(0..0x11_0000).filter_map(char::from_u32).any(|c| is_odd(c) && u32::from(c) > 0xffff)
        );
    }
}
