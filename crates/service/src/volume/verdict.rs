//! The state of a volume: one word, why, and the next command. The one place where a status is judged.
//!
//! ```text
//!   failed    a shard panicked, and the volume ends
//!   stalled   a shard does not answer
//!   failed    an array has stopped             │ the worst
//!   failing   bytes that no member can give    │
//!   degraded  members are missing              │ of all
//!   resyncing copies, or parity, may not fit   │ arrays
//!   failing   a member without redundancy failed, or its file is gone; a cache cannot drain, or its log failed
//!   online    none of that
//! ```
//!
//! Invariant: pure; the facts are those of the status, and nothing else is asked.

use std::time::Duration;

use braid_shell::shell_path;
use braid_stack::ByteSize;

use crate::control::{ArrayStatus, CacheStatus, LeftOutStatus, MemberStatus};

/// The first lines of a status.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) state: &'static str,
    pub(super) why: Option<String>,
    pub(super) next: Option<String>,
}

/// State of the shards.
#[derive(Clone, Copy)]
pub(super) enum Serving {
    /// All of them answer.
    Answers,
    /// One does not, for so long as it was waited for.
    Silent { shard: usize, waited: Duration },
    /// One has ended by a fault of the program.
    Panicked,
}

/// Judges the volume called `volume` by its members and arrays.
pub(super) fn judge(
    volume: &str,
    members: &[MemberStatus],
    arrays: &[ArrayStatus],
    caches: &[CacheStatus],
    serving: Serving,
) -> Verdict {
    not_served(volume, serving)
        .or_else(|| worst_of(volume, arrays))
        .or_else(|| caches.iter().find_map(undrained))
        .or_else(|| failing(volume, members, arrays))
        .or_else(|| caches.iter().find_map(|cache| unlogged(volume, cache)))
        .or_else(|| gone(volume, members, arrays))
        .unwrap_or(Verdict { state: "online", why: None, next: None })
}

fn verdict(state: &'static str, why: String, next: Option<String>) -> Verdict {
    Verdict { state, why: Some(why), next }
}

/// Why requests are not answered.
fn not_served(volume: &str, serving: Serving) -> Option<Verdict> {
    let (shard, seconds) = match serving {
        Serving::Answers => return None,
        Serving::Silent { shard, waited } => (shard, waited.as_secs()),
        Serving::Panicked => {
            let why = "a shard panicked: nothing is served any more, and the volume is ending";
            let next = format!("`braid up {volume}`, when its process has ended");
            return Some(verdict("failed", why.to_owned(), Some(next)));
        }
    };
    Some(verdict(
        "stalled",
        format!(
            "its shard {shard} has not answered for {seconds} s: it waits for a member, or for memory"
        ),
        Some(format!(
            "look at its members (`dmesg`) and at the machine's memory; `braid down {volume} --force` \
             ends its process and gets the device back"
        )),
    ))
}

/// A cache whose origin does not take what is dirty.
fn undrained(cache: &CacheStatus) -> Option<Verdict> {
    let write_back = cache.write_back.as_ref()?;
    let error = write_back.drain_error.as_ref()?;
    let kept = match write_back.flushed_to.as_str() {
        "log" => "what was flushed is in its log",
        _ => "it is in memory alone",
    };
    Some(verdict(
        "failing",
        format!(
            "{:#} of its cache cannot be written to the origin ({error}): {kept}",
            ByteSize(write_back.dirty_bytes)
        ),
        Some(
            "look at the origin's members (`dmesg`): it is tried again, and the volume must not go down \
             before"
                .to_owned(),
        ),
    ))
}

/// A cache whose log's device failed.
fn unlogged(volume: &str, cache: &CacheStatus) -> Option<Verdict> {
    let write_back = cache.write_back.as_ref()?;
    let error = write_back.log_error.as_ref()?;
    Some(verdict(
        "failing",
        format!("the log of its cache failed ({error}): FLUSH waits for the origin"),
        Some(format!(
            "`braid cache mode {volume} write-through`; or `braid down {volume}`, and `braid up` with \
             another log"
        )),
    ))
}

/// The worst of the arrays that are not as they should be.
fn worst_of(volume: &str, arrays: &[ArrayStatus]) -> Option<Verdict> {
    let several = arrays.len() > 1;
    let verdicts = arrays.iter().filter_map(|array| {
        let which = if several { format!(" --array {}", array.called) } else { String::new() };
        let degraded = || degraded(volume, array, &which);
        stopped(array)
            .or_else(|| lost(volume, array, degraded()))
            .or_else(degraded)
            .or_else(|| resyncing(array))
            .map(|verdict| (rank(&verdict, array), verdict))
    });
    verdicts.max_by_key(|(rank, _)| *rank).map(|(_, verdict)| verdict)
}

