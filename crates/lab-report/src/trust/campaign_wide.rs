//! What the campaign as a whole says about all of its numbers: what is missing, what they are numbers
//! of, and what makes subjects hard to compare.

use std::collections::BTreeMap;

use braid_stack::ByteSize;

use super::Checked;
use crate::words::enumerate;
use braid_lab::campaign::{FileSystem, Source, Subject};
use braid_lab::facts::{Member, members_of, note_on_sharing};
use braid_lab::matrix::{Workload, goes_through_nbd};
use braid_lab::settings::Value;
use braid_lab::store::{Outcome, Results, StoredTrial};
use braid_lab::tool::Effort;

/// Trials missing, as a part of all, up to which that is a footnote.
const FEW_MISSING: f64 = 0.05;
/// A trial shorter than this shows large differences only.
const SHORT_S: f64 = 5.0;
/// Subjects that are named one by one.
const FEW: usize = 4;

/// Whether everything below a subject is a model.
pub(super) fn is_modelled(subject: &Subject) -> bool {
    let members = members_of(&subject.source);
    !members.is_empty() && members.iter().all(|member| matches!(member, Member::Model { .. }))
}

/// Rule `unfinished`.
pub(super) fn check_progress(results: &Results, _: &[Workload]) -> Checked {
    let possible = results.cells.iter().filter(|cell| cell.impossible.is_none()).count();
    let not_to_be = |trial: &&StoredTrial| matches!(trial.outcome, Outcome::Impossible(_));
    let planned = (possible * results.campaign.repetitions as usize)
        .saturating_sub(results.trials.iter().filter(not_to_be).count());
    let failed = |trial: &&StoredTrial| matches!(trial.outcome, Outcome::Failed(_));
    let failed = results.trials.iter().filter(failed).count();
    let done = results.trials.iter().filter(|trial| trial.outcome == Outcome::Ok).count();
    let missing = planned.saturating_sub(done);
    if missing == 0 {
        return Checked::Fine;
    }
    let why = match failed {
        0 => format!("{missing} of {planned} trials have not been begun"),
        all if all == missing => format!("{missing} of {planned} trials failed"),
        some => format!("{missing} of {planned} trials are missing, {some} of them failed"),
    };
    if (missing as f64) <= FEW_MISSING * planned as f64 {
        return Checked::remark(why);
    }
    Checked::suspect(format!("{why}, and the answer may change with them"))
}

/// Rule `modelled`. What the models lack is in ARCHITECTURE and in the README.
pub(super) fn check_models(results: &Results, _: &[Workload]) -> Checked {
    let modelled: Vec<&str> = results
        .subjects
        .iter()
        .filter(|subject| is_modelled(subject))
        .map(|subject| subject.name.as_str())
        .collect();
    let who = match modelled.len() {
        0 => return Checked::Fine,
        all if all == results.subjects.len() => "All numbers are".to_owned(),
        few if few <= FEW => format!("The numbers of {} are", enumerate(&modelled)),
        many => format!("The numbers of {many} of {} subjects are", results.subjects.len()),
    };
    Checked::remark(format!(
        "{who} of models of devices, which have no cache, no write amplification and no garbage \
         collection: they predict what layouts and buses do, and measure no device"
    ))
}

/// Rule `shared-device`: subjects whose members share a device alike are named together.
pub(super) fn check_sharing(results: &Results, _: &[Workload]) -> Checked {
    let mut notes: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for facts in &results.facts {
        if let Some(note) = note_on_sharing(&facts.members) {
            notes.entry(note).or_default().push(&facts.name);
        }
    }
    let notes: Vec<String> =
        notes.iter().map(|(note, names)| format!("{}: {note}", enumerate(names))).collect();
    if notes.is_empty() { Checked::Fine } else { Checked::remark(notes.join(" ")) }
}

/// Rule `short-trials`.
pub(super) fn check_runtime(results: &Results, workloads: &[Workload]) -> Checked {
    let runtime_s = results.campaign.runtime_s;
    let is_timed =
        |workload: &Workload| workload.work().is_some_and(|work| work.effort == Effort::Runtime);
    if runtime_s >= SHORT_S
        || !workloads.iter().any(is_timed)
        || results.subjects.iter().all(is_modelled)
    {
        return Checked::Fine;
    }
    Checked::remark(format!(
        "a trial measured {runtime_s} s, which shows large differences; caches, garbage collection \
         and heat need minutes to show"
    ))
}

fn is_raw(trial: &StoredTrial) -> bool {
    let raw = Value::Word(FileSystem::None.name().to_owned());
    trial.outcome == Outcome::Ok && trial.dimensions.get("filesystem") == Some(&raw)
}

/// Rule `differing-regions`: a smaller region is seeked over in less time.
pub(super) fn check_regions(results: &Results, _: &[Workload]) -> Checked {
    let mut regions: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    for trial in results.trials.iter().filter(|trial| is_raw(trial)) {
        let names = regions.entry(trial.region_bytes).or_default();
        if !names.contains(&trial.subject.as_str()) {
            names.push(&trial.subject);
        }
    }
    if regions.len() < 2 {
        return Checked::Fine;
    }
    let sizes: Vec<String> = regions
        .iter()
        .map(|(bytes, names)| match names.as_slice() {
            few if few.len() <= FEW => format!("{:#} of {}", ByteSize(*bytes), enumerate(few)),
            many => format!("{:#} of {} subjects", ByteSize(*bytes), many.len()),
        })
        .collect();
    Checked::suspect(format!(
        "subjects were used to differing extents, because some are smaller than the region: {}",
        sizes.join(", ")
    ))
}

/// Rule `differing-paths`: what is served pays for the export, a path does not.
pub(super) fn check_paths(results: &Results, workloads: &[Workload]) -> Checked {
    let has = |is: fn(&Source) -> bool| results.subjects.iter().any(|one| is(&one.source));
    let paths = has(|source| matches!(source, Source::Path(_)));
    if !paths || !has(|source| matches!(source, Source::Stack(_))) {
        return Checked::Fine;
    }
    let how = match goes_through_nbd(workloads) {
        true => "reached through NBD",
        false => "attached as block devices",
    };
    Checked::remark(format!(
        "subjects of kind path are opened by the tool itself, stacks are {how}: the difference \
         includes the export"
    ))
}

/// Rule `closed-in-time`: the last close of a block device writes back what is left, and dd tells its
/// time after that.
pub(super) fn check_close(results: &Results, _: &[Workload]) -> Checked {
    let closes = |trial: &&StoredTrial| {
        let word = |name: &str| trial.dimensions.get(name).map(ToString::to_string);
        let words = [word("tool"), word("op"), word("sync")].map(Option::unwrap_or_default);
        is_raw(trial) && words == ["dd", "write", "none"]
    };
    match results.trials.iter().find(closes) {
        None => Checked::Fine,
        Some(_) => Checked::remark(
            "dd without a sync call on a raw subject: the device is written back when dd closes it, \
             and dd's time holds that",
        ),
    }
}
