//! Gathers the planned and the measured trials, by workload and subject. Every trial is looked at once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Analysis, Cell, Standing, State, Work, rounds, tails};
use braid_lab::environment::Prediction;
use braid_lab::matrix::Workload;
use braid_lab::store::{Outcome, Results};

/// The cells with what was measured, before anything is worked out from it.
pub(super) fn gather(results: &Results, workloads: &[Workload]) -> Analysis {
    let subjects = results.subjects.len();
    let of = |workload: &Workload| Work {
        label: workload.label(),
        headline: workload.headline(),
        dimensions: workload.dimensions(),
        workload: workload.clone(),
    };
    let workloads: Vec<Work> = workloads.iter().map(of).collect();
    let mut cells = empty_cells(&workloads, subjects);
    mark_planned(results, subjects, &mut cells);
    let done = add_trials(results, &workloads, &mut cells);
    if results.campaign.rounds {
        cells.iter_mut().for_each(rounds::settle);
    }
    let cannot = |cell: &&Cell| matches!(cell.state, State::Impossible(_) | State::NotPlanned);
    let possible = cells.len() - cells.iter().filter(cannot).count();
    Analysis {
        workloads,
        subjects,
        baselines: (0..subjects).filter(|subject| results.subjects[*subject].baseline).collect(),
        control: results.subjects.iter().position(|subject| subject.control),
        cells,
        log_error: results.prediction().map(Prediction::log_error),
        done,
        planned: possible * results.campaign.repetitions as usize,
        trials: BTreeMap::new(),
        campaign: Vec::new(),
        unchecked: BTreeMap::new(),
    }
}

fn empty_cells(works: &[Work], subjects: usize) -> Vec<Cell> {
    let cell = |workload: usize, subject| Cell {
        workload,
        subject,
        state: State::NotPlanned,
        standing: Standing::Ok,
        findings: Vec::new(),
        headline: works[workload].headline,
        all: BTreeMap::new(),
        values: BTreeMap::new(),
        estimates: BTreeMap::new(),
        unsupported: BTreeSet::new(),
        disturbed: BTreeSet::new(),
        rounds: None,
        effect: None,
        outlook: None,
        trials: Vec::new(),
    };
    (0..works.len())
        .flat_map(|work| (0..subjects).map(move |s| (work, s)))
        .map(|(w, s)| cell(w, s))
        .collect()
}

/// Which cells the campaign has, and which of them it knows to be impossible.
fn mark_planned(results: &Results, subjects: usize, cells: &mut [Cell]) {
    for planned in &results.cells {
        if let Some(cell) = cells.get_mut(planned.workload_index * subjects + planned.subject) {
            cell.state = match &planned.impossible {
                Some(reason) => State::Impossible(reason.clone()),
                None => State::NotYet,
            };
        }
    }
}

/// Puts every trial into its cell, and counts those that went well.
fn add_trials(results: &Results, works: &[Work], cells: &mut [Cell]) -> usize {
    let names = results.subjects.iter().enumerate();
    let subjects: HashMap<&str, usize> = names.map(|(i, s)| (s.name.as_str(), i)).collect();
    let labels = works.iter().enumerate();
    let workloads: HashMap<&str, usize> = labels.map(|(i, w)| (w.label.as_str(), i)).collect();
    let mut done = 0;
    for (index, trial) in results.trials.iter().enumerate() {
        let place =
            workloads.get(trial.workload.as_str()).zip(subjects.get(trial.subject.as_str()));
        let Some(cell) = place.and_then(|(work, s)| cells.get_mut(work * subjects.len() + s))
        else {
            continue;
        };
        cell.trials.push(index);
        match &trial.outcome {
            Outcome::Ok => {
                done += 1;
                cell.state = State::Measured;
                let samples = trial.measured.samples.iter();
                for sample in samples.filter(|s| tails::is_supported(trial, s.metric)) {
                    let values = cell.all.entry(sample.metric).or_default();
                    values.insert(trial.repetition, sample.value);
                }
            }
            Outcome::Failed(reason) if cell.state != State::Measured => {
                cell.state = State::Failed(reason.clone());
            }
            Outcome::Impossible(reason) if cell.state != State::Measured => {
                cell.state = State::Impossible(reason.clone());
            }
            Outcome::Failed(_) | Outcome::Impossible(_) => {}
        }
    }
    for cell in cells {
        cell.trials.sort_by_key(|index| results.trials[*index].repetition);
    }
    done
}
