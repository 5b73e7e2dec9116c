//! The plan of a campaign: the matrix, the overwritten paths, the time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use crate::facts::{note_on_sharing, place_members};
use crate::matrix::{Cell, Planned, Trial};
use crate::safety::{Permit, plan_overwrites};
use crate::store::Earlier;

mod budget;
mod rates;
mod render;
mod spread;
mod work;

pub(crate) use budget::fit_with_control;
pub use budget::{Budget, Fitted, fit, repetitions_to_plan};
pub use render::render_plan;
pub use spread::unreached;
use work::{Figures, add_up};

/// The plan of a campaign.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The expanded campaign.
    pub planned: Planned,
    /// Paths and NBD URIs that would be overwritten.
    pub overwrites: Vec<String>,
    /// Those that the caller named to be overwritten.
    pub agreed: BTreeSet<String>,
    /// Amount written to each member, by its text in the campaign.
    pub written: BTreeMap<String, Written>,
    /// Number of trials that run: without impossible and measured ones.
    pub to_run: usize,
    /// Number of possible trials, measured ones included.
    pub possible: usize,
    /// Estimated time of the trials that run.
    pub duration: Duration,
    /// Basis of the estimate.
    pub basis: Basis,
    /// Sentences about subjects, with the subject's name: members that share hardware, no workload in common
    /// with the baseline, too little room.
    pub notes: Vec<(String, String)>,
}

/// Basis of an estimate of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The settings, and the rates of models.
    Known,
    /// An assumed rate of a device that has not been measured.
    Assumed,
    /// The times of earlier trials of this campaign.
    Measured,
}

/// The amount that is written to a member.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Written {
    /// Bytes, if they are known beforehand.
    pub bytes: f64,
    /// Seconds in which it is written at full speed.
    pub seconds: f64,
}

/// Plans a campaign. Reads `/sys` and the sizes of members; writes nothing. `earlier` are its measured trials,
/// `destroy` the paths that may be overwritten.
pub fn plan_campaign(planned: Planned, earlier: &Earlier, destroy: &[PathBuf]) -> Plan {
    let figures = add_up(&planned);
    let overwrites = plan_overwrites(&planned);
    let permit = Permit::new(destroy);
    let agreed = overwrites.iter().filter(|path| permit.covers(path)).cloned().collect();
    let possible: Vec<&Trial> = planned.possible_trials().collect();
    let left: Vec<&Trial> = possible
        .iter()
        .copied()
        .filter(|trial| !earlier.measured.contains_key(&trial.number))
        .collect();
    let (to_run, possible) = (left.len(), possible.len());
    let (duration, basis) = estimate(&planned, &figures, &left, earlier);
    let mut notes = Vec::new();
    for (index, subject) in planned.subjects.iter().enumerate() {
        let tight = figures.tight.iter().filter(|(subject, _)| *subject == index);
        let sentences = note_on_sharing(&place_members(&subject.source))
            .into_iter()
            .chain(note_on_comparing(&planned, index))
            .chain(tight.map(|(_, why)| why.clone()));
        notes.extend(sentences.map(|note| (subject.name.clone(), note)));
    }
    let written = figures.written;
    Plan { planned, overwrites, agreed, written, to_run, possible, duration, basis, notes }
}

/// Returns the time of a whole campaign, estimated from the campaign alone.
pub(crate) fn time_of(planned: &Planned) -> Duration {
    let left: Vec<&Trial> = planned.possible_trials().collect();
    estimate(planned, &add_up(planned), &left, &Earlier::default()).0
}

/// Returns the time of the trials in `left`: by the earlier trials of their cells if any was measured, else by
/// their work.
fn estimate(
    planned: &Planned,
    figures: &Figures,
    left: &[&Trial],
    earlier: &Earlier,
) -> (Duration, Basis) {
    let mut measured: BTreeMap<(usize, usize), (f64, u32)> = BTreeMap::new();
    for trial in &planned.trials {
        if let Some(seconds) = earlier.measured.get(&trial.number) {
            let (sum, count) = measured.entry(trial.cell.place()).or_default();
            (*sum, *count) = (*sum + seconds, *count + 1);
        }
    }
    let by_plan: BTreeMap<(usize, usize), Duration> =
        planned.cells.iter().map(Cell::place).zip(figures.cells.iter().copied()).collect();
    let mut duration = if measured.is_empty() { figures.fill } else { Duration::ZERO };
    for trial in left {
        let place = trial.cell.place();
        duration += match measured.get(&place) {
            Some((sum, count)) => {
                Duration::from_secs_f64(sum / f64::from(*count) + earlier.around_s)
            }
            None => by_plan.get(&place).copied().unwrap_or_default(),
        };
    }
    let basis = match figures.assumes {
        _ if !measured.is_empty() => Basis::Measured,
        true => Basis::Assumed,
        false => Basis::Known,
    };
    (duration, basis)
}

/// Returns a note about a subject that cannot be compared: a comparison is with all baselines together, in
/// their common workloads.
fn note_on_comparing(planned: &Planned, subject: usize) -> Option<String> {
    let works_of = |subject: usize| -> BTreeSet<usize> {
        planned.possible_of(subject).map(|cell| cell.workload_index).collect()
    };
    let baselines = planned.subjects.iter().enumerate().filter(|(_, one)| one.baseline);
    let own = works_of(subject);
    let shared = baselines
        .clone()
        .map(|(index, _)| works_of(index))
        .fold(own.clone(), |shared, works| &shared & &works);
    let names: Vec<&str> = baselines.map(|(_, one)| one.name.as_str()).collect();
    if planned.subjects[subject].baseline
        || names.is_empty()
        || own.is_empty()
        || !shared.is_empty()
    {
        return None;
    }
    Some(format!(
        "It is compared with nothing: no job on it also runs on the baseline ({}). A folder has a \
         file system of its own, which is compared only with that of other folders.",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests;
