//! The status of a volume's caches: a part of the schema of `braid status --json`.

use braid_status::{CacheCounts, figures};
use serde::{Deserialize, Serialize};

figures! {
    /// A cache.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    pub struct CacheStatus {
        /// As it is written in the stack.
        pub cache: String,
        /// `write-through`, `write-around`, `write-back`.
        pub mode: String,
        /// Replacement policy: `s3-fifo` or `lru`.
        pub policy: String,
        /// Size of a block, which is cached as a whole or not at all.
        pub block_bytes: u64,
        /// Memory of the cache for data.
        pub size_bytes: u64 = Gauge "braid_cache_size_bytes",
        /// Memory of cached blocks.
        pub used_bytes: u64 = Gauge "braid_cache_used_bytes",
        /// Memory of the cache for its index and its replacement policy.
        pub index_bytes: u64 = Gauge "braid_cache_index_bytes",
        /// Counts of requests.
        #[serde(flatten)]
        pub counts: CacheCounts,
        /// None ever: a read drops nothing. RapidCache has the number.
        #[serde(default)]
        pub read_invalidates: u64,
        /// Mean time of a read of the origin; `null` before the first.
        #[serde(default)]
        pub origin_read_us: Option<u64>,
        /// Time that the hits would have waited for the origin: their number times the mean read of the origin.
        #[serde(default)]
        pub saved_us: u64 = Counter "braid_cache_saved_seconds_total",
        /// State of the decision to cache reads.
        #[serde(default)]
        pub aside: AsideStatus,
        /// In write-back mode.
        #[serde(default)]
        pub write_back: Option<WriteBackStatus>,
    }
}

/// Figures by which a cache steps aside, because it makes reads no faster.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AsideStatus {
    /// `serving`; `aside`: reads go past it; `trying`: it holds some of what is read to see whether that pays.
    pub standing: String,
    /// Since when.
    pub for_ms: u64,
    /// Figures of the last judgement; `null` before the first one.
    pub judged_by: Option<AsideFigures>,
}

/// Means of many reads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AsideFigures {
    /// Hits in a million reads.
    pub hits_ppm: u64,
    /// Duration of a hit.
    pub hit_ns: u64,
    /// Duration of a read of the origin.
    pub origin_ns: u64,
    /// Duration of storing in the cache the data that the origin returned.
    pub insertion_ns: u64,
    /// Time that a read saves by the cache; negative if the read takes longer.
    pub gain_ns: i64,
}

impl AsideStatus {
    /// Why reads go past it, for people; nothing while they do not.
    pub fn why(&self) -> Option<String> {
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

figures! {
    /// Data of a cache that its origin does not have yet, and how they are drained.
    #[derive(Clone, Debug, Serialize, Deserialize)]
    pub struct WriteBackStatus {
        /// Place in which data are durable when a FLUSH completes: `log`; `origin`; `log failing` while the log cannot be
        /// written, and the origin does not have all of it: FLUSH waits or fails.
        pub flushed_to: String,
        /// Bytes that the origin does not have. Without a log a power cut loses them; with one, those of
        /// them that were not flushed.
        pub dirty_bytes: u64 = Gauge "braid_cache_dirty_bytes",
        /// Dirty bytes beyond which writers wait.
        pub dirty_limit_bytes: u64 = Gauge "braid_cache_dirty_limit_bytes",
        /// Greatest age that the oldest dirty byte may have.
        pub oldest_dirty_ms: Option<u64>,
        /// Dirty bytes written to the origin.
        pub drained_bytes: u64 = Counter "braid_cache_drained_bytes_total",
        /// Limit on the rate of draining, while there is time; `null` for none.
        #[serde(default)]
        pub drain_bytes_per_second: Option<u64>,
        /// The log as it is written in the stack.
        pub log: Option<String>,
        /// Room for records in the log.
        pub log_size_bytes: Option<u64> = Gauge "braid_cache_log_size_bytes",
        /// Room in the log that is in use.
        pub log_used_bytes: Option<u64> = Gauge "braid_cache_log_used_bytes",
        /// Records that were written to the log.
        pub log_writes: Option<u64> = Counter "braid_cache_log_writes_total",
        /// Bytes written to the log since the volume was brought up.
        pub log_written_bytes: Option<u64> = Counter "braid_cache_log_written_bytes_total",
        /// Bytes that were replayed at the start of the volume.
        pub replayed_bytes: u64,
        /// Error of the origin that keeps dirty bytes from it; they are written again later.
        pub drain_error: Option<String>,
        /// Error because of which the log is not used any more.
        pub log_error: Option<String>,
    }
}

/// Estimates for other sizes and policies of a cache: its miss-ratio curve. The answer to `GET /v1/curves`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CacheCurve {
    /// The cache as it is.
    pub cache: CacheStatus,
    /// Reads of blocks that the curve is of.
    pub block_reads: u64,
    /// From the smallest size to the largest, and of each the policies; none if the cache is too small
    /// to have a curve.
    pub points: Vec<CurvePoint>,
}

/// One policy at one size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Replacement policy: `s3-fifo` or `lru`.
    pub policy: String,
    /// Memory for data.
    pub size_bytes: u64,
    /// Misses in a million reads of blocks, and the standard error of this number.
    pub miss_ppm: u64,
    /// By how many of a million the number may be wrong.
    pub error_ppm: u64,
    /// The cache would have been full. If it is not, a larger cache has no more hits.
    pub filled: bool,
    /// Reads of the sample of blocks that it is made from.
    pub sampled_reads: u64,
}

impl CacheStatus {
    /// Returns the percentage of reads that were answered from memory; `None` before the first.
    pub fn hit_percent(&self) -> Option<f64> {
        (self.counts.reads > 0)
            .then(|| self.counts.cache_hits as f64 * 100.0 / self.counts.reads as f64)
    }
}

impl CurvePoint {
    /// Returns a percentage of the reads of blocks.
    pub fn hit_percent(&self) -> f64 {
        100.0 - self.miss_ppm as f64 / 1e4
    }

    /// Twice the standard error of that.
    pub fn error_percent(&self) -> f64 {
        2.0 * self.error_ppm as f64 / 1e4
    }
}
