//! What a volume says of its caches: a part of the schema of `braid status --json`.

use serde::{Deserialize, Serialize};

/// A cache. Counters are since it was brought up, of requests that were answered well, under the names
/// that RapidCache gave to them, and others: `reads = cache_hits + cache_misses + uncached_reads`,
/// `bytes_read = bytes_from_ram + bytes_from_origin`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CacheStatus {
    /// As it is written in the stack.
    pub(crate) cache: String,
    pub(crate) mode: String,
    pub(crate) policy: String,
    pub(crate) block_bytes: u64,
    /// Memory for data, and how much of it is of blocks that are held.
    pub(crate) size_bytes: u64,
    pub(crate) used_bytes: u64,
    /// Memory beside that: what is where, and who leaves.
    pub(crate) index_bytes: u64,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) cache_hits: u64,
    #[serde(default)]
    pub(crate) cache_misses: u64,
    pub(crate) replacement: u64,
    pub(crate) write_replacement: u64,
    /// None ever: a read drops nothing. RapidCache has the number.
    pub(crate) read_invalidates: u64,
    pub(crate) write_invalidates: u64,
    pub(crate) uncached_reads: u64,
    pub(crate) uncached_writes: u64,
    pub(crate) disk_reads: u64,
    pub(crate) disk_writes: u64,
    pub(crate) cache_reads: u64,
    pub(crate) cache_writes: u64,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_from_ram: u64,
    pub(crate) bytes_from_origin: u64,
    pub(crate) bytes_written: u64,
    /// What a read of the origin takes in the mean; `null` before the first.
    #[serde(default)]
    pub(crate) origin_read_us: Option<u64>,
    /// What the hits would have waited for the origin: their number times that.
    #[serde(default)]
    pub(crate) saved_us: u64,
    /// Whether it holds what is read.
    #[serde(default)]
    pub(crate) aside: AsideStatus,
    /// In write-back mode.
    #[serde(default)]
    pub(crate) write_back: Option<WriteBackStatus>,
}

/// Whether a cache steps aside because it makes reads no faster, and by which figures.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct AsideStatus {
    /// `serving`; `aside`: reads go past it; `trying`: it holds some of what is read to see whether that pays.
    pub(crate) standing: String,
    pub(crate) for_ms: u64,
    /// Of the last reads that it was judged by; `null` before the first time.
    pub(crate) judged_by: Option<AsideFigures>,
}

/// Means of many reads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct AsideFigures {
    /// Of a million reads, those that hit.
    pub(crate) hits_ppm: u64,
    pub(crate) hit_ns: u64,
    pub(crate) origin_ns: u64,
    /// What it takes to hold what the origin answered.
    pub(crate) insertion_ns: u64,
    /// What a read gains by the cache; it loses below 0.
    pub(crate) gain_ns: i64,
}

impl AsideStatus {
    /// Why reads go past it, for people; nothing while they do not.
    pub(crate) fn why(&self) -> Option<String> {
        let is_trying = self.standing == "trying";
        let figures = self.judged_by.as_ref().filter(|_| is_trying || self.standing == "aside")?;
        let micros = |ns: u64| format!("{:.2} µs", ns as f64 / 1e3);
        let loss = micros(figures.gain_ns.min(0).unsigned_abs());
        let now = match is_trying {
            true => ", and it tries with a few blocks whether that changed",
            false => "",
        };
        Some(format!(
            "reads go past the cache{now}: {:.1} % of them hit, in {}; the origin takes {} itself, and holding \
             what it answers {}: with the cache a read took {loss} longer",
            figures.hits_ppm as f64 / 1e4,
            micros(figures.hit_ns),
            micros(figures.origin_ns),
            micros(figures.insertion_ns),
        ))
    }
}

/// What a cache's origin does not have yet, and what becomes of that.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WriteBackStatus {
    /// What an acknowledged FLUSH is kept by: `log`; `origin`; `log failing` while the log cannot be
    /// written, and the origin does not have all of it: FLUSH waits or fails.
    pub(crate) flushed_to: String,
    /// Bytes that the origin does not have. Without a log a power cut loses them; with one, those of
    /// them that were not flushed.
    pub(crate) dirty_bytes: u64,
    /// Beyond so many writers wait.
    pub(crate) dirty_limit_bytes: u64,
    /// How long the oldest of them may have been dirty.
    pub(crate) oldest_dirty_ms: Option<u64>,
    pub(crate) drained_bytes: u64,
    /// What draining is held to while there is time; `null` for nothing.
    #[serde(default)]
    pub(crate) drain_bytes_per_second: Option<u64>,
    /// The log as it is written in the stack.
    pub(crate) log: Option<String>,
    /// Bytes of it for records, and how many of these would have to be replayed.
    pub(crate) log_size_bytes: Option<u64>,
    pub(crate) log_used_bytes: Option<u64>,
    /// Records that were written to it, and their bytes.
    pub(crate) log_writes: Option<u64>,
    pub(crate) log_written_bytes: Option<u64>,
    /// What was replayed when it came up.
    pub(crate) replayed_bytes: u64,
    /// Why the origin does not take what is dirty: it is tried again.
    pub(crate) drain_error: Option<String>,
    /// Why the log is not used any more.
    pub(crate) log_error: Option<String>,
}

/// What a cache would be if it were another: its miss-ratio curve. The answer to `GET /v1/curves`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CacheCurve {
    pub(crate) cache: CacheStatus,
    /// Reads of blocks that the curve is of.
    pub(crate) block_reads: u64,
    /// From the smallest size to the largest, and of each the policies; none if the cache is too small
    /// to have a curve.
    pub(crate) points: Vec<CurvePoint>,
}

/// One policy at one size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CurvePoint {
    pub(crate) policy: String,
    pub(crate) size_bytes: u64,
    /// Of a million reads of blocks, how many would have missed, and the standard error of that.
    pub(crate) miss_ppm: u64,
    pub(crate) error_ppm: u64,
    /// Whether it would have been full: if not, a larger one would not have hit more.
    pub(crate) filled: bool,
    /// Reads of the sample of blocks that it is made from.
    pub(crate) sampled_reads: u64,
}

impl CacheStatus {
    /// How many of a hundred reads were answered from memory; none before the first.
    pub(crate) fn hit_percent(&self) -> Option<f64> {
        (self.reads > 0).then(|| self.cache_hits as f64 * 100.0 / self.reads as f64)
    }
}
