//! Texts for display: invisible characters are made visible, and texts that are too long are cut.

use std::borrow::Cow;

use crate::report::model::Tone;

/// The sign that replaces a colour.
pub(super) fn sign(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain | Tone::Baseline | Tone::Missing => "",
        Tone::Better => "▲ ",
        Tone::Worse => "▼ ",
        Tone::Same => "≈ ",
        Tone::Suspect => "⚠ ",
        Tone::Invalid => "✕ ",
    }
}

/// Returns the text on one line. It replaces control characters (terminal escapes), marks that reverse the direction
/// of the text, and characters that XML forbids.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
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

/// Returns the lines of a text, each made [`printable`], for a place that shows several lines. Commands must keep
/// their lines: on one line, all text behind a comment would belong to the comment.
pub(super) fn printable_lines(text: &str) -> String {
    text.lines().map(printable).collect::<Vec<_>>().join("\n")
}

fn acts(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}'
        )
}

/// Shortens the text to at most `longest` characters. The middle is left out, because names differ at both ends.
pub(super) fn shorten(text: &str, longest: usize) -> Cow<'_, str> {
    let count = text.chars().count();
    if count <= longest {
        return Cow::Borrowed(text);
    }
    let kept = longest.saturating_sub(1);
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    Cow::Owned(format!("{start}…{end}"))
}

/// Returns the text in lines of at most `width` characters, broken at spaces where there are any; all
/// lines but the first begin with `indent` spaces.
pub(super) fn wrap(text: &str, width: usize, indent: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        let is_empty = lines.last().is_none_or(|line| line.trim().is_empty());
        if !is_empty && used + 1 + length > width {
            lines.push(" ".repeat(indent));
            used = indent;
        } else if !is_empty {
            used += 1;
            if let Some(line) = lines.last_mut() {
                line.push(' ');
            }
        }
        used += length;
        if let Some(line) = lines.last_mut() {
            line.push_str(word);
        }
    }
    lines
}

/// Text for an element of XML or an attribute in double quotes.
pub(super) fn escape_xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
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

    #[test]
    fn lines_stay_lines() {
        assert_eq!(printable_lines("one\r\ntwo\t\u{7}\n\nfour\n"), "one\ntwo \u{fffd}\n\nfour");
        assert_eq!(printable_lines("a\rb"), "a b");
        assert_eq!(printable_lines(""), "");
    }

    #[test]
    fn the_middle_is_left_out() {
        assert_eq!(shorten("short", 5), "short");
        assert_eq!(shorten("raid0 of sda and sdb", 9), "raid… sdb");
        assert_eq!(shorten("ééééé", 3), "é…é");
        assert_eq!(shorten("abc", 0), "…");
    }

    #[test]
    fn lines_break_at_spaces() {
        assert_eq!(wrap("one two  three", 7, 0), ["one two", "three"]);
        assert_eq!(wrap("one two three", 7, 2), ["one two", "  three"]);
        assert_eq!(wrap("- a-very-long-word b", 6, 2), ["-", "  a-very-long-word", "  b"]);
        assert_eq!(wrap("", 7, 2), [""]);
    }

    #[test]
    fn xml_is_escaped() {
        assert_eq!(escape_xml(r#"<a b="c">&"#), "&lt;a b=&quot;c&quot;&gt;&amp;");
    }
}
