//! A stack expression: as it is written, and what it says.
//!
//! Invariant: it is parsed when it is made, and nowhere else.

use std::fmt;

use braid_stack::Stack;

/// A stack expression of a campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    text: String,
    stack: Result<Stack, String>,
}

impl Expression {
    /// As it is written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it says.
    ///
    /// # Errors
    ///
    /// Why it says nothing; a template does not before it is worked out.
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
