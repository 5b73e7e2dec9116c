//! The status of a volume's arrays: the engine's facts in the words of `status`.

use braid_array::Role;
use braid_engine::Device;
use braid_engine::assembled::Level;
use braid_engine::redundant::{
    self, Consistency, JobKind, JobRecord, LastScrub, MemberState, MemberStatus, Mismatch, Status,
};
use braid_level::ParityLevel;
use braid_md::{Resync, Superblock};
use braid_stack::{Node, Stack};
use braid_uring::Remote;
use braid_wiring::Array;

use super::md::MdArray;
use super::media::Media;
use super::shard;
use crate::control::{
    ArrayMember, ArrayStatus, Job, JobState, JobStatus, LeftOutStatus, MismatchMember,
    MismatchStatus, ScrubStatus, SuspectStatus,
};

/// Facts that a running array reports.
struct Answer {
    name: String,
    uuid: Option<String>,
    level: Level,
    status: Status,
    /// It, or the whole volume, is only read.
    is_read_only: bool,
}

/// All arrays of `media` that have something to say: first those with superblocks that keep
/// nothing twice, then those that survive losses, if their shard, `remote`, answers.
pub(super) fn all(media: &Media, remote: Option<&Remote>, read_only: bool) -> Vec<ArrayStatus> {
    let described = media.md_arrays();
    let plain = described.iter().filter(|md| !md.level.is_redundant());
    let mut all: Vec<ArrayStatus> = plain.map(|md| plain_status(md, read_only)).collect();
    let Some(remote) = remote.filter(|_| media.has_state()) else { return all };
    let status = |answer: Answer| {
        let is_it = |md: &&&MdArray| answer.uuid.as_deref() == Some(&*uuid_of(md));
        let md = described.iter().find(is_it).copied();
        status_of(answer, md)
    };
    let of = move |one: &std::rc::Rc<Array>| Answer {
        name: one.name.clone(),
        uuid: one.uuid.clone(),
        level: one.level.clone(),
        status: one.array.status(),
        is_read_only: read_only || one.array.limits().read_only,
    };
    let answers =
        shard::ask(remote, move |_, local| local.arrays.iter().map(of).collect::<Vec<_>>());
    all.extend(answers.unwrap_or_default().into_iter().map(status));
    all
}

fn uuid_of(md: &MdArray) -> String {
    md.superblock.array_uuid.to_string()
}

/// The stack with the members that its arrays have now, in the order of their roles: some may have
/// come, and some gone.
pub(super) fn stack_now(stack: &Stack, media: &Media, arrays: &[ArrayStatus]) -> Stack {
    let mut described = media.md_arrays().into_iter();
    let mut stack = stack.clone();
    renew(&mut stack, &mut described, arrays);
    stack
}

fn renew<'a>(
    stack: &mut Stack,
    described: &mut impl Iterator<Item = &'a MdArray>,
    arrays: &[ArrayStatus],
) {
    let Node::Md(md) = &mut stack.node else {
        for member in stack.members_mut() {
            renew(member, described, arrays);
        }
        return;
    };
    let uuid = described.next().map(uuid_of);
    let Some(array) = arrays.iter().find(|array| array.uuid.is_some() && array.uuid == uuid) else {
        return;
    };
    md.members = array.members.iter().map(|member| Stack::called(&member.member)).collect();
}

