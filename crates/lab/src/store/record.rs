//! The records of the store, as values.

use std::collections::BTreeMap;
use std::ops::Deref;

use crate::environment::{Environment, Prediction};
use crate::evidence::Evidence;
use crate::facts::Placed;
use crate::matrix::Planned;
use crate::metric::Measured;
use crate::settings::Value;

/// The outcome of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The trial has samples.
    Ok,
    /// The trial failed, with the reason. The next run repeats it.
    Failed(String),
    /// The trial is impossible, with the reason. It is not repeated.
    Impossible(String),
}

/// The origin of a directory's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Tools on a machine.
    Measured,
    /// Models, in virtual time.
    Predicted,
}

impl Origin {
    /// Returns the word for "numbers that were ...".
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Predicted => "predicted",
        }
    }
}

/// A stored trial.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredTrial {
    /// Position in the schedule, from 1.
    pub number: u32,
    /// Number of the repetition, from 1.
    pub repetition: u32,
    /// Name of the subject.
    pub subject: String,
    /// Label of the workload.
    pub workload: String,
    /// All dimensions: of the workload ([`crate::matrix::Workload::dimensions`]) and of the subject (`family`,
    /// `chunk`, `members`, `buses`, `order`).
    pub dimensions: BTreeMap<String, Value>,
    /// Seed of offsets and contents.
    pub seed: u64,
    /// Bytes of the subject that were used.
    pub region_bytes: u64,
    /// The exact commands: the set-up of the subject, then the tool's.
    pub commands: Vec<String>,
    /// Start in seconds since 1970.
    pub started_unix_s: u64,
    /// Wall time of the tool in seconds, with its start-up.
    pub duration_s: f64,
    /// The outcome.
    pub outcome: Outcome,
    /// The measurements; empty unless the outcome is ok.
    pub measured: Measured,
    /// The activity of the machine during the trial.
    pub evidence: Evidence,
    /// Actions on the array: seconds after the start, and words.
    pub events: Vec<(f64, String)>,
    /// Raw output, relative to the directory.
    pub raw: String,
}

/// One start of the runner.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// Start in seconds since 1970.
    pub started_unix_s: u64,
    /// End in seconds since 1970; `None` if the run was interrupted.
    pub ended_unix_s: Option<u64>,
    /// The machine.
    pub environment: Environment,
    /// The use of the time.
    pub times: Times,
}

/// The use of a run's wall time, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Times {
    /// Time of the tools themselves.
    pub busy_s: f64,
    /// Time to bring subjects up, make file systems, prepare files, fill, and rest: of other programs and the
    /// devices.
    pub set_up_s: f64,
    /// The laboratory's own time.
    pub overhead_s: f64,
}

/// The facts about a subject.
#[derive(Debug, Clone, PartialEq)]
pub struct SubjectFacts {
    /// Name in the campaign.
    pub name: String,
    /// Size in bytes, once it has been up.
    pub size_bytes: Option<u64>,
    /// The members.
    pub members: Vec<Placed>,
    /// The exact commands that brought it up last.
    pub commands: Vec<String>,
}

/// The contents of a results directory.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// The expanded campaign. Results deref to it: `results.subjects`.
    pub planned: Planned,
    /// The facts about its subjects, by name.
    pub facts: Vec<SubjectFacts>,
    /// Every start of the runner, first to last; at least one.
    pub sessions: Vec<Session>,
    /// Every trial that began, by number.
    pub trials: Vec<StoredTrial>,
}

impl Results {
    /// Returns the models behind the numbers; `None` for measurements.
    pub fn prediction(&self) -> Option<&Prediction> {
        self.sessions.last()?.environment.prediction.as_ref()
    }
}

impl Deref for Results {
    type Target = Planned;

    fn deref(&self) -> &Planned {
        &self.planned
    }
}

/// The known times of trials.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Earlier {
    /// Seconds of each measured trial, by its number.
    pub measured: BTreeMap<u32, f64>,
    /// Seconds around each trial, on average: bringing up, cleaning up, storing.
    pub around_s: f64,
}
