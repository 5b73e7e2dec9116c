//! What a lost member costs: how fast an array is in its other states, against itself when healthy,
//! and how long it took to be whole again.
//!
//! States are measured apart, each in trials of its own, or follow each other in one trial (a story).
//! Reads and writes are told apart: a mirror that lost a member reads at half and writes as before.

use std::collections::BTreeMap;

use super::kinds::{direction_of, pooled_speed};
use super::{Analysis, Cell, Standing, speeds};
use crate::stats::Effect;
use braid_lab::campaign::Health;
use braid_lab::metric::{Better, Metric};
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
    /// How many times as fast as when healthy.
    pub effect: Effect,
    /// The worst of the numbers that it is made of.
    pub standing: Standing,
}

/// How long the recoveries of an array took.
#[derive(Debug, Clone, PartialEq)]
pub struct Rebuild {
    /// The subject.
    pub subject: usize,
    /// What ran beside them.
    pub workload: usize,
    /// Seconds of each that ended.
    pub ended_s: Vec<f64>,
    /// Seconds that each was seen that had not ended with its trial.
    pub unended_s: Vec<f64>,
}

/// Every state of every array, by subject, direction and state.
pub fn find_phases(analysis: &Analysis, results: &Results) -> Vec<PhaseEffect> {
    let mut found = Vec::new();
    for subject in 0..analysis.subjects {
        found.extend(apart(analysis, subject));
        found.extend(stories(analysis, results, subject));
    }
    found
}

/// States that were measured in trials of their own.
fn apart(analysis: &Analysis, subject: usize) -> Vec<PhaseEffect> {
    let states = [
        (Health::Degraded, Phase::Degraded),
        (Health::Rebuilding, Phase::Rebuilding),
        (Health::Scrubbing, Phase::Scrubbing),
    ];
    let healthy_twin = |work: usize| {
        let mut wanted = analysis.workloads[work].dimensions.clone();
        wanted.insert("health".to_owned(), Value::Word(Health::Healthy.name().to_owned()));
        analysis.workloads.iter().position(|other| other.dimensions == wanted)
    };
    let has = |work: usize| speeds(analysis.cell(work, subject)).is_some();
    let mut found = Vec::new();
    for (health, phase) in states {
        let mut directions: BTreeMap<String, (Vec<usize>, Vec<usize>)> = BTreeMap::new();
        for (work, of_work) in analysis.workloads.iter().enumerate() {
            if of_work.workload.setup.health != health {
                continue;
            }
            if let Some(twin) = healthy_twin(work).filter(|twin| has(work) && has(*twin)) {
                let (these, twins) = directions.entry(direction_of(of_work)).or_default();
                these.push(work);
                twins.push(twin);
            }
        }
        for (direction, (these, twins)) in directions {
            let speed = pooled_speed(analysis, subject, &these);
            let whole = pooled_speed(analysis, subject, &twins);
            let used = these.iter().chain(&twins);
            let standing = used.map(|work| analysis.cell(*work, subject).standing).max();
            if let Some(effect) = Effect::of(&speed, &whole) {
                let standing = standing.unwrap_or_default();
                found.push(PhaseEffect { subject, direction, phase, effect, standing });
            }
        }
    }
    found
}

/// States that follow each other in one trial.
fn stories(analysis: &Analysis, results: &Results, subject: usize) -> Vec<PhaseEffect> {
    let mut found = Vec::new();
    for (work, of_work) in analysis.workloads.iter().enumerate() {
        let cell = analysis.cell(work, subject);
        if of_work.workload.setup.health != Health::Story || !cell.is_usable() {
            continue;
        }
        let ramp_s = of_work.workload.tool();
        let ramp_s = ramp_s.map_or(0.0, |tool| tool.ramp_s(results.campaign.ramp_s));
        let mut logarithms: BTreeMap<Phase, Vec<f64>> = BTreeMap::new();
        for trial in trials_of(results, cell) {
            for (phase, ratio) in ratios_of(trial, cell.headline, ramp_s) {
                logarithms.entry(phase).or_default().push(ratio.ln());
            }
        }
        let direction = direction_of(of_work);
        found.extend(logarithms.into_iter().filter_map(|(phase, logarithms)| {
            let effect = Effect::of_logarithms(&logarithms)?;
            let (direction, standing) = (direction.clone(), cell.standing);
            Some(PhaseEffect { subject, direction, phase, effect, standing })
        }));
    }
    found
}

fn trials_of<'r>(results: &'r Results, cell: &Cell) -> Vec<&'r StoredTrial> {
    let trials = cell.trials.iter().map(|index| &results.trials[*index]);
    trials.filter(|t| t.outcome == Outcome::Ok && cell.counts(t.repetition)).collect()
}

/// The mean rate of each phase of a trial over that before the first event; empty without a course of
/// a rate. A phase in which nothing was done has no ratio. Events count from the start of the tool,
/// the course from the end of its ramp.
fn ratios_of(trial: &StoredTrial, headline: Metric, ramp_s: f64) -> Vec<(Phase, f64)> {
    let wanted = [headline, Metric::Throughput, Metric::Iops];
    let rates = wanted.iter().filter(|metric| metric.better() == Better::Higher);
    let series = || trial.measured.series.iter();
    let Some(series) = rates.filter_map(|m| series().find(|s| s.metric == *m)).next() else {
        return Vec::new();
    };
    let mut healthy = (0.0, 0_usize);
    let mut phases: BTreeMap<Phase, (f64, usize)> = BTreeMap::new();
    for (ms, value) in series.points.iter().filter(|(_, value)| value.is_finite()) {
        let at = *ms as f64 / 1000.0 + ramp_s;
        let entry = match trial.events.iter().rfind(|(event, _)| *event < at) {
            None => &mut healthy,
            Some((_, what)) => match Phase::after(what) {
                Some(phase) => phases.entry(phase).or_default(),
                None => continue,
            },
        };
        *entry = (entry.0 + value, entry.1 + 1);
    }
    let mean = |(sum, count): (f64, usize)| sum / count as f64;
    let ratios = phases.into_iter().map(|(phase, all)| (phase, mean(all) / mean(healthy)));
    ratios.filter(|(_, ratio)| ratio.is_finite() && *ratio > 0.0).collect()
}

/// How long recoveries took, of every cell in which one began.
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
