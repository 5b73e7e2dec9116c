//! The analysis as a table for the terminal, as one page for the browser, and as JSON and CSV for
//! other programs.
//!
//! The page is one file: no script, no font, no picture and no style from elsewhere, so that it
//! can be mailed, archived and read in ten years. Every number that a chart draws is also in the
//! table under the charts.

pub mod model;
pub mod render;
mod svg;
mod units;
