//! What a volume's status says of its arrays: the engine's facts in the words of `status`.

use std::time::Duration;

use braid_array::geometry::ParityLevel;
use braid_engine::redundant::{self, Consistency, LogCost, MemberState, Status};
use braid_md::Resync;
use braid_uring::Remote;

use super::level::Level;
use super::md::MdArray;
use super::shard;
use crate::control::{
    ArrayMember, ArrayStatus, JobStatus, LogCostStatus, ScrubStatus, SuspectStatus,
};

/// How long a shard may take to say how its arrays are.
const PATIENCE: Duration = Duration::from_secs(2);

/// Asks the shard of `remote`; `None` if it does not answer.
pub(crate) fn ask(remote: &Remote) -> Option<Vec<(Level, u64, Status)>> {
    let (send, receive) = std::sync::mpsc::channel();
    shard::call(remote, move |_, local| {
        let of = |one: &std::rc::Rc<super::media::AtWork>| {
            (one.level.clone(), one.level.size(), one.array.status())
        };
        // Whoever asked may have lost patience.
        let _ = send.send(local.arrays.iter().map(of).collect());
    });
    receive.recv_timeout(PATIENCE).ok()
}

/// In the words of `status`; `md` is the array's own description, if it has one.
pub(crate) fn status_of(
    level: &Level,
    size_bytes: u64,
    status: Status,
    md: Option<&MdArray>,
    read_only: bool,
) -> ArrayStatus {
    let superblock = md.map(|md| &md.superblock);
    let (layout, layout_number, chunk_bytes) = match level {
        Level::Raid10(raid10) => {
            let layout = raid10.layout();
            (Some(format!("{layout:#}")), layout.number(), Some(raid10.chunk()))
        }
        Level::Parity(parity) => {
            let of_level = match parity.level() {
                // It has one place for its parity, and md does not look at the number.
                ParityLevel::Raid4 => (None, 0),
                ParityLevel::Raid5 | ParityLevel::Raid6 => {
                    (Some(parity.layout().to_string()), parity.layout().number())
                }
            };
            let number = superblock.map_or(of_level.1, |one| one.layout);
            (of_level.0, number, Some(parity.chunk()))
        }
        Level::Linear(_) | Level::Raid0(_) | Level::Raid1(_) => (None, 0, None),
    };
    let state = match () {
        () if status.broken => "broken",
        () if read_only => "readonly",
        () if status.active => "active",
        () => "clean",
    };
    ArrayStatus {
        name: md.map(|md| md.name.clone()),
        uuid: superblock.map(|one| one.array_uuid.to_string()),
        metadata: superblock.map(|one| one.version.to_string()),
        level: level.name().to_owned(),
        layout,
        layout_number,
        chunk_bytes,
        size_bytes,
        state: state.to_owned(),
        raid_disks: status.raid_disks,
        in_sync: status.in_sync,
        members: status.members.iter().map(member_of).collect(),
        resync_from_bytes: match status.resync {
            Resync::Clean => None,
            Resync::From(from) => Some(from),
        },
        events: status.events,
        bitmap_chunk_bytes: status.bitmap.map(|(chunk, ..)| chunk),
        bitmap_chunks: status.bitmap.map(|(_, chunks, _)| chunks),
        bitmap_chunks_set: status.bitmap.map(|(.., set)| set),
        job: status.job.as_ref().map(job_of),
        requested: status.requested.map(|kind| kind.to_string()),
        last_scrub: status.last_scrub.map(|(kind, ended, mismatch_bytes)| ScrubStatus {
            kind: kind.to_string(),
            ended_ms: ended.as_millis() as u64,
            mismatch_bytes,
        }),
        mismatch_bytes: status.mismatches,
        mismatch_offsets: status.mismatch_places,
        suspects: suspects_of(&status.suspects, &status.members),
        unexplained_bytes: status.unexplained,
        repaired_bytes: status.repaired,
        consistency: Some(consistency_of(status.consistency).to_owned()),
        log_cost: status.log_cost.map(log_cost_of),
        stripe_cache_bytes: status.stripe_cache.map(|(all, _)| all as u64),
        stripe_cache_used_bytes: status.stripe_cache.map(|(_, used)| used as u64),
        speed_min_bytes_per_second: status.speed.min,
        speed_max_bytes_per_second: status.speed.max,
        speed_latency_us_p99: status.speed.latency.map(|latency| latency.as_micros() as u64),
        log: status.log.into_iter().map(|(at, what)| (at.as_secs(), what)).collect(),
    }
}

