//! Lines, or marks alone, over an axis, with intervals, gaps, and moments that have names.

use super::axis::{TICK, axis_title, draw_nothing, draw_ticks, draw_title, tip_of, value_text};
use super::canvas::{Anchor, Canvas, Look, SMALL, WIDTH, dashes, fit, text_width};
use super::colours::{INK, RULE, SOFT, series as colour_of};
use super::legend;
use super::scale::{Scale, Start};
use crate::report::model::{Chart, Event, Point, Series, Shape};
use crate::report::render::text::shorten;

const HEIGHT: f64 = 225.0;
/// A line with more points is thin and without dashes, and not every point is marked.
const MARKED: usize = 24;
const EVENT_ROW: f64 = 15.0;

/// The field between the axes.
struct Plane {
    x: Scale,
    y: Scale,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Plane {
    fn at(&self, point: &Point) -> (f64, f64) {
        (self.x.at(point.x), self.y.at(point.y))
    }
}

pub(super) fn draw(chart: &Chart, places: &[usize]) -> Canvas {
    let mut canvas = Canvas::default();
    let top = legend::draw(&mut canvas, chart, places);
    let title = fit(&axis_title(&chart.y), SMALL, WIDTH);
    canvas.text((0.0, top + 8.0), Anchor::Start, Look::TICK, &title);
    let plane = lay_out(chart, top + 20.0);
    draw_grid(&mut canvas, &plane, chart);
    draw_events(&mut canvas, &plane, chart);
    for (one, &place) in chart.series.iter().zip(places) {
        draw_series(&mut canvas, &plane, one, place, chart);
    }
    if chart.series.iter().all(|one| runs(one, chart).next().is_none()) {
        draw_nothing(&mut canvas, (plane.left, plane.top), (plane.right, plane.bottom));
    }
    canvas.height = plane.bottom + 42.0;
    canvas
}

fn lay_out(chart: &Chart, top: f64) -> Plane {
    let ys = || chart.points().flat_map(Point::reach).chain(chart.mark);
    // The width of the ticks decides where the plane begins, and does not depend on it.
    let ticks = Scale::over(&chart.y, ys(), Start::Zero, 5, (0.0, 1.0)).ticks;
    let widths = ticks.iter().map(|(_, text)| text_width(&shorten(text, TICK), SMALL));
    let (left, right) = (widths.fold(16.0, f64::max) + 8.0, WIDTH - 10.0);
    let xs = chart.points().map(|point| point.x).chain(chart.events.iter().map(|event| event.x));
    // Points at the very edge would have half a marker.
    let x = Scale::over(&chart.x, xs, Start::Lowest, 7, (left + 8.0, right - 4.0));
    let rows = event_places(chart, &x).iter().map(|(row, _)| row + 1).max().unwrap_or(0);
    let top = top + rows as f64 * EVENT_ROW;
    let bottom = top + HEIGHT;
    let y = Scale::over(&chart.y, ys(), Start::Zero, 5, (bottom, top));
    Plane { x, y, left, right, top, bottom }
}

fn draw_grid(canvas: &mut Canvas, plane: &Plane, chart: &Chart) {
    for (value, text) in &plane.y.ticks {
        let y = plane.y.at(*value);
        canvas.line(&[(plane.left, y), (plane.right, y)], RULE, 1.0);
        canvas.text((plane.left - 7.0, y), Anchor::End, Look::TICK, &shorten(text, TICK));
    }
    let base = plane.bottom;
    canvas.line(&[(plane.left, base), (plane.right, base)], SOFT, 1.0);
    for (value, _) in &plane.x.ticks {
        let x = plane.x.at(*value);
        canvas.line(&[(x, base), (x, base + 4.0)], SOFT, 1.0);
    }
    if let Some(mark) = chart.mark.filter(|mark| mark.is_finite()) {
        let y = plane.y.at(mark);
        canvas.dashed(&[(plane.left, y), (plane.right, y)], INK, 1.3, "5 3", "");
    }
    draw_ticks(canvas, &plane.x, base + 13.0, None);
    draw_title(canvas, &chart.x, (plane.left, plane.right), base + 32.0);
}

/// The row of each event's name above the plane, from 0, the lowest in which it has room; and whether
/// it stands left of its line, because there is none to the right.
fn event_places(chart: &Chart, x: &Scale) -> Vec<(usize, bool)> {
    let mut taken: Vec<(usize, f64, f64)> = Vec::new();
    let mut place = |event: &Event| {
        let (line, width) = (x.at(event.x), text_width(&event_text(event), SMALL) + 8.0);
        let leftwards = line + width > WIDTH;
        let (from, to) = if leftwards { (line - width, line) } else { (line, line + width) };
        let is_free = |row: &usize| {
            let in_row = |one: &&(usize, f64, f64)| one.0 == *row;
            taken.iter().filter(in_row).all(|(_, other, end)| to <= *other || *end <= from)
        };
        let row = (0..=taken.len()).find(is_free).unwrap_or(taken.len());
        taken.push((row, from, to));
        (row, leftwards)
    };
    chart.events.iter().map(&mut place).collect()
}

fn event_text(event: &Event) -> String {
    fit(&event.label, SMALL, 240.0)
}

fn draw_events(canvas: &mut Canvas, plane: &Plane, chart: &Chart) {
    let places = event_places(chart, &plane.x);
    let shown = || chart.events.iter().zip(&places).filter(|(event, _)| event.x.is_finite());
    let height = |row: usize| plane.top - (row as f64 + 0.5) * EVENT_ROW - 1.0;
    for (event, (row, _)) in shown() {
        let x = plane.x.at(event.x);
        let tip = format!("{} at {}", event.label, value_text(event.x));
        canvas.dashed(&[(x, height(*row) - 5.0), (x, plane.bottom)], SOFT, 1.2, "3 3", &tip);
    }
    // The names come last: each is readable over the lines of others.
    let look = Look { over: true, ..Look::VALUE };
    for (event, (row, leftwards)) in shown() {
        let x = plane.x.at(event.x);
        let (x, anchor) =
            if *leftwards { (x - 4.0, Anchor::End) } else { (x + 4.0, Anchor::Start) };
        canvas.text((x, height(*row)), anchor, look, &event_text(event));
    }
}

/// The parts of a line between its gaps.
fn runs<'s>(series: &'s Series, chart: &Chart) -> impl Iterator<Item = &'s [Point]> {
    let log = chart.y.log;
    let is_gap = move |point: &Point| {
        !point.x.is_finite() || !point.y.is_finite() || (log && point.y <= 0.0)
    };
    series.points.split(is_gap).filter(|run| !run.is_empty())
}

