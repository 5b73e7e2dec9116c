//! What a campaign would do, before it does it: the matrix, what is written where, how long.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::time::Duration;

use braid_stack::ByteSize;

use crate::campaign::{Campaign, FileSystem, Health, Source, Subject};
use crate::facts::{note_on_sharing, place_members};
use crate::matrix::{Cell, Trial, Workload, plan_matrix, plan_trials, plan_workloads};
use crate::safety::{plan_overwrites, reasons_to_write};
use crate::tool::{Effort, Writes};
use crate::world::shell_word;

mod amplify;
use amplify::members_share;

/// Bringing up, starting a tool and writing its result down, roughly.
const SET_UP: Duration = Duration::from_millis(600);
/// Making and mounting a file system, roughly.
const MAKE_FILE_SYSTEM: Duration = Duration::from_millis(700);
/// What is assumed of a device that nobody has measured yet, in bytes per second. The progress
/// line of a run estimates from what was measured instead.
const ASSUMED_RATE: f64 = 100e6;

/// A campaign, worked out.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The campaign.
    pub campaign: Campaign,
    /// Its subjects.
    pub subjects: Vec<Subject>,
    /// The cells.
    pub cells: Vec<Cell>,
    /// The trials in their order.
    pub trials: Vec<Trial>,
    /// What would be overwritten: paths and NBD URIs.
    pub overwrites: Vec<String>,
    /// What each member would be written, by its text in the campaign.
    pub written: BTreeMap<String, Written>,
    /// Estimated time.
    pub duration: Duration,
    /// Sentences about members that share hardware, with the subject's name.
    pub notes: Vec<(String, String)>,
}

/// What a member would be written.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Written {
    /// Bytes that are known beforehand.
    pub bytes: f64,
    /// Seconds in which it is written as fast as it goes.
    pub seconds: f64,
}

/// Works a campaign out. Reads `/sys`; writes nothing.
pub fn plan_campaign(campaign: &Campaign) -> Plan {
    let subjects = campaign.expand();
    let cells = plan_matrix(campaign);
    let trials = plan_trials(campaign);
    let possible = trials.iter().filter(|trial| trial.cell.impossible.is_none());
    let duration = possible.map(|trial| trial_time(campaign, &trial.cell.workload)).sum();
    let notes = subjects
        .iter()
        .filter_map(|subject| {
            let note = note_on_sharing(&place_members(&subject.source))?;
            Some((subject.name.clone(), note))
        })
        .collect();
    Plan {
        duration,
        overwrites: plan_overwrites(campaign),
        written: plan_writes(campaign, &subjects, &cells),
        campaign: campaign.clone(),
        subjects,
        cells,
        trials,
        notes,
    }
}

fn trial_time(campaign: &Campaign, workload: &Workload) -> Duration {
    let setup = &workload.setup;
    let effort = workload
        .tool()
        .map_or(Effort::Seconds(0.0), |tool| tool.effort(&workload.settings, setup.processes));
    let tool = match effort {
        Effort::Runtime => {
            let ramp_s = workload.tool().map_or(0.0, |tool| tool.ramp_s(campaign.ramp_s));
            campaign.runtime_s + ramp_s
        }
        Effort::Seconds(seconds) => seconds,
        Effort::Bytes(bytes) => bytes as f64 / ASSUMED_RATE,
    };
    let file_system =
        if setup.filesystem == FileSystem::None { Duration::ZERO } else { MAKE_FILE_SYSTEM };
    Duration::from_secs_f64(tool + campaign.rest_s) + SET_UP + file_system
}

/// What each member is written over the whole campaign.
fn plan_writes(
    campaign: &Campaign,
    subjects: &[Subject],
    cells: &[Cell],
) -> BTreeMap<String, Written> {
    let mut members: BTreeMap<String, Written> = BTreeMap::new();
    let repetitions = f64::from(campaign.repetitions);
    let reasons = reasons_to_write(campaign);
    for (index, subject) in subjects.iter().enumerate() {
        let mine = cells.iter().filter(|cell| cell.subject == index && cell.impossible.is_none());
        let mut sum = Written::default();
        for cell in mine {
            let workload = &cell.workload;
            let Some(tool) = workload.tool() else { continue };
            match tool.writes(&workload.settings, workload.setup.processes) {
                Writes::Nothing => {}
                Writes::Bytes(bytes) => sum.bytes += bytes as f64 * repetitions,
                Writes::UntilTime => {
                    let seconds = campaign.runtime_s + tool.ramp_s(campaign.ramp_s);
                    sum.seconds += seconds * repetitions;
                }
            }
        }
        if reasons[index].fill {
            sum.bytes += campaign.region.0 as f64;
        }
        for (member, share) in members_share(&subject.source) {
            let entry = members.entry(member).or_default();
            entry.bytes += sum.bytes * share;
            entry.seconds += sum.seconds;
        }
    }
    members
}

