//! Two disks on two channels of one host: what tools take on arrays of them, from what they take on
//! each disk alone.
//!
//! ```text
//!  p processes, one disk     p·one + (p-1)·further      further: heads that go to and fro
//!  two disks                 bytes through the host: each may go as fast as what both share lets it
//!                            heads: p/n processes each, where files lie in different places
//! ```
//!
//! * *linear*: a large file lies on one disk; directories, and with them the files of trees, are spread
//!   over both (ext3's Orlov allocator), so each disk has p/2 processes.
//! * *striped*: every process is on both disks, with half of the bytes each: heads go as often, each
//!   time for half as long, and half of it is hidden by the other disk's transfer.
//! * *mirrored*: all that is written goes through the host twice; readers are spread over both.

use braid_model::{Host, Kind, Times, Tools};
use braid_published::{Condition, NotModelled};

use super::{bus, host, memory, no, of_requests, profile_of};
use crate::layout::Layout;
use crate::load::{Closed, Places, Random, closed_cut, random_reads, random_writes};
use crate::machine::{Machine, MemberModel};

/// What a process of a tool moves.
struct Traffic {
    /// Bytes from and to disks, as long runs: of one phase after the other; within one they alternate.
    phases: Vec<(f64, f64)>,
    /// Whether the page cache takes what is written, up to its dirty limit.
    cached: bool,
    /// Whether it works on many files in many directories.
    spread: bool,
}

/// linux-2.6.13.tar, in bytes, about: 48 MB compressed on kernel.org.
const ARCHIVE: f64 = 218e6;
/// Its files, unpacked: published.
const TREE: f64 = 300e6;
/// The file of bonnie++: twice the memory, which is 756 MB.
const BONNIE: f64 = 1512e6;

impl Traffic {
    fn of(condition: &Condition<'_>) -> Option<Traffic> {
        let size = condition.params.number("size");
        let tree = condition.params.number("tree_bytes_about").unwrap_or(TREE);
        let (phases, cached, spread) = match condition.tool {
            // Write, rewrite, read, by blocks. What it does byte by byte is the processor's.
            "bonnie-total" => (vec![(0.0, BONNIE), (BONNIE, BONNIE), (BONNIE, 0.0)], false, true),
            "dd-write" => (vec![(0.0, size?)], false, false),
            "cp-read" => (vec![(size?, 0.0)], false, false),
            "cp-small" => (vec![(0.0, ARCHIVE)], true, false),
            "untar" => (vec![(0.0, tree)], false, true),
            "cp-tree" => (vec![(tree, tree)], false, true),
            _ => return None,
        };
        Some(Traffic { phases, cached, spread })
    }

    fn reads(&self) -> bool {
        self.phases.iter().any(|(read, _)| *read > 0.0)
    }

    fn writes(&self) -> bool {
        self.phases.iter().any(|(_, written)| *written > 0.0)
    }
}

pub(super) fn predict(
    condition: &Condition<'_>,
    members: &[String],
    level: &str,
) -> Result<f64, NotModelled> {
    let profiles = members.iter().map(|name| profile_of(name)).collect::<Result<Vec<_>, _>>()?;
    if let ([profile], "single") = (profiles.as_slice(), level)
        && let Kind::Disk(_) = profile.kind
    {
        if condition.tool == "fio"
            && condition.params.number("size").is_none_or(|size| size <= NEAR)
        {
            return memory::disk(condition);
        }
        let size = profile.capacity.unwrap_or(500_000_000_000);
        return alone(condition, MemberModel { kind: profile.kind.clone(), size, bus: 0 });
    }
    let disks = profiles.iter().map(|profile| match &profile.kind {
        Kind::Tools(tools) => Ok(tools),
        other => Err(no(format!("an array of a device of kind {}", other.name()))),
    });
    let disks = disks.collect::<Result<Vec<_>, _>>()?;
    let traffic =
        Traffic::of(condition).ok_or_else(|| no(format!("{} on disks", condition.tool)))?;
    let processes = condition.params.count("processes").unwrap_or(1);
    let processes =
        u32::try_from(processes).map_err(|_| no("more processes than there are".to_owned()))?;
    let pair = Pair::of(&disks, condition.tool)?;
    match level {
        "single" => Ok(disks
            .iter()
            .filter_map(|disk| disk.times(condition.tool))
            .map(|one| one.seconds(processes))
            .sum()),
        level => pair.seconds(level, &traffic, f64::from(processes)),
    }
}

/// Disks, and what they share.
struct Pair {
    /// Seconds of one process, and of each further one: means of the disks.
    one: f64,
    further: f64,
    disks: f64,
    /// Rates of a disk alone, as `dd` and `cp` have them, in bytes per second.
    disk_in: f64,
    disk_out: f64,
    /// Rates of all together.
    host_in: f64,
    host_out: f64,
    host: Host,
}

/// What `dd` and `cp` of the study move, in bytes: 7000 MiB.
const LONG_RUN: f64 = 7_340_032_000.0;

