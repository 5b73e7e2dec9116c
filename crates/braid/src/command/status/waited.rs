//! Client latencies of a volume in one line. Pure.

use braid_service::control::{Latencies, Status};

use super::super::top::time;

/// Returns the median and the 99th percentile of each kind of request since the start of the
/// volume, to a power of two. `None` before the first request.
pub(super) fn line(status: &Status) -> Option<String> {
    let io = status.waited();
    let of = |(what, times): (&str, &Latencies)| {
        let (half, most) = (times.quantile_us(0.5)?, times.quantile_us(0.99)?);
        let [half, most] = [half, most].map(|us| time(us as f64));
        Some(format!("{what} p50 <{half}, p99 <{most}"))
    };
    let all = [("reads", &io.reads), ("writes", &io.writes), ("flushes", &io.flushes)];
    let parts: Vec<String> = all.into_iter().filter_map(of).collect();
    (!parts.is_empty()).then(|| format!("{}; since it is up", parts.join("; ")))
}
