//! The results directory: one SQLite file, the campaign, and the output of the tools.
//!
//! ```text
//! DIR/results.sqlite   campaign, session, subject, trial, sample, latency, series
//! DIR/campaign.toml    the campaign, readable again
//! DIR/raw/0017/        output of the tool in trial 17: stdout, stderr, files
//! DIR/lock             held while a run writes here
//! DIR/held.json        objects that a run has up (see `subjects/journal.rs`)
//! DIR/report.*, samples.csv, charts/    written by the report
//! ```
//!
//! Invariants:
//!
//! * a trial and its samples are written in one transaction: a trial marked ok has all of them;
//! * raw files are complete before their trial is in the database, so a row never names files that a killed run
//!   did not write; raw files without a row are overwritten when their trial runs again;
//! * a directory holds one campaign, on the files with which it began; another run adds a session and only the
//!   trials that are missing or failed;
//! * it is made only in an empty place, and files that a user adds later stay; reading it writes nothing;
//! * one run at a time writes: the lock is the kernel's and ends with the process.
//!
//! Deliberately absent: statistics. The store keeps measurements.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Params, params};

use crate::campaign::{Campaign, render_campaign};
use crate::environment::Environment;
use crate::error::LabError;
use crate::matrix::parse_campaign;

mod begun;
mod column;
mod database;
mod files;
mod read;
mod record;
mod write;

use column::Json;
pub use files::write_whole;
pub(crate) use files::{patiently, take_lock};
pub use record::{Earlier, Origin, Outcome, Results, Session, StoredTrial, SubjectFacts, Times};

/// An open results directory.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    db: Connection,
    /// A run's own lock, or one shared with other readers. Released after the database is closed, which writes
    /// the rest of its log.
    lock: Option<File>,
}

impl Store {
    /// Opens the directory for this campaign, or makes it.
    ///
    /// # Errors
    ///
    /// It holds another campaign or other files, or cannot be written. Nothing in it is changed then.
    pub fn create(dir: &Path, campaign: &Campaign) -> Result<Self, LabError> {
        let toml = render_campaign(campaign)?;
        let db = database::open_to_write(dir, |db| insert_campaign(db, campaign, &toml))?;
        let store = Self { dir: dir.to_path_buf(), db, lock: None };
        let held = store.campaign()?;
        if is_longer(campaign, &held) {
            store.lengthen(campaign, &held, &toml)?;
        }
        store.check_is_same(campaign)?;
        let raw = dir.join("raw");
        fs::create_dir_all(&raw).map_err(LabError::file("create", &raw))?;
        // A copy for readers; an existing one may contain their remarks.
        let copy = dir.join("campaign.toml");
        if !copy.exists() {
            write_whole(&copy, &toml)?;
        }
        Ok(store)
    }

    /// Opens a directory with results for reading. Writes nothing, and needs no permission to write.
    ///
    /// # Errors
    ///
    /// It has no results, or those of another schema version.
    pub fn open(dir: &Path) -> Result<Self, LabError> {
        let (db, lock) = database::open_to_read(dir)?;
        Ok(Self { dir: dir.to_path_buf(), db, lock })
    }

    /// Returns the measurements of a campaign in a directory that may have results; none if it has none. Writes
    /// nothing.
    ///
    /// # Errors
    ///
    /// As [`Store::open`], and if the results are of another campaign.
    pub fn earlier(dir: &Path, campaign: &Campaign) -> Result<Earlier, LabError> {
        if !database::path_in(dir).exists() {
            return Ok(Earlier::default());
        }
        Self::check_origin(dir, Origin::Measured)?;
        let store = Self::open(dir)?;
        store.check_is_same(campaign)?;
        store.times_of_trials()
    }

    /// Refuses a directory whose numbers are of another origin: predictions and measurements never lie in one
    /// directory. Writes nothing.
    ///
    /// # Errors
    ///
    /// As [`Store::open`], and if its numbers are of another origin.
    pub(crate) fn check_origin(dir: &Path, wanted: Origin) -> Result<(), LabError> {
        if !database::path_in(dir).exists() {
            return Ok(());
        }
        let found = match Self::open(dir) {
            Ok(store) => store.origin()?,
            // The code that creates results there reports the fault.
            Err(_) => None,
        };
        match found {
            Some(held) if held != wanted => {
                let (held, wanted) = (held.word(), wanted.word());
                Err(LabError::OtherOrigin { dir: dir.to_path_buf(), held, wanted })
            }
            _ => Ok(()),
        }
    }

    /// Returns the origin of the numbers; `None` if no session has begun.
    fn origin(&self) -> Result<Option<Origin>, LabError> {
        let query = "SELECT environment FROM session ORDER BY id DESC LIMIT 1";
        let last: Option<Json<Environment>> = self
            .db
            .query_row(query, [], |row| row.get(0))
            .optional()
            .map_err(LabError::store("read the last session"))?;
        Ok(last.map(|Json(environment)| match environment.prediction {
            Some(_) => Origin::Predicted,
            None => Origin::Measured,
        }))
    }

