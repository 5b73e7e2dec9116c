//! A RAM disk, the disk below a RAM cache, and the cache.

use braid_model::{Kind, Ram, profile};
use braid_published::{Condition, NotModelled, Study};

use super::{no, of_rate, profile_of};

/// Whether fio writes, and whether it does so at random places.
pub(super) fn pattern(condition: &Condition<'_>) -> Result<(bool, bool), NotModelled> {
    match condition.params.text("rw") {
        Some("read") => Ok((false, false)),
        Some("randread") => Ok((false, true)),
        Some("write") => Ok((true, false)),
        Some("randwrite") => Ok((true, true)),
        other => Err(no(format!("fio with rw={}", other.unwrap_or("(nothing)")))),
    }
}

fn request(condition: &Condition<'_>) -> Result<u64, NotModelled> {
    condition.params.count("bs").ok_or_else(|| no("bs is not stated".to_owned()))
}

fn ram_of(device: &str) -> Result<Ram, NotModelled> {
    match profile_of(device)?.kind {
        Kind::Ram(ram) => Ok(ram),
        other => Err(no(format!("{device} is of kind {}", other.name()))),
    }
}

pub(super) fn ram(condition: &Condition<'_>, device: &str) -> Result<f64, NotModelled> {
    let bytes = request(condition)?;
    match condition.tool {
        "fio" => {
            let (write, random) = pattern(condition)?;
            let ns = ram_of(device)?.request_ns(write, bytes, !random || bytes > PAGE);
            of_rate(condition, bytes as f64 / ns as f64 * 1e9)
        }
        "dd-write" => {
            let Some(Kind::Copies(copies)) = profile("xeon-dd").map(|profile| profile.kind) else {
                return Err(no("there is no profile of what dd's copies cost".to_owned()));
            };
            let file = condition.params.text("target") == Some("file");
            let costs = if file { copies.file } else { copies.node };
            of_rate(condition, copies.rate(costs, bytes as f64))
        }
        tool => Err(no(format!("{tool} on a RAM disk"))),
    }
}

/// What a random request pays for once.
const PAGE: u64 = 4096;

/// Seconds of a request on the disk below, alone.
fn disk_seconds(bytes: u64, write: bool, random: bool) -> Result<f64, NotModelled> {
    let Some(Kind::Tools(times)) = profile("sata-fio").map(|profile| profile.kind) else {
        return Err(no("there is no profile of the disk below the cache".to_owned()));
    };
    let name = match (write, random) {
        (false, false) => "seq-read",
        (false, true) => "rand-read",
        (true, false) => "seq-write",
        (true, true) => "rand-write",
    };
    let of_a_page = times.seconds(name).ok_or_else(|| no(format!("no row has {name}")))?;
    let Some(Kind::Disk(disk)) = profile("sata-7200").map(|profile| profile.kind) else {
        return Err(no("there is no profile of the disk".to_owned()));
    };
    // What a longer request moves in addition, it moves as the disk does.
    Ok(of_a_page + (bytes as f64 - PAGE as f64) / disk.rate(0.0))
}

/// fio on the disk below, alone.
pub(super) fn disk(condition: &Condition<'_>) -> Result<f64, NotModelled> {
    let (bytes, (write, random)) = (request(condition)?, pattern(condition)?);
    of_rate(condition, bytes as f64 / disk_seconds(bytes, write, random)?)
}

/// fio on a write-through cache of RAM blocks in front of the disk, whose blocks are found by a hash.
///
/// A hit is two passes through the block layer, the cache's and the RAM disk's, and one random place of
/// memory, whatever the order of the requests. A write goes to the disk and to memory at once.
pub(super) fn cache(
    study: &Study,
    condition: &Condition<'_>,
    members: &[String],
) -> Result<f64, NotModelled> {
    let (bytes, (write, random)) = (request(condition)?, pattern(condition)?);
    let memory =
        members.iter().find(|name| study.device(name).is_some_and(|one| one.kind == "ram"));
    let ram = ram_of(memory.ok_or_else(|| no("a cache without memory".to_owned()))?)?;
    let held = study.array(condition.subject).and_then(|array| array.facts.number("cache_bytes"));
    let set = condition.params.number("size").unwrap_or(0.0);
    let hits = held.map_or(1.0, |held| (held / set.max(1.0)).min(1.0));
    let hit = (ram.call_ns + ram.request_ns(write, bytes, false)) as f64 / 1e9;
    let disk = disk_seconds(bytes, write, random)?;
    let pass = ram.call_ns as f64 / 1e9;
    let seconds =
        if write { disk.max(hit) + pass } else { hits * hit + (1.0 - hits) * (disk + hit) };
    of_rate(condition, bytes as f64 / seconds)
}