/// States that need an operator come before those that are being mended.
fn rank(verdict: &Verdict, array: &ArrayStatus) -> u8 {
    match verdict.state {
        "failed" => 5,
        "failing" => 4,
        "degraded" if array.job.is_none() => 3,
        "degraded" => 2,
        _ => 1,
    }
}

fn stopped(array: &ArrayStatus) -> Option<Verdict> {
    let last = array.log.last().map_or("", |(_, text)| text);
    (array.state == "broken").then(|| {
        verdict(
            "failed",
            format!("{}: nothing can be written any more: {last}", array.level),
            Some(
                "what was acknowledged can be read; replace what failed, then bring it up again. If it does not \
                 start, `braid rescue scan CASE MEMBER..` finds out, without writing, what can be read"
                    .to_owned(),
            ),
        )
    })
}

/// Bytes that reads answer with errors; `degraded` says what else the array lacks, and goes first: what a
/// missing member has may be what is lost.
fn lost(volume: &str, array: &ArrayStatus, degraded: Option<Verdict>) -> Option<Verdict> {
    let bytes = array.lost_bytes();
    if bytes == 0 {
        return None;
    }
    let places = match array.lost.len() {
        1 => "1 place".to_owned(),
        count => format!("{count} places"),
    };
    let mut why =
        format!("{}: {:#} in {places} can be read from no member", array.level, ByteSize(bytes));
    let mut next = format!(
        "`braid status {volume}` lists the bytes: restore them from a backup (docs/arrays.md, \"Bytes that \
         are gone\"), which makes them readable again"
    );
    if let Some(other) = degraded {
        why = format!("{why}; {}", other.why.unwrap_or_default());
        next = other.next.map_or(next.clone(), |first| format!("{first}; then {next}"));
    }
    Some(verdict("failing", why, Some(next)))
}

fn progress_of(array: &ArrayStatus) -> Option<String> {
    array.job.as_ref().map(|job| {
        let percent = job.done_bytes as f64 * 100.0 / job.total_bytes.max(1) as f64;
        format!("{} at {percent:.1} %", job.kind)
    })
}

/// `which` names the array in commands, where there are several.
fn degraded(volume: &str, array: &ArrayStatus, which: &str) -> Option<Verdict> {
    let missing = array.in_sync.iter().filter(|in_sync| !**in_sync).count();
    if missing == 0 {
        return None;
    }
    let faulty = array.members.iter().find(|member| member.state == "faulty");
    let mut why = format!("{}: {missing} of {} members not in sync", array.level, array.raid_disks);
    if let Some(member) = faulty {
        let remark = member.remark.as_deref().unwrap_or("faulty");
        why = format!("{why} ({}: {remark})", member.member);
    }
    if let Some(doubt) = doubt(array) {
        why = format!("{why}; {doubt}");
    }
    let add = format!("`braid member add {volume} DEVICE{which}`");
    // Of another device, or without a bitmap, nothing says what it lacks.
    let comes_back = array.left_out.iter().all(|one| one.by_bitmap);
    let again = match array.bitmap_chunk_bytes.filter(|_| comes_back) {
        Some(_) => {
            format!("; the member that was removed: `braid member re-add {volume} DEVICE{which}`")
        }
        None => String::new(),
    };
    let progress = progress_of(array);
    let next = match (&progress, faulty) {
        (Some(_), _) => format!("wait: `braid status {volume} --watch` shows how far it is"),
        // Nothing would remember a member that is taken in.
        (None, _) if array.metadata.is_none() => {
            "copy what it holds to an array with superblocks, which takes members in: `braid create` \
             makes one"
                .to_owned()
        }
        (None, Some(member)) => {
            let member = shell_path(&member.member);
            format!("`braid member remove {volume} {member}`, then {add}{again}")
        }
        (None, None) => match array.left_out.first() {
            Some(LeftOutStatus { member, by_bitmap }) => {
                let how = if *by_bitmap { "re-add" } else { "add" };
                let member = shell_path(member);
                format!("`braid member {how} {volume} {member}{which}` brings it up to date")
            }
            None => format!("{add} gives the array another member{again}"),
        },
    };
    let why = progress.map_or(why.clone(), |progress| format!("{why}; {progress}"));
    Some(verdict("degraded", why, Some(next)))
}

/// Data that are reconstructed from parity that may not fit: what a crash left, and a member that went before
/// it was made good.
fn doubt(array: &ArrayStatus) -> Option<String> {
    let from = array.resync_from_bytes.filter(|_| array.has_parity())?;
    Some(format!(
        "parity from byte {from} of each member's data on was in doubt when the member went: what is \
         reconstructed there may be wrong where something was being written at the crash"
    ))
}

