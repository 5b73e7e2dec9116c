//! The calls that the command line makes.

use std::path::Path;

use braid_lab::LabError;
use braid_lab::store::Store;
use braid_shell::shell_path;

use crate::analysis::analyse;
use crate::compare::{Comparison, compare_runs};
use crate::report::render::{Formats, Written, render_html, render_terminal, write_report};
use crate::report::{build_report, report_data, tidy_rows};

/// The results of a report.
#[derive(Debug, Clone)]
pub struct Summary {
    /// The report for the terminal.
    pub text: String,
    /// The files that were written.
    pub written: Written,
}

/// Reports on the results in a directory; `colour` is of the text.
///
/// # Errors
///
/// When the directory holds no results, or a file cannot be written. When there is no number yet,
/// the report says so.
pub fn report(results_dir: &Path, formats: &Formats, colour: bool) -> Result<Summary, LabError> {
    let results = Store::open(results_dir)?.results()?;
    let analysis = analyse(&results);
    let report = build_report(&analysis, &results, results_dir);
    let samples = tidy_rows(&analysis, &results);
    let data = report_data(&report, &analysis, &results, results_dir);
    let written = write_report(&report, &data, &samples, results_dir, formats)?;
    let whole = match &written.html {
        Some(page) => page.display().to_string(),
        None => {
            let results_dir = shell_path(results_dir);
            format!("braid lab report {results_dir} --format html")
        }
    };
    let text = render_terminal(&report, colour, &whole);
    Ok(Summary { text, written })
}

/// The page of the results in a directory, in which nothing is written.
///
/// # Errors
///
/// When the directory holds no results.
pub fn page(results_dir: &Path) -> Result<String, LabError> {
    let results = Store::open(results_dir)?.results()?;
    let analysis = analyse(&results);
    render_html(&build_report(&analysis, &results, results_dir))
}

/// The changes between two results directories; a change of up to `threshold` counts as none: 0.05 for 5 %.
///
/// # Errors
///
/// If one of them holds no results.
pub fn compare(before: &Path, after: &Path, threshold: f64) -> Result<Comparison, LabError> {
    let before = Store::open(before)?.results()?;
    let after = Store::open(after)?.results()?;
    Ok(compare_runs(&before, &after, threshold))
}
