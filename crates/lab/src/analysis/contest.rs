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
use crate::stats::{Better, ByRepetition, Contest, PairedTest, average_baselines, find_winner};

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
    /// Subjects that lack some of these workloads.
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
    as_speeds(values, cell.headline.better())
}

fn as_speeds(values: &ByRepetition, better: Direction) -> Option<ByRepetition> {
    if values.is_empty() || values.values().any(|value| !(1e-90..1e90).contains(value)) {
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
    let (mut contenders, shared) = largest_block(analysis, workloads)?;
    let mut left_out: Vec<usize> =
        (0..analysis.subjects).filter(|subject| !contenders.contains(subject)).collect();
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

/// Subjects, at least two, and workloads without a gap: for each subject its workloads and all
/// subjects that have them too; of these the one with the most cells, subjects counted twice,
/// because a workload is sooner done without than a subject.
fn largest_block(analysis: &Analysis, workloads: &[usize]) -> Option<(Vec<usize>, Vec<usize>)> {
    let has: Vec<Vec<bool>> = (0..analysis.subjects)
        .map(|subject| {
            let cells = workloads.iter().map(|work| analysis.cell(*work, subject));
            cells.map(|cell| speeds(cell).is_some()).collect()
        })
        .collect();
    let covers = |one: &[bool], other: &[bool]| one.iter().zip(other).all(|(a, b)| *a || !*b);
    has.iter()
        .filter_map(|wanted| {
            let count = wanted.iter().filter(|has| **has).count();
            let subjects: Vec<usize> =
                (0..has.len()).filter(|subject| covers(&has[*subject], wanted)).collect();
            (count > 0 && subjects.len() > 1).then_some((count, subjects, wanted))
        })
        .max_by_key(|(count, subjects, _)| count * subjects.len().pow(2))
        .map(|(_, subjects, wanted)| {
            let shared =
                workloads.iter().zip(wanted).filter(|(_, has)| **has).map(|(work, _)| *work);
            (subjects, shared.collect())
        })
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
