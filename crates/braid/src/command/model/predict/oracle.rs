//! Predicts a cell of a campaign: joins its stack, and converts the tool's settings to a load.
//!
//! Invariant: anything that the model does not represent is refused with the reason, not ignored.

mod files;
mod numbers;
mod stacks;

use std::collections::{BTreeMap, BTreeSet};

use braid_lab::campaign::{FileSystem, Setup};
use braid_lab::matrix::Workload;
use braid_lab::settings::Settings;
use braid_lab::{Asked, Oracle, Predicted};
use braid_member::profile::kind;
use braid_model::{BusProfile, Host, Kind};
use braid_predict::off::off_by_kinds;
use braid_predict::{Array, Closed, MEMORY, Machine, Places, Random, Run, Workload as Asks};
use braid_stack::{Node, Stack};
use braid_trace::{Kind as Direction, Request, busiest, parse, parse_jobs};

use files::files;
use numbers::numbers;
use stacks::{has_cache, offer, tree};

/// The models of devices, behind a host's page cache.
pub(super) struct Models {
    host: Host,
}

/// A load, and what the tool's numbers are of.
struct Load {
    run: Run,
    amount: Amount,
}

/// Subject of the tool's numbers.
#[derive(Clone, Copy)]
enum Amount {
    /// It goes on for so many seconds.
    Seconds(f64),
    /// It moves so many bytes.
    Bytes(u64),
    /// It is over when all of it is done, all of which is predicted.
    Whole,
    /// The same of programs that work on files of so many bytes.
    Files(u64),
}

impl Models {
    pub(super) fn new() -> Models {
        match braid_model::profile("host-2007").map(|profile| profile.kind) {
            Some(Kind::Host(host)) => Models { host },
            other => panic!("host-2007 is a host among the profiles of braid, not {other:?}"),
        }
    }
}

impl Oracle for Models {
    fn off_by(&self, profiles: &[String]) -> (u32, String) {
        let kinds: Vec<Kind> = profiles.iter().filter_map(|name| kind(name)).collect();
        let off = off_by_kinds(&kinds);
        (off.percent(), off.grounds)
    }

    fn profiles(&self, stack: &Stack) -> BTreeSet<String> {
        let mut named: BTreeSet<String> =
            stack.members().iter().flat_map(|one| self.profiles(one)).collect();
        match &stack.node {
            Node::Model(model) => named.insert(model.profile.clone()),
            Node::Ram(_) | Node::Cache(_) => named.insert(MEMORY.to_owned()),
            _ => false,
        };
        named
    }

    fn check(&self, stack: &Stack) -> Result<(), String> {
        let mut buses: BTreeMap<&str, (BusProfile, String)> = BTreeMap::new();
        for leaf in stack.leaves() {
            let Node::Model(model) = &leaf.node else { continue };
            let offer = offer(model)?;
            let Some(name) = &model.bus else { continue };
            let here = (offer.of_bus, leaf.to_string());
            let first = buses.entry(name).or_insert_with(|| here.clone());
            if first.0 != here.0 {
                return Err(format!(
                    "the bus {name} cannot be two buses at once: {} and {} make it of different rates",
                    first.1, here.1
                ));
            }
        }
        Ok(())
    }

    fn predict(&self, asked: &[Asked<'_>], is_repeated: bool) -> Vec<Result<Predicted, String>> {
        let mut held = None;
        if is_repeated && asked.iter().any(|one| has_cache(one.stack)) {
            for one in asked {
                // The reason why one has no model is told below.
                let _ = self.predict_one(one, &mut held);
            }
        }
        asked.iter().map(|one| self.predict_one(one, &mut held)).collect()
    }
}

/// A subject after a trial, with the blocks that its caches hold then.
struct Held {
    stack: String,
    array: Array,
    is_filled: bool,
}

impl Models {
    /// Predicts a trial whose caches hold what `held` has, and leaves there what they hold then. A subject that comes up in
    /// another state has empty ones.
    fn predict_one(&self, asked: &Asked<'_>, held: &mut Option<Held>) -> Result<Predicted, String> {
        let mut array = Array::over(&tree(asked.stack)?).map_err(|why| why.to_string())?;
        let stack = asked.stack.to_string();
        let mut is_filled = false;
        if let Some(before) = held.take_if(|held| held.stack == stack) {
            is_filled = before.is_filled;
            array.hold_as(before.array);
        }
        let answer = self.run(asked, &mut array, is_filled);
        let is_filled = is_filled || asked.is_filled;
        *held = Some(Held { stack, array, is_filled });
        answer
    }

