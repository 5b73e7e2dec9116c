//! Disks, alone and in arrays: what their profiles say of fio, sysbench, and programs that work on files.

use braid_level::{Level, Raid10Layout, Shape};
use braid_model::{Host, Profile};
use braid_predict::{
    Array, Bonnie, Closed, Files, Layout, Machine, MemberModel, Merge, Offer, Places, Program,
    Random, Reading, Run, Trees, closed_cut, random_reads, random_writes, read_ahead, usual_shape,
};

use super::{host, memory, no, of_rate, of_requests, profile_of};
use crate::study::{Array as StudyArray, Asked, NotModelled, Study, Unit};

/// linux-2.6.13.tar, in bytes, about: 48 MB compressed on kernel.org.
const ARCHIVE: u64 = 218_000_000;
/// Bytes of its tree, as published, and of its files and folders in the mean: some 17,800 and 1,100.
const TREE: f64 = 300e6;
const FILE: u64 = 16_900;
const FOLDER: u64 = 273_000;
/// The file of bonnie++ 1: twice the memory, which is 756 MB.
const BONNIE: u64 = 1_512_000_000;
/// The chunk of mdadm before version 3.1, in bytes.
const CHUNK: u64 = 64 << 10;
/// A long run is cut to so many bytes.
const ENOUGH: u64 = 96 << 20;

/// Returns the work of each process of a published tool.
fn program(condition: &Asked) -> Option<Program> {
    let size = condition.params.count("size");
    let bytes = condition.params.number("tree_bytes_about").unwrap_or(TREE) as u64;
    // Each was made by the tool before it.
    let trees = Trees { bytes, file: FILE, folder: FOLDER, cold: false };
    Some(match condition.tool.as_str() {
        "bonnie-total" => {
            Program::Bonnie(Bonnie { size: BONNIE, by_character: BONNIE, chunk: 8192 })
        }
        "dd-write" | "files-write" => Program::Write(size?),
        "cp-read" | "files-read" => Program::Read(size?),
        "cp-small" => Program::CopyCached(ARCHIVE),
        "untar" => Program::Unpack(trees),
        "cp-tree" => Program::CopyTree(trees),
        _ => return None,
    })
}

pub(super) fn predict(
    study: &Study,
    condition: &Asked,
    members: &[String],
    level: &str,
) -> Result<f64, NotModelled> {
    let profiles = members.iter().map(|name| profile_of(study, name));
    let profiles = profiles.collect::<Result<Vec<_>, _>>()?;
    let program = program(condition);
    if program.is_some() || condition.tool == "hdparm-t" {
        let shape = shape(study.array(&condition.subject), level)?;
        let host = host(study.facts.text("host_profile").unwrap_or("host-2007"));
        let array = joined(&profiles, shape)?;
        return match program {
            Some(program) => on_files(condition, program, array, &host),
            None => from_the_beginning(condition, array, &host),
        };
    }
    let ([profile], "single") = (profiles.as_slice(), level) else {
        return Err(no(format!("{} on {level} of disks", condition.tool)));
    };
    if condition.tool == "fio"
        && condition.params.number("size").is_none_or(|size| size <= memory::NEAR)
    {
        return memory::disk(study, condition, &members[0]);
    }
    let size = profile.capacity.unwrap_or(500_000_000_000);
    alone(condition, MemberModel { kind: profile.kind.clone(), size, bus: 0 })
}

/// The shape of an array of this level as the study states it, or else as mdadm made it; `None` for a disk alone.
fn shape(array: Option<&StudyArray>, level: &str) -> Result<Option<Shape>, NotModelled> {
    let Some(known) = Level::ALL.iter().find(|one| one.name() == level) else {
        return if level == "single" { Ok(None) } else { Err(no(format!("{level} of disks"))) };
    };
    let facts = array.map(|array| &array.facts);
    let chunk = facts.and_then(|facts| facts.count("chunk_kib")).map_or(CHUNK, |kib| kib << 10);
    let mut shape = usual_shape(*known, chunk);
    if let Some(layout) = facts.and_then(|facts| facts.text("layout")) {
        let known = Raid10Layout::from_name(layout);
        shape.layout = known.ok_or_else(|| no(format!("{level} in the layout {layout}")))?.number();
    }
    Ok(Some(shape))
}

/// An array of Linux' md, or a disk alone; members share the bus that their profiles name.
fn joined(profiles: &[Profile], shape: Option<Shape>) -> Result<Array, NotModelled> {
    let offer = |profile: &Profile| Offer {
        name: profile.label.clone(),
        profile: profile.clone(),
        size: profile.capacity.unwrap_or(80_000_000_000),
        bus: profile.bus.clone(),
        of_bus: profile.usual_bus(),
    };
    let offers: Vec<Offer> = profiles.iter().map(offer).collect();
    let members: Vec<&Offer> = offers.iter().collect();
    Array::of(&members, shape, 1 << 20).map_err(|why| no(why.to_string()))
}

/// A program on files. A rate was read while the devices worked: all that is written counts.
fn on_files(
    condition: &Asked,
    program: Program,
    mut array: Array,
    host: &Host,
) -> Result<f64, NotModelled> {
    array.machine = array.machine.merging(Merge::Whole);
    let processes = condition.params.count("processes").unwrap_or(1);
    let is_rate = condition.unit == Unit::BytesPerSecond;
    let run = Run::Files(Files { program, processes, synced: is_rate });
    let seconds = run.on(&mut array, host).seconds;
    if !is_rate {
        return Ok(seconds);
    }
    let bytes = condition.params.number("size").ok_or_else(|| no("no size".to_owned()))?;
    Ok(bytes / seconds)
}

/// `hdparm -t`: a block device's own pages are read from its beginning.
fn from_the_beginning(condition: &Asked, array: Array, host: &Host) -> Result<f64, NotModelled> {
    let mut machine = array.machine.merging(Merge::Pages);
    // Linux drivers/md: two stripes, if that is more.
    let window = host.readahead_bytes.max(2 * machine.stripe());
    let request = condition.params.count("bs").unwrap_or(2 << 20);
    of_rate(condition, read_ahead(&mut machine, host, Reading { bytes: ENOUGH, window, request }))
}

/// sysbench and fio on one disk whose inside is modelled. Where its files lie is not stated: all over the disk.
fn alone(condition: &Asked, disk: MemberModel) -> Result<f64, NotModelled> {
    let (params, host) = (&condition.params, host("host-2007"));
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
    let per_second = match condition.tool.as_str() {
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
