//! Kinds of work, such as all random reads, and each subject's speed at them.
//!
//! A subject's speed at a workload is its rate, or one over its time. Its speed at several workloads
//! together is the geometric mean, made in each repetition: a workload whose numbers are a hundred
//! times larger weighs no more than the others, and a drift between repetitions hits all subjects
//! alike.
//!
//! Invariant: a subject and the baseline are compared over the workloads of a kind that both have
//! and that are believed.

use super::{Analysis, Cell, Outlook, Standing, Work, outlooks};
use crate::stats::{ByRepetition, Effect, SANE, geometric_mean, together};
use braid_lab::metric::Better;
use braid_lab::tool::Writes;

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
    /// The speed relative to the baseline.
    pub effect: Effect,
    /// The meaning of the effect when every subject and kind is counted.
    pub outlook: Outlook,
    /// The worst standing of its numbers and of the baseline's.
    pub standing: Standing,
    /// The number of workloads of the kind that both have.
    pub shared: usize,
}

/// The headline of a cell so that more is better: a rate, or one over a time. `None` when it has
/// none that is believed and above 0 throughout.
pub fn speeds(cell: &Cell) -> Option<ByRepetition> {
    let values = cell.values.get(&cell.headline).filter(|_| cell.is_usable())?;
    as_speeds(values, cell.headline.better())
}

fn as_speeds(values: &ByRepetition, better: Better) -> Option<ByRepetition> {
    if values.is_empty() || values.values().any(|value| !SANE.contains(value)) {
        return None;
    }
    let speed = |value: &f64| if better == Better::Lower { 1.0 / value } else { *value };
    Some(values.iter().map(|(repetition, value)| (*repetition, speed(value))).collect())
}

/// The same of the baseline: of several, the mean is made first, of rates or of times.
pub(super) fn baseline_speeds(analysis: &Analysis, workload: usize) -> Option<ByRepetition> {
    let headline = analysis.workloads[workload].headline;
    as_speeds(&analysis.baseline(workload, headline)?, headline.better())
}

/// A subject's speed over several workloads, in the repetitions in which it has all of them.
/// Empty when a workload is missing altogether, and of no workload.
pub(super) fn pooled_speed(
    analysis: &Analysis,
    subject: usize,
    workloads: &[usize],
) -> ByRepetition {
    let all = workloads.iter().map(|work| speeds(analysis.cell(*work, subject)));
    together(&all.collect::<Option<Vec<_>>>().unwrap_or_default(), geometric_mean)
}

/// Two sides at everything that both have: workloads of a kind, pairs of a factor's levels, an array in a
/// state and when healthy.
#[derive(Default)]
pub(super) struct Sides {
    pub(super) own: Vec<ByRepetition>,
    pub(super) other: Vec<ByRepetition>,
    /// The worst of the numbers.
    pub(super) standing: Standing,
}

impl Sides {
    pub(super) fn add(&mut self, own: ByRepetition, other: ByRepetition, standing: Standing) {
        self.own.push(own);
        self.other.push(other);
        self.standing = self.standing.max(standing);
    }

    /// The speed of the own side relative to the other, over all workloads.
    pub(super) fn effect(&self) -> Option<Effect> {
        Effect::of(&together(&self.own, geometric_mean), &together(&self.other, geometric_mean))
    }
}

/// Every subject that is not the baseline at every kind of work: a list for each kind, in the order
/// of [`find_kinds`], of those that can be compared.
pub fn find_effects(analysis: &Analysis, kinds: &[Kind]) -> Vec<Vec<KindEffect>> {
    let others: Vec<usize> = (0..analysis.subjects).filter(|s| !analysis.is_baseline(*s)).collect();
    let mut found: Vec<Vec<KindEffect>> = kinds
        .iter()
        .map(|kind| others.iter().filter_map(|s| effect_of(analysis, *s, kind)).collect())
        .collect();
    let outlooks = outlooks(found.iter().flatten().map(|one| one.effect));
    for (one, outlook) in found.iter_mut().flatten().zip(outlooks) {
        one.outlook = outlook;
    }
    found
}

pub(super) fn effect_of(analysis: &Analysis, subject: usize, kind: &Kind) -> Option<KindEffect> {
    let mut sides = Sides::default();
    for work in &kind.workloads {
        let cell = analysis.cell(*work, subject);
        if let Some((own, baseline)) = speeds(cell).zip(baseline_speeds(analysis, *work)) {
            sides.add(own, baseline, analysis.standing_against_baseline(cell));
        }
    }
    let (effect, shared) = (analysis.weighed(sides.effect()?), sides.own.len());
    Some(KindEffect { subject, effect, outlook: Outlook::Same, standing: sides.standing, shared })
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
    let tool = &work.workload.tool;
    // Of the tools only a command can be anything.
    let own = match work.workload.tool() {
        Some(command) if tool == "command" => command.label(&work.workload.settings),
        _ => tool.clone(),
    };
    let mut name = match pattern_and_op(work) {
        (_, "") => own.clone(),
        (pattern, op) if many_tools => format!("{pattern}{op} ({tool})"),
        (pattern, op) => format!("{pattern}{op}"),
    };
    if name != own && work.headline.better() == Better::Lower {
        name += " by time";
    }
    match work.word("health") {
        "" | "healthy" => name,
        health => format!("{name}, {health}"),
    }
}

/// "reads", "writes", or the name of a tool that does both.
pub(super) fn direction_of(work: &Work) -> String {
    let workload = &work.workload;
    let writes = || workload.work().map(|work| work.writes);
    match pattern_and_op(work) {
        (_, "reads") => "reads".to_owned(),
        (_, "writes" | "rewrites") => "writes".to_owned(),
        _ if writes() == Some(Writes::Nothing) => "reads".to_owned(),
        _ => workload.tool.clone(),
    }
}

/// The access pattern and the operation of a workload, in words; empty if its dimensions do not contain them.
fn pattern_and_op(work: &Work) -> (&'static str, &'static str) {
    let mode = work.word("mode");
    let pattern = match work.word("pattern") {
        "seq" => "sequential ",
        "rand" => "random ",
        _ if mode.starts_with("seq") => "sequential ",
        _ if mode.starts_with("rnd") => "random ",
        _ => "",
    };
    let op = match (work.word("op"), mode) {
        ("read", _) | (_, "seqrd" | "rndrd") => "reads",
        ("write", _) | (_, "seqwr" | "rndwr") => "writes",
        (_, "seqrewr") => "rewrites",
        ("mixed", _) | (_, "rndrw") => "mixed reads and writes",
        _ => "",
    };
    (pattern, op)
}