    /// Locks other runs out of the directory while it is open.
    ///
    /// # Errors
    ///
    /// Another run uses it.
    pub(crate) fn lock(&mut self) -> Result<(), LabError> {
        let what = self.dir.display().to_string();
        self.lock = Some(take_lock(&lock_in(&self.dir), &what)?);
        Ok(())
    }

    /// Returns the directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the campaign.
    ///
    /// # Errors
    ///
    /// There is none, or it cannot be read.
    pub fn campaign(&self) -> Result<Campaign, LabError> {
        let toml: Option<String> = self
            .db
            .query_row("SELECT toml FROM campaign", [], |row| row.get(0))
            .optional()
            .map_err(LabError::store("read the campaign"))?;
        let toml = toml.ok_or_else(|| LabError::NoResults { dir: self.dir.clone() })?;
        parse_campaign(&toml, "the stored campaign")
    }

    /// Adds repetitions to the stored campaign. The copy for readers follows if it is unchanged.
    fn lengthen(&self, campaign: &Campaign, held: &Campaign, toml: &str) -> Result<(), LabError> {
        self.execute(
            "record more repetitions",
            "UPDATE campaign SET repetitions = ?1, toml = ?2",
            params![campaign.repetitions, toml],
        )?;
        let copy = self.dir.join("campaign.toml");
        let was = render_campaign(held)?;
        match fs::read_to_string(&copy) {
            Ok(text) if text == was => write_whole(&copy, toml),
            // The copy was edited or removed: it is not written.
            _ => Ok(()),
        }
    }

    /// Refuses another campaign than the stored one, or the same on other files.
    fn check_is_same(&self, campaign: &Campaign) -> Result<(), LabError> {
        let held = self.campaign()?;
        if held == *campaign || is_longer(campaign, &held) {
            return Ok(());
        }
        let dir = self.dir.clone();
        // The campaign as if it had begun in this run's directory.
        let working_dir = campaign.working_dir.clone();
        let here = working_dir.clone().unwrap_or_default();
        let moved = Campaign { working_dir, ..held.clone() }.rooted_in(&here);
        Err(match &held.working_dir {
            _ if moved != *campaign => LabError::OtherCampaign { dir, held: held.name },
            Some(began) => LabError::OtherWorkingDir { dir, began: began.clone(), here },
            None => LabError::NoWorkingDir { dir, paths: held.relative_paths() },
        })
    }

    /// Records the start of the runner, and returns the session's key.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn begin_session(
        &self,
        started_unix_s: u64,
        environment: &Environment,
    ) -> Result<i64, LabError> {
        self.execute(
            "record the session",
            "INSERT INTO session (started_unix_s, environment) VALUES (?1, ?2)",
            params![started_unix_s, Json(environment)],
        )?;
        Ok(self.db.last_insert_rowid())
    }

    /// Records the use of a session's time so far, and its end if it has ended.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn save_times(
        &self,
        session: i64,
        times: &Times,
        ended_unix_s: Option<u64>,
    ) -> Result<(), LabError> {
        self.execute(
            "record the session's times",
            "UPDATE session SET busy_s = ?2, set_up_s = ?3, overhead_s = ?4, ended_unix_s = ?5 \
             WHERE id = ?1",
            params![session, times.busy_s, times.set_up_s, times.overhead_s, ended_unix_s],
        )
    }

    /// Records the facts about a subject; those of a subject that has not been up do not replace others.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn save_subject(&self, position: usize, facts: &SubjectFacts) -> Result<(), LabError> {
        self.execute(
            "record a subject",
            "INSERT INTO subject (position, name, size_bytes, members, commands) \
             VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (position) DO UPDATE SET \
             name = excluded.name, size_bytes = excluded.size_bytes, \
             members = excluded.members, commands = excluded.commands \
             WHERE excluded.size_bytes IS NOT NULL",
            params![
                position,
                facts.name,
                facts.size_bytes,
                Json(&facts.members),
                Json(&facts.commands)
            ],
        )
    }

    fn execute(
        &self,
        action: &'static str,
        query: &str,
        params: impl Params,
    ) -> Result<(), LabError> {
        self.db.execute(query, params).map(drop).map_err(LabError::store(action))
    }
}

/// Returns true if a campaign is another one with more repetitions: trials keep their numbers then, since a
/// repetition ends before the next begins.
fn is_longer(campaign: &Campaign, held: &Campaign) -> bool {
    let same = Campaign { repetitions: held.repetitions, ..campaign.clone() };
    same == *held && campaign.repetitions > held.repetitions
}

/// Returns the path of the lock of a results folder.
fn lock_in(dir: &Path) -> PathBuf {
    dir.join("lock")
}

fn insert_campaign(db: &Connection, campaign: &Campaign, toml: &str) -> Result<(), LabError> {
    db.execute(
        "INSERT INTO campaign (name, description, repetitions, seed, toml) \
         VALUES (?1, ?2, ?3, ?4, ?5)",
        // SQLite's integers are signed; all bits are kept.
        params![
            campaign.name,
            campaign.description,
            campaign.repetitions,
            campaign.seed().cast_signed(),
            toml
        ],
    )
    .map(|_| ())
    .map_err(LabError::store("record the campaign"))
}

#[cfg(test)]
mod tests;
