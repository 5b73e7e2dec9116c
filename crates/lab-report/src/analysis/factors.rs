//! The effect of each factor of a study: chunk, number of members, buses, file system, processes.
//!
//! ```text
//!   factor: members          chunk 64K   chunk 128K          reads of 2 members: 1.9 times 1 member,
//!   level 1 (reference)         20          20         ──>   1.8 to 2.0 by chunk
//!   level 2                     36          40
//! ```
//!
//! A group contains cells that are alike except for the factor: the same workload on the same array with
//! another chunk, the same array under another file system. Each level is compared with the reference level
//! within a group and a repetition, and the effect is the mean over the groups that have both.
//!
//! Invariants: all groups of an effect have both levels in each counted repetition; the effects of single
//! groups are kept as a range, so that an effect that another factor reverses does not vanish in its mean.
//!
//! Deliberately absent: a model with interactions. A study that crosses two factors shows them in the
//! range, and in the table of the one over the other.

use std::collections::{BTreeMap, BTreeSet};

use super::kinds::{Sides, baseline_speeds, direction_of, speeds};
use super::{Analysis, Outlook, Standing, outlooks};
use crate::stats::{ByRepetition, Effect};
use braid_lab::campaign::{Source, Subject};
use braid_lab::metric::Metric;
use braid_lab::settings::Value;
use braid_lab::store::Results;

/// Dimensions that say what kind of work it is, or what state the array is in, which is told apart.
const NO_FACTORS: [&str; 6] = ["tool", "pattern", "op", "mode", "unit", "health"];

/// A factor and what its levels do.
#[derive(Debug, Clone)]
pub struct Factor {
    /// The dimension: "chunk", "members", "filesystem".
    pub dimension: String,
    /// Its levels, by size where they are numbers, else in the campaign's order.
    pub levels: Vec<Level>,
    /// Which of them the others are compared with: the smallest, or the first.
    pub reference: usize,
    /// Directions of work: "reads", "writes", or a tool that does both.
    pub directions: Vec<String>,
}

/// A level of a factor.
#[derive(Debug, Clone)]
pub struct Level {
    /// Its value.
    pub value: Value,
    /// Against the reference, for each direction; `None` of the reference, and without a number.
    pub effects: Vec<Option<LevelEffect>>,
}

/// The effect of a level on one direction of work.
#[derive(Debug, Clone, Copy)]
pub struct LevelEffect {
    /// The speed relative to the reference level, over all groups.
    pub effect: Effect,
    /// The meaning of the effect when all levels and directions of the factor are counted.
    pub outlook: Outlook,
    /// The lowest ratio of a single group.
    pub lowest: f64,
    /// The highest.
    pub highest: f64,
    /// The number of groups.
    pub groups: usize,
    /// The worst standing of its numbers.
    pub standing: Standing,
}

/// One number of a group: where it stands, and how far it is believed.
#[derive(Clone)]
struct Found {
    speed: ByRepetition,
    standing: Standing,
}

/// Cells that are alike except for the factor: their direction, and their numbers by level.
struct Group {
    direction: String,
    /// The workload of the first of them.
    workload: usize,
    levels: BTreeMap<Value, Found>,
}

/// Every dimension that varies while all else is alike, those of subjects first.
pub fn find_factors(analysis: &Analysis, results: &Results) -> Vec<Factor> {
    let of_subjects = results.subjects.iter().flat_map(|subject| subject.dimensions.keys());
    let of_works = analysis.workloads.iter().flat_map(|work| work.dimensions.keys());
    let of_works = of_works.filter(|name| !NO_FACTORS.contains(&name.as_str()));
    let subjects = distinct(of_subjects.map(|name| (*name).to_owned())).into_iter().map(|name| {
        let groups = groups_of_subjects(analysis, results, &name);
        factor(analysis, name, groups)
    });
    let workloads = distinct(of_works.cloned()).into_iter().map(|name| {
        let groups = groups_of_workloads(analysis, &name);
        factor(analysis, name, groups)
    });
    subjects.chain(workloads).flatten().collect()
}

