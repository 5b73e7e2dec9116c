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

use braid_model::{Host, Kind, Tools};
use braid_published::{Condition, NotModelled};

use super::{bus, host, memory, no, of_requests, profile_of};
use crate::layout::Layout;
use crate::load::{Random, random_reads, random_writes};
use crate::machine::{Machine, MemberModel};

/// What a process of a tool moves, in bytes.
#[derive(Clone, Copy)]
struct Traffic {
    /// From disks, as long runs.
    read: f64,
    /// To disks, as long runs.
    written: f64,
    /// Whether the page cache takes what is written, up to its dirty limit.
    cached: bool,
    /// Whether it works on many files in many directories.
    spread: bool,
}

/// linux-2.6.13.tar, in bytes, about: 48 MB compressed on kernel.org.
const ARCHIVE: f64 = 218e6;
/// Its files, unpacked: published.
const TREE: f64 = 300e6;

impl Traffic {
    fn of(condition: &Condition<'_>) -> Option<Traffic> {
        let size = condition.params.number("size");
        let tree = condition.params.number("tree_bytes_about").unwrap_or(TREE);
        let (read, written, cached, spread) = match condition.tool {
            // bonnie++ works on twice the memory of 756 MB; block write and block read once, rewrite both.
            // What it does byte by byte is the processor's.
            "bonnie-total" => (2.0 * 1512e6, 2.0 * 1512e6, false, true),
            "dd-write" => (0.0, size?, false, false),
            "cp-read" => (size?, 0.0, false, false),
            "cp-small" => (0.0, ARCHIVE, true, false),
            "untar" => (0.0, tree, false, true),
            "cp-tree" => (tree, tree, false, true),
            _ => return None,
        };
        Some(Traffic { read, written, cached, spread })
    }
}

pub(super) fn predict(
    condition: &Condition<'_>,
    members: &[String],
    level: &str,
) -> Result<f64, NotModelled> {
    let profiles = members.iter().map(|name| profile_of(name)).collect::<Result<Vec<_>, _>>()?;
    if let ([profile], "single") = (profiles.as_slice(), level) {
        if let Kind::Disk(_) = profile.kind {
            if condition.tool == "fio" {
                return memory::disk(condition);
            }
            let size = profile.capacity.unwrap_or(500_000_000_000);
            return alone(condition, MemberModel { kind: profile.kind.clone(), size, bus: 0 });
        }
    }
    let disks = profiles.iter().map(|profile| match &profile.kind {
        Kind::Tools(tools) => Ok(tools),
        other => Err(no(format!("an array of a device of kind {}", other.name()))),
    });
    let disks = disks.collect::<Result<Vec<_>, _>>()?;
    let traffic =
        Traffic::of(condition).ok_or_else(|| no(format!("{} on disks", condition.tool)))?;
    let processes = condition.params.number("processes").unwrap_or(1.0);
    Pair::of(&disks, condition.tool)?.seconds(level, traffic, processes)
}

/// Disks of one kind of tool, and what they share.
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
            let sum = times.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            Ok((sum.0 / count, sum.1 / count))
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

    fn seconds(&self, level: &str, traffic: Traffic, processes: f64) -> Result<f64, NotModelled> {
        let (p, n) = (processes, self.disks);
        let all = p * self.one;
        let contended = self.further * (p - 1.0);
        let shared = self.further * (p / n - 1.0).max(0.0);
        // What goes past the page cache, in bytes of all processes.
        let room = if traffic.cached { self.host.cache_bytes as f64 } else { 0.0 };
        let written = (p * traffic.written - room).max(0.0);
        let read = p * traffic.read;
        // A long run, on one disk and on all of them through what they share.
        let (in_s, out_s) = (read / self.disk_in, written / self.disk_out);
        let striped_in = read / self.host_in.min(n * self.disk_in);
        let striped_out = written / self.host_out.min(n * self.disk_out);
        let mirrored_out = out_s.max(n * written / self.host_out);
        let seconds = match level {
            "single" => all + contended,
            "linear" if traffic.spread => all + shared,
            "linear" => all + contended,
            // The page cache is written back a file after the other, whoever wrote it: a stripe does not
            // part them.
            "raid0" if traffic.cached => all + contended,
            "raid0" => all + (striped_in - in_s) + (striped_out - out_s) + contended / n,
            "raid1" => {
                let readers = p.min(n);
                let mirrored_in = read / self.host_in.min(readers * self.disk_in);
                let reads = if traffic.spread { 0.0 } else { mirrored_in - in_s };
                let heads =
                    if traffic.spread || traffic.written == 0.0 { shared } else { contended };
                all + reads + (mirrored_out - out_s) + heads
            }
            other => return Err(no(format!("{other} of disks"))),
        };
        Ok(seconds)
    }
}

/// sysbench on one disk whose inside is modelled. Where its files lie is not stated: all over the disk.
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
