//! The meaning of the laboratory's results, for people: statistics, verdicts, the answer, pages.
//!
//! ```text
//! results.sqlite ──> analysis ─────────> report ──────────> terminal, HTML, XLSX, Markdown, CSV, JSON, SVG
//! (braid_lab::store) (analysis, stats,   (report::build, then report::render)
//!                     trust)  └────────> compare: two runs    listing: what lies in folders, one cell
//! ```
//!
//! ```no_run
//! use std::path::Path;
//!
//! use braid_lab_report::report::render::Formats;
//!
//! let summary = braid_lab_report::report(Path::new("results"), &Formats::ALL, false)?;
//! println!("{}", summary.text);
//! # Ok::<(), braid_lab::LabError>(())
//! ```
//!
//! Invariants:
//!
//! * A report follows from the results file alone, on any machine and in any year: nothing is measured, and
//!   nothing is random.
//! * Results are only read. Files are written into the folder of the results, and nowhere else.
//!
//! Deliberately absent: command-line parsing (the binary does it), anything that measures, and any
//! averaging of percentiles.

pub mod analysis;
pub mod compare;
#[cfg(test)]
mod fixture;
pub mod listing;
pub mod report;
pub mod stats;
pub mod trust;
mod words;

mod api;

pub use api::{Summary, compare, page, report};
pub use listing::{Shown, list, show};
