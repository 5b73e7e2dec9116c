//! Why a text is no workload.

/// A place in a text, and what is wrong there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {found}, but expected {expected}")]
pub struct SyntaxError {
    /// From 1 on.
    pub line: u64,
    /// In bytes, from 1 on.
    pub column: usize,
    /// The text at that place, quoted and cut.
    pub found: String,
    /// The permitted values, in words.
    pub expected: String,
}

/// As much of what was found as is told.
const TOLD: usize = 40;

impl SyntaxError {
    /// `found` stands at `column` of `line`.
    pub(crate) fn new(
        line: u64,
        column: usize,
        found: &[u8],
        expected: impl Into<String>,
    ) -> SyntaxError {
        let told = String::from_utf8_lossy(&found[..found.len().min(TOLD)]);
        let more = if found.len() > TOLD { "…" } else { "" };
        let found = match found {
            [] => "found the end of the line".to_owned(),
            _ => format!("found {told:?}{more}"),
        };
        SyntaxError { line, column, found, expected: expected.into() }
    }
}

/// Why a text is no trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// A line that is not understood.
    #[error("{0}")]
    Syntax(#[from] SyntaxError),
    /// Requests to several devices or files, of which none was selected.
    #[error("the trace is of several {what}: {}", names.join(", "))]
    Several {
        /// `devices` or `files`.
        what: &'static str,
        /// In order of their first requests; the last may be "…".
        names: Vec<String>,
    },
    /// The selected device has no requests.
    #[error("the trace has no requests to {wanted}, only to: {}", names.join(", "))]
    NotThere {
        /// The selection.
        wanted: String,
        /// The names in the trace, as above.
        names: Vec<String>,
    },
}
