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

use crate::analysis::{Analysis, Standing, analyse};
use crate::error::LabError;
use crate::report::render::printable;
use crate::report::{first_sentence, units};
use crate::store::Store;

mod show;

pub use show::{show, show_results};

/// A results directory.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// Where.
    pub dir: PathBuf,
    /// What is in it, or why it cannot be read.
    pub found: Result<Found, String>,
}

/// What is in a results directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The campaign's name.
    pub name: String,
    /// When measuring began, seconds since 1970.
    pub started_unix_s: Option<u64>,
    /// Trials that went well.
    pub done: usize,
    /// Trials that were planned and can be done.
    pub planned: usize,
    /// Cells whose numbers nothing speaks against, something speaks against, and that are invalid.
    pub standing: (usize, usize, usize),
    /// The answer's first sentence.
    pub answer: String,
}

/// Every results directory at `parent`, in it, or in a folder in it, by path.
///
/// # Errors
///
/// When `parent` cannot be read. A directory in it that cannot be read is in the list.
pub fn list(parent: &Path) -> Result<Vec<Listed>, LabError> {
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
    Ok(Found {
        name: results.campaign.name.clone(),
        started_unix_s: results.sessions.first().map(|session| session.started_unix_s),
        done: analysis.done,
        planned: analysis.planned,
        standing: standing_of(&analysis),
        answer: first_sentence(&analysis, &results),
    })
}

fn standing_of(analysis: &Analysis) -> (usize, usize, usize) {
    let measured = || analysis.cells.iter().filter(|cell| cell.main().is_some());
    let count = |standing| measured().filter(|cell| cell.standing == standing).count();
    (count(Standing::Ok), count(Standing::Suspect), count(Standing::Invalid))
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
                let (ok, suspect, invalid) = found.standing;
                writeln!(
                    text,
                    "{}  {}  {begun}  {} of {} trials  {ok} ok, {suspect} suspect, {invalid} \
                     invalid\n  {}",
                    printable(&dir),
                    printable(&found.name),
                    found.done,
                    found.planned,
                    printable(&found.answer)
                )
            }
        };
    }
    text
}

#[cfg(test)]
mod tests;
