//! One cell, or a few, with every repetition: numbers, findings, commands, evidence, events.

use std::fmt::Write as _;
use std::path::Path;

use crate::analysis::{Analysis, Cell, Rounds, State, analyse};
use crate::report::render::printable;
use crate::report::units::{Scale, date, digits};
use crate::stats::scatter;
use braid_lab::LabError;
use braid_lab::campaign::Patterns;
use braid_lab::evidence::{Evidence, Moved};
use braid_lab::metric::Metric;
use braid_lab::store::{Outcome, Results, Store, StoredTrial};
use braid_stack::ByteSize;

/// Width of the first column.
const NAMES: usize = 26;
/// Width of a number.
const NUMBERS: usize = 12;

/// The result of a filter among the cells of some results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    /// The cells that match, as text.
    Cells(String),
    /// None does: a sentence, and all that there are.
    Nothing(String),
}

/// The cells of a results directory that match, as text: all, or those whose "subject: workload"
/// has the form of `cells`. `*` stands for any letters in it; without one a part of the name in
/// any case will do, or a trial's number.
///
/// # Errors
///
/// When the directory has no results or they cannot be read.
pub fn show(dir: &Path, cells: Option<&str>) -> Result<Shown, LabError> {
    Ok(show_results(&Store::open(dir)?.results()?, cells.unwrap_or("*")))
}

/// The same of results that have been read.
pub(crate) fn show_results(results: &Results, filter: &str) -> Shown {
    let analysis = analyse(results);
    let name = |cell: &Cell| {
        let (subject, work) = (&results.subjects[cell.subject], &analysis.workloads[cell.workload]);
        format!("{}: {}", subject.name, work.label)
    };
    let wanted = filter.to_lowercase();
    let number: Option<u32> = filter.parse().ok();
    let matches = |cell: &&Cell| {
        let has_trial = |index: &usize| Some(results.trials[*index].number) == number;
        let name = name(cell).to_lowercase();
        let has_form = match wanted.contains('*') {
            true => Patterns(std::slice::from_ref(&wanted)).matches(&name),
            false => name.contains(&wanted),
        };
        has_form || cell.trials.iter().any(has_trial)
    };
    let planned = || analysis.cells.iter().filter(|cell| cell.state != State::NotPlanned);
    let mut text = String::new();
    for cell in planned().filter(matches) {
        show_cell(&mut text, results, &analysis, cell, &name(cell));
    }
    if !text.is_empty() {
        return Shown::Cells(text);
    }
    text = format!("nothing matches {:?}; there are:", printable(filter));
    for cell in planned() {
        text += &format!("\n  {}", printable(&name(cell)));
    }
    Shown::Nothing(text)
}

/// A line whose text cannot act on the terminal.
fn line(text: &mut String, content: &str) {
    text.push_str(printable(content).trim_end());
    text.push('\n');
}

fn show_cell(text: &mut String, results: &Results, analysis: &Analysis, cell: &Cell, name: &str) {
    line(text, name);
    if let Some(session) = results.sessions.last().filter(|_| results.prediction().is_some()) {
        line(text, &format!("  PREDICTED, not measured: {}", session.environment.origin()));
    }
    let why = crate::report::why_missing(cell);
    if !why.is_empty() {
        line(text, &format!("  {why}"));
    }
    for finding in &cell.findings {
        line(text, &format!("  {} {}: {}", finding.standing, finding.rule, finding.why));
        line(text, &format!("    {}", finding.action));
    }
    show_numbers(text, cell);
    if let Some(window) = cell.rounds.as_ref().and_then(Rounds::window) {
        let (first, last) = (window.first, window.last());
        line(text, &format!("  settled in rounds {first} to {last}; only they count"));
    }
    let counted = cell.values.get(&cell.headline).into_iter().flat_map(|all| all.values());
    if let Some(scatter) = scatter(&counted.copied().collect::<Vec<f64>>()) {
        let scatter = digits(scatter * 100.0);
        line(
            text,
            &format!(
                "  {}: repetitions scatter by {scatter} % (standard deviation)",
                cell.headline
            ),
        );
    }
    if !cell.disturbed.is_empty() {
        let which: Vec<String> = cell.disturbed.iter().map(u32::to_string).collect();
        line(
            text,
            &format!(
                "  repetitions that do not count, for they were disturbed: {}",
                which.join(", ")
            ),
        );
    }
    // Of a prediction there is nothing to see but its number.
    let happened = cell.trials.iter().filter(|_| results.prediction().is_none());
    for index in happened {
        show_trial(text, &results.trials[*index], analysis);
    }
    text.push('\n');
}

