//! The texts of every chart along its axes and at its values.

use super::canvas::{Anchor, Canvas, Look, SMALL, WIDTH, fit, text_width};
use super::scale::Scale;
use crate::report::model::{Axis, Point};
use crate::report::render::text::shorten;
use crate::report::units;

/// Longest text of a tick.
pub(super) const TICK: usize = 12;

/// The texts of the ticks of an axis that lies, in a row around `y`; the one of the value `bold` is.
/// If two are too near to each other, the first is written. None leaves the picture.
pub(super) fn draw_ticks(canvas: &mut Canvas, scale: &Scale, y: f64, bold: Option<f64>) {
    let mut last_end = f64::NEG_INFINITY;
    for (value, text) in &scale.ticks {
        let text = shorten(text, TICK);
        let half = text_width(&text, SMALL) / 2.0;
        let x = scale.at(*value).clamp(half, WIDTH - half);
        if x - half >= last_end + 4.0 {
            last_end = x + half;
            let look = Look { bold: bold == Some(*value), ..Look::TICK };
            canvas.text((x, y), Anchor::Middle, look, &text);
        }
    }
}

/// Writes the meaning of an axis, centred between its ends.
pub(super) fn draw_title(canvas: &mut Canvas, axis: &Axis, (left, right): (f64, f64), y: f64) {
    let title = fit(&axis_title(axis), SMALL, right - left);
    canvas.text((f64::midpoint(left, right), y), Anchor::Middle, Look::TICK, &title);
}

/// Writes, between two corners, that there is nothing to draw.
pub(super) fn draw_nothing(canvas: &mut Canvas, from: (f64, f64), to: (f64, f64)) {
    let middle = (f64::midpoint(from.0, to.0), f64::midpoint(from.1, to.1));
    let look = Look { colour: Look::TICK.colour, ..Look::NAME };
    canvas.text(middle, Anchor::Middle, look, "nothing was measured");
}

/// "Throughput (MiB/s)".
pub(in crate::report::render) fn axis_title(axis: &Axis) -> String {
    match (axis.label.as_str(), axis.unit.as_str()) {
        (label, "") => label.to_owned(),
        ("", unit) => unit.to_owned(),
        (label, unit) => format!("{label} ({unit})"),
    }
}

/// A value as a tooltip or a label says it.
pub(in crate::report::render) fn value_text(value: f64) -> String {
    if value.abs() >= 1e12 || (value != 0.0 && value.abs() < 0.005) {
        format!("{value:.2e}")
    } else if value < 0.0 {
        format!("−{}", units::count(-value))
    } else {
        units::count(value)
    }
}

/// A value with its interval, as a tooltip says it.
pub(super) fn tip_of(point: &Point, unit: &str) -> String {
    let interval = point.interval.map_or(String::new(), |(low, high)| {
        format!(" [{}, {}]", value_text(low), value_text(high))
    });
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    let doubt = if point.suspect { ", suspect" } else { "" };
    format!("{}{interval}{unit}{doubt}", value_text(point.y))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_three_digits() {
        assert_eq!(value_text(1234.5), "1234");
        assert_eq!(value_text(144_512.0), "145k");
        assert_eq!(value_text(-2.0), "−2.00");
        assert_eq!(value_text(0.000_012), "1.20e-5");
    }

    #[test]
    fn a_tip_says_everything_of_a_value() {
        let point = Point { y: 2.0, ..Point::default() };
        assert_eq!(tip_of(&point, ""), "2.00");
        let doubtful = Point { interval: Some((1.0, 3.0)), suspect: true, ..point };
        assert_eq!(tip_of(&doubtful, "s"), "2.00 [1.00, 3.00] s, suspect");
    }
}
