//! What a lost member costs: how fast an array is in its other states, in percent of the healthy
//! one. For states that were measured apart, and for those that follow each other in one trial.

use std::collections::BTreeMap;

use super::{FEW, enumerate, interval};
use crate::analysis::{Cell, Standing, pooled_speed, speeds};
use crate::campaign::Health;
use crate::metric::{Better, Metric};
use crate::report::build::Context;
use crate::report::units::digits;
use crate::settings::Value;
use crate::stats::{Estimate, compare_with_baseline, estimate};
use crate::store::{Outcome, StoredTrial};

/// States that are measured apart, each in trials of its own.
const APART: [Health; 3] = [Health::Degraded, Health::Rebuilding, Health::Scrubbing];

/// A sentence for each subject that was measured in several states; empty where nobody asked.
pub(super) fn sentences(context: &Context<'_>) -> Vec<String> {
    let subjects = 0..context.analysis.subjects;
    let mut said: Vec<String> =
        subjects.filter_map(|subject| of_states(context, subject)).collect();
    said.extend(context.analysis.cells.iter().filter_map(|cell| of_story(context, cell)));
    if said.len() > FEW {
        let left = said.len() - FEW;
        said.truncate(FEW);
        said.push(format!("Of {left} more the section on the state of the array tells."));
    }
    said
}

/// Whether a cell is told by its phases, and its one mean over all of them says nothing.
pub(super) fn is_told_by_phases(context: &Context<'_>, cell: &Cell) -> bool {
    of_story(context, cell).is_some()
}

/// "mirror does 60.0 % of its healthy speed while degraded and 30.0 % while rebuilding."
fn of_states(context: &Context<'_>, subject: usize) -> Option<String> {
    let analysis = context.analysis;
    let families = context.workload_families("health");
    let mut parts = Vec::new();
    let mut lacking = Vec::new();
    let mut worst = Standing::Ok;
    for state in APART {
        let named = |wanted: Health| move |(value, _): &&(Value, usize)| matches!(value, Value::Word(word) if word == wanted.name());
        let in_both = families.iter().filter_map(|family| {
            let of = |wanted| family.members.iter().find(named(wanted)).map(|(_, work)| *work);
            Some((of(state)?, of(Health::Healthy)?))
        });
        let planned: Vec<(usize, usize)> = in_both.collect();
        let has = |work: usize| speeds(analysis.cell(work, subject)).is_some();
        let (works, healthy): (Vec<usize>, Vec<usize>) =
            planned.iter().filter(|(work, healthy)| has(*work) && has(*healthy)).copied().unzip();
        let speed = pooled_speed(analysis, subject, &works);
        let whole = pooled_speed(analysis, subject, &healthy);
        match compare_with_baseline(&speed, &[&whole]) {
            Ok(ratio) => {
                let used = works.iter().chain(&healthy);
                let standings = used.map(|work| analysis.cell(*work, subject).standing);
                worst = standings.fold(worst, Standing::max);
                parts.push(percent_while(&ratio.paired, state.name(), parts.is_empty()));
            }
            Err(_) if planned.is_empty() => {}
            Err(_) => lacking.push(state.name()),
        }
    }
    if parts.is_empty() {
        return None;
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let mut said = format!("{} does {}", context.subject(subject), enumerate(&parts));
    if !lacking.is_empty() {
        said += &format!("; {} has no number that can be believed", enumerate(&lacking));
    }
    Some(said + doubt(worst) + ".")
}

/// "60.0 % of its healthy speed while degraded (range of 3 repetitions: 58.0 to 61.0)".
fn percent_while(percent: &Estimate, state: &str, is_first: bool) -> String {
    let of = if is_first { " of its healthy speed" } else { "" };
    format!("{} %{of} while {state}{}", digits(percent.median), interval(percent, digits))
}

/// What is added where something speaks against a number.
fn doubt(standing: Standing) -> &'static str {
    match standing {
        Standing::Ok => "",
        Standing::Suspect | Standing::Invalid => ", but something speaks against these numbers",
    }
}

/// The same of a trial in which one state follows the other.
fn of_story(context: &Context<'_>, cell: &Cell) -> Option<String> {
    let work = &context.analysis.workloads[cell.workload];
    if work.workload.setup.health != Health::Story || !cell.is_usable() {
        return None;
    }
    let mut percents: BTreeMap<Phase, Vec<f64>> = BTreeMap::new();
    for index in &cell.trials {
        let trial = &context.results.trials[*index];
        if trial.outcome != Outcome::Ok || !cell.counts(trial.repetition) {
            continue;
        }
        for (phase, percent) in percents_of(trial, cell.headline) {
            percents.entry(phase).or_default().push(percent);
        }
    }
    let mut parts = Vec::new();
    for (phase, values) in &percents {
        let percent = estimate(values)?;
        parts.push(percent_while(&percent, phase.words(), parts.is_empty()));
    }
    if parts.is_empty() {
        return None;
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    Some(format!(
        "In \"{}\" {} did {}{}.",
        context.label(cell.workload),
        context.subject(cell.subject),
        enumerate(&parts),
        doubt(cell.standing)
    ))
}

/// What an array does in a part of a story, in the order of the story.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Healthy,
    Degraded,
    Rebuilding,
    Scrubbing,
    WholeAgain,
}

impl Phase {
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

    fn words(self) -> &'static str {
        match self {
            Self::Healthy => Health::Healthy.name(),
            Self::Degraded => Health::Degraded.name(),
            Self::Rebuilding => Health::Rebuilding.name(),
            Self::Scrubbing => Health::Scrubbing.name(),
            Self::WholeAgain => "whole again",
        }
    }
}

/// The mean rate of each phase of a trial, in percent of the healthy one; empty without a course of
/// a rate or without a phase before the first event.
fn percents_of(trial: &StoredTrial, headline: Metric) -> Vec<(Phase, f64)> {
    let wanted = [headline, Metric::Throughput, Metric::Iops];
    let rates = wanted.iter().filter(|metric| metric.better() == Better::Higher);
    let series = || trial.measured.series.iter();
    let Some(series) = rates.filter_map(|m| series().find(|s| s.metric == *m)).next() else {
        return Vec::new();
    };
    let mut phases: BTreeMap<Phase, (f64, usize)> = BTreeMap::new();
    for (ms, value) in series.points.iter().filter(|(_, value)| value.is_finite()) {
        let at = *ms as f64 / 1000.0;
        let phase = match trial.events.iter().rfind(|(event, _)| *event < at) {
            None => Some(Phase::Healthy),
            Some((_, what)) => Phase::after(what),
        };
        let Some(phase) = phase else { continue };
        let (sum, count) = phases.entry(phase).or_default();
        (*sum, *count) = (*sum + value, *count + 1);
    }
    let mean = |(sum, count): &(f64, usize)| sum / *count as f64;
    let Some(healthy) = phases.remove(&Phase::Healthy).map(|all| mean(&all)) else {
        return Vec::new();
    };
    let percent = |all: &(f64, usize)| mean(all) / healthy * 100.0;
    let percents = phases.iter().map(|(phase, all)| (*phase, percent(all)));
    percents.filter(|(_, percent)| percent.is_finite()).collect()
}
