//! What a campaign would do, before it does it: the matrix, what is written where, how long.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use crate::campaign::{Campaign, Subject};
use crate::facts::{note_on_sharing, place_members};
use crate::matrix::{Cell, Planned, Trial, Workload};
use crate::safety::{Permit, plan_overwrites};
use crate::store::Earlier;

mod budget;
mod rates;
mod render;
mod spread;
mod work;

pub use budget::{Budget, Fitted, fit, repetitions_to_plan};
pub use render::render_plan;
use work::{Work, plan_work};

/// A campaign, worked out.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The campaign.
    pub campaign: Campaign,
    /// Its subjects.
    pub subjects: Vec<Subject>,
    /// The workloads.
    pub workloads: Vec<Workload>,
    /// The cells.
    pub cells: Vec<Cell>,
    /// The trials in their order.
    pub trials: Vec<Trial>,
    /// What would be overwritten: paths and NBD URIs.
    pub overwrites: Vec<String>,
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
    /// What the caller named to be overwritten, of what must be.
    pub agreed: BTreeSet<String>,
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
    let work = plan_work(&planned);
    let overwrites = plan_overwrites(&planned);
    let permit = Permit::new(destroy);
    let agreed = overwrites.iter().filter(|path| permit.covers(path)).cloned().collect();
    let mut possible = planned.trials.iter().filter(|trial| trial.cell.impossible.is_none());
    let left: Vec<&Trial> =
        possible.clone().filter(|trial| !earlier.measured.contains_key(&trial.number)).collect();
    let (to_run, possible) = (left.len(), possible.by_ref().count());
    let (duration, basis) = estimate(&planned, &work, &left, earlier);
    let Planned { campaign, subjects, workloads, cells, trials } = planned;
    let notes = subjects
        .iter()
        .enumerate()
        .flat_map(|(index, subject)| {
            let sharing = note_on_sharing(&place_members(&subject.source));
            let tight = work.tight.iter().filter(move |(subject, _)| *subject == index);
            let notes = sharing
                .into_iter()
                .chain(note_on_comparing(&subjects, &cells, index))
                .chain(tight.map(|(_, why)| why.clone()));
            notes.map(|note| (subject.name.clone(), note))
        })
        .collect();
    let written = work.written;
    Plan {
        to_run,
        possible,
        duration,
        basis,
        agreed,
        overwrites,
        written,
        campaign,
        subjects,
        workloads,
        cells,
        trials,
        notes,
    }
}

/// How long a campaign takes in all, by what it says alone.
pub(crate) fn time_of(planned: &Planned) -> Duration {
    let work = plan_work(planned);
    let left: Vec<&Trial> =
        planned.trials.iter().filter(|trial| trial.cell.impossible.is_none()).collect();
    estimate(planned, &work, &left, &Earlier::default()).0
}

/// How long the trials in `left` take: as their cells did before, where any was measured, else by
/// what they do.
fn estimate(
    planned: &Planned,
    work: &Work,
    left: &[&Trial],
    earlier: &Earlier,
) -> (Duration, Basis) {
    let mut measured: BTreeMap<(usize, usize), (f64, u32)> = BTreeMap::new();
    for trial in &planned.trials {
        if let Some(seconds) = earlier.measured.get(&trial.number) {
            let (sum, count) = measured.entry(place_of(&trial.cell)).or_default();
            (*sum, *count) = (*sum + seconds, *count + 1);
        }
    }
    let by_plan: BTreeMap<(usize, usize), Duration> =
        planned.cells.iter().map(place_of).zip(work.cells.iter().copied()).collect();
    let mut duration = if measured.is_empty() { work.fill } else { Duration::ZERO };
    for trial in left {
        let place = place_of(&trial.cell);
        duration += match measured.get(&place) {
            Some((sum, count)) => {
                Duration::from_secs_f64(sum / f64::from(*count) + earlier.around_s)
            }
            None => by_plan.get(&place).copied().unwrap_or_default(),
        };
    }
    let basis = match work.assumes {
        _ if !measured.is_empty() => Basis::Measured,
        true => Basis::Assumed,
        false => Basis::Known,
    };
    (duration, basis)
}

fn place_of(cell: &Cell) -> (usize, usize) {
    (cell.subject, cell.workload_index)
}

/// What is said of a subject that no comparison can say anything of: it is compared with all
/// baselines together, in the workloads that they and it have.
fn note_on_comparing(subjects: &[Subject], cells: &[Cell], subject: usize) -> Option<String> {
    let has = |subject: usize, workload: usize| {
        cells.iter().any(|cell| {
            (cell.subject, cell.workload_index) == (subject, workload) && cell.impossible.is_none()
        })
    };
    let baselines = || (0..subjects.len()).filter(|&one| subjects[one].baseline);
    let mut own = cells.iter().filter(|cell| cell.subject == subject && cell.impossible.is_none());
    if subjects[subject].baseline
        || baselines().next().is_none()
        || own.clone().next().is_none()
        || own.any(|cell| baselines().all(|baseline| has(baseline, cell.workload_index)))
    {
        return None;
    }
    let names: Vec<&str> = baselines().map(|one| subjects[one].name.as_str()).collect();
    Some(format!(
        "It is compared with nothing: no job on it runs on the baseline ({}) in the same way. A \
         folder has a file system of its own, which compares with that of other folders only.",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests;
