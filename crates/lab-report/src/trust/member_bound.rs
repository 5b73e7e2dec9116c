//! What an array can do at most, from what its members did alone.
//!
//! ```text
//! linear, raid0   sum of the members (two readers, or one with a deep queue, use all at once)
//! raid1           reading the sum, writing the slowest
//! raid10          reading the sum, writing the sum / copies
//! raid4, 5, 6     reading the sum, writing the sum · (n − parities) / n
//! ```
//!
//! A member that was hurt for the trial counts as missing; where it comes back meanwhile, the larger
//! of the two bounds is taken.
//!
//! An array that is faster is not faster: something below it answered from memory, or the members
//! alone were disturbed.

use braid_stack::{Node, Stack};

use super::Checked;
use super::arrangement::{arrangements, parities};
use super::case::{CellCase, mib, percent};
use crate::stats::{Estimate, estimate};
use braid_lab::campaign::{Health, Source};
use braid_lab::metric::Metric;

/// How far above its bound an array may be without a word: deeper queues and larger requests
/// reach a member through an array than alone.
const MARGIN: f64 = 1.1;
/// From here on it is not doubt but a contradiction. It is also the margin where nothing says how
/// far the numbers scatter.
const CONTRADICTION: f64 = 1.5;

/// What is bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Read,
    Write,
}

/// The most that a stack can do, and whether members that were not measured were taken for as
/// fast as those that were.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Bound {
    rate: f64,
    is_assumed: bool,
}

/// Rule `faster-than-members`.
pub(super) fn check_members(case: &CellCase<'_>) -> Checked {
    let Some(stack) = case.subject().and_then(|subject| stack_of(&subject.source)) else {
        return Checked::NotApplicable;
    };
    let metric = match [Metric::Throughput, Metric::Iops]
        .into_iter()
        .find(|metric| !case.values(*metric).is_empty())
    {
        Some(metric) => metric,
        None => return Checked::NotApplicable,
    };
    let Some(own) = estimate(&case.values(metric)) else {
        return Checked::Unknown;
    };
    let direction = direction_of(case);
    let by_models = check_models(case, &stack, direction, metric, own);
    if matches!(by_models, Checked::Found(..)) || stack.members().is_empty() {
        return by_models;
    }
    match bound_by_singles(case, &stack, direction, metric) {
        Some(bound) => against(own, bound, metric),
        None => by_models,
    }
}

fn against(own: Estimate, bound: Bound, metric: Metric) -> Checked {
    let alone = own.count == 1;
    let times = own.low / bound.rate;
    if times <= if alone { CONTRADICTION } else { MARGIN } {
        return Checked::Fine;
    }
    let amount = |value: f64| match metric {
        Metric::Throughput => format!("{}/s", mib(value)),
        _ => format!("{value:.0} requests/s"),
    };
    let mut why = format!(
        "{} are {} of what the members alone allow together ({})",
        amount(own.low),
        percent(times),
        amount(bound.rate)
    );
    if bound.is_assumed {
        why += ", if those that were not measured are as fast as those that were";
    }
    if times > CONTRADICTION && !bound.is_assumed && !alone {
        Checked::invalid(why)
    } else {
        Checked::suspect(why)
    }
}

/// Against the rates that models declare; nobody has to measure those, and nothing is faster.
fn check_models(
    case: &CellCase<'_>,
    stack: &Stack,
    direction: Direction,
    metric: Metric,
    own: Estimate,
) -> Checked {
    let leaves = stack.leaves();
    if metric != Metric::Throughput || !leaves.iter().all(|l| matches!(l.node, Node::Model(_))) {
        return Checked::NotApplicable;
    }
    let mut declared = case.trials().iter().map(|trial| &trial.evidence.models);
    let Some(models) = declared.find(|models| models.len() == leaves.len()) else {
        return Checked::Unknown;
    };
    let rate_of = |(read, write): &(u64, u64)| match direction {
        Direction::Read => *read as f64,
        Direction::Write => *write as f64,
    };
    // Models that are written alike are alike.
    let declared: Vec<(&Stack, f64)> =
        leaves.iter().copied().zip(models.iter().map(rate_of)).collect();
    let declared =
        |leaf: &Stack| declared.iter().find(|(model, _)| *model == leaf).map(|(_, rate)| *rate);
    let health = case.workload().setup.health;
    let Some(bound) = largest_bound(stack, health, direction, &declared) else {
        return Checked::Unknown;
    };
    let times = own.low / bound;
    if times <= MARGIN {
        return Checked::Fine;
    }
    Checked::invalid(format!(
        "{}/s are {} of what the modelled members can do together ({}/s)",
        mib(own.low),
        percent(times),
        mib(bound)
    ))
}

