//! What a campaign would do, before it does it.

use std::fmt::{self, Write as _};
use std::time::Duration;

use crate::campaign::{Campaign, Op};
use crate::facts::{note_on_sharing, place_members};
use crate::matrix::{Trial, plan_trials, plan_workloads};
use crate::safety::plan_overwrites;
use crate::world::shell_word;
use braid_stack::ByteSize;

/// What a tool needs to start and to write its result, measured with fio 3.33.
const START_UP: Duration = Duration::from_millis(350);
/// Changing from one server to another that shares a member.
const SWITCH: Duration = Duration::from_millis(100);

/// A campaign, worked out.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The campaign.
    pub campaign: Campaign,
    /// The trials in their order.
    pub trials: Vec<Trial>,
    /// What would be overwritten: paths and NBD URIs.
    pub overwrites: Vec<String>,
    /// Estimated time, without filling (which the device's speed decides).
    pub duration: Duration,
    /// Trials of each subject that write, in the campaign's order.
    pub writing_trials: Vec<u32>,
    /// Sentences about members that share hardware, with the subject's name.
    pub notes: Vec<(String, String)>,
}

/// Works a campaign out. Reads `/sys`; writes nothing.
pub fn plan_campaign(campaign: &Campaign) -> Plan {
    let trials = plan_trials(campaign);
    let each = Duration::from_secs_f64(campaign.runtime_s + campaign.ramp_s) + START_UP + SWITCH;
    let mut writing_trials = vec![0; campaign.subjects.len()];
    for trial in trials.iter().filter(|trial| trial.cell.workload.op == Op::Write) {
        writing_trials[trial.cell.subject] += 1;
    }
    let notes = campaign
        .subjects
        .iter()
        .filter_map(|subject| {
            let note = note_on_sharing(&place_members(&subject.source))?;
            Some((subject.name.clone(), note))
        })
        .collect();
    Plan {
        duration: each * trials.len() as u32,
        overwrites: plan_overwrites(campaign),
        campaign: campaign.clone(),
        trials,
        writing_trials,
        notes,
    }
}

/// The plan as text for a terminal.
pub fn render_plan(plan: &Plan) -> String {
    let campaign = &plan.campaign;
    let mut text = format!("campaign {}", campaign.name);
    if !campaign.description.is_empty() {
        text += &format!(": {}", campaign.description);
    }
    let mut line = |args: fmt::Arguments<'_>| {
        // Writing to a String cannot fail.
        let _ = text.write_fmt(args);
        text.push('\n');
    };

    line(format_args!("\n"));
    line(format_args!("subjects"));
    for subject in &campaign.subjects {
        let mark = if subject.baseline { "  (baseline)" } else { "" };
        line(format_args!(
            "  {:<12} {} {}{mark}",
            subject.name,
            subject.source.kind(),
            subject.source
        ));
    }
    line(format_args!("\nworkloads"));
    for workload in plan_workloads(campaign) {
        line(format_args!("  {workload}"));
    }
    let cells = plan.trials.len() / campaign.repetitions.max(1) as usize;
    line(format_args!(
        "\n{cells} cells x {} repetitions = {} trials of {} s, shuffled inside each repetition (seed {})",
        campaign.repetitions,
        plan.trials.len(),
        campaign.runtime_s + campaign.ramp_s,
        campaign.seed,
    ));
    line(format_args!("estimated time {} and the filling of the subjects", minutes(plan.duration)));
    line(format_args!("\nwritten"));
    for (subject, trials) in campaign.subjects.iter().zip(&plan.writing_trials) {
        line(format_args!("  {:<12} {}", subject.name, describe_writes(campaign, *trials)));
    }
    if !plan.overwrites.is_empty() {
        let flags: Vec<String> =
            plan.overwrites.iter().map(|path| format!("--destroy {}", shell_word(path))).collect();
        line(format_args!("\nthe content of these is lost; to agree, add"));
        line(format_args!("  {}", flags.join(" ")));
    }
    for (name, note) in &plan.notes {
        line(format_args!("\nnote on {name}: {note}"));
    }
    text
}

fn describe_writes(campaign: &Campaign, trials: u32) -> String {
    let region: ByteSize = campaign.region;
    match (trials, campaign.fill) {
        (0, _) => "nothing".to_owned(),
        (_, true) => format!(
            "its first {region}: once before the first trial, then in {trials} trials of {} s as \
             fast as it takes it",
            campaign.runtime_s + campaign.ramp_s
        ),
        (_, false) => format!(
            "its first {region}: in {trials} trials of {} s as fast as it takes it",
            campaign.runtime_s + campaign.ramp_s
        ),
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
mod tests {
    use super::*;
    use crate::preset::quick_campaign;

    #[test]
    fn quick_takes_about_a_minute_and_says_what_it_destroys() {
        let subjects = [("stripe".to_owned(), "raid0(chunk=64K, a.img, b.img)".to_owned())];
        let plan = plan_campaign(&quick_campaign("a.img", &subjects).unwrap());
        assert!(plan.duration < Duration::from_secs(75), "{:?}", plan.duration);
        assert_eq!(plan.overwrites, ["a.img", "b.img"]);
        assert_eq!(plan.writing_trials, [12, 12]);
        let text = render_plan(&plan);
        for part in [
            "48 trials",
            "--destroy a.img --destroy b.img",
            "seed 42",
            "(baseline)",
            "random write 4K",
        ] {
            assert!(text.contains(part), "{part:?} is missing in\n{text}");
        }
    }

    #[test]
    fn times_are_readable() {
        assert_eq!(minutes(Duration::from_secs(69)), "69 s");
        assert_eq!(minutes(Duration::from_secs(121)), "3 min");
        assert_eq!(minutes(Duration::from_secs(9000)), "2.5 h");
    }
}
