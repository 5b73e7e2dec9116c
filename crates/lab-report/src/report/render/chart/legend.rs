//! Names of the series above the data, in as many rows as they need.

use super::canvas::{Anchor, Canvas, Look, TEXT, WIDTH, fit, text_width};
use crate::report::model::{Chart, Shape};

/// Widest name.
const WIDEST: f64 = 270.0;
const ROW: f64 = 19.0;
const GAP: f64 = 14.0;

/// Draws the legend and says where it ends: also of a single series, because no title names it, and
/// with what is suspect where something is.
pub(super) fn draw(canvas: &mut Canvas, chart: &Chart, places: &[usize]) -> f64 {
    let named = chart.series.iter().zip(places).filter(|(one, _)| !one.name.is_empty());
    let mut entries: Vec<(&str, Option<usize>)> =
        named.map(|(one, place)| (one.name.as_str(), Some(*place))).collect();
    let suspect = chart.points().any(|point| point.suspect);
    entries.extend(suspect.then_some(("⚠ suspect", None)));
    if entries.is_empty() {
        return 4.0;
    }
    let before = if chart.shape == Shape::Lines { 30.0 } else { 16.0 };
    let (mut x, mut y) = (0.0, ROW / 2.0);
    for (name, place) in entries {
        let name = fit(name, TEXT, WIDEST);
        let width = before + text_width(&name, TEXT);
        if x > 0.0 && x + width > WIDTH {
            (x, y) = (0.0, y + ROW);
        }
        canvas.key((x, y), chart.shape, place);
        canvas.text((x + before, y), Anchor::Start, Look::NAME, &name);
        x += width + GAP;
    }
    y + ROW / 2.0 + 6.0
}