fn draw_series(canvas: &mut Canvas, plane: &Plane, one: &Series, place: usize, chart: &Chart) {
    let colour = colour_of(place);
    let points: Vec<&Point> = runs(one, chart).flatten().collect();
    let is_joined = chart.shape == Shape::Lines;
    let dense = is_joined && points.len() > MARKED;
    for point in &points {
        if let Some((low, high)) = point.interval.filter(|(low, high)| low < high) {
            let x = plane.x.at(point.x);
            canvas.interval((x, plane.y.at(low)), (x, plane.y.at(high)), colour);
        }
    }
    // Dashes of a line that goes up and down in every pixel are noise.
    let (width, dashes) = if dense { (1.4, "") } else { (2.0, dashes(place)) };
    for run in runs(one, chart).filter(|run| is_joined && run.len() > 1) {
        let points: Vec<(f64, f64)> = run.iter().map(|point| plane.at(point)).collect();
        canvas.dashed(&points, colour, width, dashes, "");
    }
    // Markers of dense lines stand apart, and each line's begin at another point.
    let every = if dense { points.len().div_ceil(MARKED / 2) } else { 1 };
    for point in points.iter().skip(place * every / 8 % every).step_by(every) {
        let tip = tip(one, point, chart);
        canvas.marker(plane.at(point), place, colour, point.suspect, &tip);
    }
}

/// Which point it is, and its value.
fn tip(series: &Series, point: &Point, Chart { x, y, .. }: &Chart) -> String {
    let named = x.ticks.iter().find(|(value, _)| *value == point.x);
    let place = named.map_or_else(|| value_text(point.x), |(_, text)| text.clone());
    // A unit, or the axis' own word where there is none ("4 processes").
    let unit = if x.unit.is_empty() { &x.label } else { &x.unit };
    let place = format!("{place} {unit}");
    format!("{}, {}: {}", series.name, place.trim_end(), tip_of(point, &y.unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_events_do_not_overlap() {
        let event = |x: f64, label: &str| Event { x, label: label.into() };
        let events = vec![
            event(10.0, "member fails"),
            event(12.0, "spare taken, rebuild starts"),
            event(60.0, "rebuilt"),
            event(100.0, "end of the run"),
        ];
        let chart = Chart { events, ..Chart::default() };
        let xs = [0.0, 100.0].into_iter();
        let scale = Scale::over(&chart.x, xs, Start::Lowest, 5, (40.0, 470.0));
        let places = event_places(&chart, &scale);
        assert_eq!(places, [(0, false), (1, false), (0, false), (0, true)]);
    }
}
