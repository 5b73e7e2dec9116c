//! The subjects, the machine, the commands, and the steps to measure again.

use std::collections::BTreeSet;

use super::{Context, cells, section};
use crate::analysis::State;
use crate::report::model::{Block, Row, Section, Table};
use crate::report::units::{date, digits};
use braid_lab::environment::Prediction;
use braid_lab::facts::note_on_sharing;
use braid_lab::safety::plan_overwrites;
use braid_lab::store::{Outcome, Results, Times};
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

/// The same of predictions, which have no time and no system.
pub(super) fn subtitle_of_predictions(context: &Context<'_>) -> String {
    let analysis = context.analysis;
    let origin = context.results.sessions.last().map(|session| session.environment.origin());
    let cells = analysis.cells.iter().filter(|cell| cell.state != State::NotPlanned).count();
    format!(
        "{} · nothing measured · {} of {cells} cells",
        origin.unwrap_or_default(),
        analysis.done
    )
}

/// The subjects, which explain the names.
pub(super) fn sections(context: &Context<'_>) -> Vec<Section> {
    let blocks = vec![Block::Table(subjects(context))];
    section("what", "What was measured", String::new(), false, blocks)
}

/// The machine, the commands, and the steps to measure again.
pub(super) fn setting(context: &Context<'_>) -> Vec<Section> {
    let tables = match context.results.prediction() {
        Some(prediction) => vec![models(context, prediction), measured_then(context)],
        None => vec![environment(context), again(context), commands(context)],
    };
    let blocks = tables.into_iter().filter(|table| !table.rows.is_empty()).map(Block::Table);
    section("how", "How it was measured", String::new(), true, blocks.collect())
}

/// The subjects, with what lies under them.
fn subjects(context: &Context<'_>) -> Table {
    let rows = context.results.subjects.iter().map(|subject| {
        let facts = context.results.facts.iter().find(|facts| facts.name == subject.name);
        let members = facts.into_iter().flat_map(|facts| &facts.members);
        let mut places: Vec<String> = members.map(|member| member.place.describe()).collect();
        places.dedup();
        let mut notes: Vec<String> = Vec::new();
        notes.extend(subject.baseline.then(|| "Baseline.".to_owned()));
        notes.extend(subject.impossible.as_ref().map(|why| format!("Impossible: {why}.")));
        notes.extend(facts.and_then(|facts| note_on_sharing(&facts.members)));
        let size = facts.and_then(|facts| facts.size_bytes);
        cells::row(vec![
            cells::words_with(subject.name.clone(), notes.join(" ")),
            cells::words_with(subject.source.text(), subject.source.kind()),
            cells::words(places.join("; ")),
            size.map_or_else(
                || cells::missing(""),
                |bytes| cells::number(format!("{:#}", ByteSize(bytes)), bytes as f64),
            ),
        ])
    });
    Table {
        id: "subjects".to_owned(),
        columns: vec![
            cells::column("subject"),
            cells::column("source"),
            cells::column("lies on"),
            cells::numbers("size"),
        ],
        rows: rows.collect(),
        ..Table::default()
    }
}

/// A table of names and what belongs to them.
fn list(id: &str, title: &str, heads: [&str; 2], rows: Vec<(&str, String)>) -> Table {
    let row =
        |(name, text): (&str, String)| cells::row(vec![cells::words(name), cells::words(text)]);
    Table {
        id: id.to_owned(),
        title: title.to_owned(),
        note: String::new(),
        columns: heads.map(cells::column).to_vec(),
        rows: rows.into_iter().map(row).collect(),
    }
}

