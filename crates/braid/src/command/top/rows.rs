//! From two looks at volumes to what they did between: pure.

use std::time::Duration;

use braid_stack::ByteSize;

use braid_service::control::{
    CacheStatus, JobStatus, Latencies, MemberStatus, RemoteStatus, Status,
};

/// State of volumes at a time; `None` for a volume that did not respond.
pub(super) struct Look {
    pub(super) at: Duration,
    pub(super) volumes: Vec<(String, Option<Status>)>,
}

/// Sort key of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// As the stack has them.
    Stack,
    Bytes,
    Latency,
    InFlight,
    Errors,
}

impl Sort {
    pub(super) fn of_key(key: u8) -> Option<Sort> {
        match key {
            b'n' => Some(Sort::Stack),
            b'b' => Some(Sort::Bytes),
            b'l' => Some(Sort::Latency),
            b'i' => Some(Sort::InFlight),
            b'e' => Some(Sort::Errors),
            _ => None,
        }
    }
}

/// Activity in an interval; rates are per second.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    pub(super) reads: f64,
    pub(super) writes: f64,
    pub(super) read_bytes: f64,
    pub(super) written_bytes: f64,
    /// Mean latency of reads and writes completed in the interval; `None` without any.
    pub(super) mean_us: Option<f64>,
    /// Below which 99 of 100 of these are, to a power of two.
    pub(super) p99_us: Option<u64>,
    /// Now.
    pub(super) in_flight: Option<u64>,
    /// Up to now.
    pub(super) errors: u64,
}

/// A member.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) state: String,
    pub(super) figures: Figures,
}

/// A volume, its members, and what else there is to say.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Volume {
    pub(super) name: String,
    pub(super) state: String,
    pub(super) figures: Figures,
    pub(super) members: Vec<Member>,
    /// Passes and caches.
    pub(super) notes: Vec<String>,
}

/// Returns the activity of volumes between two states. A volume that was started in between has
/// none.
pub(super) fn rows(before: &Look, now: &Look, sort: Sort) -> Vec<Volume> {
    let seconds = now.at.saturating_sub(before.at).as_secs_f64();
    let volume = |(name, status): &(String, Option<Status>)| {
        let Some(status) = status else {
            let state = "no answer".to_owned();
            let figures = Figures::default();
            let (name, members, notes) = (name.clone(), Vec::new(), Vec::new());
            return Volume { name, state, figures, members, notes };
        };
        let earlier = before.volumes.iter().filter_map(|(_, status)| status.as_ref());
        let mut same = earlier.filter(|one| one.name == status.name && one.pid == status.pid);
        of_volume(same.next().unwrap_or(status), status, seconds, sort)
    };
    let mut volumes: Vec<Volume> = now.volumes.iter().map(volume).collect();
    sort_by(&mut volumes, sort, |one| &one.figures);
    volumes
}

fn of_volume(before: &Status, now: &Status, seconds: f64, sort: Sort) -> Volume {
    let (served, before_served) = (now.served(), before.served());
    let member = |(index, member): (usize, &MemberStatus)| {
        let same = before.members.get(index).filter(|one| one.member == member.member);
        of_member(same.unwrap_or(member), member, seconds, now)
    };
    let mut members: Vec<Member> = now.members.iter().enumerate().map(member).collect();
    sort_by(&mut members, sort, |one| &one.figures);
    let (then, io) = (before.waited(), now.waited());
    let (reads, writes) = (io.reads.since(&then.reads), io.writes.since(&then.writes));
    let figures = Figures {
        reads: reads.count as f64 / seconds.max(f64::MIN_POSITIVE),
        writes: writes.count as f64 / seconds.max(f64::MIN_POSITIVE),
        in_flight: Some(io.in_flight),
        read_bytes: rate(before_served.read_bytes, served.read_bytes, seconds),
        written_bytes: rate(before_served.written_bytes, served.written_bytes, seconds),
        errors: served.errors,
        ..of_latencies(&reads.plus(&writes))
    };
    let clients = now.exports.iter().filter(|one| !one.is_device()).map(|export| {
        let same = before.exports.iter().find(|one| one.kind == export.kind).unwrap_or(export);
        let requests = rate(same.counts.requests, export.counts.requests, seconds);
        let kind = export.kind.to_uppercase();
        format!("{kind}: {} clients, {requests:.0} requests/s", export.connections)
    });
    let passes = now.arrays.iter().filter_map(|array| {
        array.job.as_ref().map(|job| format!("{}: {}", array.called, of_pass(job)))
    });
    let caches = now.caches.iter().enumerate().map(|(index, cache)| {
        let same = before.caches.get(index).filter(|one| one.cache == cache.cache);
        of_cache(same.unwrap_or(cache), cache)
    });
    let remotes = now.members.iter().enumerate().filter_map(|(index, member)| {
        let same = before.members.get(index).filter(|one| one.member == member.member);
        let then = same.and_then(|one| one.remote.as_ref());
        let remote = member.remote.as_ref()?;
        Some(of_remote(&member.member, then.unwrap_or(remote), remote, seconds))
    });
    let notes = clients.chain(passes).chain(caches).chain(remotes).collect();
    Volume { name: now.name.clone(), state: now.state.clone(), figures, members, notes }
}