/// A row for each metric, a column for each repetition, and what is said of all that count: their
/// median, or the percentile of their requests.
fn show_numbers(text: &mut String, cell: &Cell) {
    let mut repetitions: Vec<u32> =
        cell.all.values().flat_map(|values| values.keys().copied()).collect();
    repetitions.sort_unstable();
    repetitions.dedup();
    if repetitions.is_empty() {
        return;
    }
    let mut head = format!("  {:NAMES$}", "repetition");
    for repetition in &repetitions {
        // Writing to a string cannot fail.
        let _ = write!(head, "{repetition:>NUMBERS$}");
    }
    let _ = write!(head, "{:>NUMBERS$}", "overall");
    line(text, &head);
    for (metric, values) in &cell.all {
        let largest = values.values().fold(0.0_f64, |most, value| most.max(value.abs()));
        let scale = Scale::of(*metric, largest);
        let mut row = format!("  {:NAMES$}", heading(*metric, scale));
        for repetition in &repetitions {
            let value = values.get(repetition).map_or("-".to_owned(), |value| scale.write(*value));
            let _ = write!(row, "{value:>NUMBERS$}");
        }
        if let Some(estimate) = cell.get(*metric) {
            let _ = write!(row, "{:>NUMBERS$}", scale.write(estimate.median));
        }
        line(text, &row);
    }
}

fn heading(metric: Metric, scale: Scale) -> String {
    match scale.unit {
        "" => metric.name().to_owned(),
        unit => format!("{} [{unit}]", metric.name()),
    }
}

fn show_trial(text: &mut String, trial: &StoredTrial, analysis: &Analysis) {
    line(
        text,
        &format!(
            "  trial {}, repetition {}, {}, {} s, {}",
            trial.number,
            trial.repetition,
            date(trial.started_unix_s),
            digits(trial.duration_s),
            trial.raw
        ),
    );
    match &trial.outcome {
        Outcome::Ok => {}
        Outcome::Failed(reason) => line(text, &format!("    failed: {reason}")),
        Outcome::Impossible(reason) => line(text, &format!("    impossible: {reason}")),
    }
    for finding in analysis.trials.get(&trial.number).into_iter().flatten() {
        line(text, &format!("    {} {}: {}", finding.standing, finding.rule, finding.why));
    }
    for command in &trial.commands {
        line(text, &format!("    $ {command}"));
    }
    for (at, what) in &trial.events {
        line(text, &format!("    after {} s: {what}", digits(*at)));
    }
    for seen in evidence_lines(&trial.evidence) {
        line(text, &format!("    {seen}"));
    }
}

/// The known facts about the machine during a trial.
fn evidence_lines(evidence: &Evidence) -> Vec<String> {
    let moved = |name: &str, moved: &Moved| {
        format!(
            "{name}: {:#} read, {:#} written, busy for {} s",
            ByteSize(moved.read_bytes),
            ByteSize(moved.written_bytes),
            digits(moved.busy_ms as f64 / 1000.0)
        )
    };
    let busy = evidence.cpu_busy.map(|busy| format!("processors: {} % busy", digits(busy * 100.0)));
    let used = evidence.tool_cores.map(|cores| format!("the tool used {} cores", digits(cores)));
    let server = evidence.server_cpu_s;
    let server = server.map(|seconds| format!("the server used {} s of a core", digits(seconds)));
    let throttled = evidence.throttled.filter(|times| *times > 0);
    let throttled = throttled.map(|times| format!("throttled {times} times"));
    let target = evidence.target.iter().map(|target| moved("the device", target));
    target
        .chain(evidence.members.iter().map(|(name, member)| moved(name, member)))
        .chain([busy, used, server].into_iter().flatten())
        .chain(evidence.mount.iter().map(|mount| format!("mounted: {mount}")))
        .chain(evidence.activities.iter().map(|activity| format!("at work: {activity}")))
        .chain(throttled)
        .chain(
            evidence
                .strangers
                .iter()
                .map(|(name, all)| format!("{name} moved {:#}", ByteSize(*all))),
        )
        .collect()
}
