//! Who is best, with the comparisons counted.
//!
//! A subject's speed at a workload is its rate, or one over its time. Its speed at several
//! workloads together is the geometric mean, made in each repetition: a workload whose numbers
//! are a hundred times larger weighs no more than the others, and a drift between repetitions
//! hits all subjects alike.
//!
//! Invariants: only numbers that are believed count; subjects are compared over the same
//! workloads and repetitions; who lacks some of these workloads is named as left out.

use std::collections::BTreeMap;

use super::{Analysis, Cell, Work};
use crate::metric::Better as Direction;
use crate::settings::Value;
use crate::stats::{Better, ByRepetition, Contest, PairedTest, find_winner};

/// The level at which a difference is called proven.
pub const ALPHA: f64 = 0.05;
/// Up to so many repetitions all signs of the differences are counted; beyond, their ranks, which
/// is cheap for any number.
const COUNT_SIGNS_UP_TO: usize = 12;

/// Workloads of one kind, such as all random reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// In words, fit for "in ...": "random reads".
    pub name: String,
    /// Indices of its workloads.
    pub workloads: Vec<usize>,
}

/// Subjects compared over all workloads that they share.
#[derive(Debug, Clone)]
pub struct Overall {
    /// The subjects compared, by index; the contest's numbers are places in this list.
    pub contenders: Vec<usize>,
    /// Subjects that lack too many of the workloads.
    pub left_out: Vec<usize>,
    /// The workloads, by index.
    pub workloads: Vec<usize>,
    /// Speeds of the contenders by repetition.
    pub speeds: Vec<ByRepetition>,
    /// Each against each.
    pub contest: Contest,
}

impl Overall {
    /// Places in [`Overall::contenders`] of those that were fastest in at least one repetition
    /// that all of them have, with how often; the leader first, then in order.
    pub fn front_runners(&self) -> Vec<(usize, usize)> {
        let mut first = vec![0; self.speeds.len()];
        for repetition in self.shared_repetitions() {
            let speed = |speeds: &ByRepetition| speeds.get(&repetition).copied().unwrap_or(0.0);
            let best = self.speeds.iter().map(speed).fold(0.0, f64::max);
            for (count, speeds) in first.iter_mut().zip(&self.speeds) {
                *count += usize::from(speed(speeds) >= best);
            }
        }
        let mut places: Vec<usize> = (0..first.len()).filter(|place| first[*place] > 0).collect();
        places.sort_by_key(|place| *place != self.contest.leader);
        places.into_iter().map(|place| (place, first[place])).collect()
    }

    /// Repetitions in which every contender was measured at everything.
    pub fn shared_repetitions(&self) -> Vec<u32> {
        let Some((first, others)) = self.speeds.split_first() else { return Vec::new() };
        let everywhere = |repetition: &u32| others.iter().all(|o| o.contains_key(repetition));
        first.keys().copied().filter(everywhere).collect()
    }
}

/// The headline of a cell so that more is better: a rate, or one over a time. `None` when it has
/// none that is believed and above 0 throughout.
pub fn speeds(cell: &Cell) -> Option<ByRepetition> {
    let values = cell.values.get(&cell.headline).filter(|_| cell.is_usable())?;
    if values.is_empty() || values.values().any(|value| !(1e-90..1e90).contains(value)) {
        return None;
    }
    let inverse = cell.headline.better() == Direction::Lower;
    let speed = |value: &f64| if inverse { 1.0 / value } else { *value };
    Some(values.iter().map(|(repetition, value)| (*repetition, speed(value))).collect())
}

/// A subject's speed over several workloads, in the repetitions in which it has all of them.
/// Empty when a workload is missing altogether, and of no workload.
pub fn pooled_speed(analysis: &Analysis, subject: usize, workloads: &[usize]) -> ByRepetition {
    let mut logs: BTreeMap<u32, (f64, usize)> = BTreeMap::new();
    for workload in workloads {
        for (repetition, speed) in speeds(analysis.cell(*workload, subject)).unwrap_or_default() {
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

/// The test for so many repetitions.
pub fn test_for(repetitions: usize) -> PairedTest {
    if repetitions <= COUNT_SIGNS_UP_TO { PairedTest::SignFlip } else { PairedTest::Wilcoxon }
}

/// The comparison of all subjects over all workloads that they share; `None` when fewer than two
/// share any.
pub fn find_overall(analysis: &Analysis) -> Option<Overall> {
    let all: Vec<usize> = (0..analysis.workloads.len()).collect();
    compare_over(analysis, &all, ALPHA)
}

/// The same over some workloads, at a level of significance.
pub(crate) fn compare_over(
    analysis: &Analysis,
    workloads: &[usize],
    alpha: f64,
) -> Option<Overall> {
    let has = |subject: usize, workload: usize| speeds(analysis.cell(workload, subject)).is_some();
    let counts: Vec<usize> = (0..analysis.subjects)
        .map(|subject| workloads.iter().filter(|work| has(subject, **work)).count())
        .collect();
    let most = counts.iter().copied().max().filter(|most| *most > 0)?;
    let (mut contenders, mut left_out): (Vec<usize>, Vec<usize>) =
        (0..analysis.subjects).partition(|subject| counts[*subject] * 2 >= most);
    let shared: Vec<usize> = workloads
        .iter()
        .copied()
        .filter(|work| contenders.iter().all(|subject| has(*subject, *work)))
        .collect();
    let mut speeds = Vec::new();
    contenders.retain(|subject| {
        let speed = pooled_speed(analysis, *subject, &shared);
        let found = !speed.is_empty();
        if found {
            speeds.push(speed)
        } else {
            left_out.push(*subject)
        }
        found
    });
    let repetitions = speeds.iter().map(BTreeMap::len).min()?;
    let by_subject: Vec<&ByRepetition> = speeds.iter().collect();
    // An error means fewer than two subjects: there is nothing to compare.
    let contest = find_winner(&by_subject, Better::Higher, test_for(repetitions), alpha).ok()?;
    Some(Overall { contenders, left_out, workloads: shared, speeds, contest })
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

/// "random reads", or the label where pattern and direction do not say it.
fn kind_of(work: &Work, many_tools: bool) -> String {
    let word = |name: &str| match work.dimensions.get(name) {
        Some(Value::Word(word)) => word.as_str(),
        _ => "",
    };
    let pattern = match word("pattern") {
        "seq" | "sequential" => "sequential",
        "rand" | "random" => "random",
        _ => "",
    };
    let op = match word("op") {
        "read" => "reads",
        "write" => "writes",
        "mixed" | "rw" | "readwrite" => "mixed reads and writes",
        _ => "",
    };
    if pattern.is_empty() || op.is_empty() {
        return work.label.clone();
    }
    let mut name = format!("{pattern} {op}");
    if work.headline.better() == Direction::Lower {
        name += " by time";
    }
    if many_tools {
        name += &format!(" ({})", work.workload.tool);
    }
    match word("health") {
        "" | "healthy" => name,
        health => format!("{name}, {health}"),
    }
}
