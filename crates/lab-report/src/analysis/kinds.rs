//! Kinds of work, such as all random reads, and each subject's speed at them.
//!
//! A subject's speed at a workload is its rate, or one over its time. Its speed at several workloads
//! together is the geometric mean, made in each repetition: a workload whose numbers are a hundred
//! times larger weighs no more than the others, and a drift between repetitions hits all subjects
//! alike.
//!
//! Invariant: a subject and the baseline are compared over the workloads of a kind that both have
//! and that are believed.

use std::collections::BTreeMap;

use super::{Analysis, Cell, Outlook, Standing, Work, outlook};
use crate::stats::{ByRepetition, Effect, SANE, average_baselines, holm};
use braid_lab::metric::Better as Direction;
use braid_lab::settings::Value;

/// Workloads of one kind, such as all random reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// In words, fit for "in ...": "random reads".
    pub name: String,
    /// Indices of its workloads.
    pub workloads: Vec<usize>,
}

/// A subject against the baseline, at one kind of work.
#[derive(Debug, Clone)]
pub struct KindEffect {
    /// The subject.
    pub subject: usize,
    /// How many times as fast as the baseline.
    pub effect: Effect,
    /// What that says with every subject and kind counted.
    pub outlook: Outlook,
    /// The worst of the numbers that it is made of, the baseline's too.
    pub standing: Standing,
    /// How many workloads of the kind both have.
    pub shared: usize,
}

/// The headline of a cell so that more is better: a rate, or one over a time. `None` when it has
/// none that is believed and above 0 throughout.
pub fn speeds(cell: &Cell) -> Option<ByRepetition> {
    let values = cell.values.get(&cell.headline).filter(|_| cell.is_usable())?;
    as_speeds(values, cell.headline.better())
}

fn as_speeds(values: &ByRepetition, better: Direction) -> Option<ByRepetition> {
    if values.is_empty() || values.values().any(|value| !SANE.contains(value)) {
        return None;
    }
    let speed = |value: &f64| if better == Direction::Lower { 1.0 / value } else { *value };
    Some(values.iter().map(|(repetition, value)| (*repetition, speed(value))).collect())
}

/// A subject's speed over several workloads, in the repetitions in which it has all of them.
/// Empty when a workload is missing altogether, and of no workload.
pub fn pooled_speed(analysis: &Analysis, subject: usize, workloads: &[usize]) -> ByRepetition {
    pooled(workloads, |workload| speeds(analysis.cell(workload, subject)))
}

/// The same of the baseline: of several, the average is made first, of rates or of times.
pub fn pooled_baseline(analysis: &Analysis, workloads: &[usize]) -> ByRepetition {
    pooled(workloads, |workload| {
        let headline = analysis.workloads[workload].headline;
        let values: Option<Vec<&ByRepetition>> = analysis
            .baselines
            .iter()
            .map(|subject| analysis.cell(workload, *subject))
            .map(|cell| cell.values.get(&headline).filter(|_| cell.is_usable()))
            .collect();
        as_speeds(&average_baselines(&values?), headline.better())
    })
}

fn pooled(workloads: &[usize], speeds_of: impl Fn(usize) -> Option<ByRepetition>) -> ByRepetition {
    let mut logs: BTreeMap<u32, (f64, usize)> = BTreeMap::new();
    for workload in workloads {
        for (repetition, speed) in speeds_of(*workload).unwrap_or_default() {
            let entry = logs.entry(repetition).or_default();
            *entry = (entry.0 + speed.ln(), entry.1 + 1);
        }
    }
    let count = workloads.len();
    logs.into_iter()
        .filter(|(_, (_, found))| *found == count)
        .map(|(repetition, (sum, _))| (repetition, (sum / count as f64).exp()))
        .collect()
}

/// Every subject that is not the baseline at every kind of work: a list for each kind, in the order
/// of [`find_kinds`], of those that can be compared.
pub fn find_effects(analysis: &Analysis, kinds: &[Kind]) -> Vec<Vec<KindEffect>> {
    let others: Vec<usize> = (0..analysis.subjects).filter(|s| !analysis.is_baseline(*s)).collect();
    let mut found: Vec<Vec<KindEffect>> = kinds
        .iter()
        .map(|kind| others.iter().filter_map(|s| effect_of(analysis, *s, kind)).collect())
        .collect();
    let p_values: Vec<f64> = found.iter().flatten().map(|one| one.effect.p_value).collect();
    for (one, p_value) in found.iter_mut().flatten().zip(holm(&p_values)) {
        one.outlook = outlook(&one.effect, p_value);
    }
    found
}

fn effect_of(analysis: &Analysis, subject: usize, kind: &Kind) -> Option<KindEffect> {
    let both = |work: &&usize| {
        speeds(analysis.cell(**work, subject)).is_some()
            && !pooled_baseline(analysis, &[**work]).is_empty()
    };
    let shared: Vec<usize> = kind.workloads.iter().filter(both).copied().collect();
    let baseline = pooled_baseline(analysis, &shared);
    let effect = Effect::of(&pooled_speed(analysis, subject, &shared), &baseline)?;
    let standings =
        shared.iter().map(|work| analysis.standing_against_baseline(analysis.cell(*work, subject)));
    let standing = standings.max().unwrap_or_default();
    Some(KindEffect { subject, effect, outlook: Outlook::Same, standing, shared: shared.len() })
}

/// The workloads by kind, in the campaign's order.
pub fn find_kinds(analysis: &Analysis) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Vec::new();
    let first = analysis.workloads.first().map(|work| &work.workload.tool);
    let many_tools = analysis.workloads.iter().any(|work| Some(&work.workload.tool) != first);
    for (index, work) in analysis.workloads.iter().enumerate() {
        let name = kind_of(work, many_tools);
        match kinds.iter_mut().find(|kind| kind.name == name) {
            Some(kind) => kind.workloads.push(index),
            None => kinds.push(Kind { name, workloads: vec![index] }),
        }
    }
    kinds
}

/// "random reads", or the tool's name where pattern and direction do not say it.
fn kind_of(work: &Work, many_tools: bool) -> String {
    let word = |name: &str| match work.dimensions.get(name) {
        Some(Value::Word(word)) => word.as_str(),
        _ => "",
    };
    let pattern = match word("pattern") {
        "seq" => "sequential ",
        "rand" => "random ",
        _ => "",
    };
    let op = match (word("op"), word("mode")) {
        ("read", _) => "reads",
        ("write", _) => "writes",
        ("mixed", _) => "mixed reads and writes",
        (_, "seqrd") => "sequential reads",
        (_, "seqwr") => "sequential writes",
        (_, "seqrewr") => "sequential rewrites",
        (_, "rndrd") => "random reads",
        (_, "rndwr") => "random writes",
        (_, "rndrw") => "random reads and writes",
        _ => "",
    };
    let tool = &work.workload.tool;
    let mut name = match op {
        "" => tool.clone(),
        op if many_tools => format!("{pattern}{op} ({tool})"),
        op => format!("{pattern}{op}"),
    };
    if !op.is_empty() && work.headline.better() == Direction::Lower {
        name += " by time";
    }
    match word("health") {
        "" | "healthy" => name,
        health => format!("{name}, {health}"),
    }
}
