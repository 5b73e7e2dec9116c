//! From a [`Report`](super::model::Report) to files that people and programs read.
//!
//! ```text
//!            ┌─> the terminal  one screen
//!            ├─> report.html   one file: tables, pictures, no script, nothing from elsewhere
//!  Report ───┼─> report.md     for a repository or an issue, without details; charts are links
//!            ├─> report.xlsx   tables, native charts, and every sample
//!            └─> charts/ID.svg
//!  analysis ───> report.json   what was measured and what it says, as data
//!  samples ──┬─> samples.csv
//!            └─> the sheet "samples"
//! ```
//!
//! Invariants:
//!
//! * renderers are pure: a report and samples in, text or bytes out; only [`write_report`] touches
//!   the file system, and each file is whole or absent;
//! * a text can't change the form of the file it lands in: each renderer escapes for its own
//!   format, and control characters never reach any of them but JSON and CSV, which keep texts
//!   as they are;
//! * one drawing of a chart is used in the page and as a file.
//!
//! Deliberately absent: any arithmetic on measurements. What a number means was decided before.

pub mod chart;
mod pages;
mod terminal;
mod text;
mod tidy;
mod write;
mod xlsx;

pub use pages::{render_html, render_markdown};
pub use terminal::render_terminal;
pub(crate) use text::printable;
pub use tidy::{TidyRow, write_csv};
pub use write::{Formats, Written, write_report};
pub use xlsx::write_xlsx;