/// From the best repetitions of the members alone, under the same workload.
fn bound_by_singles(
    case: &CellCase<'_>,
    stack: &Stack,
    direction: Direction,
    metric: Metric,
) -> Option<Bound> {
    let singles: Vec<(Stack, f64)> = case
        .others()
        .filter_map(|other| {
            let stack = stack_of(&other.subject()?.source)?;
            let rate = estimate(&other.values(metric))?.high;
            (stack.members().is_empty() && rate > 0.0).then_some((stack, rate))
        })
        .collect();
    let measured = |leaf: &Stack| singles.iter().find(|(s, _)| s == leaf).map(|(_, rate)| *rate);
    let leaves = stack.leaves();
    let fastest = leaves.iter().filter_map(|leaf| measured(leaf)).reduce(f64::max)?;
    let is_assumed = leaves.iter().any(|leaf| measured(leaf).is_none());
    let health = case.workload().setup.health;
    let rate = largest_bound(stack, health, direction, &|leaf| measured(leaf).or(Some(fastest)))?;
    Some(Bound { rate, is_assumed })
}

/// The bound of an array in the state that was asked for: a slow member that is out holds nothing
/// up any more, a fast one no longer helps.
fn largest_bound(
    stack: &Stack,
    health: Health,
    direction: Direction,
    leaf: &impl Fn(&Stack) -> Option<f64>,
) -> Option<f64> {
    let bounds = arrangements(stack, health).into_iter();
    let bounds: Vec<f64> =
        bounds.map(|stack| bound(&stack, direction, leaf)).collect::<Option<_>>()?;
    bounds.into_iter().reduce(f64::max)
}

/// The bound of a stack from its leaves'. `None` where the level is not known.
fn bound(
    stack: &Stack,
    direction: Direction,
    leaf: &impl Fn(&Stack) -> Option<f64>,
) -> Option<f64> {
    if stack.members().is_empty() {
        return if stack.is_missing() { Some(0.0) } else { leaf(stack) };
    }
    let rates = stack.members().iter().map(|member| bound(member, direction, leaf));
    let rates: Vec<f64> = rates.collect::<Option<_>>()?;
    let sum: f64 = rates.iter().sum();
    let n = rates.len() as f64;
    let there = stack.members().iter().zip(&rates).filter(|(member, _)| !member.is_missing());
    Some(match (&stack.node, direction) {
        (Node::Md(_), _) => return None,
        (_, Direction::Read) | (Node::Linear(_) | Node::Raid0(_), Direction::Write) => sum,
        (Node::Raid1(_), Direction::Write) => there.map(|(_, rate)| *rate).reduce(f64::min)?,
        (Node::Raid10(raid10), Direction::Write) => {
            // Members that are missing write nothing and hold nothing up.
            let full = sum * n / there.count() as f64;
            full / raid10.layout.copies() as f64
        }
        (_, Direction::Write) => sum / there.count() as f64 * (n - parities(stack)?),
    })
}

/// The stack of a subject that is one; a plain path is a stack of one leaf.
fn stack_of(source: &Source) -> Option<Stack> {
    match source {
        Source::Stack(text) | Source::Kernel(text) => text.stack().ok().cloned(),
        Source::Path(path) => Stack::parse(&format!("file({path:?})")).ok(),
        Source::Directory(_) | Source::Nbd(_) | Source::Zram(_) | Source::Tmpfs(_) => None,
    }
}

/// Mixed work is bounded as reading is, which allows more.
fn direction_of(case: &CellCase<'_>) -> Direction {
    let reads = case.values(Metric::BytesRead).iter().any(|bytes| *bytes > 0.0);
    let writes = case.values(Metric::BytesWritten).iter().any(|bytes| *bytes > 0.0);
    if writes && !reads { Direction::Write } else { Direction::Read }
}
