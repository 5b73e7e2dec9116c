//! Claims as expressions, in a small part of Python: arithmetic, comparisons (also in chains), `and`, `or`,
//! `not`, `in`, conditional expressions, texts with `+` and `%`, tuples, lists, sets, generator expressions,
//! a few functions, and `f(id)`, the value of a row or a probe.
//!
//! ```text
//!  text ──lexer──▶ tokens ──parser──▶ Expr ──eval──▶ Value
//!                                       f(id) ◀── Values
//! ```
//!
//! Invariants: what is accepted has the value that Python gives it (`tests/python.rs`); whatever the text,
//! parsing and evaluating end, within limits of depth, steps and size; nothing but `f` reaches out.
//!
//! Deliberately absent: statements, names of one's own but in generators and keys, attributes, dictionaries,
//! bits, complex numbers, and whole numbers beyond 64 bits.

mod expr;
mod lexer;
mod parser;

use std::fmt;

pub use expr::Expr;

/// An expression that could be parsed.
#[derive(Debug, Clone)]
pub struct Predicate {
    text: String,
    expr: Expr,
}

impl Predicate {
    /// Of its text.
    ///
    /// # Errors
    ///
    /// Where it cannot be parsed, and what was expected there.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        Ok(Self { text: text.to_owned(), expr: parser::parse(text)? })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A place in a text, both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: usize,
    /// The character in it.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Why a text is no predicate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct SyntaxError {
    /// Where.
    pub place: Place,
    /// What is there, and what was expected.
    pub reason: String,
}

/// An error at a byte of a text.
fn error_at(text: &str, at: usize, reason: impl Into<String>) -> SyntaxError {
    SyntaxError { place: place_of(text, at), reason: reason.into() }
}

fn place_of(text: &str, at: usize) -> Place {
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Place {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
    }
}
