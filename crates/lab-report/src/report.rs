//! From an [`Analysis`](crate::analysis::Analysis) to what people read.
//!
//! ```text
//! Analysis + Results ──build──> Report (model) ──render──> files, terminal
//!                        └────> TidyRow, one a sample ──────> CSV, XLSX
//! ```
//!
//! Invariant: a chart's numbers are also in a table, or, for courses over time and distributions,
//! in the results.

pub mod build;
mod data;
pub mod model;
pub mod render;
pub(crate) mod units;

pub use build::{build_report, tidy_rows};
pub(crate) use build::{first_sentence, why_missing};
pub use data::report_data;
pub use model::Report;
