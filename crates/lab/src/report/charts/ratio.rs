//! Each workload's throughput in percent of the baseline: a dot and its interval, on a
//! logarithmic axis, so that twice and half as fast are equally far from 100 %.
//!
//! ```text
//!                            50 %     100 %     200 %
//! sequential read 1M  stripe            |   ├─●─┤   187 %
//! ```

use super::WIDTH;
use crate::analysis::Analysis;
use crate::report::svg::{Anchor, Svg, series, shorten};
use crate::report::units;
use crate::stats::Verdict;

const LEFT: f64 = 372.0;
const RIGHT: f64 = WIDTH - 150.0;
const TOP: f64 = 34.0;
const ROW: f64 = 24.0;
const GAP: f64 = 10.0;

/// A logarithmic axis of percents.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// Over all intervals, at least 50 % to 200 %, to whole doublings.
    fn over(analysis: &Analysis) -> Self {
        let rows = analysis.groups.iter().flat_map(|group| &group.rows);
        let intervals: Vec<_> =
            rows.filter_map(|row| row.ratio).map(|ratio| ratio.percent).collect();
        let low = intervals.iter().map(|e| e.low).fold(50.0, f64::min).max(1.0);
        let high = intervals.iter().map(|e| e.high).fold(200.0, f64::max).min(1e5);
        let doublings = |percent: f64| (percent / 100.0).log2();
        Self { low: doublings(low).floor(), high: doublings(high).ceil() }
    }

    fn x(&self, percent: f64) -> f64 {
        let doublings = (percent.max(0.01) / 100.0).log2().clamp(self.low, self.high);
        LEFT + (doublings - self.low) / (self.high - self.low) * (RIGHT - LEFT)
    }

    fn ticks(&self) -> Vec<f64> {
        let count = (self.high - self.low).round() as i32;
        // Not more than some ten labels, and always 100 %.
        let step = (count / 9 + 1).max(1);
        (self.low as i32..=self.high as i32)
            .filter(|doubling| doubling % step == 0)
            .map(|doubling| 100.0 * f64::from(doubling).exp2())
            .collect()
    }
}

/// The chart; `None` when there is nothing to compare.
pub(in crate::report) fn draw_ratio(analysis: &Analysis) -> Option<String> {
    let rows: usize =
        analysis.groups.iter().map(|g| g.rows.iter().filter(|r| r.ratio.is_some()).count()).sum();
    if rows == 0 {
        return None;
    }
    let axis = Axis::over(analysis);
    let bottom = TOP + rows as f64 * ROW + analysis.groups.len() as f64 * GAP;
    let mut svg = Svg::new(
        WIDTH,
        bottom + 26.0,
        "Throughput in percent of the baseline",
        "For each workload a dot at the median and a line over the interval. Right of the line at \
         100 percent is faster than the baseline. The numbers are in the table below.",
    );
    for percent in axis.ticks() {
        let x = axis.x(percent);
        let class = if percent == 100.0 { "base" } else { "grid" };
        svg.line(class, (x, TOP - 8.0), (x, bottom));
        svg.text(
            "tick",
            (x, TOP - 14.0),
            Anchor::Middle,
            &format!("{} %", units::percent_number(percent)),
        );
    }
    svg.text(
        "tick",
        (axis.x(100.0) - 8.0, bottom + 18.0),
        Anchor::End,
        "← slower than the baseline",
    );
    svg.text("tick", (axis.x(100.0) + 8.0, bottom + 18.0), Anchor::Start, "faster →");
    let mut y = TOP;
    for group in &analysis.groups {
        let mut label = Some(group.workload.label());
        for (index, row) in group.rows.iter().enumerate() {
            let Some(ratio) = &row.ratio else { continue };
            let middle = y + ROW / 2.0;
            if let Some(label) = label.take() {
                svg.text("label", (0.0, middle + 4.0), Anchor::Start, &shorten(&label, 34));
            }
            svg.text("name", (LEFT - 14.0, middle + 4.0), Anchor::End, &shorten(&row.subject, 14));
            let class = series(index);
            let (low, high) = (axis.x(ratio.percent.low), axis.x(ratio.percent.high));
            svg.line(&format!("{class} whisker"), (low, middle), (high, middle));
            let faint = ratio.verdict() == Verdict::NotDistinguishable;
            let class = if faint { format!("{class} hollow") } else { class };
            let tip = format!("{}, {}: {}", row.subject, group.workload, units::percent(ratio));
            svg.dot(&class, (axis.x(ratio.percent.median), middle), 5.5, &tip);
            let word = if faint { " (≈)" } else { "" };
            let text = format!("{} %{word}", units::percent_number(ratio.percent.median));
            svg.text("value", (RIGHT + 16.0, middle + 4.0), Anchor::Start, &text);
            y += ROW;
        }
        y += GAP;
    }
    Some(svg.finish())
}
