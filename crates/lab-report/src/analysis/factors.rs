//! What each factor of a study does: chunk, number of members, buses, file system, processes.
//!
//! ```text
//!   factor: members          chunk 64K   chunk 128K          reads of 2 members: 1.9 times 1 member,
//!   level 1 (reference)         20          20         ──>   1.8 to 2.0 by chunk
//!   level 2                     36          40
//! ```
//!
//! A group is what is alike but for the factor: the same workload on the same array with another
//! chunk, the same array under another file system. Each level is compared with the reference level
//! within a group and a repetition, and the effect is the mean over the groups that have both.
//!
//! Invariants: all groups of an effect have both levels in each repetition that counts; what a group
//! says by itself is kept as the range over the groups, so that an effect that turns round with
//! another factor does not vanish in its mean.
//!
//! Deliberately absent: a model with interactions. A study that crosses two factors shows them in the
//! range, and in the table of the one over the other.

use std::collections::{BTreeMap, BTreeSet};

use super::kinds::{pooled_baseline, speeds};
use super::{Analysis, Outlook, Standing, Work, outlook};
use crate::stats::{ByRepetition, Effect, holm};
use braid_lab::campaign::{Source, Subject};
use braid_lab::metric::Metric;
use braid_lab::settings::Value;
use braid_lab::store::Results;
use braid_lab::tool::Writes;

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

/// What a level does to one direction of work.
#[derive(Debug, Clone, Copy)]
pub struct LevelEffect {
    /// How many times as fast as the reference level, over all groups.
    pub effect: Effect,
    /// What that says with all levels and directions of the factor counted.
    pub outlook: Outlook,
    /// The lowest ratio of a single group.
    pub lowest: f64,
    /// The highest.
    pub highest: f64,
    /// How many groups there are.
    pub groups: usize,
    /// The worst of the numbers that it is made of.
    pub standing: Standing,
}

/// One number of a group: where it stands, and how far it is believed.
#[derive(Clone)]
struct Found {
    speed: ByRepetition,
    standing: Standing,
}

/// What is alike but for the factor: its direction, and its numbers by level.
struct Group {
    direction: String,
    levels: BTreeMap<Value, Found>,
}

/// Every dimension that varies while all else is alike, those of subjects first.
pub fn find_factors(analysis: &Analysis, results: &Results) -> Vec<Factor> {
    let of_subjects = names(results.subjects.iter().map(|subject| {
        subject.dimensions.keys().map(|name| (*name).to_owned()).collect::<Vec<_>>()
    }));
    let of_workloads = names(analysis.workloads.iter().map(|work| {
        let names = work.dimensions.keys().filter(|name| !NO_FACTORS.contains(&name.as_str()));
        names.cloned().collect::<Vec<_>>()
    }));
    let subjects = of_subjects.into_iter().filter_map(|name| {
        let groups = groups_of_subjects(analysis, results, &name);
        factor(name, groups)
    });
    let workloads = of_workloads.into_iter().filter_map(|name| {
        let groups = groups_of_workloads(analysis, &name);
        factor(name, groups)
    });
    subjects.chain(workloads).collect()
}