fn resyncing(array: &ArrayStatus) -> Option<Verdict> {
    array.job.as_ref().filter(|job| job.kind == "resync")?;
    let what = if array.has_parity() {
        "parity may not fit the data that was written last"
    } else {
        "copies may differ since they were last written"
    };
    let progress = progress_of(array).unwrap_or_default();
    Some(verdict("resyncing", format!("{}: {what}; {progress}", array.level), None))
}

/// Members that failed where nothing makes up for them. Where there are copies, the arrays say what
/// a failure means.
fn failing(volume: &str, members: &[MemberStatus], arrays: &[ArrayStatus]) -> Option<Verdict> {
    if arrays.iter().any(ArrayStatus::is_redundant) {
        return None;
    }
    let member = members.iter().find(|member| member.failures > 0)?;
    // What was lost is more than what failed.
    if let Some((member, error)) = members.iter().find_map(|one| Some((one, one.lost.as_ref()?))) {
        return Some(verdict(
            "failing",
            format!(
                "a flush of {} failed ({error}): what was written before may not be on it, and every \
                 flush fails until the volume is brought up anew",
                member.member
            ),
            Some(format!(
                "check what was written since the last flush that was answered well; then `braid down \
                 {volume}` and `braid up {volume}`"
            )),
        ));
    }
    Some(verdict(
        "failing",
        format!(
            "{} failed {} times, last with: {}",
            member.member,
            member.failures,
            member.last_failure.as_deref().unwrap_or("unknown")
        ),
        Some(
            "this level has no redundancy: copy what can still be read, then replace the member"
                .to_owned(),
        ),
    ))
}

/// Members that are gone, or will not be found again once the volume is down, each with what that means.
fn all_gone(members: &[MemberStatus]) -> Vec<String> {
    let gone = members.iter().filter_map(|one| Some((&one.member, one.gone.as_ref()?)));
    gone.map(|(label, why)| format!("{label}: {why}")).collect()
}

/// Returns warnings about members that work, or that an array can do without.
pub(super) fn warnings_of(members: &[MemberStatus]) -> Vec<String> {
    let mut warnings = all_gone(members);
    for MemberStatus { member, io, slow, remote, .. } in members {
        if io.overdue > 0 {
            let count = io.overdue;
            warnings.push(format!(
                "{member}: {count} requests have had no answer within their deadline: it is asked for \
                 nothing until they have"
            ));
        }
        warnings.extend(slow.iter().map(|why| format!("{member} is slow: {why}")));
        warnings.extend(remote.iter().filter_map(|remote| remote.delay(member)));
    }
    warnings
}