/// An array that keeps no copies, and has superblocks: nothing about it changes while it is up.
pub(crate) fn plain_status(md: &MdArray, read_only: bool) -> ArrayStatus {
    let superblock = &md.superblock;
    let leaves = md.leaves();
    let members = leaves.iter().zip(0u16..).map(|(leaf, role)| ArrayMember {
        member: leaf.label.clone(),
        number: role.into(),
        role: Some(role),
        state: "in_sync".to_owned(),
        recovered_bytes: None,
        replacement: false,
        write_mostly: false,
        corrected_reads: 0,
        bad_ranges: 0,
        remark: None,
    });
    ArrayStatus {
        name: Some(md.name.clone()),
        uuid: Some(superblock.array_uuid.to_string()),
        metadata: Some(superblock.version.to_string()),
        level: md.level.name().to_owned(),
        layout: None,
        layout_number: superblock.layout,
        chunk_bytes: (superblock.chunk > 0).then_some(superblock.chunk),
        size_bytes: md.level.size(),
        state: if read_only { "readonly" } else { "clean" }.to_owned(),
        raid_disks: superblock.raid_disks as usize,
        in_sync: vec![true; superblock.raid_disks as usize],
        members: members.collect(),
        resync_from_bytes: None,
        events: superblock.events,
        bitmap_chunk_bytes: None,
        bitmap_chunks: None,
        bitmap_chunks_set: None,
        job: None,
        requested: None,
        last_scrub: None,
        mismatch_bytes: 0,
        mismatch_offsets: Vec::new(),
        suspects: Vec::new(),
        unexplained_bytes: 0,
        repaired_bytes: 0,
        consistency: None,
        log_cost: None,
        stripe_cache_bytes: None,
        stripe_cache_used_bytes: None,
        speed_min_bytes_per_second: 0,
        speed_max_bytes_per_second: None,
        speed_latency_us_p99: None,
        log: Vec::new(),
    }
}

fn consistency_of(consistency: Consistency) -> &'static str {
    match consistency {
        Consistency::Resync => "resync",
        Consistency::Bitmap => "bitmap",
        Consistency::Ppl => "ppl",
        Consistency::Log => "log",
    }
}

fn log_cost_of(cost: LogCost) -> LogCostStatus {
    LogCostStatus {
        writes: cost.writes,
        stored_bytes: cost.stored_bytes,
        log_bytes: cost.log_bytes,
        time_us: cost.time.as_micros() as u64,
        log_time_us: cost.log_time.as_micros() as u64,
    }
}

fn suspects_of(suspects: &[(u16, u64)], members: &[redundant::MemberStatus]) -> Vec<SuspectStatus> {
    let holder = |role: u16| {
        let has = |one: &&redundant::MemberStatus| one.role == Some(role) && !one.replacement;
        let found = members.iter().filter(has).find(|one| one.state == MemberState::InSync);
        found.map(|one| one.label.clone())
    };
    let suspect = |(role, bytes): &(u16, u64)| SuspectStatus {
        role: *role,
        member: holder(*role),
        bytes: *bytes,
    };
    suspects.iter().map(suspect).collect()
}

