//! Reading results back: a few whole-table queries, joined here.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Earlier, Outcome, Results, Session, Store, StoredTrial, SubjectFacts, Times, from_json,
};
use crate::error::LabError;
use crate::matrix::Planned;
use crate::metric::{LatencyBins, Measured, Metric, Sample, TimeSeries};

impl Store {
    /// Numbers of the trials that were measured.
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub fn measured_trials(&self) -> Result<BTreeSet<u32>, LabError> {
        self.trials_that_were("ok")
    }

    /// Numbers of the trials that were impossible when they were tried last. Whether they still are
    /// is for the caller to say: what lies with the campaign is, what lay with the machine may not
    /// be.
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub fn impossible_trials(&self) -> Result<BTreeSet<u32>, LabError> {
        self.trials_that_were("impossible")
    }

    fn trials_that_were(&self, outcome: &str) -> Result<BTreeSet<u32>, LabError> {
        let read = || -> rusqlite::Result<_> {
            let mut statement = self.db.prepare("SELECT number FROM trial WHERE outcome = ?1")?;
            statement.query_map([outcome], |row| row.get(0))?.collect()
        };
        read().map_err(LabError::store("list finished trials"))
    }

    /// What the trials that were measured took.
    pub(super) fn times_of_trials(&self) -> Result<Earlier, LabError> {
        let read = || -> rusqlite::Result<_> {
            let mut statement =
                self.db.prepare("SELECT number, duration_s FROM trial WHERE outcome = 'ok'")?;
            let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let measured: BTreeMap<u32, f64> = rows.collect::<rusqlite::Result<_>>()?;
            // Trials that failed or were impossible had theirs, too.
            let around_s: Option<f64> = self.db.query_row(
                "SELECT (SELECT SUM(set_up_s + overhead_s) FROM session) / COUNT(*) FROM trial",
                [],
                |row| row.get(0),
            )?;
            Ok(Earlier { measured, around_s: around_s.unwrap_or(0.0) })
        };
        read().map_err(LabError::store("read the times of trials"))
    }

    /// Everything that was measured.
    ///
    /// # Errors
    ///
    /// When the database cannot be read or holds something unknown.
    pub fn results(&self) -> Result<Results, LabError> {
        let campaign = self.campaign()?;
        let mut trials = self.trials()?;
        self.add_samples(&mut trials)?;
        self.add_latencies(&mut trials)?;
        self.add_series(&mut trials)?;
        Ok(Results {
            planned: Planned::checked(&campaign)?,
            facts: self.subjects()?,
            sessions: self.sessions()?,
            trials: trials.into_values().collect(),
        })
    }

    fn trials(&self) -> Result<BTreeMap<u32, StoredTrial>, LabError> {
        let read = || -> rusqlite::Result<Vec<RawTrial>> {
            let mut statement = self.db.prepare(
                "SELECT number, repetition, subject, workload, dimensions, seed, region_bytes, \
                 commands, started_unix_s, duration_s, outcome, reason, evidence, events, raw \
                 FROM trial",
            )?;
            statement.query_map([], RawTrial::of)?.collect()
        };
        let raw = read().map_err(LabError::store("read the trials"))?;
        raw.into_iter().map(|raw| Ok((raw.trial.number, raw.checked()?))).collect()
    }

    fn add_samples(&self, trials: &mut BTreeMap<u32, StoredTrial>) -> Result<(), LabError> {
        let read = || -> rusqlite::Result<Vec<(u32, String, f64)>> {
            let mut statement =
                self.db.prepare("SELECT trial, metric, value FROM sample ORDER BY rowid")?;
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
        };
        for (number, name, value) in read().map_err(LabError::store("read the samples"))? {
            let metric = metric_of(&name)?;
            if let Some(trial) = trials.get_mut(&number) {
                trial.measured.samples.push(Sample { metric, value });
            }
        }
        Ok(())
    }

    fn add_latencies(&self, trials: &mut BTreeMap<u32, StoredTrial>) -> Result<(), LabError> {
        for (number, op, json) in
            self.texts("SELECT trial, op, bins FROM latency ORDER BY rowid")?
        {
            let op = match op.as_str() {
                "read" => "read",
                "write" => "write",
                _ => return Err(LabError::StoreContent { what: "latency.op", value: op }),
            };
            let bins = from_json("latency.bins", &json)?;
            if let Some(trial) = trials.get_mut(&number) {
                trial.measured.latencies.push(LatencyBins { op, bins });
            }
        }
        Ok(())
    }

