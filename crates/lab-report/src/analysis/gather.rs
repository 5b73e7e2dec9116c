//! What was planned and what was measured, by workload and subject. Every trial is looked at once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Cell, Standing, State, Work, rounds, tails};
use braid_lab::matrix::Workload;
use braid_lab::store::{Outcome, Results};

/// Cells with what was measured, before anything is worked out from it.
pub(super) struct Gathered {
    pub(super) works: Vec<Work>,
    pub(super) cells: Vec<Cell>,
    /// Trials that went well.
    pub(super) done: usize,
}

impl Gathered {
    pub(super) fn of(results: &Results, workloads: &[Workload]) -> Self {
        let subjects = results.subjects.len();
        let works: Vec<Work> = workloads
            .iter()
            .map(|workload| Work {
                label: workload.label(),
                headline: workload.headline(),
                dimensions: workload.dimensions(),
                workload: workload.clone(),
            })
            .collect();
        let mut cells = empty_cells(&works, subjects);
        mark_planned(results, subjects, &mut cells);
        let done = add_trials(results, &works, &mut cells);
        if rounds::has_rounds(&results.campaign) {
            cells.iter_mut().for_each(rounds::settle);
        }
        Self { works, cells, done }
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
        values: BTreeMap::new(),
        estimates: BTreeMap::new(),
        unsupported: BTreeSet::new(),
        all: None,
        disturbed: BTreeSet::new(),
        rounds: None,
        scatter: None,
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
                    let values = cell.values.entry(sample.metric).or_default();
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
