//! What was measured, where, with which commands, and how to do it again.

use std::collections::BTreeSet;
use std::path::Path;

use super::{Context, cells};
use crate::report::model::{Row, Table};
use crate::report::units::{date, digits};
use crate::words::enumerate;
use braid_lab::evidence::RegionContent;
use braid_lab::facts::note_on_sharing;
use braid_lab::safety::plan_overwrites;
use braid_lab::store::{Outcome, Results};
use braid_shell::shell_path;
use braid_stack::ByteSize;

/// When, how much of it is done, on which system.
pub(super) fn subtitle(context: &Context<'_>) -> String {
    let sessions = &context.results.sessions;
    let mut parts = Vec::new();
    if let (Some(first), Some(last)) = (sessions.first(), sessions.last()) {
        let begun = date(first.started_unix_s);
        parts.push(match last.ended_unix_s {
            Some(ended) => format!("{begun} to {}", date(ended)),
            None => format!("begun {begun}, not ended"),
        });
        if sessions.len() > 1 {
            parts.push(format!("{} sessions", sessions.len()));
        }
        parts.push(format!("{}, {}", last.environment.host, last.environment.kernel));
    }
    let (done, planned) = (context.analysis.done, context.analysis.planned);
    parts.insert(0, format!("{done} of {planned} trials"));
    parts.join(" · ")
}

/// The subjects, with what lies under them. How each was set up is told by [`commands`].
pub(super) fn subjects(context: &Context<'_>) -> Table {
    let results = context.results;
    // One unit for all, in which none is less than 1.
    let sizes = results.facts.iter().filter_map(|facts| facts.size_bytes);
    let (unit, unit_bytes) = match sizes.min() {
        Some(least) if least < 1 << 30 => ("MiB", (1_u64 << 20) as f64),
        _ => ("GiB", (1_u64 << 30) as f64),
    };
    let scale = |bytes: u64| bytes as f64 / unit_bytes;
    let rows = results.subjects.iter().map(|subject| {
        let facts = results.facts.iter().find(|facts| facts.name == subject.name);
        let size = facts.and_then(|facts| facts.size_bytes);
        let members: Vec<String> = facts.map_or_else(Vec::new, |facts| {
            let placed = facts.members.iter();
            placed
                .map(|placed| format!("{} on {}", placed.member, placed.place.describe()))
                .collect()
        });
        let mut notes: Vec<String> = Vec::new();
        notes.extend(subject.baseline.then(|| "Baseline.".to_owned()));
        notes.extend(subject.impossible.as_ref().map(|why| format!("Impossible: {why}.")));
        notes.extend(facts.and_then(|facts| note_on_sharing(&facts.members)));
        let size = size.map_or_else(
            || cells::missing("not known"),
            |bytes| cells::number(digits(scale(bytes)), scale(bytes)),
        );
        cells::row(vec![
            cells::words(subject.name.clone()),
            cells::words(subject.source.kind()),
            cells::words(subject.source.text()),
            cells::words(members.join("; ")),
            size,
            cells::words(notes.join(" ")),
        ])
    });
    Table {
        id: "subjects".to_owned(),
        title: "What was measured".to_owned(),
        note: String::new(),
        columns: vec![
            cells::column("subject"),
            cells::column("kind"),
            cells::column("source"),
            cells::column("members"),
            cells::numbers_in("size", unit),
            cells::column("notes"),
        ],
        rows: rows.collect(),
    }
}