/// The plan as text for a terminal.
pub fn render_plan(plan: &Plan) -> String {
    let mut text = Text(String::new());
    let campaign = &plan.campaign;
    let colon = if campaign.description.is_empty() { "" } else { ": " };
    text.line(format_args!("campaign {}{colon}{}", campaign.name, campaign.description));
    render_subjects(plan, &mut text);
    render_matrix(plan, &mut text);
    render_writes(plan, &mut text);
    let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, note) in &plan.notes {
        match notes.iter_mut().find(|(known, _)| known == note) {
            Some((_, names)) => names.push(name),
            None => notes.push((note, vec![name])),
        }
    }
    for (note, names) in notes {
        text.line(format_args!("\nnote on {}: {note}", names.join(", ")));
    }
    text.0
}

struct Text(String);

impl Text {
    fn line(&mut self, line: fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.0.write_fmt(line);
        self.0.push('\n');
    }
}

fn render_subjects(plan: &Plan, text: &mut Text) {
    text.line(format_args!("\nsubjects"));
    let width = plan.subjects.iter().map(|s| s.name.chars().count()).max().unwrap_or(0).min(32);
    for subject in &plan.subjects {
        let mark = if subject.baseline { "  (baseline)" } else { "" };
        let source = &subject.source;
        text.line(format_args!("  {:<width$}  {:<9} {source}{mark}", subject.name, source.kind()));
    }
}

fn render_matrix(plan: &Plan, text: &mut Text) {
    let campaign = &plan.campaign;
    text.line(format_args!("\nworkloads, and on how many subjects"));
    for (index, workload) in plan_workloads(campaign).iter().enumerate() {
        let mine = || plan.cells.iter().filter(move |cell| cell.workload_index == index);
        let possible = mine().filter(|cell| cell.impossible.is_none()).count();
        text.line(format_args!("  {possible:>3}  {workload}"));
    }
    let mut reasons: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for cell in &plan.cells {
        if let Some(reason) = &cell.impossible {
            let name = plan.subjects.get(cell.subject).map_or("", |subject| &subject.name);
            *reasons.entry((name, reason)).or_default() += 1;
        }
    }
    if !reasons.is_empty() {
        text.line(format_args!("\nimpossible, and left out"));
        for ((subject, reason), count) in reasons {
            let cells = if count == 1 { "cell" } else { "cells" };
            text.line(format_args!("  {subject}: {reason} ({count} {cells})"));
        }
    }
    text.line(format_args!(
        "\n{} cells × {} repetitions = {} trials, shuffled inside each repetition (seed {})",
        plan.cells.len(),
        campaign.repetitions,
        plan.trials.len(),
        campaign.seed,
    ));
    text.line(format_args!(
        "estimated time {}, if devices move {:.0} MB/s",
        minutes(plan.duration),
        ASSUMED_RATE / 1e6
    ));
}

fn render_writes(plan: &Plan, text: &mut Text) {
    text.line(format_args!("\nwritten"));
    for (member, written) in &plan.written {
        text.line(format_args!("  {member}: {}", describe_writes(written)));
    }
    let unsafe_states = plan.cells.iter().any(|c| c.workload.setup.health != Health::Healthy);
    if unsafe_states {
        text.line(format_args!(
            "  and whole members again where an array is rebuilt (health in the campaign)"
        ));
    }
    let folders = plan.subjects.iter().filter(|s| matches!(s.source, Source::Directory(_)));
    for subject in folders {
        text.line(format_args!("  {}: in a new folder only, removed at the end", subject.source));
    }
    if !plan.overwrites.is_empty() {
        let flags: Vec<String> =
            plan.overwrites.iter().map(|path| format!("--destroy {}", shell_word(path))).collect();
        text.line(format_args!("\nthe content of these is lost; to agree, add"));
        text.line(format_args!("  {}", flags.join(" ")));
    }
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

fn minutes(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}

#[cfg(test)]
mod tests;
