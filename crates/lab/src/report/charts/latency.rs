//! For each workload and subject the completion times from p50 over p99 to p99.9, on a
//! logarithmic axis: a short line is a steady device, a long one has a tail.

use super::WIDTH;
use crate::analysis::{Analysis, Row};
use crate::report::svg::{Anchor, Svg, series, shorten};
use crate::report::units;
use crate::tool::Metric;

const LEFT: f64 = 372.0;
const RIGHT: f64 = WIDTH - 165.0;
const TOP: f64 = 34.0;
const ROW: f64 = 20.0;
const GAP: f64 = 12.0;

/// The chart; `None` when no latency was measured.
pub(in crate::report) fn draw_latency(analysis: &Analysis) -> Option<String> {
    let (low, high) = decades(analysis)?;
    let x = |ns: f64| {
        let place = (ns.max(1.0).log10() - low) / (high - low);
        LEFT + place.clamp(0.0, 1.0) * (RIGHT - LEFT)
    };
    let rows: usize = analysis.groups.iter().map(|group| group.rows.len()).sum();
    let bottom = TOP + rows as f64 * ROW + analysis.groups.len() as f64 * GAP;
    let mut svg = Svg::new(
        WIDTH,
        bottom + 8.0,
        "Latency: p50, p99 and p99.9",
        "For each workload and subject a line from the median to the 99.9 percent completion time, \
         with marks at 50, 99 and 99.9 percent, on a logarithmic axis. Left is better. The numbers \
         are in the table below.",
    );
    for decade in low as i32..=high as i32 {
        let at = 10_f64.powi(decade);
        svg.line("grid", (x(at), TOP - 8.0), (x(at), bottom));
        svg.text("tick", (x(at), TOP - 14.0), Anchor::Middle, &decade_label(decade));
    }
    let mut y = TOP;
    for group in &analysis.groups {
        let first = y + ROW / 2.0 + 4.0;
        svg.text("label", (0.0, first), Anchor::Start, &shorten(&group.workload.label(), 34));
        for (index, row) in group.rows.iter().enumerate() {
            draw_row(&mut svg, row, index, y + ROW / 2.0, &x);
            y += ROW;
        }
        y += GAP;
    }
    Some(svg.finish())
}

fn draw_row(svg: &mut Svg, row: &Row, index: usize, middle: f64, x: &dyn Fn(f64) -> f64) {
    svg.text("name", (LEFT - 14.0, middle + 4.0), Anchor::End, &shorten(&row.subject, 14));
    let median = |metric| row.get(metric).map(|estimate| estimate.median);
    let points = [
        ("p50", median(Metric::LatencyP50), 4.5),
        ("p99", median(Metric::LatencyP99), 3.5),
        ("p99.9", median(Metric::LatencyP999), 2.5),
    ];
    let [(_, Some(p50), _), (_, Some(p99), _), (_, Some(p999), _)] = points else {
        svg.text("tick", (LEFT + 8.0, middle + 4.0), Anchor::Start, "not measured");
        return;
    };
    let class = series(index);
    svg.line(&format!("{class} whisker"), (x(p50), middle), (x(p999), middle));
    for (name, value, radius) in points {
        let value = value.unwrap_or_default();
        let tip = format!("{}: {name} {}", row.subject, units::time(value));
        svg.dot(&class, (x(value), middle), radius, &tip);
    }
    let numbers = format!("{} – {}", units::time(p50), units::time(p99));
    svg.text("value", (RIGHT + 16.0, middle + 4.0), Anchor::Start, &numbers);
}

/// Whole decades of nanoseconds around all values.
fn decades(analysis: &Analysis) -> Option<(f64, f64)> {
    let metrics = [Metric::LatencyP50, Metric::LatencyP99, Metric::LatencyP999];
    let values: Vec<f64> = analysis
        .groups
        .iter()
        .flat_map(|group| &group.rows)
        .flat_map(|row| metrics.iter().filter_map(|metric| row.get(*metric)))
        .map(|estimate| estimate.median.max(1.0))
        .collect();
    let smallest = values.iter().copied().reduce(f64::min)?;
    let largest = values.iter().copied().reduce(f64::max)?;
    let low = smallest.log10().floor();
    Some((low, largest.log10().ceil().max(low + 1.0)))
}

fn decade_label(decade: i32) -> String {
    let (power, unit) = match decade {
        ..3 => (decade, "ns"),
        3..6 => (decade - 3, "µs"),
        6..9 => (decade - 6, "ms"),
        _ => (decade - 9, "s"),
    };
    format!("{} {unit}", 10_f64.powi(power))
}
