//! Snapshots of the machine, and the evidence between two of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::counters::{Processors, find_disk, parse_processors};
use super::heat::{Heat, read_heat, read_throttles};
use super::mdstat::{Activity, parse_mdstat};
use super::memory::find_memory_bytes;
use super::process::{Movers, read_movers, read_process};
use super::{Evidence, Moved, Watch};
use crate::facts::mount_of;

/// The roots of the kernel's files; other roots are for tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots {
    /// Instead of `/proc`.
    pub proc: PathBuf,
    /// Instead of `/sys`.
    pub sys: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self { proc: "/proc".into(), sys: "/sys".into() }
    }
}

/// One look at the machine.
#[derive(Debug, Clone)]
pub struct Snapshot {
    watch: Watch,
    /// Start and end of the snapshot.
    looked: (Instant, Instant),
    disks: BTreeMap<String, Moved>,
    processors: Option<Processors>,
    children_ticks: Option<u64>,
    server_ticks: Option<u64>,
    memory_bytes: Option<u64>,
    activities: Vec<String>,
    elsewhere: Vec<String>,
    mount: Option<String>,
    throttles: Option<u64>,
    heat: Option<Heat>,
    movers: Option<Movers>,
}

/// Takes a snapshot of this machine: right before a trial's programs start, and right after the last has ended
/// and has been waited for.
pub fn take(watch: &Watch) -> Snapshot {
    take_under(&Roots::default(), watch)
}

/// As [`take`], under other roots.
pub fn take_under(roots: &Roots, watch: &Watch) -> Snapshot {
    let Roots { proc, sys } = roots;
    let began = Instant::now();
    let text = |name: &str| fs::read_to_string(proc.join(name)).ok();
    let own = read_process(proc, std::process::id());
    let server = watch.server_pid.and_then(|process| read_process(proc, process));
    let (activities, elsewhere) =
        text("mdstat").map_or_else(Default::default, |text| activities_of(&text, watch));
    let mut snapshot = Snapshot {
        watch: watch.clone(),
        looked: (began, began),
        disks: read_disks(proc, watch),
        processors: text("stat").as_deref().and_then(parse_processors),
        children_ticks: own.map(|own| own.children_ticks),
        server_ticks: server.map(|server| server.ticks),
        memory_bytes: text("meminfo").as_deref().and_then(find_memory_bytes),
        activities,
        elsewhere,
        mount: watch.mountpoint.as_ref().and_then(|place| {
            let mount = mount_of(place, &text("self/mountinfo")?)?;
            (mount.mount_point == *place).then(|| format!("{} {}", mount.kind, mount.options))
        }),
        throttles: read_throttles(sys),
        heat: read_heat(sys),
        movers: read_movers(proc),
    };
    snapshot.looked.1 = Instant::now();
    snapshot
}

fn read_disks(proc: &Path, watch: &Watch) -> BTreeMap<String, Moved> {
    let names: Vec<&String> = watch.target.iter().chain(&watch.members).collect();
    let Some(diskstats) =
        fs::read_to_string(proc.join("diskstats")).ok().filter(|_| !names.is_empty())
    else {
        return BTreeMap::new();
    };
    let disks =
        names.into_iter().filter_map(|name| Some((name.clone(), find_disk(&diskstats, name)?)));
    disks.collect()
}

/// Returns the activities of md: on arrays that are the target or share a disk with it, and on others. An array
/// counts as unrelated only if the places of all members are known.
fn activities_of(mdstat: &str, watch: &Watch) -> (Vec<String>, Vec<String>) {
    let known: Vec<&str> = watch.target.iter().chain(&watch.members).map(String::as_str).collect();
    let is_near = |devices: &[String]| {
        devices.iter().any(|device| known.iter().any(|name| is_part(device, name)))
    };
    let (near, others): (Vec<Activity>, Vec<Activity>) =
        parse_mdstat(mdstat).into_iter().partition(|activity| is_near(&activity.devices));
    let texts = |activities: Vec<Activity>| activities.into_iter().map(|one| one.text).collect();
    (texts(near), texts(others))
}

/// Returns the texts of two snapshots, each once.
fn both(before: &[String], after: &[String]) -> Vec<String> {
    let new = after.iter().filter(|text| !before.contains(text));
    before.iter().chain(new).cloned().collect()
}

/// Returns true if a device is a disk or a partition of it: `sdb1` of `sdb`, `nvme0n1p2` of `nvme0n1`.
fn is_part(device: &str, disk: &str) -> bool {
    device.strip_prefix(disk).is_some_and(|rest| {
        let digits = if disk.ends_with(|c: char| c.is_ascii_digit()) {
            match rest.strip_prefix('p') {
                Some(digits) => digits,
                None => return rest.is_empty(),
            }
        } else {
            rest
        };
        digits.chars().all(|c| c.is_ascii_digit())
    })
}

impl Snapshot {
    fn moved(&self, earlier: &Self, name: &str) -> Option<Moved> {
        self.disks.get(name)?.since(*earlier.disks.get(name)?)
    }
}

impl Evidence {
    /// Returns the evidence between two snapshots of the same [`Watch`] on one machine.
    pub fn between(before: &Snapshot, after: &Snapshot) -> Self {
        let watch = &after.watch;
        // The snapshots themselves take time, which is not part of the trial.
        let span_s = after.looked.0.saturating_duration_since(before.looked.1).as_secs_f64();
        let per_second = rustix::param::clock_ticks_per_second() as f64;
        let seconds = |before: Option<u64>, after: Option<u64>| {
            Some(after?.checked_sub(before?)? as f64 / per_second)
        };
        let members = watch.members.iter().enumerate();
        let own: Vec<u32> = std::iter::once(std::process::id()).chain(watch.server_pid).collect();
        Self {
            span_s: Some(span_s),
            target: watch.target.as_ref().and_then(|name| after.moved(before, name)),
            members: members
                .filter(|(index, name)| !watch.members[..*index].contains(name))
                .filter_map(|(_, name)| Some((name.clone(), after.moved(before, name)?)))
                .collect(),
            models: watch.models.clone(),
            cpu_busy: after
                .processors
                .zip(before.processors)
                .and_then(|(after, before)| after.busy_since(&before)),
            cpu_count: after.processors.map(|processors| processors.count),
            tool_cores: seconds(before.children_ticks, after.children_ticks)
                .filter(|_| span_s > 0.0)
                .map(|used| used / span_s),
            server_cpu_s: seconds(before.server_ticks, after.server_ticks),
            memory_bytes: after.memory_bytes,
            activities: both(&before.activities, &after.activities),
            elsewhere: both(&before.elsewhere, &after.elsewhere),
            mount: after.mount.clone().or_else(|| before.mount.clone()),
            throttled: after.throttles.zip(before.throttles).and_then(|(a, b)| a.checked_sub(b)),
            heat: after.heat.clone(),
            strangers: after
                .movers
                .as_ref()
                .zip(before.movers.as_ref())
                .map_or_else(Vec::new, |(after, before)| after.strangers_since(before, &own)),
            // The provider of the subject is asked for it.
            content: None,
        }
    }
}
