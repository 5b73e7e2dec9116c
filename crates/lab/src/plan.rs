//! What a campaign would do, before it does it: the matrix, what is written where, how long.

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

/// What a campaign would do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The campaign, worked out.
    pub planned: Planned,
    /// What would be overwritten: paths and NBD URIs.
    pub overwrites: Vec<String>,
    /// What the caller named to be overwritten, of what must be.
    pub agreed: BTreeSet<String>,
    /// What each member would be written, by its text in the campaign.
    pub written: BTreeMap<String, Written>,
    /// How many trials run: none that is impossible, and none that is measured already.
    pub to_run: usize,
    /// Of how many, with those that are measured.
    pub possible: usize,
    /// Estimated time of those that run.
    pub duration: Duration,
    /// What the estimate rests on.
    pub basis: Basis,
    /// Sentences about subjects, with the subject's name: members that share hardware, nothing that
    /// the baseline does as well, too little room.
    pub notes: Vec<(String, String)>,
}

/// What an estimate of time rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// What was set, and the rates of models.
    Known,
    /// The rate that is assumed of a device that nobody has measured.
    Assumed,
    /// What earlier trials of this campaign took.
    Measured,
}

/// What a member would be written.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Written {
    /// Bytes that are known beforehand.
    pub bytes: f64,
    /// Seconds in which it is written as fast as it goes.
    pub seconds: f64,
}

/// Says what a campaign would do. Reads `/sys` and asks members for their sizes; writes nothing.
/// `earlier` is what was measured of it, `destroy` what may be overwritten.
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

/// How long a campaign takes in all, by what it says alone.
pub(crate) fn time_of(planned: &Planned) -> Duration {
    let left: Vec<&Trial> = planned.possible_trials().collect();
    estimate(planned, &add_up(planned), &left, &Earlier::default()).0
}

/// How long the trials in `left` take: as their cells did before, where any was measured, else by
/// what they do.
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

/// What is said of a subject that no comparison can say anything of: it is compared with all
/// baselines together, in the workloads that they and it have.
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
        "It is compared with nothing: no job on it runs on the baseline ({}) in the same way. A \
         folder has a file system of its own, which compares with that of other folders only.",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests;
