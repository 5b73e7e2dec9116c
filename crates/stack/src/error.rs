//! The place of an error in an expression, and the way to show it.

use std::fmt;

use crate::Span;
use crate::problem::Problem;

/// A problem and its place, before the column is known.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) problem: Box<Problem>,
    pub(crate) span: Span,
}

impl Fault {
    pub(crate) fn new(problem: Problem, span: Span) -> Self {
        Self { problem: Box::new(problem), span }
    }

    pub(crate) fn locate(self, source: &str) -> ParseError {
        let column = self.span.column(source);
        ParseError { problem: self.problem, span: self.span, column }
    }
}

/// Why a text is not a stack, and where.
///
/// `Display` is one line with the column; [`ParseError::render`] draws the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    problem: Box<Problem>,
    span: Span,
    column: usize,
}

impl std::error::Error for ParseError {}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column, self.problem)
    }
}

/// The greatest number of characters of the expression that [`ParseError::render`] shows.
const EXCERPT_WIDTH: usize = 72;

impl ParseError {
    /// The error.
    #[must_use]
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The bytes of the source that are wrong.
    #[must_use]
    pub fn span(&self) -> Span {
        self.span
    }

    /// The 1-based column, counted in characters.
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }

    /// The text to write instead, if there is one.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        self.problem.help()
    }

    /// The error, the expression with carets under the place, and the help. No newline at the end.
    ///
    /// `source` is the text that was parsed. White space and control characters are drawn as one
    /// space each; a long expression is cut on both sides of the place.
    ///
    /// ```
    /// let source = "raid0(chunk=5K, a.img, b.img)";
    /// let error = braid_stack::Stack::parse(source).unwrap_err();
    /// assert_eq!(error.render(source), "\
    /// column 13: `chunk` 5K is not a multiple of 4K
    ///   raid0(chunk=5K, a.img, b.img)
    ///               ^^
    /// help: the nearest are 4K and 8K");
    /// ```
    #[must_use]
    pub fn render(&self, source: &str) -> String {
        let (excerpt, indent, width) = excerpt(source, self.column - 1, self.span.width(source));
        let mut text = format!("{self}\n  {excerpt}\n  {:indent$}{:^>width$}", "", "^");
        if let Some(help) = self.help() {
            text.push_str("\nhelp: ");
            text.push_str(&help);
        }
        text
    }
}

/// The part of `source` around the character at `at`, with where and how wide the carets are.
///
/// ```text
///  source   raid0(…………………………………………………………………………………………………………)
///  window            …▕──── EXCERPT_WIDTH ────▏…     starts a third of the width before `at`
/// ```
fn excerpt(source: &str, at: usize, width: usize) -> (String, usize, usize) {
    let chars: Vec<char> =
        source.chars().map(|c| if c.is_whitespace() || c.is_control() { ' ' } else { c }).collect();
    if chars.len() <= EXCERPT_WIDTH {
        return (chars.into_iter().collect(), at, width);
    }
    let start = at.saturating_sub(EXCERPT_WIDTH / 3).min(chars.len() - EXCERPT_WIDTH);
    let end = start + EXCERPT_WIDTH;
    let mut text = String::new();
    if start > 0 {
        text.push('…');
    }
    text.extend(&chars[start..end]);
    if end < chars.len() {
        text.push('…');
    }
    let indent = at - start + usize::from(start > 0);
    (text, indent, width.min((end - at.min(end)).max(1)))
}
