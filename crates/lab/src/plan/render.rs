//! A plan as text for a terminal.

use std::collections::BTreeMap;
use std::time::Duration;

use braid_shell::shell_path;
use braid_stack::ByteSize;

use super::rates::ASSUMED_RATE;
use super::{Basis, Plan, Written};
use crate::campaign::Source;
use crate::command::minutes;
use crate::facts::{Member, members_of};
use crate::source::writes_when_it_comes_up;

/// Renders the plan as text for a terminal.
pub fn render_plan(plan: &Plan) -> String {
    let mut lines = Vec::new();
    let campaign = &plan.planned.campaign;
    let colon = if campaign.description.is_empty() { "" } else { ": " };
    lines.push(format!("campaign {}{colon}{}", campaign.name, campaign.description));
    render_subjects(plan, &mut lines);
    render_matrix(plan, &mut lines);
    render_writes(plan, &mut lines);
    let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, note) in &plan.notes {
        match notes.iter_mut().find(|(known, _)| known == note) {
            Some((_, names)) => names.push(name),
            None => notes.push((note, vec![name])),
        }
    }
    for (note, names) in notes {
        lines.push(format!("\nnote on {}: {note}", names.join(", ")));
    }
    // Names come from files: control characters are escaped.
    lines.iter().map(|line| escaped(line) + "\n").collect()
}

/// Escapes control characters other than line ends: `\u{1b}`.
fn escaped(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' => c.to_string(),
        c if c.is_control() => c.escape_default().to_string(),
        c => c.to_string(),
    };
    text.chars().map(shown).collect()
}

fn render_subjects(plan: &Plan, lines: &mut Vec<String>) {
    lines.push("\nsubjects".to_owned());
    let width =
        plan.planned.subjects.iter().map(|s| s.name.chars().count()).max().unwrap_or(0).min(32);
    for subject in &plan.planned.subjects {
        let mark = match (subject.baseline, subject.control) {
            (true, _) => "  (baseline)",
            (_, true) => "  (control)",
            _ => "",
        };
        let source = &subject.source;
        lines.push(format!("  {:<width$}  {:<9} {source}{mark}", subject.name, source.kind()));
    }
}

fn render_matrix(plan: &Plan, lines: &mut Vec<String>) {
    let campaign = &plan.planned.campaign;
    lines.push("\nworkloads, and on how many subjects".to_owned());
    for (index, workload) in plan.planned.workloads.iter().enumerate() {
        let mine = || plan.planned.cells.iter().filter(move |cell| cell.workload_index == index);
        let possible = mine().filter(|cell| cell.impossible.is_none()).count();
        lines.push(format!("  {possible:>3}  {workload}"));
    }
    let mut reasons: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for cell in &plan.planned.cells {
        if let Some(reason) = &cell.impossible {
            let name = plan.planned.subjects.get(cell.subject).map_or("", |subject| &subject.name);
            *reasons.entry((name, reason)).or_default() += 1;
        }
    }
    if !reasons.is_empty() {
        lines.push("\nimpossible, and left out".to_owned());
        for ((subject, reason), count) in reasons {
            let cells = if count == 1 { "cell" } else { "cells" };
            lines.push(format!("  {subject}: {reason} ({count} {cells})"));
        }
    }
    let cells = plan.planned.cells.iter().filter(|cell| cell.impossible.is_none()).count();
    let seed = campaign.seed.map_or("drawn by the run".to_owned(), |seed| seed.to_string());
    lines.push(format!(
        "\n{cells} cells × {} repetitions = {} trials, in balanced order (seed {seed})",
        campaign.repetitions, plan.possible,
    ));
    let left = match plan.possible - plan.to_run {
        0 => String::new(),
        done => format!(" of the remaining {} ({done} are measured already):", plan.to_run),
    };
    let basis = match plan.basis {
        Basis::Known => String::new(),
        Basis::Assumed => {
            format!(", if unmeasured devices move {:.0} MB/s", ASSUMED_RATE / 1e6)
        }
        Basis::Measured => ", as earlier trials took".to_owned(),
    };
    lines.push(format!("estimated time{left} {}{basis}", minutes(plan.duration)));
}

fn render_writes(plan: &Plan, lines: &mut Vec<String>) {
    lines.push("\nwritten".to_owned());
    for (member, written) in &plan.written {
        lines.push(format!("  {member}: {}", describe_writes(written)));
    }
    let beside: Vec<&str> = what_is_not_counted(plan).collect();
    if !beside.is_empty() {
        lines.push(format!("  not counted: {}", beside.join("; ")));
    }
    let folders = plan.planned.subjects.iter().filter(|s| s.source.is_folder());
    for subject in folders {
        lines.push(format!("  {}: in a new folder only, removed at the end", subject.source));
    }
    let (agreed, open): (Vec<&str>, Vec<&str>) =
        plan.overwrites.iter().map(String::as_str).partition(|path| plan.agreed.contains(*path));
    if !agreed.is_empty() {
        lines.push("\nthe content of these is lost, as --destroy says".to_owned());
        lines.push(format!("  {}", agreed.join(", ")));
    }
    if !open.is_empty() {
        let flags: Vec<String> =
            open.iter().map(|path| format!("--destroy {}", shell_path(path))).collect();
        lines.push("\nthe content of these is lost; to agree, add".to_owned());
        lines.push(format!("  {}", flags.join(" ")));
    }
}

/// Returns the amounts that cannot be known beforehand.
fn what_is_not_counted(plan: &Plan) -> impl Iterator<Item = &'static str> {
    let possible = || plan.planned.cells.iter().filter(|cell| cell.impossible.is_none());
    let setups = || possible().map(|cell| &cell.workload.setup);
    let sources = || plan.planned.subjects.iter().map(|subject| &subject.source);
    let is_memory = |source: &Source| members_of(source).iter().any(Member::is_ephemeral);
    [
        (setups().any(|setup| setup.filesystem.is_made()), "the file systems' own writes"),
        (
            sources().any(writes_when_it_comes_up),
            "superblocks, and the resync of an array when it comes up",
        ),
        (
            plan.planned.campaign.fill && sources().any(is_memory),
            "repeated fills of memory that was taken down",
        ),
    ]
    .into_iter()
    .filter_map(|(is_so, what)| is_so.then_some(what))
}

fn describe_writes(written: &Written) -> String {
    let bytes = ByteSize(written.bytes as u64);
    let time = minutes(Duration::from_secs_f64(written.seconds));
    match (written.bytes > 0.0, written.seconds > 0.0) {
        (false, false) => "nothing".to_owned(),
        (true, false) => format!("{bytes:#}"),
        (false, true) => format!("as much as it takes in {time}"),
        (true, true) => format!("{bytes:#}, and as much as it takes in {time}"),
    }
}
