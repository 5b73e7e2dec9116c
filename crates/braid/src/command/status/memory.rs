//! Memory in the status: RAM disks and caches.

use braid_stack::ByteSize;

use super::duration;
use braid_service::control::{CacheStatus, RamStatus, WriteBackStatus};

/// A RAM disk: what it promises, what of it is in use, what the kernel holds, what becomes of it.
pub(super) fn ram(ram: &RamStatus) -> String {
    let mut what = format!("{:#}, {:#} in use", ByteSize(ram.size_bytes), ByteSize(ram.used_bytes));
    if let Some(allocated) = ram.allocated_bytes {
        what = format!("{what}, {:#} of memory taken", ByteSize(allocated));
    }
    for (is, word) in [
        (ram.preallocated, "preallocated"),
        (ram.huge_pages, "huge pages of the pool"),
        (ram.memory_locked, "never swapped out"),
    ] {
        if is {
            what = format!("{what}, {word}");
        }
    }
    let mut text = format!("{:>8}: {what}\n", "ram");
    if let Some(image) = &ram.image {
        text.push_str(&format!(
            "{:>8}: `braid down` saves it to {image}; a power cut loses what was written since it came \
             up\n",
            "image"
        ));
    }
    text
}

/// A cache: how full it is, what it was good for.
pub(super) fn cache(cache: &CacheStatus) -> String {
    let hits = cache
        .hit_percent()
        .map_or("nothing was read yet".to_owned(), |hits| format!("{hits:.1} % of reads are hits"));
    let saved = match cache.origin_read_us {
        Some(mean) => format!(
            "; {:.1} s of waiting saved, at {:.2} ms for a read of the origin",
            cache.saved_us as f64 / 1e6,
            mean as f64 / 1e3
        ),
        None => String::new(),
    };
    format!(
        "{:>8}: {}, {}, {:#} of {:#} in use, in blocks of {:#}; {hits}; {:#} came from memory, {:#} from \
         the origin{saved}\n",
        "cache",
        cache.mode,
        cache.policy,
        ByteSize(cache.used_bytes),
        ByteSize(cache.size_bytes),
        ByteSize(cache.block_bytes),
        ByteSize(cache.counts.bytes_from_ram),
        ByteSize(cache.counts.bytes_from_origin),
    ) + &aside(cache)
        + &cache.write_back.as_ref().map(write_back).unwrap_or_default()
}

/// Why it steps aside, if it does.
fn aside(cache: &CacheStatus) -> String {
    let since = duration(cache.aside.for_ms / 1000);
    let line = |why| format!("{:>8}: for {since}, {why}\n", "aside");
    cache.aside.why().map(line).unwrap_or_default()
}

/// Describes the data that the origin lacks, and the loss in a power failure.
fn write_back(status: &WriteBackStatus) -> String {
    let dirty = match status.oldest_dirty_ms {
        Some(oldest) => format!(
            "{:#} of at most {:#}, the oldest for {}",
            ByteSize(status.dirty_bytes),
            ByteSize(status.dirty_limit_bytes),
            duration(oldest / 1000),
        ),
        None => "nothing".to_owned(),
    };
    let lost = match (&status.log, status.flushed_to.as_str()) {
        (Some(log), "log") => format!(
            "a power cut loses what was not flushed; the log {log} has {:#} to replay, of {:#}",
            ByteSize(status.log_used_bytes.unwrap_or(0)),
            ByteSize(status.log_size_bytes.unwrap_or(0)),
        ),
        (_, "origin") => "a power cut loses all of it, and nothing that was flushed".to_owned(),
        _ => "the log fails, and FLUSH waits for the origin".to_owned(),
    };
    let rate = match status.drain_bytes_per_second {
        Some(rate) => format!(", drained at up to {:#}/s while there is time", ByteSize(rate)),
        None => String::new(),
    };
    format!("{:>8}: {dirty}{rate}; {lost}\n", "dirty")
}