fn member_of(member: &redundant::MemberStatus) -> ArrayMember {
    let (state, recovered_bytes) = match member.state {
        MemberState::InSync => ("in_sync", None),
        MemberState::Recovering(done) => ("recovering", Some(done)),
        MemberState::Spare => ("spare", None),
        MemberState::Faulty => ("faulty", None),
    };
    ArrayMember {
        member: member.label.clone(),
        number: member.number,
        role: member.role,
        state: state.to_owned(),
        recovered_bytes,
        replacement: member.replacement,
        write_mostly: member.write_mostly,
        corrected_reads: member.corrected_reads,
        bad_ranges: member.bad_blocks,
        remark: (!member.remark.is_empty()).then(|| member.remark.clone()),
    }
}

fn job_of(job: &redundant::JobStatus) -> JobStatus {
    JobStatus {
        kind: job.kind.to_string(),
        member: job.member.clone(),
        done_bytes: job.done,
        total_bytes: job.total,
        bytes_per_second: job.rate,
        eta_seconds: job.eta.map(|(best, worst)| (best.as_secs(), worst.as_secs())),
    }
}

/// State, why, and what to do next, of a volume with such arrays.
pub(crate) fn judge(
    name: &str,
    arrays: &[ArrayStatus],
) -> Option<(String, String, Option<String>)> {
    let verdicts = arrays.iter().filter_map(|array| judge_one(name, array));
    // The worst of them is the volume's.
    verdicts.max_by_key(|(rank, ..)| *rank).map(|(_, state, why, next)| (state, why, next))
}

fn judge_one(volume: &str, array: &ArrayStatus) -> Option<(u8, String, String, Option<String>)> {
    let say = |rank: u8, state: &str, why: String, next: Option<String>| {
        Some((rank, state.to_owned(), why, next))
    };
    let level = &array.level;
    if array.state == "broken" {
        let last = array.log.last().map_or("", |(_, text)| text);
        return say(
            4,
            "failed",
            format!("{level}: nothing can be written any more: {last}"),
            Some(
                "what was acknowledged can be read; replace what failed, then bring it up again"
                    .to_owned(),
            ),
        );
    }
    let missing = array.in_sync.iter().filter(|in_sync| !**in_sync).count();
    let progress = array.job.as_ref().map(|job| {
        let percent = job.done_bytes as f64 * 100.0 / job.total_bytes.max(1) as f64;
        format!("{} at {percent:.1} %", job.kind)
    });
    if missing > 0 {
        let faulty = array.members.iter().find(|member| member.state == "faulty");
        let mut why = format!("{level}: {missing} of {} members not in sync", array.raid_disks);
        if let Some(member) = faulty {
            let remark = member.remark.as_deref().unwrap_or("faulty");
            why = format!("{why} ({}: {remark})", member.member);
        }
        let add = format!("`braid member add {volume} DEVICE`");
        let next = match (&progress, faulty) {
            (Some(_), _) => format!("wait: `braid status {volume} --watch` shows how far it is"),
            // Nothing would remember a member that is taken in.
            (None, _) if array.metadata.is_none() => {
                "copy what it holds to an array with superblocks, which takes members in: `braid \
                 create` makes one"
                    .to_owned()
            }
            (None, Some(member)) => {
                format!("`braid member remove {volume} {}`, then {add}", member.member)
            }
            (None, None) => format!("{add} gives the array another member"),
        };
        let rank = if progress.is_some() { 2 } else { 3 };
        let why = progress.map_or(why.clone(), |progress| format!("{why}; {progress}"));
        return say(rank, "degraded", why, Some(next));
    }
    match &array.job {
        Some(job) if job.kind == "resync" => {
            let what = match array.has_parity() {
                true => "parity may not fit the data that was written last",
                false => "copies may differ since they were last written",
            };
            let why = format!("{level}: {what}; {}", progress.unwrap_or_default());
            say(1, "resyncing", why, None)
        }
        _ => None,
    }
}
