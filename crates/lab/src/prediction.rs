//! Predicting a campaign: the same cells, the same results folder, no machine.
//!
//! ```text
//! Planned: cells ──Asked──▶ Oracle ──Predicted, or why not──▶ StoredTrial ──▶ Store
//! ```
//!
//! Invariants:
//!
//! * no process is started, and of a subject only the file of a model's profile is read;
//! * the numbers depend only on the campaign, its profiles' files, the oracle and braid's version: the folder
//!   contains no time of day;
//! * a prediction has no scatter, so there is one repetition, whatever the campaign says: copies of a number
//!   would look like a measurement that repeats well;
//! * everything is computed before anything is written.
//!
//! Deliberately absent: models, and the effect of a tool on a device. The laboratory does not link the engine.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use braid_stack::Stack;

use crate::campaign::{Campaign, Health, Source};
use crate::environment::{Prediction, no_environment};
use crate::error::LabError;
use crate::facts::place_members;
use crate::matrix::{Planned, Trial, Workload};
use crate::metric::Measured;
use crate::runner::Tally;
use crate::source::leave_one_out;
use crate::store::{Origin, Outcome, Store, StoredTrial, SubjectFacts, Times};

/// Start of a reason that is no impossibility: the cell can be measured.
pub const NOT_PREDICTED: &str = "not predicted: ";

/// A source of predictions for described devices.
pub trait Oracle: Sync {
    /// Returns the error of numbers from these profiles, as |ln(model / real)| in hundredths, and the published
    /// rows that support it.
    fn off_by(&self, profiles: &[String]) -> (u32, String);

    /// Returns the profiles behind its numbers for a stack, each once.
    fn profiles(&self, stack: &Stack) -> BTreeSet<String>;

    /// Checks a stack for contradictions, whatever the workload.
    ///
    /// # Errors
    ///
    /// The contradiction, as a part of a sentence.
    fn check(&self, stack: &Stack) -> Result<(), String>;

    /// Predicts the output of tools on one subject, in the order in which they run: caches hold the data of
    /// earlier trials. `is_repeated`: all of them ran once before. Each result is a prediction, or the reason
    /// why there is none, as a part of a sentence.
    fn predict(&self, asked: &[Asked<'_>], is_repeated: bool) -> Vec<Result<Predicted, String>>;
}

/// A cell of a campaign whose subject is a stack.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The subject.
    pub stack: &'a Stack,
    /// The workload.
    pub workload: &'a Workload,
    /// Largest number of bytes of a raw subject that are used.
    pub region_bytes: u64,
    /// Measured seconds, for tools that run for a time.
    pub runtime_s: f64,
    /// Seconds before the measured time, in which a tool runs uncounted.
    pub ramp_s: f64,
    /// True if the region was written before.
    pub is_filled: bool,
}

/// The prediction of a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Predicted {
    /// Bytes of the subject.
    pub size_bytes: u64,
    /// Bytes of the subject that are used.
    pub region_bytes: u64,
    /// The tool's numbers.
    pub measured: Measured,
    /// Seconds of the trial.
    pub seconds: f64,
}

/// Predicts every cell of a campaign into a results directory, over earlier predictions of it.
///
/// # Errors
///
/// The campaign or one of its stacks is invalid, no cell can be predicted, or the directory holds anything else
/// than predictions of this campaign. Nothing is written then.
pub fn predict_campaign(
    campaign: &Campaign,
    results_dir: &Path,
    oracle: &dyn Oracle,
) -> Result<Tally, LabError> {
    let once = Campaign { repetitions: 1, rounds: false, ..campaign.rooted()? };
    let planned = Planned::checked(&once)?;
    check_stacks(&planned, oracle)?;
    Store::check_origin(results_dir, Origin::Predicted)?;
    let is_repeated = campaign.repetitions > 1;
    let subjects: Vec<usize> = (0..planned.subjects.len()).collect();
    let of_subjects = each(&subjects, |subject| answers(&planned, *subject, is_repeated, oracle));
    let mut of_subjects: Vec<_> = of_subjects.into_iter().map(Vec::into_iter).collect();
    let next = |trial: &Trial| of_subjects[trial.cell.subject].next();
    let answers: Vec<_> = planned.trials.iter().filter_map(next).collect();
    let mut tally = Tally::default();
    for answer in &answers {
        tally.planned += 1;
        match answer {
            Ok(_) => tally.measured += 1,
            Err(reason) => {
                tally.impossible += 1;
                *tally.obstacles.entry(reason.clone()).or_default() += 1;
            }
        }
    }
    if tally.measured == 0 {
        return Err(LabError::NothingPredicted { reasons: tally.obstacles });
    }
    let mut store = Store::create(results_dir, &planned.campaign)?;
    store.lock()?;
    let profiles = profiles(&planned, oracle);
    let (error_percent, grounds) = oracle.off_by(&profiles);
    let prediction = Prediction { profiles, error_percent, grounds };
    let session = store.begin_session(0, &no_environment(prediction))?;
    for (index, subject) in planned.subjects.iter().enumerate() {
        let mine = planned.trials.iter().zip(&answers).filter(|one| one.0.cell.subject == index);
        let size_bytes = mine.filter_map(|(_, answer)| answer.as_ref().ok()).next();
        let size_bytes = size_bytes.map(|predicted| predicted.size_bytes);
        let is_known = size_bytes.is_some();
        // The place of real devices is not looked up.
        let members = if is_known { place_members(&subject.source) } else { Vec::new() };
        let name = subject.name.clone();
        store.save_subject(
            index,
            &SubjectFacts { name, size_bytes, members, commands: Vec::new() },
        )?;
    }
    let kept = planned.trials.iter().zip(answers).map(|(trial, answer)| {
        let subject = &planned.subjects[trial.cell.subject];
        let begun = StoredTrial::begun(trial, subject, 0);
        match answer {
            Ok(Predicted { region_bytes, measured, seconds, .. }) => {
                StoredTrial { region_bytes, measured, duration_s: seconds, ..begun }
            }
            Err(reason) => StoredTrial { outcome: Outcome::Impossible(reason), ..begun },
        }
    });
    store.save_trials(session, &kept.collect::<Vec<_>>())?;
    store.save_times(session, &Times::default(), Some(0))?;
    Ok(tally)
}

