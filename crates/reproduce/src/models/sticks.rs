//! USB sticks, alone and striped, on one bus or on several.

use braid_array::geometry::Raid0;
use braid_level::Raid0Layout;
use braid_predict::{
    Layout, Machine, MemberModel, Merge, Random, Reading, random_reads, random_writes, read_ahead,
    synced, write_back,
};

use super::{bus, host, no, of_rate, of_requests, profile_of};
use crate::study::{Array, Asked, NotModelled, Study};

/// The chunk of mdadm before version 3.1, in bytes.
const CHUNK: u64 = 64 << 10;
/// `nr_requests` of Linux: what a queue holds before its writers wait.
const REQUESTS: u64 = 128;
/// A long run is cut to so many bytes, and stripes at least: rates do not change any more.
const ENOUGH: u64 = 96 << 20;
const STRIPES: u64 = 24;
/// A run that fits into the page cache tells nothing of sticks: this share of it is left there at most.
const MOST_LEFT: f64 = 0.9;

/// Sticks as a condition has them.
struct Sticks {
    members: Vec<MemberModel>,
    buses: usize,
    chunk: u64,
    transfer_max: u64,
}

pub(super) fn predict(
    study: &Study,
    condition: &Asked,
    members: &[String],
    level: &str,
) -> Result<f64, NotModelled> {
    if !matches!(level, "single" | "raid0") {
        return Err(no(format!("{level} of sticks")));
    }
    let array = study.array(&condition.subject);
    let fact = |name: &str| {
        let of_array = || array.and_then(|array: &Array| array.facts.count(name));
        condition.params.count(name).or_else(of_array)
    };
    let given = fact("chunk_kib").map(|kib| kib << 10);
    let varied = array.and_then(|array| array.facts.text("chunk_note"));
    let chunks = match given {
        Some(chunk) => vec![chunk],
        // The best of what was tried is what was published.
        None if varied.is_some_and(|note| note.starts_with("varied")) => {
            (15..=19).map(|power| 1 << power).collect()
        }
        None => vec![CHUNK],
    };
    // Files are given in whole requests, a block device's own pages are not.
    let system = array.and_then(|array| array.facts.text("filesystem"));
    let has_files =
        system.is_some_and(|text| !text.starts_with("none") && !text.starts_with("not"));
    let is_raw = matches!(condition.tool.as_str(), "hdparm-t" | "hdparm-T" | "seeker");
    let on_files = !is_raw && (has_files || condition.params.get("fs").is_some());
    let window = fact("readahead_sectors").map(|sectors| sectors * 512);
    let values = chunks.iter().map(|chunk| {
        let sticks = Sticks::of(study, condition, members, *chunk)?;
        sticks.run(condition, window, on_files)
    });
    let values = values.collect::<Result<Vec<_>, _>>()?;
    Ok(values.into_iter().fold(0.0, f64::max))
}

impl Sticks {
    fn of(
        study: &Study,
        condition: &Asked,
        names: &[String],
        chunk: u64,
    ) -> Result<Sticks, NotModelled> {
        let params = &condition.params;
        let count = params.count("members").unwrap_or(names.len() as u64);
        let count = usize::try_from(count).ok().filter(|count| (1..=names.len()).contains(count));
        let count = count.ok_or_else(|| no("more members than the array has".to_owned()))?;
        let buses = params.count("buses").unwrap_or(1);
        let buses = usize::try_from(buses).ok().filter(|buses| (1..=count).contains(buses));
        let buses = buses
            .ok_or_else(|| no("a bus for each member at most, and one at least".to_owned()))?;
        let grouped = params.text("order") == Some("grouped");
        let mut transfer_max = u64::MAX;
        let members = names[..count].iter().enumerate().map(|(index, name)| {
            let profile = profile_of(study, name)?;
            let braid_model::Kind::Flash(mut flash) = profile.kind else {
                return Err(no(format!("the profile of {name} is no stick's")));
            };
            // The time between two reads is the laptop's, not the stick's.
            if params.text("host").is_some_and(|host| host != "laptop") {
                flash.settle_ns = 0;
            }
            transfer_max = transfer_max.min(flash.transfer_max);
            let size = profile.capacity.unwrap_or(2_000_000_000) / chunk * chunk;
            let bus = if grouped { index * buses / count } else { index % buses };
            Ok(MemberModel { kind: braid_model::Kind::Flash(flash), size, bus })
        });
        Ok(Sticks { members: members.collect::<Result<_, _>>()?, buses, chunk, transfer_max })
    }

