//! The present problems of a volume. Each condition lasts until a look at the volume does not find it.

use std::collections::BTreeMap;

use braid_control::{
    ArrayStatus, CacheStatus, ExportStatus, MemberStatus, Status, WriteBackStatus,
};
use braid_shell::shell_path;
use braid_stack::ByteSize;

use super::view::called;
use super::{Draft, Memory, Observation, Policy, Seen};
use crate::event::{
    CERTIFICATE, DATA_LOST, DEGRADED_ARRAY, DISK_FAILING, DRAIN_FAILED, LOG_FAILED, LOG_FULL,
    MEMBER_GONE, MEMBER_HANGS, MEMBER_UNREACHABLE, MEMORY_SHORT, SCRUB_FOUND, SLOW_MEMBER,
    SMART_WARNING, SPARES_MISSING, VOLUME_FAILED, VOLUME_FAILING, VOLUME_GONE, VOLUME_STALLED,
    VOLUME_UNREADABLE, WRITE_BACK_AGE,
};

/// The conditions of a volume that answered.
pub(super) fn conditions(status: &Status, policy: &Policy) -> Vec<Draft> {
    let mut found = Vec::new();
    for (name, array) in called(&status.arrays) {
        let of_array = degraded(status, array)
            .into_iter()
            .chain(scrubbed(status, array))
            .chain(lost(array))
            .map(|draft| draft.array(&name));
        found.extend(of_array);
    }
    found.extend(spares(status, &policy.spares));
    found.extend(status.members.iter().filter_map(|member| slow(status, member)));
    found.extend(status.members.iter().filter_map(|member| hangs(status, member)));
    found.extend(status.members.iter().filter_map(|member| unreachable(status, member)));
    found.extend(status.members.iter().filter_map(|member| gone(status, member)));
    found.extend(status.members.iter().flat_map(|member| disk(status, member)));
    found.extend(status.exports.iter().filter_map(certificate));
    for (index, cache) in status.caches.iter().enumerate() {
        let name = if index == 0 { "cache".to_owned() } else { format!("cache#{}", index + 1) };
        let write_back = cache.write_back.as_ref();
        let of_cache = write_back.map(|one| undrained(status, cache, one, policy));
        found.extend(of_cache.into_iter().flatten().map(|draft| draft.member(&name)));
    }
    let why = || status.why.clone().unwrap_or_else(|| format!("it is {}", status.state));
    let verdict = |kind| Draft::new(kind, why()).next(status.next.clone());
    match status.state.as_str() {
        "failed" => found.push(verdict(VOLUME_FAILED)),
        // What is told by a name of its own is not told twice.
        "failing"
            if !found.iter().any(|one| {
                [DATA_LOST, LOG_FAILED, DRAIN_FAILED, MEMBER_GONE].contains(&one.kind)
            }) =>
        {
            found.push(verdict(VOLUME_FAILING));
        }
        _ => {}
    }
    found
}

/// The condition of an export whose certificate needs a successor.
fn certificate(export: &ExportStatus) -> Option<Draft> {
    let tls = export.tls.as_ref()?;
    let folder = shell_path(&tls.certificates);
    let next = format!(
        "put a new certificate and its key into {folder}: new clients get it without a restart"
    );
    Some(Draft::new(CERTIFICATE, tls.warning.clone()?).next(Some(next)))
}

/// The condition of a volume that did not answer.
pub(super) fn silence(name: &str, seen: &Seen) -> Draft {
    let (kind, why, next) = match seen {
        Seen::Dead(why) => (
            VOLUME_GONE,
            why,
            format!("`braid down {name}` removes what it left, `braid up {name}` starts it again"),
        ),
        Seen::Unreadable(why) => {
            (VOLUME_UNREADABLE, why, format!("`braid status {name}`, as the volume's owner"))
        }
        Seen::Silent(why) => (
            VOLUME_STALLED,
            why,
            format!(
                "`braid status {name}` says whether it answers again, `braid down {name} --force` ends its \
                 process and gets the device back"
            ),
        ),
        // A volume that answered is not silent.
        Seen::Up(status) => (VOLUME_UNREADABLE, &status.state, String::new()),
    };
    Draft::new(kind, why.clone()).next(Some(next))
}