fn of_member(before: &MemberStatus, now: &MemberStatus, seconds: f64, of: &Status) -> Member {
    let (then, io) = (&before.io, &now.io);
    let (reads, writes) = (io.reads.since(&then.reads), io.writes.since(&then.writes));
    let all = reads.plus(&writes);
    let figures = Figures {
        reads: reads.count as f64 / seconds.max(f64::MIN_POSITIVE),
        writes: writes.count as f64 / seconds.max(f64::MIN_POSITIVE),
        read_bytes: rate(then.read_bytes, io.read_bytes, seconds),
        written_bytes: rate(then.written_bytes, io.written_bytes, seconds),
        in_flight: Some(io.in_flight),
        errors: now.failures,
        ..of_latencies(&all)
    };
    Member { name: now.member.clone(), state: state_of(now, of), figures }
}

/// The connections of a remote member; only the present delay, if there is one.
fn of_remote(member: &str, then: &RemoteStatus, now: &RemoteStatus, seconds: f64) -> String {
    if let Some(delay) = now.delay(member) {
        return delay;
    }
    let per_second = |then, now| ByteSize(rate(then, now, seconds) as u64);
    format!(
        "{member}: {} of {} connections, round trip {:.2} ms, {:#}/s sent, {:#}/s received, {} lost connections",
        now.connections,
        now.connections_wanted,
        now.round_trip_us as f64 / 1e3,
        per_second(then.sent_bytes, now.sent_bytes),
        per_second(then.received_bytes, now.received_bytes),
        now.reconnects
    )
}

fn of_latencies(all: &Latencies) -> Figures {
    Figures {
        mean_us: (all.count > 0).then(|| all.sum_us as f64 / all.count as f64),
        p99_us: all.quantile_us(0.99),
        ..Figures::default()
    }
}

/// In the words of its array, if it has one; that it is slow goes first.
fn state_of(member: &MemberStatus, of: &Status) -> String {
    if member.gone.is_some() || member.lost.is_some() {
        return "failing".to_owned();
    }
    let members = of.arrays.iter().flat_map(|array| &array.members);
    let own = members.into_iter().find(|one| one.member == member.member);
    let state = own.map_or("ok".to_owned(), |one| one.state.replace('_', " "));
    if member.slow.is_some() { format!("slow, {state}") } else { state }
}

fn of_pass(job: &JobStatus) -> String {
    let percent = job.done_bytes as f64 * 100.0 / job.total_bytes.max(1) as f64;
    let left = match job.eta_seconds {
        Some((best, worst)) => format!(", {best} to {worst} s left"),
        None => String::new(),
    };
    format!("{} {percent:.1} %, {:#}/s{left}", job.kind, ByteSize(job.bytes_per_second))
}

fn of_cache(before: &CacheStatus, now: &CacheStatus) -> String {
    let reads = now.counts.reads.saturating_sub(before.counts.reads);
    let hits = now.counts.cache_hits.saturating_sub(before.counts.cache_hits);
    let mut text = match reads {
        0 => "cache: no reads".to_owned(),
        reads => format!("cache: {:.1} % of reads hit", hits as f64 * 100.0 / reads as f64),
    };
    if let Some(write_back) = &now.write_back {
        let age = write_back.oldest_dirty_ms.unwrap_or(0) as f64 / 1e3;
        let dirty = ByteSize(write_back.dirty_bytes);
        text = format!("{text}, {dirty:#} not at the origin, for up to {age:.1} s");
    }
    text
}

fn rate(before: u64, now: u64, seconds: f64) -> f64 {
    now.saturating_sub(before) as f64 / seconds.max(f64::MIN_POSITIVE)
}

