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

mod arithmetic;
mod eval;
mod expr;
mod format;
mod lexer;
mod parser;
mod value;

use std::fmt;

use eval::{Evaluation, Failed, Seen};
use expr::Expr;
use value::float_text;

pub use eval::Source;
pub use value::{Items, Value};

/// Values of more parts are not shown.
const MOST_SHOWN: u64 = 64;

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

    /// Its value, with `source` for `f`.
    ///
    /// # Errors
    ///
    /// If `source` has no value for an id, if an operation has none, or beyond the limits.
    pub fn evaluate(&self, source: Source<'_>) -> Result<Evaluated, NoAnswer> {
        let mut evaluation = Evaluation::new(source);
        match evaluation.value(&self.expr) {
            Ok(value) => Ok(Evaluated { value, seen: evaluation.seen.as_ref().map(describe) }),
            Err(Failed::NoValue(id, why)) => Err(NoAnswer::NoValue { id, why }),
            Err(Failed::At(at, reason)) => {
                Err(NoAnswer::Failed(SyntaxError { place: place_of(&self.text, at), reason }))
            }
        }
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// What an expression came to.
#[derive(Debug, Clone)]
pub struct Evaluated {
    /// Its value.
    pub value: Value,
    /// The comparison that came last, with numbers: of `all` and `and` that do not hold, the one that
    /// fails.
    pub seen: Option<String>,
}

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// `f` has none.
    #[error("no value of {id}: {why}")]
    NoValue {
        /// Of this row or probe.
        id: String,
        /// Why.
        why: String,
    },
    /// An operation has none.
    #[error("{0}")]
    Failed(SyntaxError),
}

/// A comparison with its numbers, and the names that had values: `1.4 <= 1.832 <= 1.75 (n = 2)`.
fn describe(seen: &Seen) -> String {
    let short = |value: &Value| match value {
        Value::Float(value) => digits(*value),
        value if value.size(MOST_SHOWN) < MOST_SHOWN => value.to_string(),
        value => value.kind().to_owned(),
    };
    let mut text = short(&seen.first);
    for (compare, value) in &seen.rest {
        text += &format!(" {} {}", compare.text(), short(value));
    }
    let names: Vec<String> =
        seen.names.iter().map(|(name, value)| format!("{name} = {}", short(value))).collect();
    if names.is_empty() { text } else { format!("{text} ({})", names.join(", ")) }
}

/// Four digits, which is enough to see by how much something fails.
fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if (1e-4..1e6).contains(&size) => {
            let digits = (3.0 - size.log10().floor()).clamp(0.0, 8.0);
            let text = format!("{value:.*}", digits as usize);
            match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                false => text,
            }
        }
        _ => {
            let rounded: f64 = format!("{value:.3e}").parse().unwrap_or(value);
            if rounded.abs() >= 1e6 { format!("{rounded:e}") } else { float_text(rounded) }
        }
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
