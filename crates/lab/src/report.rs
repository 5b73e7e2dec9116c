//! From an [`Analysis`](crate::analysis::Analysis) to what people read.
//!
//! ```text
//! Analysis + Results ──build──> Report (model) ──> files
//! ```
//!
//! Invariant: every number that a chart draws is also in a table of its section.

mod build;
pub mod model;
pub mod render;
pub(crate) mod units;

pub use build::build_report;
