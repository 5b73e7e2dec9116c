//! An array that is faster than its members allow together is not faster: something below it answered
//! from memory, or the members alone were disturbed.
//!
//! The bound of a member is the rate of its model, or its best rate alone, under the same
//! workload. Of several streams an array may give each a member of its own: then a member can do what it did
//! alone with one of them, which on a disk is ten times as much. What an array can do of that is in `levels.rs`.

use braid_stack::{Node, Stack};

use super::Checked;
use super::case::{Cell, mib, percent, stack_of};
use super::levels::{arrangements, highest_rate};
use crate::stats::estimate;
use braid_lab::metric::Metric;

/// The factor by which an array may exceed its bound without a remark: deeper queues and larger requests reach
/// a member through an array than alone.
const MARGIN: f64 = 1.1;
/// From here on it is not doubtful but contradictory. It is also the margin if the scatter of the numbers is
/// unknown.
const CONTRADICTION: f64 = 1.5;

/// Rule `faster-than-members`: the lowest repetition against the bound.
pub(super) fn check_members(cell: &Cell<'_>, others: &[&Cell<'_>]) -> Checked {
    let Some(stack) = stack_of(cell.subject) else { return Checked::Fine };
    let metrics = [Metric::Throughput, Metric::Iops].map(|metric| (metric, cell.values(metric)));
    let Some((metric, values)) = metrics.into_iter().find(|(_, values)| !values.is_empty()) else {
        return Checked::Fine;
    };
    let Some(own) = estimate(&values) else { return Checked::Unknown };
    let leaves = stack.leaves();
    let is_modelled = leaves.iter().all(|leaf| matches!(leaf.node, Node::Model(_)));
    let declared = declared(cell, &leaves).filter(|_| is_modelled && metric == Metric::Throughput);
    let is_declared = declared.is_some();
    if !is_declared && !is_modelled && stack.members().is_empty() {
        return Checked::Fine;
    }
    let rates = declared.unwrap_or_else(|| alone(others, metric));
    let rate = |leaf: &Stack| rates.iter().find(|(one, _)| one == leaf).map(|(_, rate)| *rate);
    let Some(fastest) = leaves.iter().filter_map(|leaf| rate(leaf)).reduce(f64::max) else {
        return Checked::Unknown;
    };
    let is_assumed = leaves.iter().any(|leaf| rate(leaf).is_none());
    // A member may do more with one stream than was measured with several.
    let is_crowded = !is_declared
        && cell.workload.setup.processes > 1
        && !others.iter().any(|other| other.is_one_stream_of(cell) && is_alone(other));
    let bounds = arrangements(&stack, cell.workload.setup.health)
        .into_iter()
        .map(|stack| highest_rate(&stack, writes(cell), &|leaf| rate(leaf).or(Some(fastest))));
    let Some(bound) = bounds.collect::<Option<Vec<f64>>>() else { return Checked::Unknown };
    let bound = bound.into_iter().fold(0.0, f64::max);
    let times = own.low / bound;
    // Models do what they say.
    let (margin, contradiction) = match (is_declared, own.count) {
        (true, _) => (MARGIN, MARGIN),
        (false, 1) => (CONTRADICTION, f64::MAX),
        (false, _) if is_assumed || is_crowded => (MARGIN, f64::MAX),
        (false, _) => (MARGIN, CONTRADICTION),
    };
    if times <= margin {
        return Checked::Fine;
    }
    let amount = |value: f64| match metric {
        Metric::Throughput => format!("{}/s", mib(value)),
        _ => format!("{value:.0} requests/s"),
    };
    let mut why = format!(
        "{} are {} of what the {} together ({})",
        amount(own.low),
        percent(times),
        if is_declared { "modelled members can do" } else { "members alone allow" },
        amount(bound)
    );
    if is_assumed {
        why += ", if those that were not measured are as fast as those that were";
    }
    if is_crowded {
        why += ", with as many streams each; with one stream a member may do more, which was not measured";
    }
    if times > contradiction { Checked::invalid(why) } else { Checked::suspect(why) }
}

/// The declared rates of all leaves' models, which need not be measured. Models with equal texts are equal.
fn declared(cell: &Cell<'_>, leaves: &[&Stack]) -> Option<Vec<(Stack, f64)>> {
    let mut models = cell.good.iter().map(|case| &case.evidence.models);
    let models = models.find(|models| models.len() == leaves.len())?;
    let rate = |(read, write): &(u64, u64)| if writes(cell) { *write as f64 } else { *read as f64 };
    Some(leaves.iter().map(|leaf| (*leaf).clone()).zip(models.iter().map(rate)).collect())
}

/// The best repetition of each subject that is a single member, the highest first.
fn alone(others: &[&Cell<'_>], metric: Metric) -> Vec<(Stack, f64)> {
    let single = |other: &&Cell<'_>| {
        let stack = stack_of(other.subject).filter(|stack| stack.members().is_empty())?;
        let rate = estimate(&other.values(metric))?.high;
        (rate > 0.0).then_some((stack, rate))
    };
    let mut rates: Vec<_> = others.iter().filter_map(single).collect();
    rates.sort_by(|one, other| other.1.total_cmp(&one.1));
    rates
}

fn is_alone(cell: &Cell<'_>) -> bool {
    stack_of(cell.subject).is_some_and(|stack| stack.members().is_empty())
}

/// True if it only writes. Mixed work has the bound of reads, which is higher.
fn writes(cell: &Cell<'_>) -> bool {
    let moves = |metric| cell.values(metric).iter().any(|bytes| *bytes > 0.0);
    moves(Metric::BytesWritten) && !moves(Metric::BytesRead)
}
