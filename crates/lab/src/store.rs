//! The results directory: one SQLite file, the campaign, and the tools' own words.
//!
//! ```text
//! DIR/results.sqlite   campaign, session, subject, trial, sample
//! DIR/campaign.toml    what was run, readable again
//! DIR/raw/0017.txt     standard output of the tool in trial 17
//! DIR/report.html, report.json, samples.csv    written by the report
//! ```
//!
//! Invariants:
//!
//! * a trial and its samples are written in one transaction: a trial marked ok has all of them;
//! * a raw file is complete before its trial is in the database;
//! * a directory holds one campaign; running it again adds a session and only the trials that
//!   are missing or failed.
//!
//! Deliberately absent: statistics. The store keeps what was measured.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, params};

use crate::campaign::{Campaign, parse_campaign, render_campaign};
use crate::environment::Environment;
use crate::error::LabError;
use crate::facts::Placed;
use crate::matrix::Trial;
use crate::tool::{Metric, Sample};

/// Version of the tables, in `PRAGMA user_version`.
const SCHEMA_VERSION: i64 = 1;

const SCHEMA: &str = include_str!("store/schema.sql");

/// A results directory that is open.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    db: Connection,
}

/// How a trial went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It has samples.
    Ok,
    /// It has none, and why.
    Failed(String),
}

/// A trial as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredTrial {
    /// Position in the schedule, from 1.
    pub number: u32,
    /// From 1.
    pub repetition: u32,
    /// Name of the subject.
    pub subject: String,
    /// Label of the workload.
    pub workload: String,
    /// The exact command.
    pub command: String,
    /// When it started, seconds since 1970.
    pub started_unix_s: u64,
    /// Wall time of the tool in seconds, its own start-up included.
    pub duration_s: f64,
    /// Bytes of the subject that were used.
    pub region_bytes: u64,
    /// How it went.
    pub outcome: Outcome,
    /// Raw output, relative to the directory.
    pub raw: String,
}

/// One start of the runner.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// When, seconds since 1970.
    pub started_unix_s: u64,
    /// Where.
    pub environment: Environment,
}

/// A subject and what lies under it.
#[derive(Debug, Clone, PartialEq)]
pub struct SubjectFacts {
    /// Name in the campaign.
    pub name: String,
    /// Size in bytes, once it has been up.
    pub size_bytes: Option<u64>,
    /// Its members.
    pub members: Vec<Placed>,
    /// The exact command that serves it, if the laboratory serves it.
    pub serve_command: Option<String>,
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

    /// Records what is known about a subject, over what was known.
    ///
    /// # Errors
    ///
    /// When the database cannot be written.
    pub fn save_subject(&self, position: usize, facts: &SubjectFacts) -> Result<(), LabError> {
        self.db
            .execute(
                "INSERT OR REPLACE INTO subject (position, name, size_bytes, members, serve_command) \
                 VALUES (?1, ?2, ?3, ?4, ?5)",
                params![
                    position as i64,
                    facts.name,
                    facts.size_bytes.map(|bytes| bytes as i64),
                    to_json("the members", &facts.members)?,
                    facts.serve_command
                ],
            )
            .map(|_| ())
            .map_err(LabError::store("record a subject"))
    }

    /// Keeps a trial: its raw output first, then the row and its samples together.
    ///
    /// # Errors
    ///
    /// When either cannot be written.
    pub fn save_trial(
        &mut self,
        session: i64,
        trial: &Trial,
        kept: &StoredTrial,
        output: &str,
        samples: &[Sample],
    ) -> Result<(), LabError> {
        write_whole(&self.dir.join(&kept.raw), output)?;
        let transaction = self.db.transaction().map_err(LabError::store("begin a trial"))?;
        insert_trial(&transaction, session, trial, kept, samples)
            .map_err(LabError::store("record a trial"))?;
        transaction.commit().map_err(LabError::store("commit a trial"))
    }

    /// Numbers of the trials that went well.
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub fn finished_trials(&self) -> Result<std::collections::BTreeSet<u32>, LabError> {
        let read = || -> rusqlite::Result<_> {
            let mut statement = self.db.prepare("SELECT number FROM trial WHERE error IS NULL")?;
            statement.query_map([], |row| row.get(0))?.collect()
        };
        read().map_err(LabError::store("list finished trials"))
    }

    /// Every trial with its samples, by number.
    ///
    /// # Errors
    ///
    /// When the database cannot be read or holds an unknown metric.
    pub fn trials(&self) -> Result<Vec<(StoredTrial, Vec<Sample>)>, LabError> {
        let read = || -> rusqlite::Result<Vec<StoredTrial>> {
            let mut statement = self.db.prepare(
                "SELECT number, repetition, subject, workload, command, started_unix_s, \
                 duration_s, region_bytes, error, raw FROM trial ORDER BY number",
            )?;
            statement.query_map([], trial_of_row)?.collect()
        };
        let trials = read().map_err(LabError::store("read the trials"))?;
        trials
            .into_iter()
            .map(|trial| {
                let samples = self.samples_of(trial.number)?;
                Ok((trial, samples))
            })
            .collect()
    }

