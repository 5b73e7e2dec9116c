//! An array in `braid status`: a line of what it is, what goes on, and a line for each member.

use braid_engine::redundant::REPLACED_BY;
use braid_shell::{shell_path, shown};
use braid_stack::ByteSize;

use super::super::scrubbed;
use super::{disks, duration, remotes};
use braid_service::control::{ArrayMember, ArrayStatus, JobStatus, Status};

/// An array: what it is, how its members are, what goes on.
pub(super) fn render(array: &ArrayStatus, status: &Status, is_one_of_several: bool) -> String {
    let mut lines = vec![("array", headline(array, is_one_of_several))];
    if !array.lost.is_empty() {
        let text = format!(
            "bytes {} of the array can be given by no member any more (`braid files {} OFFSET+LENGTH` says whose \
             they were: docs/arrays.md, \"Bytes that are gone\"); writing them makes them good",
            scrubbed::ranges(&array.lost),
            status.name
        );
        lines.push(("lost", text));
    }
    if let (Some(chunk), Some(all), Some(set)) =
        (array.bitmap_chunk_bytes, array.bitmap_chunks, array.bitmap_chunks_set)
    {
        let text = format!("{set} of {all} chunks of {:#} set", ByteSize(chunk));
        lines.push(("bitmap", text));
    }
    if let Some(behind) = array.writes_behind {
        lines.push(("behind", format!("{behind} of at most {} writes", array.write_behind)));
    }
    if let Some(text) = protection(array).filter(|_| !status.device.volatile) {
        lines.push(("crash", text));
    }
    if let Some(cost) = array.log_cost.as_ref().filter(|cost| cost.writes > 0) {
        let text = format!(
            "{:#} for {} writes of {:#} in place, {} % of their time",
            ByteSize(cost.log_bytes),
            cost.writes,
            ByteSize(cost.stored_bytes),
            u128::from(cost.log_time_us) * 100 / u128::from(cost.time_us.max(1))
        );
        lines.push(("log", text));
    }
    if let (Some(all), Some(used)) = (array.stripe_cache_bytes, array.stripe_cache_used_bytes) {
        let text = format!("{:#} of {:#} in use", ByteSize(used), ByteSize(all));
        lines.push(("stripes", text));
    }
    lines.extend(passes(array));
    let mut text: String =
        lines.iter().map(|(key, value)| format!("{key:>8}: {}\n", shown(value))).collect();
    for member in &array.members {
        text.push_str(&format!("          {}\n", shown(&member_line(member, &status.name))));
        text.push_str(&remotes::of(status, &member.member));
        text.push_str(&disks::of(status, &member.member));
    }
    let is_complete = array.in_sync.iter().all(|in_sync| *in_sync);
    for left_out in array.left_out.iter().filter(|_| is_complete) {
        let path = shell_path(&left_out.member);
        let line = format!(
            "-  {}  takes no part: another has its role (next: `braid member remove {} {path}`)",
            left_out.member, status.name
        );
        text.push_str(&format!("            {}\n", shown(&line)));
    }
    text
}

/// Returns the level, layout, size and state of an array, on one line.
fn headline(array: &ArrayStatus, is_one_of_several: bool) -> String {
    let in_sync: String = array.in_sync.iter().map(|one| if *one { 'U' } else { '_' }).collect();
    let mut what = array.level.clone();
    if let Some(layout) = &array.layout {
        what = format!("{what} {layout}");
    }
    if let Some(chunk) = array.chunk_bytes {
        what = format!("{what}, chunk {:#}", ByteSize(chunk));
    }
    what = format!("{what}, {:#}, {} [{in_sync}]", ByteSize(array.size_bytes), array.state);
    if let (Some(metadata), Some(uuid)) = (&array.metadata, &array.uuid) {
        what = format!("{what}, metadata {metadata}, {uuid}, {} events", array.events);
    }
    if is_one_of_several {
        what = format!("{}: {what}", array.called);
    }
    what
}

