//! Storing a trial: raw files first, then the row and its numbers in one transaction.

use std::path::Path;

use rusqlite::{Connection, params};

use super::column::Json;
use super::files::write_raw;
use super::{Outcome, Store, StoredTrial};
use crate::error::LabError;
use crate::tool::RunOutput;

impl Store {
    /// Stores a trial, over an earlier attempt.
    ///
    /// # Errors
    ///
    /// The files or the database cannot be written; the trial is then absent and will run again.
    pub fn save_trial(
        &mut self,
        session: i64,
        trial: &StoredTrial,
        output: Option<&RunOutput>,
    ) -> Result<(), LabError> {
        if let Some(output) = output {
            write_raw(&self.dir.join(&trial.raw), output)?;
        }
        let transaction = self.db.transaction().map_err(LabError::store("begin a trial"))?;
        insert_trial(&transaction, session, trial).map_err(LabError::store("record a trial"))?;
        transaction.commit().map_err(LabError::store("commit a trial"))
    }

    /// Stores trials without raw output, all or none of them.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub(crate) fn save_trials(
        &mut self,
        session: i64,
        trials: &[StoredTrial],
    ) -> Result<(), LabError> {
        let transaction = self.db.transaction().map_err(LabError::store("begin the trials"))?;
        let mut all = trials.iter();
        all.try_for_each(|trial| insert_trial(&transaction, session, trial))
            .map_err(LabError::store("record the trials"))?;
        transaction.commit().map_err(LabError::store("commit the trials"))
    }

    /// Returns the folder for a trial's raw output, relative to the directory.
    pub fn raw_folder(number: u32) -> String {
        Path::new("raw").join(format!("{number:05}")).display().to_string()
    }
}

fn insert_trial(db: &Connection, session: i64, trial: &StoredTrial) -> rusqlite::Result<()> {
    let (outcome, reason) = match &trial.outcome {
        Outcome::Ok => ("ok", ""),
        Outcome::Failed(reason) => ("failed", reason.as_str()),
        Outcome::Impossible(reason) => ("impossible", reason.as_str()),
    };
    for table in ["sample", "latency", "series"] {
        db.execute(&format!("DELETE FROM {table} WHERE trial = ?1"), [trial.number])?;
    }
    db.execute(
        "INSERT OR REPLACE INTO trial (number, session, repetition, subject, workload, \
         dimensions, seed, region_bytes, commands, started_unix_s, duration_s, outcome, reason, \
         evidence, events, raw) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
        params![
            trial.number,
            session,
            trial.repetition,
            trial.subject,
            trial.workload,
            Json(&trial.dimensions),
            // SQLite's integers are signed; all bits are kept.
            trial.seed.cast_signed(),
            trial.region_bytes,
            Json(&trial.commands),
            trial.started_unix_s,
            trial.duration_s,
            outcome,
            reason,
            Json(&trial.evidence),
            Json(&trial.events),
            trial.raw
        ],
    )?;
    let mut insert =
        db.prepare("INSERT INTO sample (trial, metric, value, unit) VALUES (?1, ?2, ?3, ?4)")?;
    for sample in &trial.measured.samples {
        let (name, unit) = (sample.metric.name(), sample.metric.unit());
        insert.execute(params![trial.number, name, sample.value, unit])?;
    }
    let mut insert = db.prepare("INSERT INTO latency (trial, op, bins) VALUES (?1, ?2, ?3)")?;
    for one in &trial.measured.latencies {
        insert.execute(params![trial.number, one.op, Json(&one.bins)])?;
    }
    let mut insert =
        db.prepare("INSERT INTO series (trial, metric, points) VALUES (?1, ?2, ?3)")?;
    for one in &trial.measured.series {
        insert.execute(params![trial.number, one.metric.name(), Json(&one.points)])?;
    }
    Ok(())
}