    fn samples_of(&self, number: u32) -> Result<Vec<Sample>, LabError> {
        let read = || -> rusqlite::Result<Vec<(String, f64)>> {
            let mut statement = self.db.prepare_cached(
                "SELECT metric, value FROM sample WHERE trial = ?1 ORDER BY rowid",
            )?;
            statement.query_map([number], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        };
        let rows = read().map_err(LabError::store("read the samples"))?;
        rows.into_iter()
            .map(|(name, value)| match Metric::find(&name) {
                Some(metric) => Ok(Sample { metric, value }),
                None => Err(LabError::StoreContent { what: "sample.metric", value: name }),
            })
            .collect()
    }

    /// Every session, first to last.
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub fn sessions(&self) -> Result<Vec<Session>, LabError> {
        let read = || -> rusqlite::Result<Vec<(i64, String)>> {
            let mut statement =
                self.db.prepare("SELECT started_unix_s, environment FROM session ORDER BY id")?;
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        };
        let rows = read().map_err(LabError::store("read the sessions"))?;
        rows.into_iter()
            .map(|(started, json)| {
                Ok(Session {
                    started_unix_s: started as u64,
                    environment: from_json("session.environment", json)?,
                })
            })
            .collect()
    }

    /// What is known about the subjects, in the campaign's order.
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub fn subjects(&self) -> Result<Vec<SubjectFacts>, LabError> {
        type Row = (String, Option<i64>, String, Option<String>);
        let read = || -> rusqlite::Result<Vec<Row>> {
            let mut statement = self.db.prepare(
                "SELECT name, size_bytes, members, serve_command FROM subject ORDER BY position",
            )?;
            statement
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
                .collect()
        };
        let rows = read().map_err(LabError::store("read the subjects"))?;
        rows.into_iter()
            .map(|(name, size, members, serve_command)| {
                Ok(SubjectFacts {
                    name,
                    size_bytes: size.map(|bytes| bytes as u64),
                    members: from_json("subject.members", members)?,
                    serve_command,
                })
            })
            .collect()
    }
}

fn insert_trial(
    db: &Connection,
    session: i64,
    trial: &Trial,
    kept: &StoredTrial,
    samples: &[Sample],
) -> rusqlite::Result<()> {
    let work = &trial.cell.workload;
    let error = match &kept.outcome {
        Outcome::Ok => None,
        Outcome::Failed(reason) => Some(reason),
    };
    db.execute("DELETE FROM sample WHERE trial = ?1", [kept.number])?;
    db.execute(
        "INSERT OR REPLACE INTO trial (number, session, repetition, subject, workload, tool, \
         pattern, op, block_size, iodepth, processes, direct, flush_every, seed, region_bytes, \
         command, started_unix_s, duration_s, error, raw) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, \
         ?19, ?20)",
        params![
            kept.number,
            session,
            kept.repetition,
            kept.subject,
            kept.workload,
            work.tool,
            work.pattern.to_string(),
            work.op.to_string(),
            work.block_size.0 as i64,
            work.iodepth,
            work.processes,
            work.direct,
            work.flush_every,
            trial.seed as i64,
            kept.region_bytes as i64,
            kept.command,
            kept.started_unix_s as i64,
            kept.duration_s,
            error,
            kept.raw
        ],
    )?;
    for sample in samples {
        db.prepare_cached(
            "INSERT INTO sample (trial, metric, value, unit) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![
            kept.number,
            sample.metric.name(),
            sample.value,
            sample.metric.unit()
        ])?;
    }
    Ok(())
}

fn trial_of_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<StoredTrial> {
    let error: Option<String> = row.get(8)?;
    Ok(StoredTrial {
        number: row.get(0)?,
        repetition: row.get(1)?,
        subject: row.get(2)?,
        workload: row.get(3)?,
        command: row.get(4)?,
        started_unix_s: row.get::<_, i64>(5)? as u64,
        duration_s: row.get(6)?,
        region_bytes: row.get::<_, i64>(7)? as u64,
        outcome: error.map_or(Outcome::Ok, Outcome::Failed),
        raw: row.get(9)?,
    })
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
    Ok(db)
}

/// Writes a file beside its place and moves it there, so that it is whole or absent.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<(), LabError> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".new");
    let draft = PathBuf::from(draft);
    fs::write(&draft, text).map_err(LabError::file("write", &draft))?;
    fs::rename(&draft, path).map_err(LabError::file("write", path))
}

fn to_json<T: serde::Serialize>(what: &'static str, value: &T) -> Result<String, LabError> {
    serde_json::to_string(value)
        .map_err(|error| LabError::Serialise { what, reason: error.to_string() })
}

fn from_json<T: serde::de::DeserializeOwned>(
    what: &'static str,
    json: String,
) -> Result<T, LabError> {
    serde_json::from_str(&json).map_err(|_| LabError::StoreContent { what, value: json })
}

#[cfg(test)]
mod tests;
