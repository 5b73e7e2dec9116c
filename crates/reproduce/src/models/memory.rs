//! A RAM disk, the disk below a RAM cache, and the cache.

use braid_model::{Kind, Ram};

use super::{copies, no, of_rate, profile_of};
use crate::study::{Asked, NotModelled, Study, Unit};

/// Returns true, first, if fio writes and, second, if the places are random.
pub(super) fn pattern(condition: &Asked) -> Result<(bool, bool), NotModelled> {
    match condition.params.text("rw") {
        Some("read") => Ok((false, false)),
        Some("randread") => Ok((false, true)),
        Some("write") => Ok((true, false)),
        Some("randwrite") => Ok((true, true)),
        other => Err(no(format!("fio with rw={}", other.unwrap_or("(nothing)")))),
    }
}

fn request(condition: &Asked) -> Result<u64, NotModelled> {
    condition.params.count("bs").ok_or_else(|| no("bs is not stated".to_owned()))
}

fn ram_of(study: &Study, device: &str) -> Result<Ram, NotModelled> {
    match profile_of(study, device)?.kind {
        Kind::Ram(ram) => Ok(ram),
        other => Err(no(format!("{device} is of kind {}", other.name()))),
    }
}

pub(super) fn ram(study: &Study, condition: &Asked, device: &str) -> Result<f64, NotModelled> {
    let bytes = request(condition)?;
    match condition.tool.as_str() {
        "fio" => {
            let (write, random) = pattern(condition)?;
            let ns = ram_of(study, device)?.request_ns(write, bytes, !random || bytes > PAGE);
            of_rate(condition, bytes as f64 / ns as f64 * 1e9)
        }
        "dd-write" => {
            let to_a_file = condition.params.text("target") == Some("file");
            of_rate(condition, copies::rate(to_a_file, bytes as f64))
        }
        tool => Err(no(format!("{tool} on a RAM disk"))),
    }
}

/// Bytes, beyond which a request at a random place costs as one in sequence.
const PAGE: u64 = 4096;

/// A file of at most so many bytes is one place for a disk, much of it in the disk's own cache, of which there is no
/// model: what was measured of the disk alone is taken as it is.
pub(super) const NEAR: f64 = 64e6;

/// Returns seconds of a request of fio on a disk, alone and within a near file, by the study's row of that.
fn disk_seconds(study: &Study, asked: &Asked, disk: &str) -> Result<f64, NotModelled> {
    let pattern = asked.params.get("rw");
    let is_alone = |row: &Asked| {
        let is_near = row.params.number("size").is_none_or(|size| size <= NEAR);
        row.subject == disk && row.tool == "fio" && row.params.get("rw") == pattern && is_near
    };
    let none =
        || no(format!("no row has this of {disk} alone in a file of {} MB or less", NEAR / 1e6));
    let row = study.calibration().find(|row| is_alone(&row.asked)).ok_or_else(none)?;
    let (bytes, measured) = (request(asked)? as f64, request(&row.asked)? as f64);
    let seconds = match row.asked.unit {
        Unit::BytesPerSecond => measured / row.published,
        Unit::PerSecond => 1.0 / row.published,
        Unit::Seconds => return Err(none()),
    };
    match profile_of(study, disk)?.kind {
        // What a longer request moves in addition, it moves as the disk does.
        Kind::Disk(disk) => Ok(seconds + (bytes - measured) / disk.rate(0.0)),
        other => Err(no(format!("{disk} is of kind {}", other.name()))),
    }
}

/// fio on a disk, alone.
pub(super) fn disk(study: &Study, asked: &Asked, disk: &str) -> Result<f64, NotModelled> {
    of_rate(asked, request(asked)? as f64 / disk_seconds(study, asked, disk)?)
}

/// fio on a write-through cache of RAM blocks in front of the disk, whose blocks are found by a hash.
///
/// A hit is two passes through the block layer, the cache's and the RAM disk's, and one random place of
/// memory, whatever the order of the requests. A write goes to the disk and to memory at once.
pub(super) fn cache(
    study: &Study,
    condition: &Asked,
    members: &[String],
) -> Result<f64, NotModelled> {
    let (bytes, (write, _)) = (request(condition)?, pattern(condition)?);
    let of = |kind: &str| {
        let found =
            members.iter().find(|name| study.device(name).is_some_and(|one| one.kind == kind));
        found.ok_or_else(|| no(format!("a cache without {kind}")))
    };
    let ram = ram_of(study, of("ram")?)?;
    let held = study.array(&condition.subject).and_then(|array| array.facts.number("cache_bytes"));
    let set = condition.params.number("size").unwrap_or(0.0);
    let hits = held.map_or(1.0, |held| (held / set.max(1.0)).min(1.0));
    let hit = (ram.call_ns + ram.request_ns(write, bytes, false)) as f64 / 1e9;
    let disk = disk_seconds(study, condition, of("hdd")?)?;
    let pass = ram.call_ns as f64 / 1e9;
    let seconds =
        if write { disk.max(hit) + pass } else { hits * hit + (1.0 - hits) * (disk + hit) };
    of_rate(condition, bytes as f64 / seconds)
}
