//! The cost of a lost member: the speed of an array in its other states, relative to its healthy state, and the
//! time until it was whole again.
//!
//! States are measured separately, each in trials of its own, or follow each other in one trial (a story).
//! Reads and writes are separate: a mirror that lost a member reads at half speed and writes as before.

use std::collections::BTreeMap;

use super::kinds::{Sides, direction_of};
use super::{Analysis, Cell, Standing, Work, speeds};
use crate::stats::{ByRepetition, Effect, mean};
use braid_lab::campaign::Health;
use braid_lab::metric::{Better, Metric, TimeSeries};
use braid_lab::settings::Value;
use braid_lab::store::{Outcome, Results, StoredTrial};

/// A state of an array, in the order in which a story has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// A member is missing.
    Degraded,
    /// Its replacement is filled.
    Rebuilding,
    /// A check compares all members.
    Scrubbing,
    /// After it.
    WholeAgain,
}

impl Phase {
    /// In words, fit for "while ...".
    pub fn words(self) -> &'static str {
        match self {
            Self::Degraded => "degraded",
            Self::Rebuilding => "rebuilding",
            Self::Scrubbing => "scrubbing",
            Self::WholeAgain => "whole again",
        }
    }

    /// The phase that an event of a story begins; `None` of anything else, such as a command that
    /// failed.
    fn after(event: &str) -> Option<Self> {
        match event {
            "recovery began" => Some(Self::Rebuilding),
            "check began" => Some(Self::Scrubbing),
            "recovery ended" | "check ended" => Some(Self::WholeAgain),
            other if other.starts_with("member ") && other.ends_with(" failed") => {
                Some(Self::Degraded)
            }
            _ => None,
        }
    }
}

/// An array in a state against itself when healthy, at one direction of work.
#[derive(Debug, Clone)]
pub struct PhaseEffect {
    /// The subject.
    pub subject: usize,
    /// "reads", "writes", or a tool that does both.
    pub direction: String,
    /// The state.
    pub phase: Phase,
    /// The speed relative to the healthy state.
    pub effect: Effect,
    /// The worst standing of its numbers.
    pub standing: Standing,
}

/// The durations of an array's recoveries.
#[derive(Debug, Clone, PartialEq)]
pub struct Rebuild {
    /// The subject.
    pub subject: usize,
    /// The workload that ran beside them.
    pub workload: usize,
    /// The seconds of each recovery that ended.
    pub ended_s: Vec<f64>,
    /// The observed seconds of each recovery that did not end within its trial.
    pub unended_s: Vec<f64>,
}

/// Every state of every array, by subject, state and direction.
pub fn find_phases(analysis: &Analysis, results: &Results) -> Vec<PhaseEffect> {
    let mut found = Vec::new();
    for subject in 0..analysis.subjects {
        let mut seen: BTreeMap<(Phase, String), Sides> = BTreeMap::new();
        for (work, of_work) in analysis.workloads.iter().enumerate() {
            let at = |phase| (phase, direction_of(of_work));
            let cell = analysis.cell(work, subject);
            let phase = match of_work.workload.setup.health {
                Health::Healthy => continue,
                Health::Degraded => Phase::Degraded,
                Health::Rebuilding => Phase::Rebuilding,
                Health::Scrubbing => Phase::Scrubbing,
                Health::Story => {
                    for (phase, (speeds, healthy)) in story_of(results, cell, of_work) {
                        seen.entry(at(phase)).or_default().add(speeds, healthy, cell.standing);
                    }
                    continue;
                }
            };
            let twin = healthy_twin(analysis, work).map(|twin| analysis.cell(twin, subject));
            let both = twin.and_then(|twin| Some((speeds(cell)?, speeds(twin)?, twin.standing)));
            if let Some((own, healthy, of_twin)) = both {
                seen.entry(at(phase)).or_default().add(own, healthy, cell.standing.max(of_twin));
            }
        }
        found.extend(seen.into_iter().filter_map(|((phase, direction), sides)| {
            let (effect, standing) = (sides.effect()?, sides.standing);
            Some(PhaseEffect { subject, direction, phase, effect, standing })
        }));
    }
    found
}