/// The machine of the last session.
fn environment(context: &Context<'_>) -> Table {
    let results = context.results;
    let mut rows = Vec::new();
    if let Some(session) = results.sessions.last() {
        let environment = &session.environment;
        // Several tools come in one package.
        let versions: BTreeSet<&str> =
            environment.tools.iter().map(|(_, version)| version.as_str()).collect();
        let governor = environment.governor.iter().map(|governor| format!(", governor {governor}"));
        let governor: String = governor.collect();
        let virtualised = if environment.virtualised { ", a virtual machine" } else { "" };
        rows.extend([
            ("host", format!("{}, {}{virtualised}", environment.host, environment.kernel)),
            (
                "processor",
                format!("{}, usable cores: {}{governor}", environment.cpu, environment.cores),
            ),
            ("memory", format!("{:#}", ByteSize(environment.memory_bytes))),
            ("tools", versions.into_iter().collect::<Vec<_>>().join(", ")),
            ("laboratory", format!("braid {}", environment.laboratory)),
            ("time", time_spent(results)),
            ("of a raw subject", format!("the first {:#} at most", results.campaign.region)),
        ]);
    }
    let unchecked = &context.analysis.unchecked;
    if !unchecked.is_empty() {
        let rules = unchecked.iter().map(|(rule, times)| format!("{rule} ({times} times)"));
        rows.push(("not checked, for lack of evidence", rules.collect::<Vec<_>>().join(", ")));
    }
    list("environment", "Where", ["what", "which"], rows)
}

/// The use of the time.
fn time_spent(results: &Results) -> String {
    let minutes = |of: fn(&Times) -> f64| -> String {
        digits(results.sessions.iter().map(|session| of(&session.times)).sum::<f64>() / 60.0)
    };
    format!(
        "{} minutes measuring, {} setting up, {} of the laboratory's own",
        minutes(|times| times.busy_s),
        minutes(|times| times.set_up_s),
        minutes(|times| times.overhead_s)
    )
}

/// The commands of the first repetition of each cell that was run.
fn commands(context: &Context<'_>) -> Table {
    let rows = context.analysis.cells.iter().filter_map(|cell| -> Option<Row> {
        let trials = cell.trials.iter().map(|index| &context.results.trials[*index]);
        let trial =
            trials.clone().find(|trial| trial.outcome == Outcome::Ok).or(trials.clone().next())?;
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
        columns: ["subject", "workload", "commands"].map(cells::column).to_vec(),
        rows: rows.collect(),
    }
}

/// The models that stand for the machine in predictions.
fn models(context: &Context<'_>, prediction: &Prediction) -> Table {
    let last = context.results.sessions.last();
    let version = last.map_or_else(String::new, |one| one.environment.laboratory.clone());
    let rows = vec![
        (
            "predicted by",
            format!("braid {version}; each cell once, for a prediction does not scatter"),
        ),
        ("profiles of devices", prediction.profiles.join(", ")),
        ("off by", prediction.off_by()),
        ("of a raw subject", format!("the first {:#} at most", context.results.campaign.region)),
    ];
    list("environment", "Where", ["what", "which"], rows)
}

/// The command lines that predict the campaign anew and write the report again.
fn measured_then(context: &Context<'_>) -> Table {
    let campaign = shell_path(context.dir.join("campaign.toml"));
    let results = shell_path(context.dir);
    let rows = vec![
        ("predicted anew", format!("braid model predict {campaign} --output NEW-FOLDER")),
        ("measured", format!("braid lab run {campaign} --repetitions 5 --out NEW-FOLDER")),
        ("set side by side", format!("braid lab compare {results} MEASURED-FOLDER")),
        ("the report", format!("braid lab report {results}")),
    ];
    list("again", "Again", ["what", "command"], rows)
}

/// The command lines that go on with the campaign, run it anew, and write the report again, with a flag
/// for each thing that exists and that the campaign would overwrite.
fn again(context: &Context<'_>) -> Table {
    let campaign = shell_path(context.dir.join("campaign.toml"));
    let results = shell_path(context.dir);
    let overwritten = plan_overwrites(&context.results.planned);
    let destroy: String =
        overwritten.iter().map(|path| format!(" --destroy {}", shell_path(path))).collect();
    let rows = vec![
        ("go on", format!("braid lab resume {results}{destroy}")),
        ("all anew", format!("braid lab run {campaign} --out NEW-FOLDER{destroy}")),
        ("the report", format!("braid lab report {results}")),
    ];
    list("again", "Again", ["what", "command"], rows)
}
