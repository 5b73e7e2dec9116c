//! The results directory: one SQLite file, the campaign, and the tools' own words.
//!
//! ```text
//! DIR/results.sqlite   campaign, session, subject, trial, sample, latency, series
//! DIR/campaign.toml    what was run, readable again
//! DIR/raw/0017/        what the tool said in trial 17: stdout, stderr, files
//! DIR/lock             held while a run writes here
//! DIR/held.json        what a run has up, while it has (see `subjects/journal.rs`)
//! DIR/report.*, samples.csv, charts/    written by the report
//! ```
//!
//! Invariants:
//!
//! * a trial and its samples are written in one transaction: a trial marked ok has all of them;
//! * raw files are complete before their trial is in the database;
//! * a directory holds one campaign; running it again adds a session and only the trials that
//!   are missing or failed;
//! * one run at a time writes: the lock is the kernel's and goes with the process.
//!
//! Deliberately absent: statistics. The store keeps what was measured.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, params};

use crate::campaign::{Campaign, parse_campaign, render_campaign};
use crate::environment::Environment;
use crate::error::LabError;

mod files;
mod read;
mod record;
mod write;

pub(crate) use files::{RunLock, patiently, write_whole};
pub use record::{Outcome, Results, Session, StoredTrial, SubjectFacts, Times};

/// Version of the tables, in `PRAGMA user_version`.
const SCHEMA_VERSION: i64 = 2;

const SCHEMA: &str = include_str!("store/schema.sql");

/// A results directory that is open.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    db: Connection,
}

impl Store {
    /// Opens or creates the directory for this campaign.
    ///
    /// # Errors
    ///
    /// When it holds another campaign, or cannot be written.
    pub fn create(dir: &Path, campaign: &Campaign) -> Result<Self, LabError> {
        let raw = dir.join("raw");
        fs::create_dir_all(&raw).map_err(LabError::file("create", &raw))?;
        let store =
            Self { dir: dir.to_path_buf(), db: open_database(&dir.join("results.sqlite"))? };
        let toml = render_campaign(campaign)?;
        match store.stored_campaign()? {
            None => store.insert_campaign(campaign, &toml)?,
            Some(held) if held == *campaign => {}
            Some(held) => {
                return Err(LabError::OtherCampaign { dir: store.dir, held: held.name });
            }
        }
        write_whole(&dir.join("campaign.toml"), &toml)?;
        Ok(store)
    }

    /// Opens a directory that has results.
    ///
    /// # Errors
    ///
    /// When it has none, or of another schema version.
    pub fn open(dir: &Path) -> Result<Self, LabError> {
        let path = dir.join("results.sqlite");
        if !path.is_file() {
            return Err(LabError::NoResults { dir: dir.to_path_buf() });
        }
        Ok(Self { dir: dir.to_path_buf(), db: open_database(&path)? })
    }

    /// Keeps other runs out of the directory until it is dropped.
    ///
    /// # Errors
    ///
    /// When another run is at work here.
    pub(crate) fn lock(&self) -> Result<RunLock, LabError> {
        RunLock::take(&self.dir.join("lock"), &self.dir.display().to_string())
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The campaign that was run.
    ///
    /// # Errors
    ///
    /// When there is none or it cannot be read.
    pub fn campaign(&self) -> Result<Campaign, LabError> {
        self.stored_campaign()?.ok_or_else(|| LabError::NoResults { dir: self.dir.clone() })
    }

    fn stored_campaign(&self) -> Result<Option<Campaign>, LabError> {
        let toml: Option<String> = self
            .db
            .query_row("SELECT toml FROM campaign", [], |row| row.get(0))
            .optional()
            .map_err(LabError::store("read the campaign"))?;
        toml.map(|toml| parse_campaign(&toml, "the stored campaign")).transpose()
    }

    fn insert_campaign(&self, campaign: &Campaign, toml: &str) -> Result<(), LabError> {
        self.db
            .execute(
                "INSERT INTO campaign (name, description, repetitions, seed, toml) \
                 VALUES (?1, ?2, ?3, ?4, ?5)",
                // SQLite's integers are signed; the bits survive.
                params![
                    campaign.name,
                    campaign.description,
                    campaign.repetitions,
                    campaign.seed as i64,
                    toml
                ],
            )
            .map(|_| ())
            .map_err(LabError::store("record the campaign"))
    }

    /// Records that the runner starts, and returns the session's key.
    ///
    /// # Errors
    ///
    /// When the database cannot be written.
    pub fn begin_session(
        &self,
        started_unix_s: u64,
        environment: &Environment,
    ) -> Result<i64, LabError> {
        let json = to_json("the environment", environment)?;
        self.db
            .execute(
                "INSERT INTO session (started_unix_s, environment) VALUES (?1, ?2)",
                params![started_unix_s as i64, json],
            )
            .map_err(LabError::store("record the session"))?;
        Ok(self.db.last_insert_rowid())
    }

    /// Records how a session's time was spent so far, and that it ended if it has.
    ///
    /// # Errors
    ///
    /// When the database cannot be written.
    pub fn save_times(
        &self,
        session: i64,
        times: &Times,
        ended_unix_s: Option<u64>,
    ) -> Result<(), LabError> {
        self.db
            .execute(
                "UPDATE session SET busy_s = ?2, set_up_s = ?3, overhead_s = ?4, ended_unix_s = ?5 \
                 WHERE id = ?1",
                params![
                    session,
                    times.busy_s,
                    times.set_up_s,
                    times.overhead_s,
                    ended_unix_s.map(|time| time as i64)
                ],
            )
            .map(|_| ())
            .map_err(LabError::store("record the session's times"))
    }

    /// Records what is known about a subject, over what was known.
    ///
    /// # Errors
    ///
    /// When the database cannot be written.
    pub fn save_subject(&self, position: usize, facts: &SubjectFacts) -> Result<(), LabError> {
        self.db
            .execute(
                "INSERT OR REPLACE INTO subject (position, name, size_bytes, members, commands) \
                 VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    position as i64,
                    facts.name,
                    facts.size_bytes.map(|bytes| bytes as i64),
                    to_json("the members", &facts.members)?,
                    to_json("the commands", &facts.commands)?
                ],
            )
            .map(|_| ())
            .map_err(LabError::store("record a subject"))
    }
}

fn open_database(path: &Path) -> Result<Connection, LabError> {
    let db = Connection::open(path).map_err(LabError::store("open results.sqlite"))?;
    let found: i64 = db
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .map_err(LabError::store("read the schema version"))?;
    match found {
        0 => db.execute_batch(SCHEMA).map_err(LabError::store("create the tables"))?,
        SCHEMA_VERSION => {}
        _ => {
            let known = SCHEMA_VERSION;
            return Err(LabError::SchemaVersion { path: path.to_path_buf(), found, known });
        }
    }
    // A write-ahead log saves a sync of the whole file at each trial, and a crash loses nothing.
    db.pragma_update(None, "journal_mode", "WAL")
        .and_then(|()| db.pragma_update(None, "synchronous", "NORMAL"))
        .map_err(LabError::store("set the journal up"))?;
    Ok(db)
}

fn to_json<T: serde::Serialize>(what: &'static str, value: &T) -> Result<String, LabError> {
    serde_json::to_string(value)
        .map_err(|error| LabError::Serialise { what, reason: error.to_string() })
}

fn from_json<T: serde::de::DeserializeOwned>(
    what: &'static str,
    json: &str,
) -> Result<T, LabError> {
    serde_json::from_str(json)
        .map_err(|_| LabError::StoreContent { what, value: json.chars().take(200).collect() })
}

#[cfg(test)]
mod tests;