/// The same workload on a healthy array.
fn healthy_twin(analysis: &Analysis, work: usize) -> Option<usize> {
    let mut wanted = analysis.workloads[work].dimensions.clone();
    wanted.insert("health".to_owned(), Value::Word(Health::Healthy.name().to_owned()));
    analysis.workloads.iter().position(|other| other.dimensions == wanted)
}

fn trials_of<'r>(results: &'r Results, cell: &Cell) -> Vec<&'r StoredTrial> {
    let trials = cell.trials.iter().map(|index| &results.trials[*index]);
    trials.filter(|t| t.outcome == Outcome::Ok && cell.counts(t.repetition)).collect()
}

/// The mean rates of each phase of a cell's trials, and those before the first event; empty without a
/// course of a rate. A phase in which nothing was done has none.
fn story_of(
    results: &Results,
    cell: &Cell,
    work: &Work,
) -> BTreeMap<Phase, (ByRepetition, ByRepetition)> {
    let tool = work.workload.tool();
    let ramp_s = tool.map_or(0.0, |tool| tool.ramp_s(results.campaign.ramp_s));
    let metrics = [cell.headline, Metric::Throughput, Metric::Iops];
    let is_rate = |metric: &&Metric| metric.better() == Better::Higher;
    let mut found: BTreeMap<Phase, (ByRepetition, ByRepetition)> = BTreeMap::new();
    for trial in trials_of(results, cell).into_iter().filter(|_| cell.is_usable()) {
        let series = |metric: &Metric| trial.measured.series.iter().find(|s| s.metric == *metric);
        let Some(course) = metrics.iter().filter(is_rate).find_map(series) else { continue };
        let mut rates = rates_of(trial, course, ramp_s);
        let Some(healthy) = rates.remove(&None) else { continue };
        for (phase, rate) in rates {
            let Some(phase) = phase.filter(|_| rate > 0.0 && healthy > 0.0) else { continue };
            let (of_phase, of_healthy) = found.entry(phase).or_default();
            of_phase.insert(trial.repetition, rate);
            of_healthy.insert(trial.repetition, healthy);
        }
    }
    found
}

/// The mean of a course in each phase; that before the first event has no name. Events count from the
/// start of the tool, the course from the end of its ramp.
fn rates_of(trial: &StoredTrial, course: &TimeSeries, ramp_s: f64) -> BTreeMap<Option<Phase>, f64> {
    let mut values: BTreeMap<Option<Phase>, Vec<f64>> = BTreeMap::new();
    for (ms, value) in course.points.iter().filter(|(_, value)| value.is_finite()) {
        let at = *ms as f64 / 1000.0 + ramp_s;
        let event = trial.events.iter().rfind(|(event, _)| *event < at);
        let phase = event.map(|(_, what)| Phase::after(what));
        // After an event that begins no phase, the state of the array is unknown.
        if phase != Some(None) {
            values.entry(phase.flatten()).or_default().push(*value);
        }
    }
    values.into_iter().map(|(phase, values)| (phase, mean(&values))).collect()
}

/// The durations of recoveries, for every cell in which one began.
pub fn find_rebuilds(analysis: &Analysis, results: &Results) -> Vec<Rebuild> {
    let mut found = Vec::new();
    for cell in &analysis.cells {
        let (subject, workload) = (cell.subject, cell.workload);
        let mut rebuild = Rebuild { subject, workload, ended_s: Vec::new(), unended_s: Vec::new() };
        for trial in trials_of(results, cell) {
            let at = |wanted: &str| {
                trial.events.iter().find(|(_, what)| what == wanted).map(|(at, _)| *at)
            };
            match (at("recovery began"), at("recovery ended")) {
                (Some(began), Some(ended)) => rebuild.ended_s.push(ended - began),
                (Some(began), None) => rebuild.unended_s.push(trial.duration_s - began),
                (None, _) => {}
            }
        }
        if rebuild.ended_s.len() + rebuild.unended_s.len() > 0 {
            found.push(rebuild);
        }
    }
    found
}
