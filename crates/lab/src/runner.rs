//! Runs the trials of a campaign, one after the other, and stores each before the next.
//!
//! ```text
//! bring up ─ prepare ─ drop caches ─ warm │ look ─ RUN ─ sync ─ look │ parse ─ save ─ clean up
//!            not timed                    │        timed             │
//! ```
//!
//! Invariants:
//!
//! * when this returns, for whatever reason, nothing that it started or mounted is left;
//! * a stop by the user loses at most the trial that was running;
//! * a trial that fails or is impossible is stored with its reason and does not end the campaign; a subject
//!   whose trials fail three times in a row is left out for the rest of the run;
//! * the next run repeats failed trials, and impossible ones unless the campaign itself is the reason;
//! * two runs never use one results directory or one device at the same time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use crate::LabOptions;
use crate::campaign::Campaign;
use crate::error::{LabError, Obstacle};
use crate::facts::{Member, members_of, place_members};
use crate::matrix::{Planned, Trial};
use crate::progress::Progress;
use crate::safety::check_overwrites;
use crate::store::{Origin, Outcome, Store, StoredTrial, SubjectFacts, Times};
use crate::subjects::{Ready, Subjects};
use crate::tool::RunOutput;
use crate::world::World;

mod bench;
mod locks;
mod versions;

use bench::Bench;
use locks::lock_devices;
use versions::{Versions, ask_versions};

/// Failures of one subject in a row after which the subject is taken to be broken, not the trial.
const FAILURES_IN_A_ROW: u32 = 3;

/// The result of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// Trials in the campaign.
    pub planned: u32,
    /// Trials that an earlier run has stored and that need no repetition.
    pub skipped: u32,
    /// Skipped trials that have numbers.
    pub measured_before: u32,
    /// Trials that succeeded in this run.
    pub measured: u32,
    /// Trials that failed in this run.
    pub failed: u32,
    /// Trials that this run found impossible.
    pub impossible: u32,
    /// Trials that were not begun because their subject failed too often.
    pub left_out: u32,
    /// True if the user stopped the run.
    pub stopped: bool,
    /// Reasons of failures, each once, with its count.
    pub reasons: BTreeMap<String, u32>,
    /// Reasons of impossible trials, skipped ones included, each once, with its count.
    pub obstacles: BTreeMap<String, u32>,
    /// The use of the time.
    pub times: Times,
}

impl Tally {
    /// Returns true if neither this run nor an earlier one has a number.
    pub fn is_empty(&self) -> bool {
        self.measured + self.measured_before == 0
    }
}

/// Runs the missing trials of a campaign into the results directory. Its relative paths are relative to this
/// process's working directory, unless the campaign has another.
///
/// # Errors
///
/// The campaign is invalid or would overwrite an unnamed path, another run uses the directory, no tool works,
/// or the results cannot be stored. Earlier measurements stay stored.
pub fn run_campaign(
    campaign: &Campaign,
    options: &LabOptions,
    world: &mut dyn World,
) -> Result<Tally, LabError> {
    let began = world.monotonic();
    let planned = &Planned::checked(&campaign.rooted()?)?;
    check_there(planned, world)?;
    check_overwrites(planned, &options.destroy)?;
    Store::check_origin(&options.results_dir, Origin::Measured)?;
    // Before the folder is made: a refused run leaves none.
    let _devices = lock_devices(planned)?;
    let mut store = Store::create(&options.results_dir, &planned.campaign)?;
    store.lock()?;
    store.check_order(planned)?;
    let versions = ask_versions(planned, options, world)?;
    let environment = world.environment(versions.found.clone());
    let session = store.begin_session(world.unix_time_s(), &environment)?;
    let mut subjects = Subjects::new(planned, options)?;
    for told in subjects.clear_what_was_left(world)? {
        eprintln!("{told}");
    }
    let journal = subjects.journal();
    let mut run = Run {
        planned,
        options,
        versions: &versions,
        bench: Bench::new(planned, options, &journal)?,
        store: &mut store,
        session,
        subjects: &mut subjects,
        began,
        times: Times::default(),
    };
    let result = run.all_trials(world);
    // Everything is taken down also after an error, and the first error is returned.
    let down = subjects.take_down_all(world);
    // A child of a tool that has left its process group is known only by its mark.
    let strays = world.end_strays(true);
    let tally = result?;
    down?;
    strays?;
    store.save_times(session, &tally.times, Some(world.unix_time_s()))?;
    Ok(tally)
}

