//! Arrays, beyond what md has names for: passes with their rate, scrubs, logs, members' states.

use braid_control::{ArrayStatus, Status};

use crate::page::Of;
use crate::told_apart;

/// All values of [`ArrayStatus::state`].
const STATES: [&str; 4] = ["clean", "active", "readonly", "broken"];

/// All values of an array's member's state.
const MEMBER_STATES: [&str; 4] = ["in_sync", "recovering", "spare", "faulty"];

pub(crate) fn add(of: &mut Of<'_>, status: &Status) {
    let names = told_apart(status.arrays.iter().map(|array| array.called.as_str()));
    for (name, array) in names.iter().zip(&status.arrays) {
        add_array(&mut of.part("array", name), array);
    }
}

fn add_array(of: &mut Of<'_>, array: &ArrayStatus) {
    of.part("level", &array.level).gauge(
        "braid_array_size_bytes",
        "Size of the array.",
        array.size_bytes,
    );
    of.states(
        "braid_array_state",
        "How the array is, in md's words; 1 for the state that it is in.",
        &STATES,
        &array.state,
    );
    let missing = array.in_sync.iter().filter(|in_sync| !**in_sync).count();
    of.gauge("braid_array_missing_members", "Roles without a member in sync.", missing);
    let lost = array.lost.iter().map(|(_, len)| len).sum::<u64>();
    of.gauge("braid_array_lost_bytes", "Bytes that no member can give any more.", lost);
    of.figures("", array);
    if let Some(job) = &array.job {
        let mut of = of.part("kind", &job.kind);
        of.figures("", job);
        if let Some((_, worst)) = job.eta_seconds {
            let help = "How long it still takes, by the slowest of the last minute.";
            of.gauge("braid_array_pass_remaining_seconds", help, worst);
        }
    }
    if let Some(place) = &array.scrub_place {
        of.part("kind", &place.kind).figures("", place);
    }
    if let Some(scrub) = &array.last_scrub {
        of.part("kind", &scrub.kind).figures("", scrub);
    }
    if let Some(cost) = &array.log_cost {
        of.figures("", cost);
    }
    let members = told_apart(array.members.iter().map(|member| member.member.as_str()));
    for (name, member) in members.iter().zip(&array.members) {
        let mut of = of.part("member", name);
        of.states(
            "braid_array_member_state",
            "What the member is good for; 1 for the state that it is in.",
            &MEMBER_STATES,
            &member.state,
        );
        of.figures("", member);
    }
}
