//! The events between two looks at a volume that answered.

use std::collections::BTreeMap;

use braid_control::{ArrayStatus, Status};

use super::view::{ArrayView, JobView, VolumeView, called};
use super::{Draft, is_new};
use crate::event::{
    DEVICE_DISAPPEARED, FAIL, FAIL_SPARE, MOVE_SPARE, NEW_ARRAY, REBUILD_FINISHED, REBUILD_NN,
    REBUILD_STARTED, SCRUB_FOUND, SPARE_ACTIVE,
};

/// `spares`: where each spare of any volume was before.
pub(super) fn changes(
    before: &VolumeView,
    now: &VolumeView,
    status: &Status,
    spares: &BTreeMap<String, String>,
) -> Vec<Draft> {
    if !before.was_up {
        return is_new(now);
    }
    let mut told = Vec::new();
    let gone = before.arrays.keys().filter(|array| !now.arrays.contains_key(*array));
    told.extend(gone.map(|array| {
        Draft::new(DEVICE_DISAPPEARED, "the volume does not have it any more").array(array)
    }));
    for (name, array) in called(&status.arrays) {
        let Some(view) = now.arrays.get(&name) else { continue };
        let Some(before) = before.arrays.get(&name) else {
            told.push(Draft::new(NEW_ARRAY, "it is up").array(&name));
            continue;
        };
        let mut of_array = members(before, view, array, status);
        of_array.extend(moved(before, view, &format!("{} {name}", status.name), spares));
        of_array.extend(pass(before.job.as_ref(), view.job.as_ref()));
        of_array.extend(repaired(before, array));
        told.extend(of_array.into_iter().map(|draft| draft.array(&name)));
    }
    told
}

/// Members that failed, or were filled.
fn members(
    before: &ArrayView,
    view: &ArrayView,
    array: &ArrayStatus,
    status: &Status,
) -> Vec<Draft> {
    let is_degraded = array.in_sync.iter().any(|in_sync| !in_sync);
    let mut told = Vec::new();
    for (member, old) in &before.members {
        let now = view.members.get(member).map(String::as_str);
        let remark = array.members.iter().find(|one| one.member == *member);
        let remark = remark.and_then(|one| one.remark.as_deref());
        let is_replaced = remark.is_some_and(|remark| remark.starts_with("replaced by"));
        let remark = remark.map_or(String::new(), |remark| format!(": {remark}"));
        let (kind, what) = match (old.as_str(), now) {
            // It did not fail: another member has its role, by an order.
            ("in_sync", Some("faulty")) if is_replaced => continue,
            ("in_sync", Some("faulty")) => (FAIL, format!("{member} failed{remark}")),
            // It failed and was removed since, or the array has given it up; one whose role another has
            // taken over leaves a whole array.
            ("in_sync", None) if is_degraded => (FAIL, format!("{member} is not in use any more")),
            ("recovering" | "spare", Some("faulty")) => {
                (FAIL_SPARE, format!("{member}, which was {}, failed{remark}", waited(old)))
            }
            ("recovering" | "spare", Some("in_sync")) => {
                (SPARE_ACTIVE, format!("{member} is filled, and in sync"))
            }
            _ => continue,
        };
        let next = if kind == SPARE_ACTIVE { None } else { status.next.clone() };
        told.push(Draft::new(kind, what).member(member).next(next));
    }
    told
}

fn waited(state: &str) -> &'static str {
    if state == "spare" { "a spare" } else { "being filled" }
}

/// Spares that came from another array.
fn moved(
    before: &ArrayView,
    view: &ArrayView,
    here: &str,
    spares: &BTreeMap<String, String>,
) -> Vec<Draft> {
    let is_new = |member: &&String| !before.members.contains_key(*member);
    let new = view.members.keys().filter(is_new);
    let moved = new.filter_map(|member| Some((member, spares.get(member)?)));
    moved
        .filter(|(_, from)| *from != here)
        .map(|(member, from)| {
            Draft::new(MOVE_SPARE, format!("{member} was a spare of {from}")).member(member)
        })
        .collect()
}

/// A pass that began, came further, or ended.
fn pass(before: Option<&JobView>, now: Option<&JobView>) -> Vec<Draft> {
    let is_same = |one: &JobView, other: &JobView| {
        one.kind == other.kind && one.member == other.member && one.step <= other.step
    };
    let of = |job: &JobView| {
        job.member.as_ref().map_or(job.kind.clone(), |member| format!("{} of {member}", job.kind))
    };
    let mut told = Vec::new();
    if let (Some(before), Some(now)) = (before, now)
        && is_same(before, now)
    {
        if now.step > before.step {
            told.push(Draft {
                name: Some(format!("Rebuild{:02}", now.step)),
                ..Draft::new(REBUILD_NN, format!("{} is at {} %", of(now), now.step))
            });
        }
        return told;
    }
    if let Some(before) = before {
        told.push(Draft::new(REBUILD_FINISHED, format!("{} runs no more", of(before))));
    }
    if let Some(now) = now {
        told.push(Draft::new(REBUILD_STARTED, format!("{} runs", of(now))));
    }
    told
}

/// A repair that ended, and had something to make good. What only was found lasts: it is a condition.
fn repaired(before: &ArrayView, array: &ArrayStatus) -> Option<Draft> {
    let scrub = array.last_scrub.as_ref()?;
    let is_new = before.scrub_ended_ms != Some(scrub.ended_ms);
    let repaired = scrub.mismatch_bytes.saturating_sub(scrub.left());
    (is_new && scrub.kind == "repair" && repaired > 0).then(|| {
        Draft::new(
            SCRUB_FOUND,
            format!("a repair found {repaired} bytes that differed, and wrote them again"),
        )
    })
}
