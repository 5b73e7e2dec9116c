//! How long clients waited for a volume, in one line: pure.

use braid_service::control::{Latencies, Status};

use super::super::top::time;

/// Of each kind of request that was made since the volume was brought up: below which half of them are, and 99 of
/// 100, to a power of two. None before the first.
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
