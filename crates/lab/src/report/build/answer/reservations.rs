//! What limits an answer: numbers that are not believed, and what nobody measured.

use crate::analysis::{Cell, Standing, State};
use crate::campaign::{Health, Source};
use crate::matrix::Workload;
use crate::report::build::Context;
use crate::tool::{Effort, Tool, Writes};

/// A trial of at least so many seconds shows what lasts.
const LONG_S: f64 = 600.0;

/// What is not believed, and what nobody measured.
pub(super) fn reservations(context: &Context<'_>) -> Vec<String> {
    let planned = || context.analysis.cells.iter().filter(|cell| cell.state != State::NotPlanned);
    let count = |is: &dyn Fn(&Cell) -> bool| planned().filter(|cell| is(cell)).count();
    let judged = |cell: &Cell, standing| cell.main().is_some() && cell.standing == standing;
    let parts = [
        (count(&|cell| judged(cell, Standing::Invalid)), "cannot be believed and left out here"),
        (count(&|cell| judged(cell, Standing::Suspect)), "doubtful"),
        (
            count(&|cell| matches!(cell.state, State::Failed(_))),
            "without a number, because trials failed",
        ),
        (count(&|cell| matches!(cell.state, State::Unsettled(_))), "not settled"),
        (count(&|cell| matches!(cell.state, State::Impossible(_))), "impossible here"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let mut said = Vec::new();
    if !parts.is_empty() {
        let all = planned().count();
        said.push(format!("Of {all} combinations of subject and workload {}.", parts.join(", ")));
    }
    let not_measured = not_measured(context);
    if !not_measured.is_empty() {
        said.push(format!("Not measured: {}.", not_measured.join(", ")));
    }
    said
}

/// What a reader might take from the numbers and nobody looked at.
fn not_measured(context: &Context<'_>) -> Vec<String> {
    let works = || context.analysis.workloads.iter().map(|work| &work.workload);
    let campaign = &context.results.campaign;
    let mut missing = Vec::new();
    let writes = |workload: &Workload| {
        let processes = workload.setup.processes;
        let tool = workload.tool();
        tool.is_some_and(|tool| tool.writes(&workload.settings, processes) != Writes::Nothing)
    };
    if !works().any(writes) {
        missing.push("writing".to_owned());
    }
    let has_arrays = context.results.subjects.iter().any(|subject| {
        matches!(subject.source, Source::Stack(_) | Source::Kernel(_)) && !subject.baseline
    });
    if has_arrays && works().all(|workload| workload.setup.health == Health::Healthy) {
        missing.push("what a failed member does to it".to_owned());
    }
    let timed = |workload: &Workload| {
        let effort = |tool: &dyn Tool| tool.effort(&workload.settings, workload.setup.processes);
        workload.tool().is_some_and(|tool| effort(tool) == Effort::Runtime)
    };
    if works().any(timed) && campaign.runtime_s < LONG_S {
        missing.push(format!("what changes after the {} s of a trial", campaign.runtime_s));
    }
    missing
}