/// Refuses contradictory stacks, before anything is predicted.
fn check_stacks(planned: &Planned, oracle: &dyn Oracle) -> Result<(), LabError> {
    for subject in &planned.subjects {
        if let Source::Stack(expression) = &subject.source
            && let Ok(stack) = expression.stack()
        {
            oracle.check(stack).map_err(|why| {
                let reason = format!("{}: {why}", subject.name);
                planned.campaign.refused(reason, "`braid model list` has what there is")
            })?;
        }
    }
    Ok(())
}

/// Returns the prediction of each trial of a subject, or the reason why there is none.
fn answers(
    planned: &Planned,
    subject: usize,
    is_repeated: bool,
    oracle: &dyn Oracle,
) -> Vec<Result<Predicted, String>> {
    let is_mine = |trial: &&Trial| trial.cell.subject == subject;
    let stacks: Vec<_> = planned
        .trials
        .iter()
        .filter(is_mine)
        .map(|trial| (&trial.cell.workload, stack_of(planned, trial)))
        .collect();
    let campaign = &planned.campaign;
    let with_stack =
        stacks.iter().filter_map(|(workload, stack)| Some((*workload, stack.as_ref().ok()?)));
    let asked: Vec<Asked<'_>> = with_stack
        .map(|(workload, stack)| Asked {
            stack,
            workload,
            region_bytes: campaign.region.0,
            runtime_s: campaign.runtime_s,
            ramp_s: workload.tool().map_or(0.0, |tool| tool.ramp_s(campaign.ramp_s)),
            is_filled: campaign.fill && workload.reads_raw(),
        })
        .collect();
    let mut predicted = oracle.predict(&asked, is_repeated).into_iter();
    let answer = |(_, stack): &(&Workload, Result<Stack, String>)| match stack {
        Ok(_) => {
            predicted.next().expect("an answer for each that was asked").map_err(not_predicted)
        }
        Err(reason) => Err(reason.clone()),
    };
    stacks.iter().map(answer).collect()
}

fn not_predicted(why: String) -> String {
    format!("{NOT_PREDICTED}{why}")
}

/// Returns the stack of a trial, in its form for the trial; or the reason why it has no prediction.
fn stack_of(planned: &Planned, trial: &Trial) -> Result<Stack, String> {
    let cell = &trial.cell;
    if let Some(reason) = &cell.impossible {
        return Err(reason.clone());
    }
    let source = &planned.subjects[cell.subject].source;
    let health = cell.workload.setup.health;
    let no_model = |what: &str| {
        format!(
            "{} is {what}: a prediction is of model(PROFILE, size=...), and of memory",
            source.text()
        )
    };
    let why = match source {
        _ if !matches!(health, Health::Healthy | Health::Degraded) => {
            format!("an array that is {}", health.name())
        }
        Source::Stack(_) => match source.stack().cloned() {
            Some(mut stack) => {
                if health == Health::Degraded {
                    leave_one_out(&mut stack);
                }
                return Ok(stack);
            }
            None => no_model("no stack"),
        },
        Source::Kernel(_) => "the kernel's md is no model: write stack = in its place".to_owned(),
        Source::Path(_) => no_model("a device or a file"),
        Source::Directory(_) => no_model("a folder"),
        Source::Nbd(_) => no_model("an NBD server"),
        Source::Zram(_) | Source::Tmpfs(_) => no_model("memory of this machine"),
    };
    Err(not_predicted(why))
}

/// Returns the profiles of the campaign's models, each once.
fn profiles(planned: &Planned, oracle: &dyn Oracle) -> Vec<String> {
    let stacks = planned.subjects.iter().filter_map(|subject| subject.source.stack());
    let named: BTreeSet<String> = stacks.flat_map(|stack| oracle.profiles(stack)).collect();
    named.into_iter().collect()
}

/// Maps all items, by as many threads as there are processors, in their order.
fn each<T: Sync, R: Send>(all: &[T], of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(one) = all.get(index) else { return found };
            found.push((index, of(one)));
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let mut found: Vec<(usize, R)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let ended = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        ended.flatten().collect()
    });
    found.sort_by_key(|(index, _)| *index);
    found.into_iter().map(|(_, answer)| answer).collect()
}

#[cfg(test)]
mod tests;