    fn machine(&self) -> Result<Machine, NotModelled> {
        let sizes: Vec<_> = self.members.iter().map(|member| member.size).collect();
        let layout = match sizes.len() {
            1 => Layout::Single,
            _ => Raid0::new(&sizes, self.chunk, Raid0Layout::Original, 512)
                .map(|raid0| Layout::Of(Box::new(raid0)))
                .map_err(|why| no(why.to_string()))?,
        };
        let buses = vec![bus("usb2-ich9"); self.buses];
        Ok(Machine::new(layout, &self.members, &buses, self.transfer_max))
    }

    fn run(
        &self,
        condition: &Asked,
        window: Option<u64>,
        on_files: bool,
    ) -> Result<f64, NotModelled> {
        let (params, host) = (&condition.params, host("host-2007"));
        let count = self.members.len() as u64;
        let stripe = self.chunk * count;
        let bytes = ENOUGH.max(STRIPES * stripe);
        let request = params.count("bs").unwrap_or(1 << 20).max(1);
        let mut machine = self.machine()?;
        if on_files {
            machine = machine.merging(Merge::Whole);
        }
        match condition.tool.as_str() {
            "hdparm-T" => of_rate(condition, host.copy_rate),
            "hdparm-t" | "dd-read" => {
                // Linux drivers/md/raid0.c, raid0_run: two stripes, if that is more.
                let of_array = if count > 1 { 2 * stripe } else { 0 };
                let window = window.unwrap_or(host.readahead_bytes.max(of_array));
                let reading = Reading { bytes, window, request };
                of_rate(condition, read_ahead(&mut machine, &host, reading))
            }
            "dd-write" if params.flag("sync") == Some(true) => {
                // Did each call of 1 KiB wait, a stick would rewrite a page four times, and an allocation
                // unit each time: what was published is far above that. What fills a chunk is assumed to
                // be written at once.
                let together = request.max(self.chunk);
                let writes = (bytes / together).clamp(64, 512);
                of_rate(condition, synced(&mut machine, &host, together, writes))
            }
            "dd-write" => {
                let under_way = REQUESTS * self.transfer_max * count;
                let rate = write_back(&mut machine, &host, bytes, under_way);
                // Without a sync the last of it is not waited for.
                let all = params.bytes().unwrap_or(f64::INFINITY);
                let left = match params.flag("fdatasync") {
                    Some(true) => 0.0,
                    _ => (host.dirty_bytes as f64 / all).min(MOST_LEFT),
                };
                of_rate(condition, rate / (1.0 - left))
            }
            "seeker" => {
                // It reads 512 bytes of a block device, whose page cache reads a page.
                let range = self.members.iter().map(|member| member.size).sum();
                let load = Random { count: 2000, request: host.page_bytes, range, processes: 1 };
                let per_second = random_reads(&mut machine, &host, load, 0.0);
                Ok(of_requests(condition, per_second, request))
            }
            "sysbench-rndrd" | "sysbench-rndwr" => {
                let processes = params.count("threads").unwrap_or(1);
                let range = params.count("size").unwrap_or(4 << 30);
                let load = Random {
                    count: params.count("count").unwrap_or(10_000),
                    request,
                    range,
                    processes,
                };
                let per_second = if condition.tool == "sysbench-rndrd" {
                    // The files were just written: of these the page cache has what it can hold.
                    let hits = (host.cache_bytes as f64 / range as f64).min(1.0);
                    random_reads(&mut machine, &host, load, hits)
                } else {
                    random_writes(&mut machine, load, params.count("fsync_every").unwrap_or(100))
                };
                Ok(of_requests(condition, per_second, request))
            }
            tool => Err(no(format!("{tool} on sticks"))),
        }
    }
}