/// The largest first; those that are equal stay in their order.
fn sort_by<T>(rows: &mut [T], sort: Sort, of: impl Fn(&T) -> &Figures) {
    let key = |row: &T| {
        let figures = of(row);
        match sort {
            Sort::Stack => 0.0,
            Sort::Bytes => figures.read_bytes + figures.written_bytes,
            Sort::Latency => figures.p99_us.unwrap_or(0) as f64,
            Sort::InFlight => figures.in_flight.unwrap_or(0) as f64,
            Sort::Errors => figures.errors as f64,
        }
    };
    rows.sort_by(|one, other| key(other).total_cmp(&key(one)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(pid: u32, reads: &[u64], read_bytes: u64) -> Status {
        let count: u64 = reads.iter().sum();
        let io = serde_json::json!({
            "read_bytes": read_bytes, "in_flight": 3,
            "reads": {"count": count, "sum_us": read_bytes / 100, "buckets": reads},
        });
        let member = |name: &str, io: &serde_json::Value| {
            serde_json::json!({
                "member": name, "size_bytes": 1, "direct": null, "failures": 2,
                "last_failure": null, "io": io,
            })
        };
        let status = serde_json::json!({
            "output_version": 1, "name": "v", "state": "online", "why": null, "next": null,
            "stack": "", "warnings": [], "pid": pid,
            "uptime_seconds": 0, "io": "uring", "shards": 1, "cpu_ns": 0,
            "device": {
                "size_bytes": 1, "logical_block_bytes": 512, "physical_block_bytes": 512,
                "optimal_io_bytes": 512, "read_only": false, "volatile": false,
            },
            "members": [member("a", &serde_json::json!({})), member("b", &io)],
        });
        serde_json::from_value(status).expect("a status")
    }

    fn look(at: u64, status: Option<Status>) -> Look {
        Look { at: Duration::from_secs(at), volumes: vec![("v".to_owned(), status)] }
    }

    #[test]
    fn rates_and_latencies_are_of_the_interval() {
        // 90 in below 16 µs and 10 in below 1 ms since; before, 1000 that took a second.
        let mut reads = [0; 21];
        reads[20] = 1000;
        let before = look(10, Some(status(1, &reads, 4000)));
        (reads[4], reads[10]) = (90, 10);
        let now = look(12, Some(status(1, &reads, 24_000)));
        let rows = rows(&before, &now, Sort::Stack);
        let figures = &rows[0].members[1].figures;
        assert_eq!((figures.reads, figures.writes, figures.read_bytes), (50.0, 0.0, 10_000.0));
        assert_eq!((figures.mean_us, figures.p99_us), (Some(2.0), Some(1024)));
        assert_eq!((figures.in_flight, figures.errors), (Some(3), 2));
        // Clients asked for what the member was asked for, by the device of this machine.
        let attached = |look: &Look| {
            let mut status = look.volumes[0].1.clone().expect("a status");
            let attached = serde_json::json!({
                "kind": "fuse", "errors": 1,
                "io": {"in_flight": 5, "reads": status.members[1].io.reads.clone()},
            });
            status.exports = vec![serde_json::from_value(attached).expect("a status")];
            Look { at: look.at, volumes: vec![("v".to_owned(), Some(status))] }
        };
        let clients = &super::rows(&attached(&before), &attached(&now), Sort::Stack)[0].figures;
        assert_eq!((clients.reads, clients.writes), (50.0, 0.0));
        assert_eq!((clients.mean_us, clients.p99_us), (Some(2.0), Some(1024)));
        assert_eq!((clients.in_flight, clients.errors), (Some(5), 1));
        let idle = &rows[0].members[0].figures;
        assert_eq!((idle.reads, idle.mean_us, idle.p99_us), (0.0, None, None));
    }

    #[test]
    fn what_came_up_between_or_does_not_answer_has_done_nothing() {
        let now = look(12, Some(status(2, &[5], 4000)));
        for before in [look(10, Some(status(1, &[1], 100))), look(10, None)] {
            let rows = rows(&before, &now, Sort::Stack);
            assert_eq!((rows[0].members[1].figures.reads, &*rows[0].state), (0.0, "online"));
        }
        let rows = rows(&now, &look(13, None), Sort::Stack);
        assert_eq!((&*rows[0].state, rows[0].members.len()), ("no answer", 0));
    }

    #[test]
    fn the_largest_comes_first_and_equals_keep_their_order() {
        let (before, now) = (look(1, Some(status(1, &[0], 0))), look(2, Some(status(1, &[5], 9))));
        let names = |sort| {
            let rows = rows(&before, &now, sort);
            rows[0].members.iter().map(|one| one.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(Sort::Stack), ["a", "b"]);
        assert_eq!(names(Sort::Errors), ["a", "b"]);
        for sort in [Sort::Bytes, Sort::Latency, Sort::InFlight] {
            assert_eq!(names(sort), ["b", "a"], "{sort:?}");
        }
    }
}