/// In the words of `status`; `md` is the array's own description, if it has one.
fn status_of(answer: Answer, md: Option<&MdArray>) -> ArrayStatus {
    let Answer { name, level, mut status, is_read_only, .. } = answer;
    let superblock = md.map(|md| &md.superblock);
    let (layout, layout_number, chunk_bytes) = placement(&level, superblock);
    let state = match () {
        () if status.broken => "broken",
        () if is_read_only => "readonly",
        () if status.active => "active",
        () => "clean",
    };
    let mut members: Vec<ArrayMember> = status.members.iter().map(member_of).collect();
    members.sort_by_key(|one| (one.role.is_none(), one.role, one.replacement, one.number));
    let last_scrub = status.last_scrub.take().map(|last| scrub_of(last, &status.members));
    ArrayStatus {
        name: md.map(|md| md.name.clone()),
        called: name,
        full_name: superblock.and_then(full_name),
        left_out: md.map_or(Vec::new(), |md| left_out_of(md, &members)),
        lost: lost_of(&status),
        uuid: superblock.map(|one| one.array_uuid.to_string()),
        metadata: superblock.map(|one| one.version.to_string()),
        level: level.name().to_owned(),
        layout,
        layout_number,
        chunk_bytes,
        size_bytes: level.size(),
        state: state.to_owned(),
        raid_disks: status.raid_disks,
        in_sync: status.in_sync,
        members,
        resync_from_bytes: match status.resync {
            Resync::Clean => None,
            Resync::From(from) => Some(from),
        },
        events: status.events,
        bitmap_chunk_bytes: status.bitmap.map(|bitmap| bitmap.chunk_size),
        bitmap_chunks: status.bitmap.map(|bitmap| bitmap.chunks),
        bitmap_chunks_set: status.bitmap.map(|bitmap| bitmap.set),
        write_behind: status.bitmap.map_or(0, |bitmap| bitmap.write_behind),
        writes_behind: status
            .bitmap
            .filter(|bitmap| bitmap.write_behind > 0)
            .map(|bitmap| bitmap.behind as u64),
        job: status.job.as_ref().map(job_of),
        jobs: status.jobs.into_iter().map(record_of).collect(),
        requested: status.requested.map(|kind| kind.to_string()),
        scrub_place: None,
        last_scrub,
        mismatch_bytes: status.mismatches,
        mismatch_offsets: status.mismatch_places.iter().map(|place| place.offset).collect(),
        suspects: suspects_of(&status.suspects, &status.members),
        unexplained_bytes: status.unproved,
        repaired_bytes: status.repaired,
        consistency: Some(consistency_of(status.consistency).to_owned()),
        log_cost: status.log_cost,
        stripe_cache_bytes: status.stripe_cache.map(|cache| cache.total as u64),
        stripe_cache_used_bytes: status.stripe_cache.map(|cache| cache.used as u64),
        speed_min_bytes_per_second: status.speed.min,
        speed_max_bytes_per_second: status.speed.max,
        speed_latency_us_p99: status.speed.latency.map(|latency| latency.as_micros() as u64),
        log: status.log.into_iter().map(|(at, what)| (at.as_secs(), what)).collect(),
    }
}

/// Returns the layout in md's words, its number, and the size of a chunk.
fn placement(level: &Level, superblock: Option<&Superblock>) -> (Option<String>, u32, Option<u64>) {
    match level {
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
    }
}

fn record_of(job: JobRecord) -> Job {
    Job {
        number: job.number,
        kind: job.kind.to_string(),
        member: job.member,
        state: match job.state {
            redundant::JobState::Waiting => JobState::Waiting,
            redundant::JobState::Running => JobState::Running,
            redundant::JobState::Done => JobState::Done,
            redundant::JobState::Failed => JobState::Failed,
            redundant::JobState::Ended => JobState::Ended,
        },
        done_bytes: job.done,
        total_bytes: job.total,
        began_ms: job.began.as_millis() as u64,
        ended_ms: job.ended.map(|ended| ended.as_millis() as u64),
        why: job.why,
    }
}

fn scrub_of(last: LastScrub, members: &[MemberStatus]) -> ScrubStatus {
    let found = last.found;
    let mut mismatches: Vec<MismatchStatus> =
        found.mismatch_places.iter().map(mismatch_of).collect();
    for member in mismatches.iter_mut().flat_map(|mismatch| &mut mismatch.members) {
        member.member = label_of(Role::new(member.role), members);
    }
    ScrubStatus {
        kind: last.kind.to_string(),
        ended_ms: last.ended.as_millis() as u64,
        mismatch_bytes: found.mismatches,
        compared_bytes: Some(found.compared),
        unread_bytes: found.unread,
        unread_offsets: found.unread_places.iter().map(|place| place.0).collect(),
        unread_ranges: found.unread_places,
        listed_bytes: found.listed,
        unproved_bytes: found.unproved,
        repaired_bytes: found.repaired,
        suspects: suspects_of(&found.suspects, members),
        left_bytes: Some(match last.kind {
            JobKind::Check => found.mismatches,
            JobKind::Repair => found.unproved,
            _ => 0,
        }),
        mismatches,
    }
}

