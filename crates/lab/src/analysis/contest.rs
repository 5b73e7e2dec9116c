//! Who is best, with the comparisons counted.
//!
//! A subject's speed at a workload is its rate, or one over its time. Its speed at several
//! workloads together is the geometric mean, made in each repetition: a workload whose numbers
//! are a hundred times larger weighs no more than the others, and a drift between repetitions
//! hits all subjects alike.
//!
//! Invariants: only numbers that are believed count; subjects are compared over the same
//! workloads and repetitions; who lacks some of these workloads is named as left out.

use std::collections::{BTreeMap, BTreeSet};

use super::{Analysis, Cell, State, Work};
use crate::metric::Better as Direction;
use crate::settings::Value;
use crate::stats::{Better, ByRepetition, Contest, PairedTest, average_baselines, find_winner};

/// The level at which a difference is called proven.
pub const ALPHA: f64 = 0.05;
/// Up to so many repetitions the differences themselves are tested, beyond them their ranks. With
/// many repetitions a wild one among them is to be expected, and ranks then cost next to nothing;
/// with few they cost power. The number decides alone, never what was measured.
const SIGN_FLIP_UP_TO: usize = 12;
/// Sets of workloads that are looked at beyond those that two subjects share.
const MOST_SETS: usize = 1_000;

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

    /// How many subjects the campaign has these workloads of, whether they take part or not.
    pub fn planned(&self, analysis: &Analysis) -> usize {
        let is_planned = |subject: &&usize| {
            let mut states =
                self.workloads.iter().map(|work| &analysis.cell(*work, **subject).state);
            states.any(|state| *state != State::NotPlanned)
        };
        self.contenders.len() + self.left_out.iter().filter(is_planned).count()
    }

    /// Subjects that take no part although they were measured at these workloads, because not all
    /// of what they did can be believed.
    pub fn without_belief(&self, analysis: &Analysis) -> Vec<usize> {
        let unbelieved = |subject: &usize| {
            let mut cells = self.workloads.iter().map(|work| analysis.cell(*work, *subject));
            cells.any(|cell| cell.main().is_some() && !cell.is_usable())
        };
        self.left_out.iter().copied().filter(unbelieved).collect()
    }

    /// Those of them whose medians are better than the leader's, over the workloads that they have:
    /// whether they are is not known, and so neither is who is best.
    pub fn faster_without_belief(&self, analysis: &Analysis) -> Vec<usize> {
        let leader = self.contenders[self.contest.leader];
        let ahead = |subject: usize| {
            let factors = self.workloads.iter().filter_map(|work| {
                let speed = |subject| median_speed(analysis.cell(*work, subject));
                Some((speed(subject)? / speed(leader)?).ln())
            });
            factors.sum::<f64>()
        };
        let mut without = self.without_belief(analysis);
        without.retain(|subject| ahead(*subject) > 0.0);
        without
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

/// The median speed of a cell, whether it is believed or not.
fn median_speed(cell: &Cell) -> Option<f64> {
    let median = cell.main()?.median;
    let is_sane = (1e-90..1e90).contains(&median);
    is_sane.then(|| if cell.headline.better() == Direction::Lower { 1.0 / median } else { median })
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
    if repetitions <= SIGN_FLIP_UP_TO { PairedTest::SignFlip } else { PairedTest::Wilcoxon }
}

/// The comparison of as many subjects as possible over as many workloads as they share; `None`
/// when no two have numbers of the same workload in the same repetition.
pub fn find_overall(analysis: &Analysis) -> Option<Overall> {
    let all: Vec<usize> = (0..analysis.workloads.len()).collect();
    compare_over(analysis, &all, ALPHA)
}

/// The same over some workloads, at a level of significance.
fn compare_over(analysis: &Analysis, workloads: &[usize], alpha: f64) -> Option<Overall> {
    blocks(analysis, workloads).iter().find_map(|block| compare_block(analysis, block, alpha))
}

/// `None` when fewer than two of the subjects have all of the workloads in one repetition.
fn compare_block(analysis: &Analysis, block: &Block, alpha: f64) -> Option<Overall> {
    let mut contenders = block.subjects.clone();
    let mut speeds = Vec::new();
    contenders.retain(|subject| {
        let speed = pooled_speed(analysis, *subject, &block.workloads);
        let found = !speed.is_empty();
        if found {
            speeds.push(speed)
        }
        found
    });
    let meet = |(index, one): (usize, &ByRepetition)| {
        let others = speeds.iter().enumerate().filter(|(other, _)| *other != index);
        others.into_iter().any(|(_, other)| one.keys().any(|round| other.contains_key(round)))
    };
    if !speeds.iter().enumerate().any(meet) {
        return None;
    }
    let left_out = (0..analysis.subjects).filter(|subject| !contenders.contains(subject));
    let left_out: Vec<usize> = left_out.collect();
    let repetitions = speeds.iter().map(BTreeMap::len).min()?;
    let by_subject: Vec<&ByRepetition> = speeds.iter().collect();
    // Two subjects at least, each with values above 0: nothing of this is refused.
    let contest = find_winner(&by_subject, Better::Higher, test_for(repetitions), alpha).ok()?;
    Some(Overall { contenders, left_out, workloads: block.workloads.clone(), speeds, contest })
}

/// Subjects and workloads without a gap: each of these subjects has each of these workloads.
#[derive(Debug, PartialEq)]
struct Block {
    subjects: Vec<usize>,
    workloads: Vec<usize>,
}

/// The blocks of at least two subjects, the one with the most cells first, subjects counted twice,
/// because a workload is sooner done without than a subject.
fn blocks(analysis: &Analysis, workloads: &[usize]) -> Vec<Block> {
    let has: Vec<BTreeSet<usize>> = (0..analysis.subjects)
        .map(|subject| {
            let has = |work: &&usize| speeds(analysis.cell(**work, subject)).is_some();
            workloads.iter().filter(has).copied().collect()
        })
        .collect();
    let mut blocks: Vec<Block> = shared_sets(&has)
        .into_iter()
        .map(|wanted| Block {
            subjects: (0..has.len()).filter(|subject| has[*subject].is_superset(&wanted)).collect(),
            workloads: wanted.into_iter().collect(),
        })
        .filter(|block| block.subjects.len() > 1)
        .collect();
    // Sets come in order, so equals stay in that of the campaign.
    blocks.sort_by_key(|block| {
        std::cmp::Reverse(block.workloads.len() * block.subjects.len().pow(2))
    });
    blocks
}

/// Every set of workloads that a subject has, that two share, and, up to [`MOST_SETS`], that more
/// share; and each workload alone, for larger sets may have no repetition in common.
fn shared_sets(has: &[BTreeSet<usize>]) -> BTreeSet<BTreeSet<usize>> {
    let own: BTreeSet<BTreeSet<usize>> =
        has.iter().filter(|set| !set.is_empty()).cloned().collect();
    let mut all = own.clone();
    let mut newest = own.clone();
    let mut pairs_are_done = false;
    while !newest.is_empty() && (!pairs_are_done || all.len() < MOST_SETS) {
        let cut = |set: &BTreeSet<usize>| -> Vec<BTreeSet<usize>> {
            own.iter().map(|other| set & other).filter(|shared| !shared.is_empty()).collect()
        };
        newest = newest.iter().flat_map(cut).filter(|shared| !all.contains(shared)).collect();
        all.extend(newest.iter().cloned());
        pairs_are_done = true;
    }
    all.extend(own.iter().flatten().map(|work| BTreeSet::from([*work])));
    all
}

/// Who is best at each kind of workload, with the level shared among them.
#[derive(Debug, Clone)]
pub struct KindContests {
    /// The level of each: [`ALPHA`] divided by their number.
    pub level: f64,
    /// Kinds in which subjects can be compared, in the campaign's order.
    pub contests: Vec<(Kind, Overall)>,
}

/// Compares the subjects at each kind of workload. Only kinds in which there is something to
/// compare share the level.
pub fn compare_kinds(analysis: &Analysis) -> KindContests {
    let mut kinds = find_kinds(analysis);
    // Whether there is a contest does not depend on its level.
    kinds.retain(|kind| compare_over(analysis, &kind.workloads, ALPHA).is_some());
    let level = ALPHA / kinds.len().max(1) as f64;
    let contest = |kind: Kind| {
        let overall = compare_over(analysis, &kind.workloads, level)?;
        Some((kind, overall))
    };
    KindContests { level, contests: kinds.into_iter().filter_map(contest).collect() }
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
