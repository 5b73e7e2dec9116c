//! The charts: against the baseline, throughput, latency.

mod latency;
mod ratio;
mod throughput;

pub(super) use latency::draw_latency;
pub(super) use ratio::draw_ratio;
pub(super) use throughput::draw_throughput;

/// Width of a full-width chart in user units.
const WIDTH: f64 = 860.0;