/// Refuses a campaign of which a file, device or folder is missing, before anything is measured: the other
/// subjects would be compared without it. Unused paths may be missing.
///
/// # Errors
///
/// [`LabError::Missing`] with every missing path.
pub(crate) fn check_there(planned: &Planned, world: &mut dyn World) -> Result<(), LabError> {
    let used: BTreeSet<usize> = planned
        .cells
        .iter()
        .filter(|cell| cell.impossible.is_none())
        .map(|cell| cell.subject)
        .collect();
    let members = used.iter().flat_map(|index| members_of(&planned.subjects[*index].source));
    let mut paths = Vec::new();
    for member in members {
        // braid expands `~`, and reports a missing path itself.
        if let Member::Path(path) = member
            && !path.starts_with('~')
            && !paths.contains(&path)
            && world.path_kind(Path::new(&path))?.is_none()
        {
            paths.push(path);
        }
    }
    if paths.is_empty() { Ok(()) } else { Err(LabError::Missing { paths }) }
}

struct Run<'a, 'c> {
    planned: &'c Planned,
    options: &'c LabOptions,
    versions: &'a Versions,
    bench: Bench<'c>,
    store: &'a mut Store,
    session: i64,
    subjects: &'a mut Subjects<'c>,
    began: Duration,
    times: Times,
}