/// Each once, in the order in which they first come.
fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for one in all {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

/// Cells by what they are alike in; `key_of` gives that and the level of a cell that has one.
fn groups<K: Ord>(
    analysis: &Analysis,
    key_of: impl Fn(usize, usize) -> Option<(K, Value)>,
) -> Vec<Group> {
    let mut places: BTreeMap<K, usize> = BTreeMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for cell in &analysis.cells {
        let workload = cell.workload;
        let Some((key, level)) = key_of(workload, cell.subject) else { continue };
        let Some(speed) = speeds(cell) else { continue };
        // The baseline again is no level of anything.
        if analysis.control == Some(cell.subject) {
            continue;
        }
        let place = *places.entry(key).or_insert(groups.len());
        if place == groups.len() {
            let direction = direction_of(&analysis.workloads[workload]);
            groups.push(Group { direction, workload, levels: BTreeMap::new() });
        }
        groups[place].levels.insert(level, Found { speed, standing: cell.standing });
    }
    groups
}

/// Subjects that are alike but for the dimension, at each workload. What a declaration is called
/// counts only where the rest does not tell its subjects apart: a study may declare one and two buses
/// as two subjects.
fn groups_of_subjects(analysis: &Analysis, results: &Results, name: &str) -> Vec<Group> {
    let rest = |subject: &Subject, with_family: bool| {
        let mut rest = subject.dimensions.clone();
        let value = rest.remove(name)?;
        let family = (with_family || rest.is_empty()).then(|| subject.family.clone());
        Some(((rest, family), value))
    };
    let mut seen = BTreeSet::new();
    let mut keys = results.subjects.iter().filter_map(|subject| rest(subject, false));
    let with_family = keys.any(|key| !seen.insert(key));
    let mut groups = groups(analysis, |workload, subject| {
        let (rest, level) = rest(&results.subjects[subject], with_family)?;
        Some(((workload, rest), level))
    });
    // One array beside its single member is a comparison and no study.
    for group in groups.iter_mut().filter(|group| name == "members" && group.levels.len() > 1) {
        if let Some(single) = single_member(analysis, results, group.workload) {
            group.levels.entry(Value::Count(1)).or_insert(single);
        }
    }
    groups
}

/// Workloads that are alike but for the dimension, on each subject.
fn groups_of_workloads(analysis: &Analysis, name: &str) -> Vec<Group> {
    groups(analysis, |workload, subject| {
        let work = &analysis.workloads[workload];
        let mut rest = work.dimensions.clone();
        let level = rest.remove(name)?;
        // A rate in bytes and one in requests are no two levels of anything.
        let metric: Metric = work.headline;
        Some(((subject, metric, rest), level))
    })
}

/// The baseline's number, where that is a member alone: an array of one.
fn single_member(analysis: &Analysis, results: &Results, work: usize) -> Option<Found> {
    let is_single = |subject: &usize| match &results.subjects[*subject].source {
        Source::Path(_) => true,
        Source::Stack(expression) => {
            expression.stack().is_ok_and(|stack| stack.members().is_empty())
        }
        _ => false,
    };
    if analysis.baselines.is_empty() || !analysis.baselines.iter().all(is_single) {
        return None;
    }
    let standings = analysis.baselines.iter().map(|one| analysis.cell(work, *one).standing);
    let standing = standings.max().unwrap_or_default();
    Some(Found { speed: baseline_speeds(analysis, work)?, standing })
}

/// `None` where nothing varies.
fn factor(analysis: &Analysis, dimension: String, mut groups: Vec<Group>) -> Option<Factor> {
    groups.retain(|group| group.levels.len() > 1);
    let mut values = distinct(groups.iter().flat_map(|group| group.levels.keys().cloned()));
    if values.len() < 2 {
        return None;
    }
    if values.iter().all(|value| !matches!(value, Value::Word(_) | Value::Flag(_))) {
        values.sort();
    }
    // The reference is the first that as many groups have as any other.
    let having = |value: &Value| groups.iter().filter(|g| g.levels.contains_key(value)).count();
    let most = values.iter().map(having).max()?;
    let reference = values.iter().position(|value| having(value) == most)?;
    let directions = distinct(groups.iter().map(|group| group.direction.clone()));
    let level = |value: &Value| {
        let effect = |direction: &String| {
            let of = groups.iter().filter(|group| group.direction == *direction);
            level_effect(analysis, of, value, &values[reference])
        };
        Level { value: value.clone(), effects: directions.iter().map(effect).collect() }
    };
    let mut levels: Vec<Level> = values.iter().map(level).collect();
    let all = levels.iter().flat_map(|level| &level.effects).flatten();
    let outlooks = outlooks(all.map(|one| one.effect));
    let all = levels.iter_mut().flat_map(|level| &mut level.effects).flatten();
    for (one, outlook) in all.zip(outlooks) {
        one.outlook = outlook;
    }
    Some(Factor { dimension, levels, reference, directions })
}

fn level_effect<'g>(
    analysis: &Analysis,
    groups: impl Iterator<Item = &'g Group>,
    level: &Value,
    reference: &Value,
) -> Option<LevelEffect> {
    if level == reference {
        return None;
    }
    let (mut sides, mut ratios) = (Sides::default(), Vec::new());
    for group in groups {
        let Some((one, other)) = group.levels.get(level).zip(group.levels.get(reference)) else {
            continue;
        };
        let Some(own) = Effect::of(&one.speed, &other.speed) else { continue };
        ratios.push(own.ratio);
        sides.add(one.speed.clone(), other.speed.clone(), one.standing.max(other.standing));
    }
    Some(LevelEffect {
        effect: analysis.weighed(sides.effect()?),
        outlook: Outlook::Same,
        lowest: ratios.iter().copied().fold(f64::MAX, f64::min),
        highest: ratios.iter().copied().fold(0.0, f64::max),
        groups: ratios.len(),
        standing: sides.standing,
    })
}
