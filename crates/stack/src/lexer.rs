//! Characters to tokens.
//!
//! Invariants: every token knows its bytes; the list ends with exactly one [`TokenKind::End`]; a
//! bare word never holds white space, control characters, `(`, `)`, `,` or `"`.

use std::iter::Peekable;
use std::str::CharIndices;

use crate::Span;
use crate::error::Fault;
use crate::expr::{ends_word, is_identifier};
use crate::problem::Problem;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Open,
    Close,
    Comma,
    Equals,
    /// A bare word; never empty.
    Word(String),
    /// The content of a quoted text, escapes resolved; may be empty.
    Quoted(String),
    End,
}

impl TokenKind {
    /// Its name in an error message.
    pub(crate) fn describe(&self) -> String {
        match self {
            TokenKind::Open => "`(`".to_owned(),
            TokenKind::Close => "`)`".to_owned(),
            TokenKind::Comma => "`,`".to_owned(),
            TokenKind::Equals => "`=`".to_owned(),
            TokenKind::Word(text) => format!("`{text}`"),
            TokenKind::Quoted(text) => format!("{text:?}"),
            TokenKind::End => "the end".to_owned(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) span: Span,
}

/// Splits `source` into tokens.
///
/// # Errors
/// A stray control character, an unclosed quote, an unknown escape.
pub(crate) fn lex(source: &str) -> Result<Vec<Token>, Fault> {
    let mut lexer = Lexer { source, chars: source.char_indices().peekable() };
    let mut tokens = Vec::new();
    loop {
        let token = lexer.next_token()?;
        let is_end = token.kind == TokenKind::End;
        tokens.push(token);
        if is_end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    source: &'a str,
    chars: Peekable<CharIndices<'a>>,
}

impl Lexer<'_> {
    /// The offset of the next character, or of the end.
    fn offset(&mut self) -> usize {
        self.chars.peek().map_or(self.source.len(), |(offset, _)| *offset)
    }

    fn next_token(&mut self) -> Result<Token, Fault> {
        while self.chars.next_if(|(_, c)| c.is_whitespace()).is_some() {}
        let start = self.offset();
        let Some((_, c)) = self.chars.peek().copied() else {
            return Ok(Token { kind: TokenKind::End, span: Span::at(start) });
        };
        let kind = match c {
            '(' => self.single(TokenKind::Open),
            ')' => self.single(TokenKind::Close),
            ',' => self.single(TokenKind::Comma),
            '=' => self.single(TokenKind::Equals),
            '"' => TokenKind::Quoted(self.quoted(start)?),
            c if c.is_control() => {
                let span = Span::new(start, start + c.len_utf8());
                return Err(Fault::new(Problem::StrayCharacter { character: c }, span));
            }
            _ => TokenKind::Word(self.word(start)),
        };
        Ok(Token { kind, span: Span::new(start, self.offset()) })
    }

    fn single(&mut self, kind: TokenKind) -> TokenKind {
        self.chars.next();
        kind
    }

    /// `=` ends a word only behind an identifier: `size=1G` is three tokens, but
    /// `nbd+unix:///?socket=/run/x` and `/dev/usb=1` are one.
    fn word(&mut self, start: usize) -> String {
        let mut key_possible = true;
        while let Some((offset, c)) = self.chars.peek().copied() {
            if ends_word(c) || (c == '=' && key_possible) {
                break;
            }
            self.chars.next();
            key_possible = key_possible && {
                // One character at a time: a long word must not be scanned again and again.
                if offset == start {
                    is_identifier(c.encode_utf8(&mut [0; 4]))
                } else {
                    c == '-' || c == '_' || c.is_ascii_alphanumeric()
                }
            };
        }
        let end = self.offset();
        self.source[start..end].to_owned()
    }

    fn quoted(&mut self, start: usize) -> Result<String, Fault> {
        self.chars.next();
        let mut text = String::new();
        while let Some((offset, c)) = self.chars.next() {
            match c {
                '"' => return Ok(text),
                '\\' => text.push(self.escape(offset)?),
                c => text.push(c),
            }
        }
        Err(Fault::new(Problem::UnclosedQuote, Span::new(start, start + 1)))
    }

    /// The character after a backslash at `start`: `\\`, `\"`, `\n`, `\t` or `\u{1f}`.
    fn escape(&mut self, start: usize) -> Result<char, Fault> {
        let resolved = match self.chars.next() {
            Some((_, c @ ('"' | '\\'))) => Some(c),
            Some((_, 'n')) => Some('\n'),
            Some((_, 't')) => Some('\t'),
            Some((_, 'u')) => self.unicode_escape(),
            _ => None,
        };
        resolved.ok_or_else(|| {
            let span = Span::new(start, self.offset());
            let escape = self.source[span.start..span.end].to_owned();
            Fault::new(Problem::BadEscape { escape }, span)
        })
    }

    /// `{hex}` with one to six digits that name a character.
    fn unicode_escape(&mut self) -> Option<char> {
        self.chars.next_if(|(_, c)| *c == '{')?;
        let mut value = 0_u32;
        for _ in 0..6 {
            let Some((_, digit)) = self.chars.next_if(|(_, c)| c.is_ascii_hexdigit()) else {
                break;
            };
            value = value * 16 + digit.to_digit(16)?;
        }
        self.chars.next_if(|(_, c)| *c == '}')?;
        char::from_u32(value)
    }
}
