//! What the store holds, as values.

use std::collections::BTreeMap;
use std::ops::Deref;

use crate::environment::{Environment, Prediction};
use crate::evidence::Evidence;
use crate::facts::Placed;
use crate::matrix::Planned;
use crate::metric::Measured;
use crate::settings::Value;

/// How a trial went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It has samples.
    Ok,
    /// It has none, and why. It is tried again by the next run.
    Failed(String),
    /// It cannot be done, and why. It is not tried again.
    Impossible(String),
}

/// Where the numbers of a directory come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Tools on a machine.
    Measured,
    /// Models, in virtual time.
    Predicted,
}

impl Origin {
    /// Fit for "numbers that were ...".
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Predicted => "predicted",
        }
    }
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
    /// Every dimension: of the workload ([`crate::matrix::Workload::dimensions`]) and of the
    /// subject (`family`, `chunk`, `members`, `buses`, `order`).
    pub dimensions: BTreeMap<String, Value>,
    /// Seed of offsets and contents.
    pub seed: u64,
    /// Bytes of the subject that were used.
    pub region_bytes: u64,
    /// The exact commands: how the subject was set up, then the tool's.
    pub commands: Vec<String>,
    /// When it started, seconds since 1970.
    pub started_unix_s: u64,
    /// Wall time of the tool in seconds, its own start-up included.
    pub duration_s: f64,
    /// How it went.
    pub outcome: Outcome,
    /// What was measured; empty unless it went well.
    pub measured: Measured,
    /// What the machine did meanwhile.
    pub evidence: Evidence,
    /// What was done to the array: seconds after the start, and words.
    pub events: Vec<(f64, String)>,
    /// Raw output, relative to the directory.
    pub raw: String,
}

/// One start of the runner.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// When, seconds since 1970.
    pub started_unix_s: u64,
    /// When it ended; `None` when it was cut off.
    pub ended_unix_s: Option<u64>,
    /// Where.
    pub environment: Environment,
    /// How its time was spent.
    pub times: Times,
}

/// How a run's wall time was spent, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Times {
    /// In the tools themselves.
    pub busy_s: f64,
    /// Bringing subjects up, file systems, preparing files, filling, resting: other programs' and
    /// the devices' time.
    pub set_up_s: f64,
    /// The laboratory's own.
    pub overhead_s: f64,
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
    /// The exact commands that brought it up last.
    pub commands: Vec<String>,
}

/// Everything in a results directory.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// The campaign, worked out. Results read as it does: `results.subjects`.
    pub planned: Planned,
    /// What is known of them; by name.
    pub facts: Vec<SubjectFacts>,
    /// Every start of the runner, first to last; at least one.
    pub sessions: Vec<Session>,
    /// Every trial that was begun, by number.
    pub trials: Vec<StoredTrial>,
}

impl Results {
    /// What the numbers were predicted by; `None` of a folder of measurements.
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

/// What is known of the time that trials take.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Earlier {
    /// Seconds of each trial that was measured, by its number.
    pub measured: BTreeMap<u32, f64>,
    /// Seconds around each, on average: bringing up, cleaning up, writing down.
    pub around_s: f64,
}
