//! The best subject at a kind of work, if there is one.
//!
//! The leader is compared with every other subject in pairs of the same repetition, and wins if it is proven
//! better than each. The comparisons need no correction for their number: if two subjects are equally good, the
//! claim is wrong only if one of them beats the other, which happens with the chance of the level, and every
//! further subject that must be beaten makes it rarer. Kinds of work that are judged side by side share the
//! level (Holm).
//!
//! Repetitions share the fixed properties of a subject: the place of its file, the make of its stick. If the
//! campaign has a control, the baseline a second time in another place, a lead must be [`PLACES`] times the
//! distance of the two baselines. One control is one sample: of two normal numbers with the same spread, which
//! share a third, one is more than eight times the other in 7 of 100 cases, whatever that spread is.
//!
//! Invariants: only trusted numbers count; subjects are compared over the same workloads and repetitions; no
//! subject is named if an untrusted number was better; the control is never named, and takes nothing from the
//! named subject.

use super::kinds::{Kind, effect_of, pooled_speed, speeds};
use super::{ALPHA, Analysis, Cell, Standing};
use crate::stats::{ByRepetition, Effect, SANE, geometric_mean, holm, median};
use braid_lab::metric::Better;

/// Subjects within this of each other are alike: what no user would choose by.
pub(crate) const ALIKE: f64 = 0.03;
/// Repetitions of which a winner is made at least.
pub(crate) const LEAST_PAIRS: usize = 3;
/// A lead is this many times what the control is from the baseline, as logarithms.
pub(crate) const PLACES: f64 = 8.0;

/// The reason why the best subject is unknown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unknown {
    /// Fewer than three repetitions have been measured on both sides.
    Few,
    /// Repetitions scatter: so many would, with a chance of 80 %, name the leader if its lead stays what it
    /// is. `None` where that is more than 200.
    Scatter(Option<usize>),
    /// The leader is ahead by what no user would choose by, however often that is measured.
    Close,
    /// Equal subjects differ too much here: only a lead of more than this would say something, 1.2 for 20 %.
    Place(f64),
}

/// The result of a contest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// The leader is better than every other.
    Winner,
    /// No two are further apart than this: 0.02 for 2 %.
    Alike(f64),
    /// The best subject is unknown.
    Open(Unknown),
    /// At least one of this number of measured but untrusted subjects was faster than the leader.
    Unbelieved(usize),
}

/// Subjects compared over a kind of work.
#[derive(Debug, Clone)]
pub struct Contest {
    /// The kind, with the workloads that all contenders have.
    pub kind: Kind,
    /// The subjects compared, fastest first.
    pub ranking: Vec<usize>,
    /// Subjects that were measured at the kind and take no part, for their numbers are not all there
    /// or not all believed.
    pub left_out: Vec<usize>,
    /// The leader against the next.
    pub margin: Effect,
    /// The worst of the numbers compared.
    pub standing: Standing,
    /// The best subject, if there is one.
    pub outcome: Outcome,
}

impl Contest {
    /// The subject with the highest speed.
    pub fn leader(&self) -> usize {
        self.ranking[0]
    }

    /// The winner, if there is one.
    pub fn winner(&self) -> Option<usize> {
        (self.outcome == Outcome::Winner).then(|| self.leader())
    }
}

/// A contest for each kind in which at least two subjects can be compared, in the order of the kinds.
pub fn find_contests(analysis: &Analysis, kinds: &[Kind]) -> Vec<Contest> {
    let mut found: Vec<(Contest, Vec<Effect>)> =
        kinds.iter().filter_map(|kind| contest_at(analysis, kind)).collect();
    // The leader against the one that it is least surely better than.
    let p_value = |effects: &Vec<Effect>| effects.iter().map(|one| one.p_value).fold(0.0, f64::max);
    let adjusted = holm(&found.iter().map(|(_, all)| p_value(all)).collect::<Vec<f64>>());
    let level = ALPHA / found.len().max(1) as f64;
    let apart = places_apart(analysis, kinds);
    for ((contest, effects), p_value) in found.iter_mut().zip(adjusted) {
        let place = kinds.iter().position(|kind| kind.name == contest.kind.name);
        let apart = place.and_then(|place| apart[place]).unwrap_or(0.0);
        contest.outcome = outcome_of(analysis, contest, effects, p_value, level, apart);
    }
    found.into_iter().map(|(contest, _)| contest).collect()
}

/// The distance of equal subjects at each kind of work, as a logarithm: that of the control from the baseline,
/// and at least its median distance at all kinds, so that one number that is small by chance does not let every
/// lead pass. `None` without a measured control.
fn places_apart(analysis: &Analysis, kinds: &[Kind]) -> Vec<Option<f64>> {
    let at = |kind: &Kind| {
        let effect = effect_of(analysis, analysis.control?, kind)?.effect;
        Some(effect.ratio.ln().abs())
    };
    let own: Vec<Option<f64>> = kinds.iter().map(at).collect();
    let middle = median(&own.iter().flatten().copied().collect::<Vec<f64>>());
    own.into_iter().map(|own| Some(own.unwrap_or(0.0).max(middle?))).collect()
}