fn gone(volume: &str, members: &[MemberStatus], arrays: &[ArrayStatus]) -> Option<Verdict> {
    let mut gone = members.iter().filter(|member| member.gone.is_some());
    let first = gone.next()?.member.as_str();
    let has = |array: &&ArrayStatus| array.members.iter().any(|one| one.member == first);
    let keeps_copies =
        arrays.iter().find(has).is_some_and(|array| array.raid_disks > 1 && array.is_redundant());
    let why = all_gone(members).join("; ");
    Some(if gone.next().is_none() && keeps_copies {
        let path = shell_path(first);
        verdict("degraded", why, Some(format!("`braid member replace {volume} {path} DEVICE`")))
    } else {
        let next = format!("copy what {volume} holds elsewhere before it goes down");
        verdict("failing", why, Some(next))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{ArrayStatus, LeftOutStatus, Serving, Verdict, judge};

    fn raid5(in_sync: [bool; 3], resync_from_bytes: Option<u64>) -> ArrayStatus {
        let array = json!({
            "name": "home", "uuid": null, "metadata": "1.2", "level": "raid5", "layout": "left-symmetric",
            "layout_number": 2, "chunk_bytes": 524_288, "size_bytes": 1 << 30, "state": "active",
            "raid_disks": 3, "in_sync": in_sync, "members": [], "resync_from_bytes": resync_from_bytes,
            "events": 7, "bitmap_chunk_bytes": null, "bitmap_chunks": null, "bitmap_chunks_set": null,
            "job": null, "requested": null, "last_scrub": null, "mismatch_bytes": 0,
            "mismatch_offsets": [], "speed_min_bytes_per_second": 0,
            "speed_max_bytes_per_second": null, "speed_latency_us_p99": null, "log": [],
        });
        serde_json::from_value(array).expect("a status")
    }

    #[test]
    fn a_reconstruction_from_parity_in_doubt_is_told() {
        let why =
            |array| judge("home", &[], &[array], &[], Serving::Answers).why.unwrap_or_default();
        let doubt = "parity from byte 4096 of each member's data on was in doubt";
        assert!(why(raid5([true, true, false], Some(4096))).contains(doubt));
        assert!(!why(raid5([true, true, false], None)).contains("in doubt"));
        assert!(!why(raid5([true; 3], Some(4096))).contains("in doubt"));
    }

    #[test]
    fn a_bitmap_brings_back_the_member_that_was_removed() {
        let next = |bitmap_chunk_bytes| {
            let array = ArrayStatus { bitmap_chunk_bytes, ..raid5([true, true, false], None) };
            judge("home", &[], &[array], &[], Serving::Answers).next.unwrap_or_default()
        };
        let add = "`braid member add home DEVICE` gives the array another member";
        assert_eq!(next(None), add);
        let again = "the member that was removed: `braid member re-add home DEVICE`";
        assert_eq!(next(Some(65536)), format!("{add}; {again}"));
    }

    #[test]
    fn a_member_that_no_bitmap_brings_back_is_added_anew() {
        let next = |left_out: &[(&str, bool)]| {
            let one = |&(member, by_bitmap): &(&str, bool)| LeftOutStatus {
                member: member.to_owned(),
                by_bitmap,
            };
            let left_out = left_out.iter().map(one).collect();
            let bitmap_chunk_bytes = Some(65536);
            let array =
                ArrayStatus { bitmap_chunk_bytes, left_out, ..raid5([true, true, false], None) };
            judge("home", &[], &[array], &[], Serving::Answers).next.unwrap_or_default()
        };
        assert_eq!(next(&[("b", true)]), "`braid member re-add home b` brings it up to date");
        assert_eq!(next(&[("b", false)]), "`braid member add home b` brings it up to date");
        assert_eq!(
            next(&[("b", false), ("c", true)]),
            "`braid member add home b` brings it up to date"
        );
    }

    #[test]
    fn lost_bytes_are_never_online() {
        let judged = |in_sync, lost| {
            let mut array = raid5(in_sync, None);
            array.lost = lost;
            judge("home", &[], &[array], &[], Serving::Answers)
        };
        assert_eq!(judged([true; 3], vec![]).state, "online");
        let Verdict { state, why, next } = judged([true; 3], vec![(4096, 512), (8192, 512)]);
        assert_eq!(state, "failing");
        assert_eq!(why.unwrap(), "raid5: 1 KiB in 2 places can be read from no member");
        assert!(next.unwrap().starts_with("`braid status home` lists the bytes"));
        let Verdict { state, why, next } = judged([true, true, false], vec![(4096, 512)]);
        assert_eq!(state, "failing", "the worse of the two");
        assert!(
            why.unwrap().contains("in 1 place can be read from no member; raid5: 1 of 3 members")
        );
        assert!(next.unwrap().starts_with("`braid member add home DEVICE`"), "the nearest way out");
    }

    #[test]
    fn a_panic_is_told_as_what_it_is() {
        let verdict = judge("home", &[], &[raid5([true; 3], None)], &[], Serving::Panicked);
        assert_eq!(verdict.state, "failed");
        assert!(verdict.why.unwrap().contains("a shard panicked"));
    }

    #[test]
    fn a_cache_that_cannot_drain_needs_somebody() {
        let mut cache = json!({
            "cache": "cache(…)", "mode": "write-back", "policy": "lru", "block_bytes": 4096,
            "size_bytes": 1 << 20, "used_bytes": 8192, "index_bytes": 0, "reads": 0, "writes": 2,
            "cache_hits": 0, "cache_misses": 0, "replacement": 0, "write_replacement": 0,
            "read_invalidates": 0, "write_invalidates": 0, "uncached_reads": 0, "uncached_writes": 0,
            "disk_reads": 0, "disk_writes": 1, "cache_reads": 0, "cache_writes": 2, "bytes_read": 0,
            "bytes_from_ram": 0, "bytes_from_origin": 0, "bytes_written": 8192,
            "write_back": {
                "flushed_to": "log", "dirty_bytes": 8192, "dirty_limit_bytes": 1 << 19,
                "oldest_dirty_ms": 5, "drained_bytes": 0, "log": "l.img", "log_size_bytes": 1 << 20,
                "log_used_bytes": 8192, "log_writes": 1, "log_written_bytes": 8192,
                "replayed_bytes": 0, "drain_error": null, "log_error": null,
            },
        });
        let judged = |cache: &Value| {
            let cache = serde_json::from_value(cache.clone()).expect("a status");
            judge("home", &[], &[], &[cache], Serving::Answers)
        };
        assert_eq!(judged(&cache).state, "online");
        cache["write_back"]["log_error"] = json!("EIO");
        assert!(
            judged(&cache).why.unwrap_or_default().contains("the log of its cache failed (EIO)")
        );
        cache["write_back"]["drain_error"] = json!("ENOSPC");
        let Verdict { state, why, next } = judged(&cache);
        assert_eq!(state, "failing");
        assert!(why.unwrap_or_default().contains("8 KiB of its cache cannot be written"));
        assert!(next.unwrap_or_default().contains("it is tried again"));
    }
}