/// The condition of the machine's memory.
pub(super) fn thirst(memory: Memory, policy: &Policy, observation: &Observation) -> Option<Draft> {
    let wanted = policy.memory.unwrap_or(memory.total / 20);
    let promised = observation.volumes.values().map(|seen| match seen {
        Seen::Up(status) => status.promised_bytes,
        _ => 0,
    });
    let promised = promised.fold(0, u64::saturating_add);
    (memory.available < wanted).then(|| {
        let what = format!(
            "{:#} of memory are available, of {:#}; less than {:#} is told; volumes have promised {:#} in all",
            ByteSize(memory.available),
            ByteSize(memory.total),
            ByteSize(wanted),
            ByteSize(promised)
        );
        let next = "`braid status` shows what RAM disks and caches hold; `braid cache resize NAME SIZE` gives memory back";
        Draft::new(MEMORY_SHORT, what).next(Some(next.to_owned()))
    })
}

fn degraded(status: &Status, array: &ArrayStatus) -> Option<Draft> {
    let missing = array.in_sync.iter().filter(|in_sync| !**in_sync).count();
    (missing > 0).then(|| {
        let faulty = array.members.iter().filter(|member| member.state == "faulty");
        let faulty: Vec<&str> = faulty.map(|member| member.member.as_str()).collect();
        let mut what =
            format!("{}: {missing} of {} members not in sync", array.level, array.raid_disks);
        if !faulty.is_empty() {
            what = format!("{what} (faulty: {})", faulty.join(", "));
        }
        Draft::new(DEGRADED_ARRAY, what).next(status.next.clone())
    })
}

/// Differences that a check found and nothing has repaired, and parts that no scrub could read.
fn scrubbed(status: &Status, array: &ArrayStatus) -> Option<Draft> {
    let scrub = array.last_scrub.as_ref()?;
    let found: Vec<String> = [
        (scrub.left(), "bytes differ"),
        (scrub.unread_bytes, "bytes could not be read and so were not compared"),
    ]
    .iter()
    .filter(|(bytes, _)| *bytes > 0)
    .map(|(bytes, what)| format!("{bytes} {what}"))
    .collect();
    (!found.is_empty()).then(|| {
        let what = format!("the last {} found: {}", scrub.kind, found.join("; "));
        let name = &status.name;
        let repair = match scrub.left() {
            0 => String::new(),
            _ => format!("; {}", scrub.next(name, array.has_parity())),
        };
        let next = format!("`braid status {name}` shows the places{repair}");
        Draft::new(SCRUB_FOUND, what).next(Some(next))
    })
}

fn lost(array: &ArrayStatus) -> Option<Draft> {
    let (offset, length) = array.lost.first()?;
    let places = array.lost.len();
    let what =
        format!("{places} places of the array are lost, the first is {length} bytes at {offset}");
    let next = "write them anew, from a backup: docs/arrays.md, \"Bytes that are gone\"";
    Some(Draft::new(DATA_LOST, what).next(Some(next.to_owned())))
}

fn spares(status: &Status, wanted: &BTreeMap<String, usize>) -> Option<Draft> {
    let wanted = *wanted.get(&status.name)?;
    let members = status.arrays.iter().flat_map(|array| &array.members);
    let spares = members.filter(|member| member.state == "spare").count();
    (spares < wanted).then(|| {
        let next = format!("`braid member add {} DEVICE` gives it another", status.name);
        Draft::new(SPARES_MISSING, format!("{spares} spares, and {wanted} are wanted"))
            .next(Some(next))
    })
}

fn slow(status: &Status, member: &MemberStatus) -> Option<Draft> {
    let why = member.slow.as_ref()?;
    let path = shell_path(&member.member);
    let next = format!(
        "`braid status {name}` shows its times; `braid member replace {name} {path} DEVICE` fills another in its \
         place",
        name = status.name
    );
    let what = format!("{}: {why}", member.member);
    Some(Draft::new(SLOW_MEMBER, what).member(&member.member).next(Some(next)))
}

