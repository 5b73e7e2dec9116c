//! The analysis as a table for the terminal, as one page for the browser, and as JSON and CSV for
//! other programs.
//!
//! The page is one file: no script, no font, no picture and no style from elsewhere, so that it
//! can be mailed, archived and read in ten years. Every number that a chart draws is also in the
//! table under the charts.

mod charts;
mod export;
mod html;
pub mod model;
pub mod render;
mod svg;
mod table;
mod units;

pub use export::{render_csv, render_json};
pub use html::render_html;
pub use table::render_table;