    fn add_series(&self, trials: &mut BTreeMap<u32, StoredTrial>) -> Result<(), LabError> {
        for (number, name, json) in
            self.texts("SELECT trial, metric, points FROM series ORDER BY rowid")?
        {
            let metric = metric_of(&name)?;
            let points = from_json("series.points", &json)?;
            if let Some(trial) = trials.get_mut(&number) {
                trial.measured.series.push(TimeSeries { metric, points });
            }
        }
        Ok(())
    }

    fn texts(&self, query: &str) -> Result<Vec<(u32, String, String)>, LabError> {
        let read = || -> rusqlite::Result<_> {
            let mut statement = self.db.prepare(query)?;
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
        };
        read().map_err(LabError::store("read latencies and series"))
    }

    fn sessions(&self) -> Result<Vec<Session>, LabError> {
        type Row = (i64, Option<i64>, String, Times);
        let read = || -> rusqlite::Result<Vec<Row>> {
            let mut statement = self.db.prepare(
                "SELECT started_unix_s, ended_unix_s, environment, busy_s, set_up_s, overhead_s \
                 FROM session ORDER BY id",
            )?;
            let times = |row: &rusqlite::Row<'_>| -> rusqlite::Result<Times> {
                Ok(Times { busy_s: row.get(3)?, set_up_s: row.get(4)?, overhead_s: row.get(5)? })
            };
            statement
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, times(row)?)))?
                .collect()
        };
        let rows = read().map_err(LabError::store("read the sessions"))?;
        rows.into_iter()
            .map(|(started, ended, json, times)| {
                Ok(Session {
                    started_unix_s: started as u64,
                    ended_unix_s: ended.map(|time| time as u64),
                    environment: from_json("session.environment", &json)?,
                    times,
                })
            })
            .collect()
    }

    fn subjects(&self) -> Result<Vec<SubjectFacts>, LabError> {
        type Row = (String, Option<i64>, String, String);
        let read = || -> rusqlite::Result<Vec<Row>> {
            let mut statement = self.db.prepare(
                "SELECT name, size_bytes, members, commands FROM subject ORDER BY position",
            )?;
            statement
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
                .collect()
        };
        let rows = read().map_err(LabError::store("read the subjects"))?;
        rows.into_iter()
            .map(|(name, size, members, commands)| {
                Ok(SubjectFacts {
                    name,
                    size_bytes: size.map(|bytes| bytes as u64),
                    members: from_json("subject.members", &members)?,
                    commands: from_json("subject.commands", &commands)?,
                })
            })
            .collect()
    }
}

fn metric_of(name: &str) -> Result<Metric, LabError> {
    Metric::find(name)
        .ok_or_else(|| LabError::StoreContent { what: "a metric", value: name.to_owned() })
}

/// A trial whose JSON and words are still to be checked.
struct RawTrial {
    trial: StoredTrial,
    dimensions: String,
    commands: String,
    outcome: String,
    reason: String,
    evidence: String,
    events: String,
}

impl RawTrial {
    fn of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            trial: StoredTrial {
                number: row.get(0)?,
                repetition: row.get(1)?,
                subject: row.get(2)?,
                workload: row.get(3)?,
                dimensions: BTreeMap::new(),
                seed: row.get::<_, i64>(5)? as u64,
                region_bytes: row.get::<_, i64>(6)? as u64,
                commands: Vec::new(),
                started_unix_s: row.get::<_, i64>(8)? as u64,
                duration_s: row.get(9)?,
                outcome: Outcome::Ok,
                measured: Measured::default(),
                evidence: crate::evidence::Evidence::default(),
                events: Vec::new(),
                raw: row.get(14)?,
            },
            dimensions: row.get(4)?,
            commands: row.get(7)?,
            outcome: row.get(10)?,
            reason: row.get(11)?,
            evidence: row.get(12)?,
            events: row.get(13)?,
        })
    }

    fn checked(self) -> Result<StoredTrial, LabError> {
        let outcome = match self.outcome.as_str() {
            "ok" => Outcome::Ok,
            "failed" => Outcome::Failed(self.reason),
            "impossible" => Outcome::Impossible(self.reason),
            _ => return Err(LabError::StoreContent { what: "trial.outcome", value: self.outcome }),
        };
        Ok(StoredTrial {
            dimensions: from_json("trial.dimensions", &self.dimensions)?,
            commands: from_json("trial.commands", &self.commands)?,
            outcome,
            evidence: from_json("trial.evidence", &self.evidence)?,
            events: from_json("trial.events", &self.events)?,
            ..self.trial
        })
    }
}
