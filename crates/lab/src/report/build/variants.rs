//! Over a word of the workload: file system, mount options, read-ahead, state of the array.

use super::sweep::pivots;
use super::{Context, charts_first};
use crate::report::model::{Block, Section};

/// Words that are a workload's own kind and not a variant of one.
const KINDS: [&str; 5] = ["tool", "pattern", "op", "health", "unit"];

/// Healthy, degraded, rebuilding, scrubbing: the numbers, and what is left of the healthy array's.
pub(super) fn health(context: &Context<'_>) -> Option<Section> {
    let mut blocks = Vec::new();
    for pivot in pivots(context, "health") {
        blocks.push(Block::Table(pivot.table("health")));
        if let Some(healthy) = pivot.rows.iter().position(|head| head.name == "healthy") {
            blocks.extend(pivot.percent_of_row("health-percent", healthy).map(Block::Table));
        }
        blocks.extend(pivot.bars("health-bars"));
    }
    let lead = "What users notice of a failed member, of filling its replacement, and of a check.";
    charts_first("state-of-array", "State of the array", lead.to_owned(), blocks)
}

/// Every word that varies around a tool or in it.
pub(super) fn words(context: &Context<'_>) -> Option<Section> {
    let mut names = context.varying_of_workloads();
    names.retain(|name| {
        let values = context.analysis.workloads.iter().filter_map(|w| w.dimensions.get(name));
        let word = |value| super::dims::as_number(value).is_none();
        !KINDS.contains(&name.as_str()) && values.into_iter().all(word)
    });
    let mut blocks = Vec::new();
    for pivot in names.iter().flat_map(|name| pivots(context, name)) {
        blocks.push(Block::Table(pivot.table("variants")));
        blocks.extend(pivot.percent_of_row("variants-percent", 0).map(Block::Table));
        blocks.extend(pivot.bars("variants-bars"));
    }
    let lead = "The same workload with another file system or other options around it.";
    charts_first("options", "File systems and options", lead.to_owned(), blocks)
}
