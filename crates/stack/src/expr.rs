//! The generic form: calls and words, before anybody knows which names exist.
//!
//! Invariants: quotes and escapes are already resolved in [`Word::text`]; a named argument's value
//! is again an expression, so that `origin=raid0(…)` needs no special case.

use std::fmt;

use crate::Span;

/// A call or a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expr {
    /// `name(argument, key=value, …)`.
    Call(Call),
    /// A bare word or a quoted text.
    Word(Word),
}

/// `name(argument, key=value, …)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The called name; always an identifier.
    pub name: Word,
    /// Arguments in the order of the source.
    pub args: Vec<Arg>,
    /// From the first character of the name to the closing parenthesis.
    pub span: Span,
}

/// One argument of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Arg {
    /// `value`.
    Positional(Expr),
    /// `key=value`.
    Named {
        /// The identifier before `=`.
        key: Word,
        /// The value after `=`.
        value: Expr,
    },
}

/// A bare word or a quoted text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The text, without quotes and with escapes resolved.
    pub text: String,
    /// True if it stood in double quotes, and so cannot be a name.
    pub quoted: bool,
    /// Its place, quotes included.
    pub span: Span,
}

impl Word {
    /// Returns the place from byte `at` of the text on, at most its end; all of it if it stood in quotes.
    pub(crate) fn from(&self, at: usize) -> Span {
        let mut span = self.span;
        if !self.quoted {
            span.start = (span.start + at).min(span.end.saturating_sub(1)).max(span.start);
        }
        span
    }
}

impl Expr {
    /// The place of the whole expression.
    #[must_use]
    pub fn span(&self) -> Span {
        match self {
            Expr::Call(call) => call.span,
            Expr::Word(word) => word.span,
        }
    }
}

/// True if `text` is a name: a letter or `_`, then letters, digits, `_` and `-`.
pub(crate) fn is_identifier(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// True if a bare word is meant as a path: it begins with `/`, `./`, `../` or `~`, or contains a `.` or a `/`.
/// (The first three begin with one of the last two.)
pub(crate) fn looks_like_path(text: &str) -> bool {
    text.starts_with('~') || text.contains(['.', '/'])
}

/// True if a character ends a bare word.
pub(crate) fn ends_word(c: char) -> bool {
    c.is_whitespace() || c.is_control() || matches!(c, '(' | ')' | ',' | '"')
}

/// True if the lexer would read `text` as one bare word.
///
/// `=` splits a word only behind an identifier, so `usb=1.img` is not one word and `/dev/usb=1` is.
fn is_bare(text: &str) -> bool {
    let splits =
        text.split_once('=').is_some_and(|(head, _)| head.is_empty() || is_identifier(head));
    !text.is_empty() && !text.contains(ends_word) && !splits
}

/// Prints a path so that it reads back as one: bare where possible, otherwise in quotes.
pub(crate) fn fmt_path(f: &mut fmt::Formatter<'_>, path: &str) -> fmt::Result {
    if looks_like_path(path) && is_bare(path) {
        return f.write_str(path);
    }
    fmt_quoted(f, path)
}

/// Prints a word so that it reads back as one: bare where possible, otherwise in quotes.
pub(crate) fn fmt_word(f: &mut fmt::Formatter<'_>, word: &str) -> fmt::Result {
    if is_bare(word) {
        return f.write_str(word);
    }
    fmt_quoted(f, word)
}

fn fmt_quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\t' => f.write_str("\\t")?,
            c if c.is_control() => write!(f, "\\u{{{:x}}}", u32::from(c))?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}
