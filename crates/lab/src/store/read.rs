//! Reading results: a few whole-table queries, joined here.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::{Params, Row};

use super::column::{Json, json, unknown};
use super::{Earlier, Outcome, Results, Session, Store, StoredTrial, SubjectFacts, Times};
use crate::error::LabError;
use crate::matrix::{Planned, Trial};
use crate::metric::{LatencyBins, Measured, Metric, Sample, TimeSeries};

impl Store {
    /// Returns the numbers of the measured trials.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn measured_trials(&self) -> Result<BTreeSet<u32>, LabError> {
        self.trials_that_were("ok")
    }

    /// Returns the numbers of the trials that were impossible at their last attempt. The caller decides whether
    /// they still are: reasons in the campaign stay, reasons in the machine may not.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn impossible_trials(&self) -> Result<BTreeSet<u32>, LabError> {
        self.trials_that_were("impossible")
    }

    fn trials_that_were(&self, outcome: &str) -> Result<BTreeSet<u32>, LabError> {
        let query = "SELECT number FROM trial WHERE outcome = ?1";
        self.rows("list finished trials", query, [outcome], |row| row.get(0))
    }

    /// Refuses to continue if trial numbers have another meaning now: an earlier version had another order.
    ///
    /// # Errors
    ///
    /// [`LabError::OtherOrder`], or the database cannot be read.
    pub(crate) fn check_order(&self, planned: &Planned) -> Result<(), LabError> {
        let query = "SELECT number, subject, workload FROM trial";
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let all: Vec<(u32, String, String)> = self.rows("list trials", query, [], read)?;
        let is_same = |(number, subject, workload): &(u32, String, String)| {
            let trial = planned.trials.get((*number as usize).wrapping_sub(1));
            trial.is_some_and(|Trial { cell, .. }| {
                planned.subjects[cell.subject].name == *subject
                    && cell.workload.label() == *workload
            })
        };
        match all.iter().all(is_same) {
            true => Ok(()),
            false => Err(LabError::OtherOrder { dir: self.dir.clone() }),
        }
    }

    /// Returns the times of the measured trials.
    pub(super) fn times_of_trials(&self) -> Result<Earlier, LabError> {
        let action = "read the times of trials";
        let query = "SELECT number, duration_s FROM trial WHERE outcome = 'ok'";
        let measured = self.rows(action, query, [], |row| row.try_into())?;
        // Failed and impossible trials took time around them, too.
        let query = "SELECT (SELECT SUM(set_up_s + overhead_s) FROM session) / COUNT(*) FROM trial";
        let around_s: Option<f64> =
            self.db.query_row(query, [], |row| row.get(0)).map_err(LabError::store(action))?;
        Ok(Earlier { measured, around_s: around_s.unwrap_or(0.0) })
    }

    /// Returns all results.
    ///
    /// # Errors
    ///
    /// The database cannot be read, or holds something unknown.
    pub fn results(&self) -> Result<Results, LabError> {
        let campaign = self.campaign()?;
        let query = "SELECT * FROM trial";
        let mut trials: BTreeMap<u32, StoredTrial> =
            self.rows("read the trials", query, [], trial_of)?;

        let query = "SELECT trial, metric, value FROM sample ORDER BY rowid";
        let samples: Vec<(u32, Metric, f64)> =
            self.rows("read the samples", query, [], |row| row.try_into())?;
        for (number, metric, value) in samples {
            if let Some(trial) = trials.get_mut(&number) {
                trial.measured.samples.push(Sample { metric, value });
            }
        }

        let query = "SELECT trial, op, bins FROM latency ORDER BY rowid";
        let latencies: Vec<_> = self.rows("read the latencies", query, [], |row| {
            let name: String = row.get(1)?;
            let op = ["read", "write"].into_iter().find(|known| *known == name);
            let op = op.ok_or_else(|| unknown(&name))?;
            Ok((row.get::<_, u32>(0)?, LatencyBins { op, bins: json(row, "bins")? }))
        })?;
        for (number, bins) in latencies {
            if let Some(trial) = trials.get_mut(&number) {
                trial.measured.latencies.push(bins);
            }
        }

        let query = "SELECT trial, metric, points FROM series ORDER BY rowid";
        let series: Vec<(u32, Metric, Json<_>)> =
            self.rows("read the series", query, [], |row| row.try_into())?;
        for (number, metric, Json(points)) in series {
            if let Some(trial) = trials.get_mut(&number) {
                trial.measured.series.push(TimeSeries { metric, points });
            }
        }

        let sessions = "SELECT * FROM session ORDER BY id";
        let subjects = "SELECT * FROM subject ORDER BY position";
        Ok(Results {
            planned: Planned::checked(&campaign)?,
            facts: self.rows("read the subjects", subjects, [], subject_of)?,
            sessions: self.rows("read the sessions", sessions, [], session_of)?,
            trials: trials.into_values().collect(),
        })
    }

    fn rows<T, C: FromIterator<T>>(
        &self,
        action: &'static str,
        query: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<C, LabError> {
        let rows = || -> rusqlite::Result<C> {
            self.db.prepare(query)?.query_map(params, read)?.collect()
        };
        rows().map_err(LabError::store(action))
    }
}

fn session_of(row: &Row<'_>) -> rusqlite::Result<Session> {
    Ok(Session {
        started_unix_s: row.get("started_unix_s")?,
        ended_unix_s: row.get("ended_unix_s")?,
        environment: json(row, "environment")?,
        times: Times {
            busy_s: row.get("busy_s")?,
            set_up_s: row.get("set_up_s")?,
            overhead_s: row.get("overhead_s")?,
        },
    })
}

fn subject_of(row: &Row<'_>) -> rusqlite::Result<SubjectFacts> {
    Ok(SubjectFacts {
        name: row.get("name")?,
        size_bytes: row.get("size_bytes")?,
        members: json(row, "members")?,
        commands: json(row, "commands")?,
    })
}

/// Returns a trial with its number, without the measurements.
fn trial_of(row: &Row<'_>) -> rusqlite::Result<(u32, StoredTrial)> {
    let outcome: String = row.get("outcome")?;
    let trial = StoredTrial {
        number: row.get("number")?,
        repetition: row.get("repetition")?,
        subject: row.get("subject")?,
        workload: row.get("workload")?,
        dimensions: json(row, "dimensions")?,
        seed: row.get::<_, i64>("seed")?.cast_unsigned(),
        region_bytes: row.get("region_bytes")?,
        commands: json(row, "commands")?,
        started_unix_s: row.get("started_unix_s")?,
        duration_s: row.get("duration_s")?,
        outcome: match outcome.as_str() {
            "ok" => Outcome::Ok,
            "failed" => Outcome::Failed(row.get("reason")?),
            "impossible" => Outcome::Impossible(row.get("reason")?),
            other => return Err(unknown(other).into()),
        },
        measured: Measured::default(),
        evidence: json(row, "evidence")?,
        events: json(row, "events")?,
        raw: row.get("raw")?,
    };
    Ok((trial.number, trial))
}