/// Returns lines about the running pass, a paused scrub, and the last scrub.
fn passes(array: &ArrayStatus) -> Vec<(&'static str, String)> {
    let mut lines = Vec::from_iter(array.job.as_ref().map(|job| ("pass", job_line(job))));
    if let Some(place) = array.scrub_place.as_ref().filter(|_| !is_scrubbing(array)) {
        lines.push(("scrub", scrubbed::paused(place)));
    }
    if let Some(scrub) = &array.last_scrub {
        let left = scrubbed::not_compared(array, scrub, false);
        let mut found = match left.is_empty() || scrub.mismatch_bytes > 0 {
            true => scrubbed::found(array, scrub, "differed"),
            false => left.join("; "),
        };
        if scrub.repaired_bytes > 0 {
            found = format!("{found}; {} bytes were written again", scrub.repaired_bytes);
        }
        lines.push(("scrub", format!("last {}: {found}", scrub.kind)));
        lines.extend(scrubbed::places(array, scrub).into_iter().map(|place| ("differs", place)));
    }
    lines
}

/// Describes the protection against interrupted writes, and its cost; only parity has a write hole.
fn protection(array: &ArrayStatus) -> Option<String> {
    let consistency = array.consistency.as_deref().filter(|_| array.has_parity())?;
    if array.metadata.is_none() {
        let text = "write hole open, and nothing is recorded: brought up with all members, all is \
                    resynchronised; with one missing, parity is taken as it is";
        return Some(text.to_owned());
    }
    let open = |what: &str| {
        format!(
            "write hole open: after a crash {what} is resynchronised; a member lost at the same \
             time may take other data with it"
        )
    };
    let closed = |by: &str, cost: &str| {
        // Parity that is not known to fit cannot be made good.
        let so_far = match array.resync_from_bytes {
            Some(_) => ", as far as the resync has got",
            None => "",
        };
        format!("write hole closed by {by}{so_far}; costs {cost}")
    };
    Some(match consistency {
        "ppl" => closed(
            "md's partial parity log",
            "one more write, to the member with the parity, before each write",
        ),
        "log" => closed(
            "braid's stripe log",
            "writing twice: to the log, then in place; of whole stripes only a note",
        ),
        "bitmap" => open("what the bitmap says"),
        _ => open("all"),
    })
}

fn is_scrubbing(array: &ArrayStatus) -> bool {
    array.job.as_ref().is_some_and(|job| matches!(job.kind.as_str(), "check" | "repair"))
}

/// Returns what a pass does, how far it is, and how long it takes yet.
pub(super) fn job_line(job: &JobStatus) -> String {
    let percent = job.done_bytes as f64 * 100.0 / job.total_bytes.max(1) as f64;
    let member = job.member.as_ref().map_or(String::new(), |member| format!(" of {member}"));
    let rate = ByteSize(job.bytes_per_second);
    let left = match job.eta_seconds {
        Some((best, worst)) if best == worst => format!(", {} left", duration(best)),
        Some((best, worst)) => format!(", {} to {} left", duration(best), duration(worst)),
        None => String::new(),
    };
    format!("{}{member}: {percent:.1} %, {rate:#}/s{left}", job.kind)
}

fn member_line(member: &ArrayMember, volume: &str) -> String {
    let role = member.role.map_or("-".to_owned(), |role| role.to_string());
    let mut notes = vec![member.state.replace('_', " ")];
    if member.replacement {
        notes.push("replacement".to_owned());
    }
    if member.write_mostly {
        notes.push("write-mostly".to_owned());
    }
    if member.corrected_reads > 0 {
        notes.push(format!("{} read errors put right", member.corrected_reads));
    }
    if member.bad_ranges > 0 {
        notes.push(format!("{} bad ranges", member.bad_ranges));
    }
    let mut remark = member.remark.as_ref().map_or(String::new(), |remark| format!(": {remark}"));
    if member.remark.as_ref().is_some_and(|remark| remark.starts_with(REPLACED_BY)) {
        let path = shell_path(&member.member);
        remark = format!("{remark} (next: `braid member remove {volume} {path}`)");
    }
    format!("{role:>3}  {}  {}{remark}", member.member, notes.join(", "))
}
