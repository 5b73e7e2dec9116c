//! What lies in folders of results: a line for each campaign, and one cell with all that was seen
//! of it.
//!
//! Invariants: a folder that cannot be read is listed with the reason; names from files and
//! devices never act on the terminal.
//!
//! Deliberately absent: any search deeper than a folder in a folder.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::analysis::{Standing, analyse};
use crate::report::render::printable;
use crate::report::{first_sentence, units};
use braid_lab::LabError;
use braid_lab::store::Store;
use serde::Serialize;

mod show;

pub use show::{Shown, show, show_results};

/// Version of the JSON form.
const OUTPUT_VERSION: u32 = 1;

/// A results directory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Listed {
    /// Where.
    pub dir: PathBuf,
    /// What is in it, or why it cannot be read.
    #[serde(flatten, serialize_with = "found_or_error")]
    pub found: Result<Found, String>,
}

/// The fields of what was found, or one named `error`.
fn found_or_error<S: serde::Serializer>(
    found: &Result<Found, String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum Either<'a> {
        Found(&'a Found),
        Error { error: &'a str },
    }
    match found {
        Ok(found) => Either::Found(found).serialize(serializer),
        Err(error) => Either::Error { error }.serialize(serializer),
    }
}

/// What is in a results directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The campaign's name.
    pub name: String,
    /// When measuring began, seconds since 1970.
    pub started_unix_s: Option<u64>,
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
        return render_list_json(&listed);
    }
    if listed.is_empty() {
        let folder = folder.display().to_string();
        return Ok(format!(
            "no results in {}, or up to two folders below it\n",
            printable(&folder)
        ));
    }
    Ok(render_list(&listed))
}

/// Every results directory at `parent`, in it, or in a folder in it, by path.
///
/// # Errors
///
/// When `parent` cannot be read. A directory in it that cannot be read is in the list.
pub fn find_results(parent: &Path) -> Result<Vec<Listed>, LabError> {
    let mut dirs = Vec::new();
    if is_results(parent) {
        dirs.push(parent.to_path_buf());
    }
    for child in folders(parent)? {
        if is_results(&child) {
            dirs.push(child);
            continue;
        }
        // What may not be entered holds no results of this user.
        let below = folders(&child).unwrap_or_default();
        dirs.extend(below.into_iter().filter(|dir| is_results(dir)));
    }
    dirs.sort();
    Ok(dirs
        .into_iter()
        .map(|dir| {
            let found = look(&dir).map_err(|error| error.to_string());
            Listed { dir, found }
        })
        .collect())
}

fn is_results(dir: &Path) -> bool {
    dir.join("results.sqlite").is_file()
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
        started_unix_s: results.sessions.first().map(|session| session.started_unix_s),
        done: analysis.done,
        planned: analysis.planned,
        ok: count(Standing::Ok),
        suspect: count(Standing::Suspect),
        invalid: count(Standing::Invalid),
        answer: first_sentence(&analysis, &results),
    })
}

/// The list as text, two lines each.
pub fn render_list(listed: &[Listed]) -> String {
    let mut text = String::new();
    for one in listed {
        let dir = one.dir.display().to_string();
        // Writing to a string cannot fail.
        let _ = match &one.found {
            Err(reason) => writeln!(text, "{}\n  {}", printable(&dir), printable(reason)),
            Ok(found) => {
                let begun = found.started_unix_s.map_or("not begun".to_owned(), units::date);
                writeln!(
                    text,
                    "{}  {}  {begun}  {} of {} trials  {} ok, {} suspect, {} invalid\n  {}",
                    printable(&dir),
                    printable(&found.name),
                    found.done,
                    found.planned,
                    found.ok,
                    found.suspect,
                    found.invalid,
                    printable(&found.answer)
                )
            }
        };
    }
    text
}

/// The list as JSON with an `output_version`.
///
/// # Errors
///
/// When it cannot be written, which is a mistake in this program.
pub fn render_list_json(listed: &[Listed]) -> Result<String, LabError> {
    let value = serde_json::json!({ "output_version": OUTPUT_VERSION, "results": listed });
    serde_json::to_string_pretty(&value).map(|json| json + "\n").map_err(|error| {
        LabError::Serialise { what: "the list of results", reason: error.to_string() }
    })
}

#[cfg(test)]
mod tests;
