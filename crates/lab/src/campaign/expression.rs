//! A stack expression: its text, and its parsed stack.
//!
//! Invariant: it is parsed when it is made, and never again.

use std::fmt;

use braid_stack::Stack;

/// A stack expression of a campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    text: String,
    stack: Result<Stack, String>,
}

impl Expression {
    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the stack.
    ///
    /// # Errors
    ///
    /// The reason why the text has no stack; a template has none before its expansion.
    pub fn stack(&self) -> Result<&Stack, &str> {
        self.stack.as_ref().map_err(String::as_str)
    }
}

impl<T: Into<String>> From<T> for Expression {
    fn from(text: T) -> Self {
        let text = text.into();
        let stack = Stack::parse(&text).map_err(|error| error.to_string());
        Self { text, stack }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
