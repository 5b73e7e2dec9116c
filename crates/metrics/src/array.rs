//! Arrays, beyond what md has names for: passes with their rate, scrubs, logs, members' states.

use braid_control::{ArrayStatus, LogCostStatus, Status};

use crate::page::{Of, micros};
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
    if let Some(set) = array.bitmap_chunks_set {
        let help = "Chunks of the write-intent bitmap that may differ after a crash.";
        of.gauge("braid_array_bitmap_chunks_set", help, set);
    }
    if let Some(job) = &array.job {
        let mut of = of.part("kind", &job.kind);
        of.gauge("braid_array_pass_done_bytes", "How far the pass that runs is.", job.done_bytes);
        of.gauge("braid_array_pass_size_bytes", "How far it goes.", job.total_bytes);
        of.gauge(
            "braid_array_pass_bytes_per_second",
            "Its rate over the last seconds.",
            job.bytes_per_second,
        );
        if let Some((_, worst)) = job.eta_seconds {
            let help = "How long it still takes, by the slowest of the last minute.";
            of.gauge("braid_array_pass_remaining_seconds", help, worst);
        }
    }
    of.gauge(
        "braid_array_mismatch_bytes",
        "Bytes that differ, of the comparison that runs or ran last.",
        array.mismatch_bytes,
    );
    if let Some(place) = &array.scrub_place {
        let mut of = of.part("kind", &place.kind);
        of.gauge("braid_scrub_part_done_bytes", "How far a scrub in parts is.", place.done_bytes);
        of.gauge("braid_scrub_part_size_bytes", "How far it goes.", place.total_bytes);
    }
    if let Some(scrub) = &array.last_scrub {
        let mut of = of.part("kind", &scrub.kind);
        of.gauge(
            "braid_scrub_ended_timestamp_seconds",
            "When the last scrub that went through ended.",
            scrub.ended_ms as f64 / 1e3,
        );
        of.gauge(
            "braid_scrub_mismatch_bytes",
            "Bytes that it found to differ.",
            scrub.mismatch_bytes,
        );
        let help = "Bytes that it could not read and did not compare.";
        of.gauge("braid_scrub_unread_bytes", help, scrub.unread_bytes);
    }
    if let Some(cost) = &array.log_cost {
        add_log(of, cost);
    }
    if let (Some(size), Some(used)) = (array.stripe_cache_bytes, array.stripe_cache_used_bytes) {
        of.gauge("braid_stripe_cache_size_bytes", "Memory for stripes under way.", size);
        of.gauge("braid_stripe_cache_used_bytes", "Of it, in use.", used);
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
        of.counter(
            "braid_array_member_corrected_reads_total",
            "Reads that failed and were put right from the others, as md counts them.",
            member.corrected_reads,
        );
        of.gauge(
            "braid_array_member_bad_ranges",
            "Entries in its bad-block log.",
            member.bad_ranges,
        );
    }
}

fn add_log(of: &mut Of<'_>, cost: &LogCostStatus) {
    of.counter("braid_log_writes_total", "Writes that were logged.", cost.writes);
    of.counter(
        "braid_log_stored_bytes_total",
        "Data and parity that these stored in place.",
        cost.stored_bytes,
    );
    of.counter("braid_log_written_bytes_total", "What the log stored.", cost.log_bytes);
    let help = "How long logged writes took, added up.";
    of.counter("braid_log_write_seconds_total", help, micros(cost.time_us));
    let help = "Of that, waiting for the log.";
    of.counter("braid_log_wait_seconds_total", help, micros(cost.log_time_us));
}