/// The contest without its outcome, and the leader against each of the others.
fn contest_at(analysis: &Analysis, kind: &Kind) -> Option<(Contest, Vec<Effect>)> {
    let measured: Vec<usize> = (0..analysis.subjects)
        .filter(|subject| analysis.control != Some(*subject))
        .filter(|subject| {
            let mut cells = kind.workloads.iter().map(|work| analysis.cell(*work, *subject));
            cells.any(|cell| cell.main().is_some())
        })
        .collect();
    let workloads = shared_workloads(analysis, &kind.workloads, &measured);
    let mut speeds_of: Vec<(usize, ByRepetition)> = measured
        .iter()
        .map(|subject| (*subject, pooled_speed(analysis, *subject, &workloads)))
        .filter(|(_, speeds)| !speeds.is_empty())
        .collect();
    let overall =
        |speeds: &ByRepetition| geometric_mean(&speeds.values().copied().collect::<Vec<f64>>());
    speeds_of.sort_by(|(_, a), (_, b)| overall(b).total_cmp(&overall(a)));
    let ((_, leader), others) = speeds_of.split_first()?;
    let effects: Vec<Effect> = others
        .iter()
        .map(|(_, other)| Some(analysis.weighed(Effect::of(leader, other)?)))
        .collect::<Option<_>>()?;
    let ranking: Vec<usize> = speeds_of.iter().map(|(subject, _)| *subject).collect();
    let standing = |subject: &usize| {
        workloads.iter().map(|work| analysis.cell(*work, *subject).standing).max()
    };
    let contest = Contest {
        standing: ranking.iter().filter_map(standing).max().unwrap_or_default(),
        left_out: measured.into_iter().filter(|subject| !ranking.contains(subject)).collect(),
        kind: Kind { name: kind.name.clone(), workloads },
        ranking,
        margin: *effects.first()?,
        outcome: Outcome::Open(Unknown::Few),
    };
    Some((contest, effects))
}

/// The workloads that at least half of the subjects have in full: those that the fewest have are
/// left out, one after the other.
fn shared_workloads(analysis: &Analysis, workloads: &[usize], subjects: &[usize]) -> Vec<usize> {
    let mut shared = workloads.to_vec();
    let has = |work: usize, subject: usize| speeds(analysis.cell(work, subject)).is_some();
    while shared.len() > 1 {
        let whole = subjects.iter().filter(|s| shared.iter().all(|work| has(*work, **s))).count();
        if whole > 1 && 2 * whole >= subjects.len() {
            break;
        }
        let count = |work: usize| subjects.iter().filter(|s| has(work, **s)).count();
        let rarest = (0..shared.len()).rev().min_by_key(|place| count(shared[*place]));
        shared.remove(rarest.unwrap_or_default());
    }
    shared
}

/// `apart` is how far equal subjects are from each other here, as a logarithm.
fn outcome_of(
    analysis: &Analysis,
    contest: &Contest,
    effects: &[Effect],
    p_value: f64,
    level: f64,
    apart: f64,
) -> Outcome {
    let unbelieved = faster_without_belief(analysis, contest);
    if unbelieved > 0 {
        return Outcome::Unbelieved(unbelieved);
    }
    let pairs = effects.iter().map(|effect| effect.pairs).min().unwrap_or(0);
    // A prediction has one repetition and an error of its own.
    if analysis.log_error.is_none() && pairs < LEAST_PAIRS {
        return Outcome::Open(Unknown::Few);
    }
    // The leader is furthest ahead of the last: all others are beaten by at least what the next is.
    let lead = contest.margin.ratio.ln();
    let least = ALIKE.ln_1p().max(PLACES * apart);
    if p_value <= ALPHA && lead > least {
        return Outcome::Winner;
    }
    let most: Option<Vec<f64>> = effects.iter().map(Effect::at_most_apart).collect();
    let most = most.map(|most| most.into_iter().fold(0.0, f64::max));
    if let Some(most) = most.filter(|most| *most <= ALIKE) {
        return Outcome::Alike(most);
    }
    Outcome::Open(if lead <= ALIKE.ln_1p() {
        Unknown::Close
    } else if lead <= least && p_value <= ALPHA {
        Unknown::Place(least.exp())
    } else {
        let each = effects.iter().map(|one| one.pairs_to_tell(one.ratio, least, level));
        let all: Option<Vec<usize>> = each.collect();
        Unknown::Scatter(all.and_then(|all| all.into_iter().max()).map(|most| most.max(pairs + 1)))
    })
}

/// The number of subjects that were left out because part of their numbers is not trusted, and that had better
/// medians than the leader over the shared workloads: it is unknown whether they are faster, so the best
/// subject is unknown too.
fn faster_without_belief(analysis: &Analysis, contest: &Contest) -> usize {
    let works = || contest.kind.workloads.iter();
    let is_ahead = |subject: &&usize| {
        let mut cells = works().map(|work| analysis.cell(*work, **subject));
        let unbelieved = cells.any(|cell| cell.main().is_some() && !cell.is_usable());
        let factors = works().filter_map(|work| {
            let own = median_speed(analysis.cell(*work, **subject))?;
            Some((own / median_speed(analysis.cell(*work, contest.leader()))?).ln())
        });
        unbelieved && factors.sum::<f64>() > 0.0
    };
    contest.left_out.iter().filter(is_ahead).count()
}

/// The median speed of a cell, whether it is believed or not.
fn median_speed(cell: &Cell) -> Option<f64> {
    let median = cell.main().map(|main| main.median).filter(|median| SANE.contains(median))?;
    Some(if cell.headline.better() == Better::Lower { 1.0 / median } else { median })
}
