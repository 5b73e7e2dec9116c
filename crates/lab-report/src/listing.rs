//! The results in folders: a line for each campaign, and one cell with all its observations.
//!
//! Invariants: a folder that cannot be read is listed with the reason; names from files and devices never
//! control the terminal.
//!
//! Deliberately absent: a search deeper than a folder in a folder.

use std::fs;
use std::path::{Path, PathBuf};

use crate::analysis::{Standing, analyse};
use crate::report::render::printable;
use crate::report::{first_sentence, units};
use braid_lab::LabError;
use braid_lab::store::Store;
use serde::Serialize;

mod show;

#[cfg(test)]
pub(crate) use show::show_results;
pub use show::{Shown, show};

/// Version of the JSON form.
const OUTPUT_VERSION: u32 = 1;

/// A results directory, and what is in it, or why it cannot be read.
pub type Listed = (PathBuf, Result<Found, String>);

/// The content of a results directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The campaign's name.
    pub name: String,
    /// When measuring began, seconds since 1970; `None` of predictions.
    pub started_unix_s: Option<u64>,
    /// True if the numbers were predicted, and none measured.
    pub predicted: bool,
    /// Trials that went well.
    pub done: usize,
    /// Trials that were planned and can be done.
    pub planned: usize,
    /// Cells whose numbers nothing speaks against.
    pub ok: usize,
    /// Cells whose numbers something speaks against.
    pub suspect: usize,
    /// Cells whose numbers are not to be used.
    pub invalid: usize,
    /// The answer's first sentence.
    pub answer: String,
}

/// The results directories at and below a folder, as text or as JSON.
///
/// # Errors
///
/// As [`find_results`].
pub fn list(folder: &Path, json: bool) -> Result<String, LabError> {
    let listed = find_results(folder)?;
    if json {
        return Ok(render_json(&listed));
    }
    if listed.is_empty() {
        let folder = folder.display().to_string();
        return Ok(format!(
            "no results in {}, or up to two folders below it\n",
            printable(&folder)
        ));
    }
    Ok(listed.iter().map(render).collect())
}

/// Every results directory at `parent`, in it, or in a folder in it, by path.
///
/// # Errors
///
/// When `parent` cannot be read. A directory in it that cannot be read is in the list.
pub fn find_results(parent: &Path) -> Result<Vec<Listed>, LabError> {
    let mut dirs = vec![parent.to_path_buf()];
    for child in folders(parent)? {
        // What may not be entered holds no results of this user.
        dirs.extend(folders(&child).unwrap_or_default());
        dirs.push(child);
    }
    dirs.retain(|dir| dir.join("results.sqlite").is_file());
    dirs.sort();
    let found = |dir: PathBuf| {
        let found = look(&dir).map_err(|error| error.to_string());
        (dir, found)
    };
    Ok(dirs.into_iter().map(found).collect())
}

fn folders(dir: &Path) -> Result<Vec<PathBuf>, LabError> {
    let entries = fs::read_dir(dir).map_err(LabError::file("list", dir))?;
    Ok(entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect())
}

fn look(dir: &Path) -> Result<Found, LabError> {
    let results = Store::open(dir)?.results()?;
    let analysis = analyse(&results);
    let measured = || analysis.cells.iter().filter(|cell| cell.main().is_some());
    let count = |standing| measured().filter(|cell| cell.standing == standing).count();
    Ok(Found {
        name: results.campaign.name.clone(),
        started_unix_s: match results.prediction() {
            Some(_) => None,
            None => results.sessions.first().map(|session| session.started_unix_s),
        },
        predicted: results.prediction().is_some(),
        done: analysis.done,
        planned: analysis.planned,
        ok: count(Standing::Ok),
        suspect: count(Standing::Suspect),
        invalid: count(Standing::Invalid),
        answer: first_sentence(&analysis, &results),
    })
}

/// A directory as two lines of text.
fn render((dir, found): &Listed) -> String {
    let dir = dir.display().to_string();
    let dir = printable(&dir);
    match found {
        Err(reason) => format!("{dir}\n  {}\n", printable(reason)),
        Ok(found) => {
            if found.predicted {
                return format!(
                    "{dir}  {}  PREDICTED, nothing measured  {} cells\n  {}\n",
                    printable(&found.name),
                    found.done,
                    printable(&found.answer)
                );
            }
            let Found { name, done, planned, ok, suspect, invalid, .. } = found;
            let begun = found.started_unix_s.map_or("not begun".to_owned(), units::date);
            format!(
                "{dir}  {}  {begun}  {done} of {planned} trials  {ok} ok, {suspect} suspect, \
                 {invalid} invalid\n  {}\n",
                printable(name),
                printable(&found.answer)
            )
        }
    }
}

/// The list as JSON with an `output_version`: of each directory what was found, or the `error`.
fn render_json(listed: &[Listed]) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        dir: &'a Path,
        #[serde(flatten)]
        found: Option<&'a Found>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a String>,
    }
    let lines: Vec<Line<'_>> = listed
        .iter()
        .map(|(dir, found)| Line { dir, found: found.as_ref().ok(), error: found.as_ref().err() })
        .collect();
    let value = serde_json::json!({ "output_version": OUTPUT_VERSION, "results": lines });
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests;
