//! From a text to its words.

use super::{SyntaxError, error_at};

/// A word of the text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Integer(i64),
    Float(f64),
    Text(String),
    /// A name or a keyword.
    Name(String),
    Sign(&'static str),
    End,
}

impl Token {
    /// As errors say it.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Integer(value) => format!("{value}"),
            Self::Float(value) => format!("{value}"),
            Self::Text(text) => format!("the text {text:?}"),
            Self::Name(name) => format!("{name:?}"),
            Self::Sign(sign) => format!("{sign:?}"),
            Self::End => "the end".to_owned(),
        }
    }
}

/// The longer ones first.
const SIGNS: [&str; 22] = [
    "**", "//", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%", "<", ">", "(", ")", "[", "]", "{",
    "}", ",", ":", "=",
];

/// The words with the byte at which each begins, an [`Token::End`] last.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>, SyntaxError> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let is_number = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
        let (token, length) = if c.is_ascii_whitespace() {
            at += 1;
            continue;
        } else if is_number(rest) || c == '.' && is_number(&rest[1..]) {
            number(rest).map_err(|reason| error_at(text, at, reason))?
        } else if c == '\'' || c == '"' {
            quoted(rest, c).map_err(|reason| error_at(text, at, reason))?
        } else if c.is_ascii_alphabetic() || c == '_' {
            let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let length = length.unwrap_or(rest.len());
            if rest[length..].starts_with(['\'', '"']) {
                return Err(error_at(
                    text,
                    at,
                    "a text has no prefix here; % puts values into one",
                ));
            }
            (Token::Name(rest[..length].to_owned()), length)
        } else if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            (Token::Sign(sign), sign.len())
        } else {
            return Err(error_at(text, at, format!("{c:?} has no meaning here")));
        };
        found.push((at, token));
        at += length;
    }
    found.push((text.len(), Token::End));
    Ok(found)
}

/// Digits, which single underscores may group.
fn digits(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut length = 0;
    while is_digit(length)
        || length > 0
            && bytes.get(length) == Some(&b'_')
            && is_digit(length + 1)
            && is_digit(length - 1)
    {
        length += 1;
    }
    length
}

fn number(text: &str) -> Result<(Token, usize), String> {
    let whole = digits(text);
    let mut length = whole;
    if text[length..].starts_with('.') {
        length += 1 + digits(&text[length + 1..]);
    }
    if text[length..].starts_with(['e', 'E']) {
        let sign = usize::from(text[length + 1..].starts_with(['+', '-']));
        match digits(&text[length + 1 + sign..]) {
            0 => return Err("an exponent has digits".to_owned()),
            exponent => length += 1 + sign + exponent,
        }
    }
    if text[length..].starts_with(|c: char| c.is_alphanumeric() || c == '_') {
        return Err("a number ends before letters".to_owned());
    }
    let written = text[..length].replace('_', "");
    if length > whole {
        let value: f64 = written.parse().map_err(|_| "this is no number".to_owned())?;
        return match value.is_finite() {
            true => Ok((Token::Float(value), length)),
            false => Err("this number is too large".to_owned()),
        };
    }
    if written.len() > 1 && written.starts_with('0') && written.contains(|c| c != '0') {
        return Err("a whole number does not begin with 0".to_owned());
    }
    let value =
        written.parse().map_err(|_| "this whole number has more than 63 bits".to_owned())?;
    Ok((Token::Integer(value), length))
}

fn quoted(text: &str, quote: char) -> Result<(Token, usize), String> {
    let mut out = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            c if c == quote && out.is_empty() && text[at + 1..].starts_with(quote) => {
                return Err("a text has one quote on either side".to_owned());
            }
            c if c == quote => return Ok((Token::Text(out), at + 1)),
            '\n' => break,
            '\\' => match chars.next() {
                Some((_, c @ ('\\' | '\'' | '"'))) => out.push(c),
                Some((_, 'n')) => out.push('\n'),
                Some((_, 't')) => out.push('\t'),
                _ => return Err(r#"after \ in a text comes one of \ ' " n t"#.to_owned()),
            },
            c => out.push(c),
        }
    }
    Err(format!("the text that begins here has no {quote} at its end"))
}
