//! A trial without results yet.

use super::{Outcome, Store, StoredTrial};
use crate::campaign::Subject;
use crate::evidence::Evidence;
use crate::matrix::Trial;
use crate::metric::Measured;
use crate::settings::Value;

impl StoredTrial {
    /// Returns a trial that begins now.
    pub(crate) fn begun(trial: &Trial, subject: &Subject, started_unix_s: u64) -> Self {
        let workload = &trial.cell.workload;
        let mut dimensions = workload.dimensions();
        let own = subject.dimensions.iter().map(|(name, v)| ((*name).to_owned(), v.clone()));
        dimensions.extend(own);
        dimensions.insert("family".to_owned(), Value::Word(subject.family.clone()));
        Self {
            number: trial.number,
            repetition: trial.repetition,
            subject: subject.name.clone(),
            workload: workload.label(),
            dimensions,
            seed: trial.seed,
            region_bytes: 0,
            commands: Vec::new(),
            started_unix_s,
            duration_s: 0.0,
            outcome: Outcome::Ok,
            measured: Measured::default(),
            evidence: Evidence::default(),
            events: Vec::new(),
            raw: Store::raw_folder(trial.number),
        }
    }
}