/// All names, in the order in which they first come.
fn names(lists: impl Iterator<Item = Vec<String>>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in lists.flatten() {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// "reads", "writes", or the name of a tool that does both.
pub(super) fn direction_of(work: &Work) -> String {
    let word = |name: &str| match work.dimensions.get(name) {
        Some(Value::Word(word)) => word.as_str(),
        _ => "",
    };
    match (word("op"), word("mode")) {
        ("read", _) | (_, "seqrd" | "rndrd") => return "reads".to_owned(),
        ("write", _) | (_, "seqwr" | "seqrewr" | "rndwr") => return "writes".to_owned(),
        _ => {}
    }
    let workload = &work.workload;
    match workload.work().map(|work| work.writes) {
        Some(Writes::Nothing) => "reads".to_owned(),
        _ => workload.tool.clone(),
    }
}

/// Subjects that are alike but for the dimension, at each workload. What a declaration is called
/// counts only where the rest does not tell its subjects apart: a study may declare one and two buses
/// as two subjects.
fn groups_of_subjects(analysis: &Analysis, results: &Results, name: &str) -> Vec<Group> {
    let rest = |subject: &Subject, with_family: bool| {
        let mut rest: BTreeMap<&str, Value> =
            subject.dimensions.iter().map(|(key, value)| (*key, value.clone())).collect();
        let value = rest.remove(name)?;
        if with_family || rest.is_empty() {
            rest.insert("family", Value::Word(subject.family.clone()));
        }
        Some((rest, value))
    };
    let is_ambiguous = |with_family: bool| {
        let mut seen = BTreeSet::new();
        let keys = results.subjects.iter().filter_map(|subject| rest(subject, with_family));
        keys.into_iter().any(|key| !seen.insert(key))
    };
    let with_family = is_ambiguous(false);
    let mut groups = Vec::new();
    for (work, of_work) in analysis.workloads.iter().enumerate() {
        let mut found: BTreeMap<BTreeMap<&str, Value>, BTreeMap<Value, Found>> = BTreeMap::new();
        for (index, subject) in results.subjects.iter().enumerate() {
            let Some((key, value)) = rest(subject, with_family) else { continue };
            if let Some(one) = found_at(analysis, work, index) {
                found.entry(key).or_default().insert(value, one);
            }
        }
        if name == "members" {
            let single = single_member(analysis, results, work);
            // One array beside its single member is a comparison and no study.
            for levels in found.values_mut().filter(|levels| levels.len() > 1) {
                if let Some(single) = &single {
                    levels.entry(Value::Count(1)).or_insert_with(|| single.clone());
                }
            }
        }
        let direction = direction_of(of_work);
        groups.extend(
            found.into_values().map(|levels| Group { direction: direction.clone(), levels }),
        );
    }
    groups
}

/// Workloads that are alike but for the dimension, on each subject.
fn groups_of_workloads(analysis: &Analysis, name: &str) -> Vec<Group> {
    // A rate in bytes and one in requests are no two levels of anything.
    let mut found: BTreeMap<(usize, Metric, BTreeMap<String, Value>), Group> = BTreeMap::new();
    for (work, of_work) in analysis.workloads.iter().enumerate() {
        let mut rest = of_work.dimensions.clone();
        let Some(value) = rest.remove(name) else { continue };
        for subject in 0..analysis.subjects {
            if let Some(one) = found_at(analysis, work, subject) {
                let key = (subject, of_work.headline, rest.clone());
                let direction = direction_of(of_work);
                let new = || Group { direction, levels: BTreeMap::new() };
                found.entry(key).or_insert_with(new).levels.insert(value.clone(), one);
            }
        }
    }
    found.into_values().collect()
}

fn found_at(analysis: &Analysis, work: usize, subject: usize) -> Option<Found> {
    let cell = analysis.cell(work, subject);
    Some(Found { speed: speeds(cell)?, standing: cell.standing })
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
    let speed = pooled_baseline(analysis, &[work]);
    (!speed.is_empty()).then_some(Found { speed, standing })
}

/// `None` where nothing varies.
fn factor(dimension: String, mut groups: Vec<Group>) -> Option<Factor> {
    groups.retain(|group| group.levels.len() > 1);
    let mut values: Vec<Value> = Vec::new();
    for value in groups.iter().flat_map(|group| group.levels.keys()) {
        if !values.contains(value) {
            values.push(value.clone());
        }
    }
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
    let directions = names(groups.iter().map(|group| vec![group.direction.clone()]));
    let mut levels: Vec<Level> = values
        .iter()
        .map(|value| Level {
            value: value.clone(),
            effects: directions
                .iter()
                .map(|direction| {
                    let of = |group: &&Group| group.direction == *direction;
                    level_effect(groups.iter().filter(of), value, &values[reference])
                })
                .collect(),
        })
        .collect();
    let all = levels.iter().flat_map(|level| &level.effects).flatten();
    let adjusted = holm(&all.map(|one| one.effect.p_value).collect::<Vec<f64>>());
    let all = levels.iter_mut().flat_map(|level| &mut level.effects).flatten();
    for (one, p_value) in all.zip(adjusted) {
        one.outlook = outlook(&one.effect, p_value);
    }
    Some(Factor { dimension, levels, reference, directions })
}

fn level_effect<'g>(
    groups: impl Iterator<Item = &'g Group>,
    level: &Value,
    reference: &Value,
) -> Option<LevelEffect> {
    if level == reference {
        return None;
    }
    let mut logarithms: BTreeMap<u32, (f64, usize)> = BTreeMap::new();
    let (mut lowest, mut highest, mut count) = (f64::MAX, 0.0_f64, 0);
    let mut standing = Standing::Ok;
    for group in groups {
        let Some((one, of)) = group.levels.get(level).zip(group.levels.get(reference)) else {
            continue;
        };
        let Some(own) = Effect::of(&one.speed, &of.speed) else { continue };
        (lowest, highest, count) = (lowest.min(own.ratio), highest.max(own.ratio), count + 1);
        standing = standing.max(one.standing).max(of.standing);
        for (repetition, speed) in &one.speed {
            if let Some(other) = of.speed.get(repetition) {
                let entry = logarithms.entry(*repetition).or_default();
                *entry = (entry.0 + (speed / other).ln(), entry.1 + 1);
            }
        }
    }
    let whole = logarithms.values().filter(|(_, found)| *found == count);
    let means: Vec<f64> = whole.map(|(sum, found)| sum / *found as f64).collect();
    let effect = Effect::of_logarithms(&means)?;
    Some(LevelEffect { effect, outlook: Outlook::Same, lowest, highest, groups: count, standing })
}
