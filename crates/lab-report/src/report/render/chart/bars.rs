//! Bars from left to right: names are read without turning one's head, values stand in a column.
//!
//! ```text
//! random read 4K, depth 32
//! ██████████████├──┤            14.5k
//! █████████├─┤                   9.8k
//! ```

use super::axis::{draw_nothing, draw_ticks, draw_title, tip_of, value_text};
use super::canvas::{Anchor, Canvas, Look, SMALL, TEXT, WIDTH, fit, text_width};
use super::colours::{INK, RULE, SOFT, series as colour_of};
use super::legend;
use super::scale::{Scale, Start};
use crate::report::model::{Chart, Point, Tone};
use crate::report::render::text::sign;

const HEADING: f64 = 19.0;
const GROUP_GAP: f64 = 11.0;
const GAP: f64 = 2.0;
/// Height of the plane where there is no bar to draw.
const EMPTY: f64 = 60.0;

pub(super) fn draw(chart: &Chart, places: &[usize]) -> Canvas {
    let mut canvas = Canvas::default();
    let top = legend::draw(&mut canvas, chart, places);
    let bar = if chart.series.len() < 2 { 16.0 } else { 12.0 };
    let group = HEADING + chart.series.len() as f64 * (bar + GAP) + GROUP_GAP;
    let bottom = top + (chart.x.ticks.len() as f64 * group).max(EMPTY);
    let widest = chart.points().map(|point| text_width(&text_of(point), SMALL));
    let right = WIDTH - widest.fold(24.0, f64::max) - 12.0;
    let values = chart.points().flat_map(Point::reach).chain(chart.mark);
    let scale = Scale::over(&chart.y, values, Start::Zero, 5, (0.0, right));
    for (value, _) in &scale.ticks {
        canvas.line(&[(scale.at(*value), top), (scale.at(*value), bottom)], RULE, 1.0);
    }
    canvas.line(&[(scale.base(), top), (scale.base(), bottom)], SOFT, 1.0);
    draw_ticks(&mut canvas, &scale, bottom + 11.0, chart.mark);
    draw_title(&mut canvas, &chart.y, (0.0, right), bottom + 31.0);
    if chart.x.ticks.is_empty() || chart.series.is_empty() {
        draw_nothing(&mut canvas, (0.0, top), (right, bottom));
    }
    if let Some(mark) = chart.mark.filter(|mark| mark.is_finite()) {
        let x = scale.at(mark);
        canvas.dashed(&[(x, top), (x, bottom)], INK, 1.3, "5 3", "");
    }
    for (index, (place, name)) in chart.x.ticks.iter().enumerate() {
        let top = top + index as f64 * group;
        // Bold letters are wider than the table of widths says.
        let shown = fit(name, TEXT * 1.1, right);
        let look = Look { bold: true, over: true, ..Look::NAME };
        canvas.text((4.0, top + GROUP_GAP / 2.0 + HEADING / 2.0), Anchor::Start, look, &shown);
        let mut middle = top + GROUP_GAP / 2.0 + HEADING + bar / 2.0;
        for (one, looks) in chart.series.iter().zip(places) {
            let value = one.points.iter().find(|point| point.x == *place && point.y.is_finite());
            match value {
                Some(point) => {
                    let value = tip_of(point, &chart.y.unit);
                    let tip = format!("{name}, {}: {value}", one.name);
                    draw_bar(&mut canvas, &scale, (middle, bar), point, (*looks, &tip));
                }
                None => canvas.text((WIDTH, middle), Anchor::End, Look::TICK, "—"),
            }
            middle += bar + GAP;
        }
    }
    canvas.height = bottom + 42.0;
    canvas
}

fn draw_bar(
    canvas: &mut Canvas,
    scale: &Scale,
    (middle, height): (f64, f64),
    point: &Point,
    (place, tip): (usize, &str),
) {
    let from = (scale.base(), middle - height / 2.0);
    let to = (scale.at(point.y), middle + height / 2.0);
    canvas.field(from, to, colour_of(place), point.suspect, tip);
    if let Some((low, high)) = point.interval.filter(|(low, high)| low < high) {
        canvas.interval((scale.at(low), middle), (scale.at(high), middle), INK);
    }
    canvas.text((WIDTH, middle), Anchor::End, Look::VALUE, &text_of(point));
}

/// The value, with the sign that tables have where something speaks against it.
fn text_of(point: &Point) -> String {
    let sign = if point.suspect { sign(Tone::Suspect) } else { "" };
    format!("{sign}{}", value_text(point.y))
}