impl Pair {
    fn of(disks: &[&Tools], tool: &str) -> Result<Pair, NotModelled> {
        let mean = |tool: &str| {
            let times = disks.iter().map(|disk| disk.times(tool)).collect::<Option<Vec<_>>>();
            let times = times.ok_or_else(|| no(format!("no row of a single disk has {tool}")))?;
            let count = times.len() as f64;
            let mean = |of: fn(&Times) -> f64| times.iter().map(|one| of(one)).sum::<f64>() / count;
            Ok::<_, NotModelled>((mean(Times::one), mean(|one| one.further)))
        };
        let (one, further) = mean(tool)?;
        let shared = bus("pci-p3");
        Ok(Pair {
            one,
            further,
            disks: disks.len() as f64,
            disk_in: LONG_RUN / mean("cp-read")?.0,
            disk_out: LONG_RUN / mean("dd-write")?.0,
            host_in: shared.rate_in as f64,
            host_out: shared.rate_out as f64,
            host: host("host-p3"),
        })
    }

    fn seconds(&self, level: &str, traffic: &Traffic, p: f64) -> Result<f64, NotModelled> {
        let n = self.disks;
        let all = p * self.one;
        let contended = self.further * (p - 1.0);
        let parted = self.further * (p / n - 1.0).max(0.0);
        // What long runs take in addition to their time on one disk, where so many disks read and write, and
        // `copies` of what is written go through the host. A long write does not wait for heads: they
        // move while the host does something else.
        let only_writes = !traffic.reads() && !traffic.spread && !traffic.cached;
        let longer = |readers: f64, writers: f64, copies: f64, heads: f64| {
            let (beside, behind) = if only_writes { (heads, 0.0) } else { (0.0, heads) };
            let phase = |(read, written): &(f64, f64)| {
                let room = if traffic.cached { self.host.dirty_bytes as f64 } else { 0.0 };
                let (read, written) = (p * read, (p * written - room).max(0.0));
                let (in_s, out_s) = (read / self.disk_in, written / self.disk_out);
                let host = read / self.host_in + copies * written / self.host_out;
                (in_s / readers + out_s / writers + beside).max(host) - in_s - out_s
            };
            traffic.phases.iter().map(phase).sum::<f64>() + behind
        };
        match level {
            "linear" if traffic.spread => Ok(all + parted),
            "linear" => Ok(all + contended),
            // The page cache is written back a file after the other, whoever wrote it: a stripe does not
            // part them.
            "raid0" if traffic.cached => Ok(all + contended),
            "raid0" => Ok(all + longer(n, n, 1.0, contended / n)),
            "raid1" => {
                // Readers of large files keep to a disk each; what reads trees reads little at a time.
                let readers = if traffic.spread { 1.0 } else { p.min(n) };
                let heads = if traffic.spread || !traffic.writes() { parted } else { contended };
                Ok(all + longer(readers, 1.0, n, heads))
            }
            other => Err(no(format!("{other} of disks"))),
        }
    }
}

/// A file of at most so many bytes is one place for a disk, much of it in its cache: what was measured
/// there is taken as it is.
const NEAR: f64 = 64e6;

/// sysbench and fio on one disk whose inside is modelled. Where its files lie is not stated: all over the disk.
fn alone(condition: &Condition<'_>, disk: MemberModel) -> Result<f64, NotModelled> {
    let (params, host) = (condition.params, host("host-2007"));
    let request = params.count("bs").ok_or_else(|| no("bs is not stated".to_owned()))?;
    let set = params.count("size").ok_or_else(|| no("size is not stated".to_owned()))?;
    let range = disk.size;
    let processes = params.count("threads").unwrap_or(1);
    let load = Random {
        count: params.count("count").unwrap_or(10_000).min(4000),
        request,
        range,
        processes,
    };
    let mut machine = Machine::new(Layout::Single, &[disk], &[Default::default()], 512 << 10);
    let per_second = match condition.tool {
        "fio" => {
            let range = set.min(range);
            let (write, random) = memory::pattern(condition)?;
            let places = if random { Places::Uniform } else { Places::Sequential };
            let depth = params.count("iodepth").unwrap_or(1);
            let reads = if write { 0 } else { 100 };
            let count = set / request;
            let load = Closed { count, request, reads, places, range, processes: 1, depth };
            let enough = ((512 << 20) / request).clamp(256, 4000);
            closed_cut(&mut machine, &[load], enough).per_second()
        }
        "sysbench-rndrd" => {
            let hits = (host.cache_bytes as f64 / set as f64).min(1.0);
            random_reads(&mut machine, &host, load, hits)
        }
        "sysbench-rndwr" => {
            random_writes(&mut machine, load, params.count("fsync_every").unwrap_or(100))
        }
        tool => return Err(no(format!("{tool} on a disk alone"))),
    };
    Ok(of_requests(condition, per_second, request))
}