/// The same without what the members are called.
pub(super) fn mismatch_of(found: &Mismatch) -> MismatchStatus {
    let member = |one: &redundant::MismatchMember| MismatchMember {
        role: one.role.get(),
        member: None,
        offset_bytes: one.offset,
        group: one.group,
        wrong: one.is_wrong,
    };
    MismatchStatus {
        offset_bytes: found.offset,
        length_bytes: found.len,
        array_offsets: found.array.clone(),
        members: found.members.iter().map(member).collect(),
    }
}

/// As the engine has it.
pub(super) fn mismatch(told: &MismatchStatus) -> Mismatch {
    let member = |one: &MismatchMember| redundant::MismatchMember {
        role: Role::new(one.role),
        offset: one.offset_bytes,
        group: one.group,
        is_wrong: one.wrong,
    };
    Mismatch {
        offset: told.offset_bytes,
        len: told.length_bytes,
        array: told.array_offsets.clone(),
        members: told.members.iter().map(member).collect(),
    }
}

/// Places that no member can give any more.
fn lost_of(status: &Status) -> Vec<(u64, u64)> {
    status.lost.iter().map(|span| (span.offset.get(), span.len)).collect()
}

/// Members of old that were found when the array was assembled, or since, and are no members again.
fn left_out_of(md: &MdArray, members: &[ArrayMember]) -> Vec<LeftOutStatus> {
    let is_away = |one: &LeftOutStatus| members.iter().all(|there| there.member != one.member);
    md.left_out_now().into_iter().filter(is_away).collect()
}

fn full_name(superblock: &Superblock) -> Option<String> {
    Some(superblock.name.clone()).filter(|name| !name.is_empty())
}

/// An array that keeps no copies, and has superblocks: nothing about it changes while it is up.
fn plain_status(md: &MdArray, read_only: bool) -> ArrayStatus {
    let superblock = &md.superblock;
    let leaves = md.leaves();
    let members = leaves.iter().zip(0u16..).map(|(leaf, role)| ArrayMember {
        member: leaf.label.clone(),
        number: role.into(),
        role: Some(role),
        state: "in_sync".to_owned(),
        needed: true,
        ..ArrayMember::default()
    });
    ArrayStatus {
        name: Some(md.name.clone()),
        called: md.name.clone(),
        full_name: full_name(superblock),
        uuid: Some(superblock.array_uuid.to_string()),
        metadata: Some(superblock.version.to_string()),
        level: md.level.name().to_owned(),
        layout_number: superblock.layout,
        chunk_bytes: (superblock.chunk > 0).then_some(superblock.chunk),
        size_bytes: md.level.size(),
        state: if read_only || md.limits().read_only { "readonly" } else { "clean" }.to_owned(),
        raid_disks: superblock.raid_disks as usize,
        in_sync: vec![true; superblock.raid_disks as usize],
        members: members.collect(),
        events: superblock.events,
        ..ArrayStatus::default()
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

/// The label of the member in sync that has `role`.
fn label_of(role: Role, members: &[MemberStatus]) -> Option<String> {
    let has = |one: &&MemberStatus| {
        one.role == Some(role) && !one.replacement && one.state == MemberState::InSync
    };
    members.iter().find(has).map(|one| one.label.clone())
}

fn suspects_of(suspects: &[(Role, u64)], members: &[MemberStatus]) -> Vec<SuspectStatus> {
    let suspect = |(role, bytes): &(Role, u64)| SuspectStatus {
        role: role.get(),
        member: label_of(*role, members),
        bytes: *bytes,
    };
    suspects.iter().map(suspect).collect()
}

fn member_of(member: &MemberStatus) -> ArrayMember {
    let (state, recovered_bytes) = match member.state {
        MemberState::InSync => ("in_sync", None),
        MemberState::Recovering(done) => ("recovering", Some(done.get())),
        MemberState::Spare => ("spare", None),
        MemberState::Faulty => ("faulty", None),
    };
    ArrayMember {
        member: member.label.clone(),
        number: member.number,
        role: member.role.map(Role::get),
        state: state.to_owned(),
        recovered_bytes,
        replacement: member.replacement,
        write_mostly: member.write_mostly,
        corrected_reads: member.corrected_reads,
        bad_ranges: member.bad_blocks,
        needed: member.needed,
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