    fn run(
        &self,
        asked: &Asked<'_>,
        array: &mut Array,
        is_filled: bool,
    ) -> Result<Predicted, String> {
        let (size_bytes, workload) = (array.size, asked.workload);
        let region_bytes = asked.region_bytes.min(size_bytes);
        let mut load = load(asked, region_bytes)?;
        let to_fill = if asked.is_filled && !is_filled { region_bytes } else { 0 };
        load.run = as_it_runs(load.run, asked, to_fill, &mut array.machine)?;
        let moved = match load.amount {
            Amount::Bytes(bytes) => bytes,
            Amount::Seconds(_) | Amount::Whole | Amount::Files(_) => 0,
        };
        let most = moved.max(load.run.range());
        if most > size_bytes {
            return Err(format!("{most} bytes on a subject of {size_bytes}"));
        }
        let outcome = load.run.on(array, &self.host);
        let (measured, seconds) = numbers(workload, &outcome, load.amount);
        Ok(Predicted { size_bytes, region_bytes, measured, seconds })
    }
}

/// A load as the laboratory has its tool run. `to_fill` bytes of a subject with a cache are written before, and what is
/// written is flushed at the end.
fn as_it_runs(
    run: Run,
    asked: &Asked<'_>,
    to_fill: u64,
    machine: &mut Machine,
) -> Result<Run, String> {
    let Workload { tool, settings, .. } = asked.workload;
    let loads = past_page_cache(&run);
    let writes = loads.iter().flatten().any(|load| load.reads < 100);
    let is_cached = machine.has_cache();
    match (tool.as_str(), loads) {
        ("fio" | "fio-jobs", Some(loads)) => {
            let filled = if is_cached { to_fill } else { 0 };
            let (ramp_s, seconds) = (asked.ramp_s, asked.runtime_s);
            Ok(Run::ForTime { loads, filled, ramp_s, seconds, synced: writes })
        }
        ("fio" | "fio-jobs", None) if is_cached => {
            Err(format!("{tool} without direct over a cache: what that holds has no model"))
        }
        ("dd", None) if machine.writes_behind() => {
            Err("dd through the page cache over a cache in write-back mode".to_owned())
        }
        ("dd" | "hdparm", Some(loads)) if writes => {
            let synced = settings.word("sync") != "none";
            Ok(Run::ForTime { loads, filled: 0, ramp_s: 0.0, seconds: f64::INFINITY, synced })
        }
        ("fio" | "fio-jobs" | "dd" | "hdparm", _) => Ok(run),
        (tool, _) if is_cached => Err(format!("{tool} over a cache: what that holds has no model")),
        (tool, Some(_))
            if writes && machine.write_caches() > 0 && settings.count("fsync_every") != Some(0) =>
        {
            Err(format!(
                "{tool}, direct, with an fsync after so many writes, on disks with a cache of writes"
            ))
        }
        _ => Ok(run),
    }
}

/// The requests of a run that bypasses the page cache; `None` for a run that goes through it.
fn past_page_cache(run: &Run) -> Option<Vec<Closed>> {
    match run {
        Run::Direct(load) => Some(vec![load.clone()]),
        Run::Asked(asks, within) => asks.loads(*within),
        _ => None,
    }
}

fn load(asked: &Asked<'_>, region: u64) -> Result<Load, String> {
    let Workload { tool, settings, setup } = asked.workload;
    match tool.as_str() {
        "fio" => fio(settings, setup, region, asked.runtime_s),
        "dd" => dd(settings, setup),
        "hdparm" => hdparm(settings, setup, region),
        "sysbench" => sysbench(settings, setup, asked.runtime_s),
        "fio-jobs" => fio_jobs(settings, setup, region, asked.runtime_s),
        "replay" => replay(settings, region, asked.runtime_s),
        "bonnie" | "cp-read" | "cp-cached" | "cp-tree" | "untar" => files(tool, settings, setup),
        other => Err(format!("{other}: what it does to a file system has no model")),
    }
}

/// The read-ahead window that was set.
fn window(setup: &Setup) -> Option<u64> {
    setup.readahead.map(|size| size.bytes())
}

fn raw(setup: &Setup, tool: &str) -> Result<(), String> {
    match setup.filesystem {
        FileSystem::None => Ok(()),
        other => Err(format!("{tool} on {}", other.name())),
    }
}

/// One stream through the page cache is what is modelled of it.
fn one_process(setup: &Setup, tool: &str) -> Result<(), String> {
    match setup.processes {
        1 => Ok(()),
        many => Err(format!("{many} {tool} at once through the page cache")),
    }
}

fn fio(settings: &Settings, setup: &Setup, region: u64, seconds: f64) -> Result<Load, String> {
    raw(setup, "fio")?;
    let request = settings.size("block_size").unwrap_or(4096);
    let (random, op) = (settings.word("pattern") == "rand", settings.word("op"));
    let processes = u64::from(setup.processes);
    // As fio's own adapter in the laboratory.
    let usual = if request >= 256 << 10 { 8 } else { 32 };
    let depth = settings.count("iodepth").unwrap_or(usual);
    if settings.count("flush_every").is_some_and(|every| every > 0) {
        return Err("fio with flush_every: what a flush takes has no model".to_owned());
    }
    if region / request / if random { 1 } else { processes } == 0 {
        return Err(format!("{region} bytes do not hold {processes} blocks of {request} bytes"));
    }
    let reads = match op {
        "write" => 0,
        "mixed" => settings.count("read_percent").unwrap_or(70),
        _ => 100,
    };
    let run = if settings.flag("direct") {
        let places = if random { Places::Uniform } else { Places::Sequential };
        let count = u64::MAX;
        Run::Direct(Closed { count, request, reads, places, range: region, processes, depth })
    } else if random || op == "mixed" {
        return Err(format!("fio, {op} at random or mixed, through the page cache"));
    } else {
        one_process(setup, "fio")?;
        match reads {
            0 => Run::Write { bytes: u64::MAX },
            _ => Run::Read { bytes: u64::MAX, request, window: window(setup) },
        }
    };
    Ok(Load { run, amount: Amount::Seconds(seconds) })
}

fn fio_jobs(settings: &Settings, setup: &Setup, region: u64, seconds: f64) -> Result<Load, String> {
    raw(setup, "fio-jobs")?;
    let jobs = parse_jobs(settings.word("jobs")).map_err(|error| format!("jobs: {error}"))?;
    for job in &jobs {
        let why = match () {
            () if !job.direct => "through the page cache",
            () if job.flush_every > 0 => "with a flush after so many writes, which has no model",
            () if job.offset > 0 => "from an offset on",
            () => continue,
        };
        return Err(format!("fio-jobs, {} {why}", job.name));
    }
    let run = Run::Asked(Asks::Jobs(jobs), region);
    Ok(Load { run, amount: Amount::Seconds(seconds) })
}

fn replay(settings: &Settings, region: u64, seconds: f64) -> Result<Load, String> {
    let path = settings.word("trace");
    let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    let of = Some(settings.word("of")).filter(|of| !of.is_empty());
    let trace = parse(&bytes, of).map_err(|error| format!("{path}: {error}"))?;
    let mut requests = busiest(&trace.requests, (seconds * 1e9) as u64);
    if settings.word("op") != "all" {
        requests.retain(|request| request.kind == Direction::Read);
    }
    if !requests.iter().any(Request::has_data) {
        return Err(format!("{path}: it asks for no data"));
    }
    let run = Run::Asked(Asks::Trace(requests), region);
    Ok(Load { run, amount: Amount::Whole })
}

fn dd(settings: &Settings, setup: &Setup) -> Result<Load, String> {
    if setup.filesystem == FileSystem::Own {
        return Err("dd in a folder".to_owned());
    }
    let is_plain = settings.word("op") == "write" && !settings.flag("direct");
    if is_plain && setup.processes > 1 && settings.word("sync") != "each" {
        return files("dd", settings, setup);
    }
    if setup.processes > 1 {
        return Err(format!("{} dd at once that read, are direct or synced", setup.processes));
    }
    let is_synced = match setup.mount.as_str() {
        "" => settings.word("sync") == "each",
        "sync" => true,
        other => return Err(format!("dd with mount = {other:?}")),
    };
    let request = settings.size("bs").unwrap_or(1 << 20);
    let bytes = settings.size("size").unwrap_or(0) / request * request;
    let (reads, direct) = (settings.word("op") == "read", settings.flag("direct"));
    let run = if direct {
        if !reads && is_synced {
            return Err("dd, direct and synced: what a flush takes has no model".to_owned());
        }
        let (count, reads) = (bytes / request, if reads { 100 } else { 0 });
        let (places, range) = (Places::Sequential, bytes);
        Run::Direct(Closed { count, request, reads, places, range, processes: 1, depth: 1 })
    } else if reads {
        Run::Read { bytes, request, window: window(setup) }
    } else if is_synced {
        Run::Synced { request }
    } else if settings.word("sync") == "none" {
        return Err("dd without a sync leaves in the memory what fits there".to_owned());
    } else {
        Run::Write { bytes }
    };
    Ok(Load { run, amount: Amount::Bytes(bytes) })
}

fn hdparm(settings: &Settings, setup: &Setup, region: u64) -> Result<Load, String> {
    raw(setup, "hdparm")?;
    /// Size of hdparm's requests, and its duration.
    const PIECE: u64 = 2 << 20;
    const SECONDS: f64 = 3.0;
    let run = match settings.flag("direct") {
        true => Run::Direct(Closed {
            count: u64::MAX,
            request: PIECE,
            reads: 100,
            places: Places::Sequential,
            range: region.max(PIECE),
            processes: 1,
            depth: 1,
        }),
        false => Run::Read { bytes: u64::MAX, request: PIECE, window: window(setup) },
    };
    Ok(Load { run, amount: Amount::Seconds(SECONDS) })
}

fn sysbench(settings: &Settings, setup: &Setup, seconds: f64) -> Result<Load, String> {
    if !setup.filesystem.is_made() || !setup.mount.is_empty() {
        return Err("sysbench in a folder, or on a file system with mount options".to_owned());
    }
    let mode = settings.word("mode");
    let reads = match mode {
        "rndrd" => true,
        "rndwr" => false,
        other => return Err(format!("sysbench {other}")),
    };
    let request = settings.size("block_size").unwrap_or(16 << 10);
    let every = settings.count("fsync_every").unwrap_or(100);
    let range = settings.size("total_size").unwrap_or(1 << 30);
    let (count, processes) =
        (settings.count("events").unwrap_or(u64::MAX), u64::from(setup.processes));
    let direct = settings.flag("direct");
    let run = if direct {
        let reads = if reads { 100 } else { 0 };
        let places = Places::Uniform;
        Run::Direct(Closed { count, request, reads, places, range, processes, depth: 1 })
    } else if reads && !setup.drop_caches {
        return Err("sysbench reading what the page cache has of its files".to_owned());
    } else {
        let load = Random { count, request, range, processes };
        match reads {
            true => Run::RandomReads(load),
            false => Run::RandomWrites(load, every),
        }
    };
    let amount = match settings.count("events") {
        Some(events) => Amount::Bytes(events.saturating_mul(request).min(range)),
        None => Amount::Seconds(seconds.ceil().max(1.0)),
    };
    Ok(Load { run, amount })
}
