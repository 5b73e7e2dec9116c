//! Findings about the campaign as a whole: failed and missing numbers, the machines of the measurements, the
//! meaning of the numbers, and reasons why subjects are hard to compare.

use std::collections::{BTreeMap, BTreeSet};

use braid_stack::ByteSize;

use super::Checked;
use super::case::{Cell, stack_of, working_set};
use crate::words::enumerate;
use braid_lab::campaign::{FileSystem, Source, Subject};
use braid_lab::facts::{Member, members_of, note_on_sharing};
use braid_lab::matrix::{Workload, goes_through_nbd};
use braid_lab::plan::unreached;
use braid_lab::settings::Value;
use braid_lab::store::{Outcome, Results, Session, StoredTrial};

/// Trials missing, as a part of all, up to which that is a footnote.
const FEW_MISSING: f64 = 0.05;
/// Ways of sharing that are told one by one.
const MOST_NOTES: usize = 3;

/// Rule `failed-trials`. Those that went well may be those that were lucky.
pub(super) fn check_failures(cell: &Cell<'_>, _: &[&Cell<'_>]) -> Checked {
    let failed = cell.failed.len();
    match cell.failed.first().map(|first| &first.outcome) {
        Some(Outcome::Failed(reason)) => Checked::suspect(format!(
            "{failed} of {} repetitions failed; the first said: {reason}",
            failed + cell.good.len()
        )),
        _ => Checked::Fine,
    }
}

/// Rule `mixed-environment`: of this cell and of those that it is compared with.
pub(super) fn check_environment(cell: &Cell<'_>, others: &[&Cell<'_>]) -> Checked {
    let others = others.iter().flat_map(|other| other.sessions());
    let mut sessions: Vec<&Session> = cell.sessions().chain(others).collect();
    sessions.sort_by_key(|session| session.started_unix_s);
    let Some((first, later)) = sessions.split_first() else {
        return Checked::Unknown;
    };
    let differences: BTreeSet<String> = later
        .iter()
        .flat_map(|session| first.environment.differences(&session.environment))
        .collect();
    if differences.is_empty() {
        return Checked::Fine;
    }
    let differences: Vec<String> = differences.into_iter().collect();
    Checked::suspect(format!(
        "the numbers of this workload come from environments that differ: {}",
        differences.join("; ")
    ))
}

/// True if everything below a subject is a model.
pub(super) fn is_modelled(subject: &Subject) -> bool {
    let members = members_of(&subject.source);
    !members.is_empty() && members.iter().all(|member| matches!(member, Member::Model { .. }))
}

/// Rule `unfinished`.
pub(super) fn check_progress(results: &Results, _: &[Workload]) -> Checked {
    let possible = results.cells.iter().filter(|cell| cell.impossible.is_none()).count();
    let with =
        |is: fn(&Outcome) -> bool| results.trials.iter().filter(|trial| is(&trial.outcome)).count();
    let impossible = with(|outcome| matches!(outcome, Outcome::Impossible(_)));
    let failed = with(|outcome| matches!(outcome, Outcome::Failed(_)));
    let planned = (possible * results.campaign.repetitions as usize).saturating_sub(impossible);
    let missing = planned.saturating_sub(with(|outcome| *outcome == Outcome::Ok));
    if missing == 0 {
        return Checked::Fine;
    }
    let why = match failed {
        0 => format!("{missing} of {planned} trials have not been begun"),
        _ => format!("{missing} of {planned} trials are missing, {failed} of them failed"),
    };
    if (missing as f64) <= FEW_MISSING * planned as f64 {
        return Checked::remark(why);
    }
    Checked::suspect(format!("{why}, and the answer may change with them"))
}

/// Rule `predicted`.
pub(super) fn check_predicted(results: &Results, _: &[Workload]) -> Checked {
    let Some(session) = results.sessions.last() else { return Checked::Fine };
    let Some(prediction) = &session.environment.prediction else { return Checked::Fine };
    Checked::remark(format!(
        "nothing was measured: all numbers were {}; {}",
        session.environment.origin(),
        prediction.off_by()
    ))
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
        _ => format!("The numbers of {} are", enumerate(&modelled)),
    };
    Checked::remark(format!(
        "{who} of models of devices, which know no errors, no work in the background and no other \
         users: they predict what layouts, buses and media do, and measure no device"
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
    let told: Vec<String> =
        notes.iter().map(|(note, names)| format!("{}: {note}", enumerate(names))).collect();
    match told.as_slice() {
        [] => Checked::Fine,
        few if few.len() <= MOST_NOTES => Checked::remark(few.join(" ")),
        _ => {
            let all: usize = notes.values().map(Vec::len).sum();
            let first = notes
                .iter()
                .next()
                .and_then(|(note, names)| Some(format!("{}: {note}", names.first()?)));
            let first = first.unwrap_or_default();
            Checked::remark(format!(
                "Members of {all} subjects share hardware. For example {first}"
            ))
        }
    }
}

/// Rule `unreached-members`: a linear array that is used where its first members lie is compared as if it were one of
/// them, and says nothing of the others. Told of the workload that reaches the fewest.
pub(super) fn check_reach(results: &Results, workloads: &[Workload]) -> Checked {
    let labels: BTreeMap<String, &Workload> =
        workloads.iter().map(|workload| (workload.label(), workload)).collect();
    let of_subject = |subject: &Subject| {
        let stack = stack_of(Some(subject))?;
        let facts = results.facts.iter().find(|facts| facts.name == subject.name);
        let each = facts
            .and_then(|facts| facts.size_bytes)
            .map(|size| size / stack.members().len().max(1) as u64);
        let mine = results.trials.iter();
        let mine = mine.filter(|one| one.subject == subject.name && one.outcome == Outcome::Ok);
        let reach = mine.filter_map(|trial| {
            let used = working_set(labels.get(&trial.workload)?, trial.region_bytes);
            let (unreached, all) = unreached(&stack, used, each)?;
            Some((unreached, all, used, trial.workload.as_str()))
        });
        let (unreached, all, used, workload) = reach.max_by_key(|(unreached, ..)| *unreached)?;
        let idle = if unreached == 1 { "the other is" } else { "the others are" };
        (unreached > 0).then(|| {
            format!(
                "{}: {workload} uses {:#}, all of it on {} of its {all} members; {idle} idle",
                subject.name,
                ByteSize(used),
                all - unreached
            )
        })
    };
    let found: Vec<String> = results.subjects.iter().filter_map(of_subject).collect();
    if found.is_empty() { Checked::Fine } else { Checked::remark(found.join("; ")) }
}

/// Rule `differing-regions`: a smaller region is seeked over in less time.
pub(super) fn check_regions(results: &Results, _: &[Workload]) -> Checked {
    let mut regions: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    let raw = Value::Word(FileSystem::None.name().to_owned());
    let is_raw = |trial: &&StoredTrial| {
        trial.outcome == Outcome::Ok && trial.dimensions.get("filesystem") == Some(&raw)
    };
    for trial in results.trials.iter().filter(is_raw) {
        let names = regions.entry(trial.region_bytes).or_default();
        if !names.contains(&trial.subject.as_str()) {
            names.push(&trial.subject);
        }
    }
    if regions.len() < 2 {
        return Checked::Fine;
    }
    let of = |(bytes, names): (&u64, &Vec<&str>)| {
        format!("{:#} of {}", ByteSize(*bytes), enumerate(names))
    };
    let sizes: Vec<String> = regions.iter().map(of).collect();
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