/// The machine of the last session.
pub(super) fn environment(context: &Context<'_>) -> Vec<(String, String)> {
    let results = context.results;
    let Some(session) = results.sessions.last() else { return Vec::new() };
    let environment = &session.environment;
    // Several tools come in one package.
    let versions: BTreeSet<&str> =
        environment.tools.iter().map(|(_, version)| version.as_str()).collect();
    let versions: Vec<&str> = versions.into_iter().collect();
    let virtualised = if environment.virtualised { "yes" } else { "not that it says" };
    let mut rows = vec![
        ("Host", environment.host.clone()),
        ("Kernel", environment.kernel.clone()),
        ("Processor", format!("{}, {}", environment.cpu, usable_cores(environment.cores))),
        ("Memory", format!("{:#}", ByteSize(environment.memory_bytes))),
        ("Virtual machine", virtualised.to_owned()),
        ("Tools", versions.join(", ")),
        ("Laboratory", format!("braid {}", environment.laboratory)),
    ];
    if let Some(governor) = &environment.governor {
        rows.insert(3, ("Frequency governor", governor.clone()));
    }
    rows.push(("Time", time_spent(results)));
    rows.extend(region(results).map(|region| ("Of a raw subject", region)));
    let unchecked = &context.analysis.unchecked;
    if !unchecked.is_empty() {
        let rules = unchecked.iter().map(|(rule, times)| format!("{rule} ({times} times)"));
        let rules: Vec<String> = rules.collect();
        rows.push(("Not checked, for lack of evidence", rules.join(", ")));
    }
    rows.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// What of a raw subject was used, and whether it had been written before.
fn region(results: &Results) -> Option<String> {
    let mut filled = BTreeSet::new();
    let mut found = BTreeSet::new();
    for trial in results.trials.iter().filter(|trial| trial.outcome == Outcome::Ok) {
        match trial.evidence.content {
            Some(RegionContent::Filled) => filled.insert(trial.subject.as_str()),
            Some(_) => found.insert(trial.subject.as_str()),
            None => continue,
        };
    }
    let raw = results.trials.iter().any(|trial| {
        trial.dimensions.get("filesystem").is_none_or(|value| value.to_string() == "none")
    });
    let found: Vec<&str> = found.into_iter().collect();
    let written = match (filled.is_empty(), found.is_empty()) {
        (true, true) => String::new(),
        (false, true) => ", written once before they are read".to_owned(),
        (true, false) => ", not written before they are read".to_owned(),
        (false, false) => {
            format!(", written once before they are read (but not {})", enumerate(&found))
        }
    };
    raw.then(|| format!("the first {:#}{written}", results.campaign.region))
}

fn usable_cores(cores: u32) -> String {
    match cores {
        1 => "1 core usable".to_owned(),
        cores => format!("{cores} cores usable"),
    }
}

/// Where the hours went.
fn time_spent(results: &Results) -> String {
    let sum = |of: fn(&braid_lab::store::Times) -> f64| -> f64 {
        results.sessions.iter().map(|session| of(&session.times)).sum()
    };
    let [busy, set_up, own] =
        [sum(|times| times.busy_s), sum(|times| times.set_up_s), sum(|times| times.overhead_s)];
    let all = busy + set_up + own;
    let share = if all > 0.0 { 100.0 * own / all } else { 0.0 };
    format!(
        "{} measuring, {} setting up, {} of the laboratory's own ({} %)",
        duration(busy),
        duration(set_up),
        duration(own),
        digits(share)
    )
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.1} s"),
        s => format!("{:.1} min", s / 60.0),
    }
}

/// The commands of the first repetition of each cell that was run.
pub(super) fn commands(context: &Context<'_>) -> Table {
    let rows = context.analysis.cells.iter().filter_map(|cell| -> Option<Row> {
        let trials = cell.trials.iter().map(|index| &context.results.trials[*index]);
        let good = |trial: &&braid_lab::store::StoredTrial| trial.outcome == Outcome::Ok;
        let trial = trials.clone().find(good).or_else(|| trials.clone().next())?;
        Some(cells::row(vec![
            cells::words(context.subject(cell.subject)),
            cells::words(context.label(cell.workload)),
            cells::words_with(trial.commands.join("\n"), trial.raw.clone()),
        ]))
    });
    Table {
        id: "commands".to_owned(),
        title: "The exact commands".to_owned(),
        note: "Of one repetition each; seeds differ from repetition to repetition. Under them is \
               where the raw output lies."
            .to_owned(),
        columns: vec![
            cells::column("subject"),
            cells::column("workload"),
            cells::column("commands"),
        ],
        rows: rows.collect(),
    }
}

/// The command lines that go on with the campaign, run it anew, and write the report again.
pub(super) fn again(results: &Results, dir: &Path) -> Vec<String> {
    let campaign = shell_path(dir.join("campaign.toml"));
    let results_dir = shell_path(dir);
    let destroy = destroy_flags(results);
    vec![
        format!("braid lab resume {results_dir}{destroy}"),
        format!("braid lab run {campaign} --out NEW-FOLDER{destroy}"),
        format!("braid lab report {results_dir}"),
    ]
}

/// A flag for each thing that exists and that the campaign would overwrite.
fn destroy_flags(results: &Results) -> String {
    let overwritten = plan_overwrites(&results.planned);
    overwritten.iter().map(|path| format!(" --destroy {}", shell_path(path))).collect()
}