impl<'c> Run<'_, 'c> {
    /// Returns the counts of trials that earlier runs have settled, and the other trials.
    fn outstanding(&self) -> Result<(Tally, Vec<&'c Trial>), LabError> {
        let trials = &self.planned.trials;
        let measured = self.store.measured_trials()?;
        let impossible = self.store.impossible_trials()?;
        // A trial that the campaign itself makes impossible stays so. The machine is asked again: a program may
        // have been installed, a module loaded.
        let stays_impossible =
            |t: &Trial| t.cell.impossible.is_some() && impossible.contains(&t.number);
        let (settled, missing): (Vec<&Trial>, Vec<&Trial>) =
            trials.iter().partition(|t| measured.contains(&t.number) || stays_impossible(t));
        let mut tally = Tally {
            planned: trials.len() as u32,
            skipped: settled.len() as u32,
            measured_before: settled.iter().filter(|t| measured.contains(&t.number)).count() as u32,
            ..Tally::default()
        };
        for reason in settled.iter().filter_map(|trial| trial.cell.impossible.clone()) {
            *tally.obstacles.entry(reason).or_default() += 1;
        }
        Ok((tally, missing))
    }

    fn all_trials(&mut self, world: &mut dyn World) -> Result<Tally, LabError> {
        (0..self.planned.subjects.len()).try_for_each(|subject| self.save_facts(subject, None))?;
        let (mut tally, missing) = self.outstanding()?;
        if !missing.is_empty() {
            self.subjects.check_all_unused(world)?;
        }
        let mut progress =
            Progress::new(missing.len(), self.planned.trials.len(), self.options.quiet);
        let mut in_a_row = vec![0_u32; self.planned.subjects.len()];
        for trial in missing {
            let subject = trial.cell.subject;
            if in_a_row[subject] >= FAILURES_IN_A_ROW {
                tally.left_out += 1;
                progress.end(world.monotonic());
                continue;
            }
            progress.begin(trial.number, &self.describe(trial), world.monotonic());
            let outcome = match self.options.stop.is_set() {
                true => None,
                false => self.one_trial(trial, world)?,
            };
            match outcome {
                Some(Outcome::Ok) => {
                    tally.measured += 1;
                    in_a_row[subject] = 0;
                }
                Some(Outcome::Impossible(reason)) => {
                    tally.impossible += 1;
                    *tally.obstacles.entry(reason).or_default() += 1;
                }
                Some(Outcome::Failed(reason)) => {
                    tally.failed += 1;
                    progress.warn(&format!("trial {} failed: {reason}", trial.number));
                    // A missing tool says nothing about the subject.
                    if !self.versions.missing.contains_key(&trial.cell.workload.tool) {
                        in_a_row[subject] += 1;
                    }
                    if in_a_row[subject] == FAILURES_IN_A_ROW {
                        progress.warn(&format!(
                            "{} failed {FAILURES_IN_A_ROW} times in a row and is left out for the \
                             rest of this run",
                            self.planned.subjects[subject].name
                        ));
                    }
                    *tally.reasons.entry(reason).or_default() += 1;
                }
                None => {
                    tally.stopped = true;
                    break;
                }
            }
            progress.end(world.monotonic());
            self.subjects.journal().check()?;
            self.save_times(world)?;
        }
        self.save_times(world)?;
        tally.times = self.times;
        Ok(tally)
    }

    /// Stores the times. The time of neither a tool nor a set-up is the laboratory's own.
    fn save_times(&mut self, world: &dyn World) -> Result<(), LabError> {
        let all = (world.monotonic() - self.began).as_secs_f64();
        self.times.overhead_s = (all - self.times.busy_s - self.times.set_up_s).max(0.0);
        self.store.save_times(self.session, &self.times, None)
    }

    fn describe(&self, trial: &Trial) -> String {
        let fill = match self.subjects.needs_fill(trial.cell.subject, &trial.cell.workload) {
            true => format!(", after filling {:#}", self.planned.campaign.region),
            false => String::new(),
        };
        format!("{}: {}{fill}", self.planned.subjects[trial.cell.subject].name, trial.cell.workload)
    }

    /// Runs and stores a trial; returns its outcome, or `None` if the user stopped it.
    fn one_trial(
        &mut self,
        trial: &Trial,
        world: &mut dyn World,
    ) -> Result<Option<Outcome>, LabError> {
        let subject = &self.planned.subjects[trial.cell.subject];
        let mut kept = StoredTrial::begun(trial, subject, world.unix_time_s());
        if let Some(reason) = &trial.cell.impossible {
            kept.outcome = Outcome::Impossible(reason.clone());
            return self.keep(kept, None).map(Some);
        }
        if let Some(reason) = self.versions.missing.get(&trial.cell.workload.tool) {
            kept.outcome = Outcome::Failed(reason.clone());
            return self.keep(kept, None).map(Some);
        }
        let subject = trial.cell.subject;
        let before = world.monotonic();
        let ready = self.subjects.bring_up(subject, &trial.cell.workload, world);
        self.times.set_up_s += (world.monotonic() - before).as_secs_f64();
        let ready = match ready {
            Ok(ready) => ready,
            Err(obstacle) => {
                let Some(outcome) = outcome_of(obstacle) else { return Ok(None) };
                kept.outcome = outcome;
                return self.keep(kept, None).map(Some);
            }
        };
        self.save_facts(subject, Some(&ready))?;
        // Before anything is read: the tool finds the same content.
        let content = self.subjects.content_of(subject, &trial.cell.workload, world);
        let mut output = None;
        let tried = self.bench.try_out(trial, ready, &mut kept, &mut output, world);
        kept.evidence.content = content;
        self.times.busy_s += self.bench.spent.busy_s;
        self.times.set_up_s += self.bench.spent.set_up_s;
        // A pass that ran beside a trial is a reason for doubt. A volume that no longer answers is an error
        // when the subject is put back.
        kept.evidence.activities.extend(self.subjects.pass_now(subject, world));
        let outcome = match tried {
            Ok(measured) => {
                kept.measured = measured;
                Some(Outcome::Ok)
            }
            Err(obstacle) => outcome_of(obstacle),
        };
        let outcome = outcome
            .map(|outcome| self.keep(StoredTrial { outcome, ..kept }, output.as_ref()))
            .transpose();
        let before = world.monotonic();
        self.bench.clean_up(world);
        let let_go = self.subjects.let_go(subject, world);
        self.times.set_up_s += (world.monotonic() - before).as_secs_f64();
        // A subject that cannot be put back fails its next trial; this trial is stored.
        match let_go {
            Ok(()) => outcome,
            Err(error) => {
                outcome.map(|_| Some(Outcome::Failed(format!("after the trial: {error}"))))
            }
        }
    }

    /// Stores the facts about a subject, which are more once it has been up.
    fn save_facts(&mut self, subject: usize, ready: Option<&Ready>) -> Result<(), LabError> {
        let facts = SubjectFacts {
            name: self.planned.subjects[subject].name.clone(),
            size_bytes: ready.map(|ready| ready.size_bytes),
            members: place_members(&self.planned.subjects[subject].source),
            commands: ready.map(|ready| ready.commands.clone()).unwrap_or_default(),
        };
        self.store.save_subject(subject, &facts)
    }

    fn keep(&mut self, kept: StoredTrial, output: Option<&RunOutput>) -> Result<Outcome, LabError> {
        self.store.save_trial(self.session, &kept, output)?;
        Ok(kept.outcome)
    }
}

/// Returns the outcome of an obstacle; `None`: the user stopped the trial.
fn outcome_of(obstacle: Obstacle) -> Option<Outcome> {
    match obstacle {
        Obstacle::Impossible(reason) => Some(Outcome::Impossible(reason)),
        Obstacle::Failed(error) => Some(Outcome::Failed(error.to_string())),
        Obstacle::Stopped => None,
    }
}

#[cfg(test)]
mod tests;
