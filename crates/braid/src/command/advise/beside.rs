//! Additions to a layout: the read-ahead of a long read, and a cache in memory.

use std::collections::BTreeSet;

use braid_cache::curve::Curve;
use braid_level::CachePolicy;
use braid_predict::What;
use braid_predict::advise::by_read_ahead;
use braid_stack::{ByteSize, Cache};
use braid_trace::Kind;

use super::Advice;
use super::words::rate as in_words;

/// A property that depends on a size in bytes.
pub(super) struct Beside {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) label: &'static str,
    pub(super) unit: &'static str,
    pub(super) points: Vec<(u64, f64)>,
    /// The sentence about it.
    pub(super) sentence: String,
}

/// Read-aheads that are tried, in bytes.
const WINDOWS: &[u64] =
    &[32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20];
/// Fraction of the maximum that counts as equally good.
const AS_GOOD: f64 = 0.97;
/// Memory for the miniatures of caches, in bytes.
const MINIATURES: usize = 64 << 20;
/// Blocks of which the smallest cache consists, at least, so that there is a curve.
const LEAST_BLOCKS: u64 = 64;
/// Hits in a hundred that do not matter.
const HARDLY: f64 = 5.0;

/// All that there is.
pub(super) fn beside(advice: &Advice) -> Vec<Beside> {
    [read_ahead(advice), cache(advice)].into_iter().flatten().collect()
}

/// For a long read through the page cache.
fn read_ahead(advice: &Advice) -> Option<Beside> {
    let best = &advice.ranked[0];
    let (What::ReadAhead, _) = advice.workload.what(best.capacity)? else { return None };
    let (offers, layout) = (&advice.members.offers, best.arrangement());
    let points = by_read_ahead(offers, &layout, &advice.host, WINDOWS).ok()?;
    let most = points.iter().map(|point| point.1).fold(0.0, f64::max);
    // What `braid up` gives it.
    let (usual, with_usual) = (best.read_ahead, best.outcome.rate());
    let (window, rate) = *points.iter().find(|point| point.1 >= AS_GOOD * most)?;
    let sentence = match with_usual >= AS_GOOD * most {
        true => format!("The read-ahead that it has, {}, is enough.", ByteSize(usual)),
        false => format!(
            "A read-ahead of {} gives {} by prediction, the {} that it has {}: blockdev --setra {} DEVICE.",
            ByteSize(window),
            in_words(rate),
            ByteSize(usual),
            in_words(with_usual),
            window / 512,
        ),
    };
    let points = points.into_iter().map(|(window, rate)| (window, rate / 1e6)).collect();
    let (id, title) = ("read-ahead", "Predicted throughput of the best by read-ahead");
    Some(Beside { id, title, label: "read-ahead", unit: "MB/s", points, sentence })
}

/// For what comes back to the same places: what a cache of up to half of the memory, or of all that is asked
/// for, would hit.
fn cache(advice: &Advice) -> Option<Beside> {
    let size = advice.ranked[0].capacity;
    let requests = advice.workload.returning(size)?;
    let block = Cache::DEFAULT_BLOCK.0;
    let blocks_of = |offset: u64, end: u64| offset / block..end.div_ceil(block);
    let data = || requests.iter().filter(|request| request.has_data());
    let all: BTreeSet<u64> =
        data().flat_map(|request| blocks_of(request.offset, request.end())).collect();
    let memory = rustix::system::sysinfo();
    let memory = (memory.totalram as u64).saturating_mul(memory.mem_unit.into()) / 2 / block;
    // A power of two, for sizes that can be typed.
    let half = memory.checked_ilog2().map(|power| 1 << power)?;
    let largest = (all.len() as u64).next_power_of_two().min(half);
    if largest < LEAST_BLOCKS || !data().any(|request| request.kind == Kind::Read) {
        return None;
    }
    let mut curve = Curve::new(u32::try_from(largest / 8).ok()?, largest, MINIATURES);
    for request in data() {
        for block in blocks_of(request.offset, request.end()) {
            match request.kind {
                Kind::Read => curve.read(block),
                _ => curve.write(block),
            }
        }
    }
    let estimates = curve.report().estimates.into_iter();
    let usual = estimates.filter(|one| one.policy == CachePolicy::default());
    let points: Vec<(u64, f64)> =
        usual.map(|one| (one.slots * block, 100.0 * (1.0 - one.misses))).collect();
    let most = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let (bytes, hits) = *points.iter().find(|point| point.1 >= most - HARDLY)?;
    let sentence = match most < HARDLY {
        true => {
            format!("No cache in memory is worth it: {most:.0} % of the reads come again in time.")
        }
        false => format!(
            "A cache of {} would answer {hits:.0} % of the reads: cache(size={}, …) around it.",
            ByteSize(bytes),
            ByteSize(bytes)
        ),
    };
    let (id, title) = ("cache", "Reads that a cache in memory answers, by its size");
    Some(Beside { id, title, label: "size", unit: "%", points, sentence })
}