fn hangs(status: &Status, member: &MemberStatus) -> Option<Draft> {
    let overdue = member.io.overdue;
    (overdue > 0).then(|| {
        let path = &member.member;
        let what = format!("{path}: {overdue} requests were not answered by their deadline");
        let next = status.next.clone().unwrap_or_else(|| {
            format!("`dmesg` says what the kernel knows of it; `braid status {}`", status.name)
        });
        Draft::new(MEMBER_HANGS, what).member(path).next(Some(next))
    })
}

fn unreachable(status: &Status, member: &MemberStatus) -> Option<Draft> {
    let delay = member.remote.as_ref()?.delay(&member.member)?;
    let next = format!("start its server, or `braid status {}` for the reason", status.name);
    Some(Draft::new(MEMBER_UNREACHABLE, delay).member(&member.member).next(Some(next)))
}

fn gone(status: &Status, member: &MemberStatus) -> Option<Draft> {
    let why = member.gone.as_ref()?;
    let next = status.next.clone().unwrap_or_else(|| {
        format!("copy what {} holds elsewhere before it goes down", status.name)
    });
    let what = format!("{}: {why}", member.member);
    Some(Draft::new(MEMBER_GONE, what).member(&member.member).next(Some(next)))
}

/// The conditions from the report of the disk below.
fn disk(status: &Status, member: &MemberStatus) -> Vec<Draft> {
    let Some((disk, smart)) =
        member.disk.as_ref().and_then(|disk| Some((disk.disk.as_deref()?, disk.smart.as_ref()?)))
    else {
        return Vec::new();
    };
    let path = shell_path(&member.member);
    let next = format!(
        "`braid member replace {name} {path} DEVICE` fills another in its place; `smartctl --all /dev/{disk}` shows \
         all that it says",
        name = status.name
    );
    let said = [(DISK_FAILING, &smart.failing), (SMART_WARNING, &smart.warnings)];
    said.iter()
        .filter(|(_, what)| !what.is_empty())
        .map(|(kind, what)| {
            let what = format!("{} (disk {disk}): {}", member.member, what.join("; "));
            Draft::new(kind, what).member(&member.member).next(Some(next.clone()))
        })
        .collect()
}

fn undrained(
    status: &Status,
    cache: &CacheStatus,
    held: &WriteBackStatus,
    policy: &Policy,
) -> Vec<Draft> {
    let name = &status.name;
    let mut found = Vec::new();
    let dirty = ByteSize(held.dirty_bytes);
    let look = || Some(format!("`braid status {name}` shows how it drains"));
    if let Some(error) = &held.log_error {
        let next = status.next.clone().or_else(look);
        found.push(
            Draft::new(LOG_FAILED, format!("the log of {} failed: {error}", cache.cache))
                .next(next),
        );
    } else if let (Some(used), Some(size)) = (held.log_used_bytes, held.log_size_bytes) {
        let percent = u128::from(used) * 100 / u128::from(size.max(1));
        if percent >= u128::from(policy.log_full) {
            let what = format!("the log of {} is {percent} % full", cache.cache);
            found.push(Draft::new(LOG_FULL, what).next(look()));
        }
    }
    if let Some(error) = &held.drain_error {
        let what = format!("{dirty:#} of {} cannot be written to its origin: {error}", cache.cache);
        let next = status.next.clone().or_else(look);
        found.push(Draft::new(DRAIN_FAILED, what).next(next));
    }
    if let Some(age) = held.oldest_dirty_ms.map(|ms| ms / 1000)
        && age >= policy.write_back_age
    {
        let what = format!("{dirty:#} of {} are not written, the oldest for {age} s", cache.cache);
        let next = Some(format!(
            "`braid cache drain {name} unlimited` holds draining to nothing; `braid status {name}` shows how it goes"
        ));
        found.push(Draft::new(WRITE_BACK_AGE, what).next(next));
    }
    found
}
