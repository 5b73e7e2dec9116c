//! Disks, alone and in arrays: what their profiles say of fio, sysbench, and programs that work on files.

use braid_level::Level;
use braid_model::Profile;
use braid_predict::{
    Array, Bonnie, Closed, Files, Layout, Machine, MemberModel, Merge, Offer, Places, Program,
    Random, Run, Trees, closed_cut, random_reads, random_writes, usual_shape,
};

use super::{host, memory, no, of_requests, profile_of};
use crate::study::{Asked, NotModelled, Study};

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
        "dd-write" => Program::Write(size?),
        "cp-read" => Program::Read(size?),
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
    let profiles = members.iter().map(|name| profile_of(name)).collect::<Result<Vec<_>, _>>()?;
    if let Some(program) = program(condition) {
        return on_files(condition, program, &profiles, level);
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

/// Seconds of a program on an array of Linux' md, whose members share the bus that their profiles name.
fn on_files(
    condition: &Asked,
    program: Program,
    profiles: &[Profile],
    level: &str,
) -> Result<f64, NotModelled> {
    let offer = |profile: &Profile| Offer {
        name: profile.label.clone(),
        profile: profile.clone(),
        size: profile.capacity.unwrap_or(80_000_000_000),
        bus: profile.bus.clone(),
        of_bus: profile.usual_bus(),
    };
    let offers: Vec<Offer> = profiles.iter().map(offer).collect();
    let shape = match Level::ALL.iter().find(|one| one.name() == level) {
        Some(level) => Some(usual_shape(*level, CHUNK)),
        None if level == "single" => None,
        None => return Err(no(format!("{level} of disks"))),
    };
    let members: Vec<&Offer> = offers.iter().collect();
    let mut array = Array::of(&members, shape, 1 << 20).map_err(|why| no(why.to_string()))?;
    array.machine = array.machine.merging(Merge::Whole);
    let processes = condition.params.count("processes").unwrap_or(1);
    let run = Run::Files(Files { program, processes, synced: false });
    Ok(run.on(&mut array, &host("host-p3")).seconds)
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
