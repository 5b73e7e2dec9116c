//! Lines over an axis, with intervals, gaps, steps and moments that have names.

use super::axis::{TICK, axis_title, draw_nothing, draw_ticks, draw_title, tip_of, value_text};
use super::canvas::{Anchor, Canvas, Look, Marker, SMALL, WIDTH, fit, text_width};
use super::colours::{Palette, RULE, SOFT, series as series_colour};
use super::legend::{self, Key};
use super::scale::{Scale, Start};
use crate::report::model::{Axis, Event, LineSeries, Point};
use crate::report::render::text::shorten;

const HEIGHT: f64 = 225.0;
/// Of a line with more points not every one is marked.
const MARKED: usize = 24;
/// Of a line with more points not every one has a tooltip.
const TIPS: usize = 40;
/// Points of a line with more of them are joined in columns of a pixel, keeping the extremes.
const MANY: usize = 1500;
/// A line with more points is thin and without dashes.
const DENSE: usize = 100;
const EVENT_ROW: f64 = 15.0;

struct Plane {
    x: Scale,
    y: Scale,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Plane {
    fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x.at(x), self.y.at(y))
    }
}

pub(super) fn draw(
    x: &Axis,
    y: &Axis,
    series: &[LineSeries],
    events: &[Event],
    palette: &Palette,
) -> Canvas {
    let mut canvas = Canvas::default();
    let names: Vec<&str> = series.iter().map(|series| series.name.as_str()).collect();
    let places = palette.places(&names);
    // Dashes of a line that goes up and down in every pixel are noise.
    let dense = series.iter().any(|series| !series.steps && series.points.len() > DENSE);
    let key = if dense { Key::Line } else { Key::Dashed };
    let suspect = series.iter().flat_map(|series| &series.points).any(|point| point.suspect);
    let mut top = legend::draw(&mut canvas, &names, &places, key, suspect);
    let y_title = fit(&axis_title(y), SMALL, WIDTH);
    canvas.text((0.0, top + 8.0), Anchor::Start, Look::TICK, &y_title);
    top += 20.0;
    let plane = lay_out(x, y, series, events, top);
    draw_grid(&mut canvas, &plane, x);
    draw_events(&mut canvas, &plane, events);
    for (one, &place) in series.iter().zip(&places) {
        draw_series(&mut canvas, &plane, one, (place, key), (x, y));
    }
    if series.iter().all(|one| runs(one, y.log).is_empty()) {
        draw_nothing(&mut canvas, (plane.left, plane.top), (plane.right, plane.bottom));
    }
    canvas.height = plane.bottom + 42.0;
    canvas
}

fn lay_out(x: &Axis, y: &Axis, series: &[LineSeries], events: &[Event], top: f64) -> Plane {
    let points = || series.iter().flat_map(|series| &series.points);
    let ys = points().flat_map(|point| {
        let (low, high) = point.interval.unwrap_or((point.y, point.y));
        [point.y, low, high]
    });
    // The width of the ticks decides where the plane begins, and does not depend on it.
    let y_ticks = Scale::over(y, ys.clone(), Start::Zero, 5, (0.0, 1.0)).ticks;
    let left = y_ticks
        .iter()
        .map(|(_, text)| text_width(&shorten(text, TICK), SMALL))
        .fold(16.0, f64::max)
        + 8.0;
    let right = WIDTH - 10.0;
    let xs = points().map(|point| point.x).chain(events.iter().map(|event| event.x));
    // Points at the very edge would have half a marker.
    let x = Scale::over(x, xs, Start::Lowest, 7, (left + 8.0, right - 4.0));
    let rows = event_places(events, &x, right).iter().map(|name| name.row + 1).max().unwrap_or(0);
    let top = top + rows as f64 * EVENT_ROW;
    let bottom = top + HEIGHT;
    let y = Scale::over(y, ys, Start::Zero, 5, (bottom, top));
    Plane { x, y, left, right, top, bottom }
}

fn draw_grid(canvas: &mut Canvas, plane: &Plane, x_axis: &Axis) {
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
    draw_ticks(canvas, &plane.x, base + 13.0, None);
    draw_title(canvas, x_axis, (plane.left, plane.right), base + 32.0);
}

/// Where the name of an event stands above the plane.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Name {
    /// From 0, the lowest.
    row: usize,
    /// Left of its line, where there is no room to the right.
    leftwards: bool,
    line: f64,
    from: f64,
    to: f64,
}

impl Name {
    /// Whether this line, which ends at its own name, goes through the other's name.
    fn crosses(&self, other: &Self) -> bool {
        self.row >= other.row && self.line > other.from && self.line < other.to
    }

    fn disturbs(&self, other: &Self) -> bool {
        let overlap = self.row == other.row && self.from < other.to && self.to > other.from;
        overlap || self.crosses(other) || other.crosses(self)
    }
}

/// A place for each event: the lowest row in which its name has room, and in which no line goes
/// through a name. Right to left, because a name lies over the lines right of its own.
fn event_places(events: &[Event], scale: &Scale, right: f64) -> Vec<Name> {
    let mut names: Vec<Name> = events
        .iter()
        .map(|event| {
            let line = scale.at(event.x);
            let width = text_width(&event_text(event), SMALL) + 8.0;
            let leftwards = line + width > right + 8.0;
            let (from, to) = if leftwards { (line - width, line) } else { (line, line + width) };
            Name { row: 0, leftwards, line, from, to }
        })
        .collect();
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by(|a, b| {
        let (a, b) = (&names[*a], &names[*b]);
        a.leftwards.cmp(&b.leftwards).then(b.line.total_cmp(&a.line))
    });
    let mut placed: Vec<Name> = Vec::new();
    for index in order {
        let at = |row| Name { row, ..names[index] };
        // Of two names over each other's lines one is crossed in any row.
        let free = |name: &Name| !placed.iter().any(|other| name.disturbs(other));
        let row = (0..=placed.len()).find(|row| free(&at(*row)));
        names[index].row = row.unwrap_or(placed.len());
        placed.push(names[index]);
    }
    names
}

fn event_text(event: &Event) -> String {
    fit(&event.label, SMALL, 240.0)
}

fn draw_events(canvas: &mut Canvas, plane: &Plane, events: &[Event]) {
    let names = event_places(events, &plane.x, plane.right);
    for (event, name) in events.iter().zip(names) {
        if !event.x.is_finite() {
            continue;
        }
        let x = name.line;
        let y = plane.top - (name.row as f64 + 0.5) * EVENT_ROW - 1.0;
        canvas.group(" stroke-dasharray=\"3 3\"", |pen| {
            pen.line(&[(x, y - 5.0), (x, plane.bottom)], SOFT, 1.2);
        });
        let (at, anchor) =
            if name.leftwards { (x - 4.0, Anchor::End) } else { (x + 4.0, Anchor::Start) };
        canvas.text((at, y), anchor, Look::VALUE, &event_text(event));
        let tip = format!("{} at {}", event.label, value_text(event.x));
        canvas.tip_field((x - 3.0, plane.top), 6.0, plane.bottom - plane.top, &tip);
    }
}

/// The parts of a line between its gaps.
fn runs(series: &LineSeries, log: bool) -> Vec<&[Point]> {
    let drawn =
        |point: &Point| point.x.is_finite() && point.y.is_finite() && (!log || point.y > 0.0);
    series.points.split(|point| !drawn(point)).filter(|run| !run.is_empty()).collect()
}

fn draw_series(
    canvas: &mut Canvas,
    plane: &Plane,
    series: &LineSeries,
    (place, key): (usize, Key),
    axes: (&Axis, &Axis),
) {
    let colour = series_colour(place);
    let runs = runs(series, axes.1.log);
    let count = runs.iter().map(|run| run.len()).sum::<usize>();
    runs.iter().for_each(|run| draw_whiskers(canvas, plane, run, place));
    canvas.group(&format!(" class=\"line\"{}", key.dashes(place)), |pen| {
        for run in &runs {
            let points = thinned(run.iter().map(|point| plane.at(point.x, point.y)).collect());
            let points = if series.steps { stepped(&points) } else { points };
            if points.len() > 1 {
                pen.line(&points, colour, if key == Key::Line { 1.4 } else { 2.0 });
            }
        }
    });
    // Markers of dense lines stand apart, and each line's begin at another point.
    let every = if count <= MARKED { 1 } else { count.div_ceil(9) };
    let first = if every == 1 { 0 } else { (place * every / 8) % every };
    let points: Vec<&Point> = runs.into_iter().flatten().collect();
    for point in points.iter().skip(first).step_by(every) {
        let (marker, at) = (Marker::of(place), plane.at(point.x, point.y));
        if point.suspect {
            canvas.hollow(marker, at, 3.4, colour);
        } else {
            canvas.marker(marker, at, 3.4, colour);
        }
    }
    for point in points.iter().step_by(count.div_ceil(TIPS).max(1)) {
        let tip = tip(series, point, axes);
        canvas.tip_disc(plane.at(point.x, point.y), 7.0, &tip);
    }
}

/// Which point it is, and its value.
fn tip(series: &LineSeries, point: &Point, (x, y): (&Axis, &Axis)) -> String {
    let named = x.ticks.iter().find(|(value, _)| *value == point.x);
    let place = named.map_or_else(|| value_text(point.x), |(_, text)| text.clone());
    // A unit, or the axis' own word where there is none ("4 processes").
    let unit = if x.unit.is_empty() { &x.label } else { &x.unit };
    let value = tip_of(point.y, point.interval, &y.unit, point.suspect);
    format!("{}, {}: {value}", series.name, format!("{place} {unit}").trim_end())
}

fn draw_whiskers(canvas: &mut Canvas, plane: &Plane, run: &[Point], place: usize) {
    let colour = series_colour(place);
    for point in run {
        let Some((low, high)) = point.interval.filter(|(low, high)| low < high) else { continue };
        let ((x, low), (_, high)) = (plane.at(point.x, low), plane.at(point.x, high));
        canvas.line(&[(x, low), (x, high)], colour, 1.2);
        for y in [low, high] {
            canvas.line(&[(x - 3.5, y), (x + 3.5, y)], colour, 1.2);
        }
    }
}

/// Of many points those that can be seen: in each column of a pixel the first, the extremes in
/// their order, and the last.
fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if points.len() <= MANY {
        return points;
    }
    let mut kept = Vec::new();
    for column in points.chunk_by(|a, b| a.0.floor() == b.0.floor()) {
        let extreme = |better: fn(f64, f64) -> bool| {
            (0..column.len()).reduce(|a, b| if better(column[b].1, column[a].1) { b } else { a })
        };
        let ends = [Some(0), extreme(|a, b| a < b), extreme(|a, b| a > b), Some(column.len() - 1)];
        let mut places: Vec<usize> = ends.into_iter().flatten().collect();
        places.sort_unstable();
        places.dedup();
        kept.extend(places.into_iter().map(|place| column[place]));
    }
    kept
}

/// Each value held until the next point.
fn stepped(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut steps = Vec::with_capacity(points.len() * 2);
    for pair in points.windows(2) {
        steps.extend([pair[0], (pair[1].0, pair[0].1)]);
    }
    steps.extend(points.last());
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_hold_until_the_next_point() {
        assert_eq!(
            stepped(&[(0.0, 1.0), (2.0, 3.0), (4.0, 5.0)]),
            [(0.0, 1.0), (2.0, 1.0), (2.0, 3.0), (4.0, 3.0), (4.0, 5.0)]
        );
        assert_eq!(stepped(&[(1.0, 1.0)]), [(1.0, 1.0)]);
    }

    #[test]
    fn thinning_keeps_the_extremes() {
        let points: Vec<(f64, f64)> =
            (0..10_000).map(|n| (f64::from(n) / 100.0, f64::from(n * 7919 % 1000))).collect();
        let kept = thinned(points.clone());
        assert!(kept.len() <= 400, "{}", kept.len());
        for column in 0..100 {
            let highest = |all: &[(f64, f64)]| {
                let inside = all.iter().filter(|p| p.0.floor() == f64::from(column));
                inside.map(|p| p.1).fold(0.0, f64::max)
            };
            assert_eq!(highest(&kept), highest(&points));
        }
        assert_eq!((kept[0], kept.last()), (points[0], points.last()));
    }

    #[test]
    fn names_of_events_do_not_overlap() {
        let event = |x: f64, label: &str| Event { x, label: label.into() };
        let events = [
            event(10.0, "member fails"),
            event(12.0, "spare taken, rebuild starts"),
            event(50.0, "rebuilt"),
            event(100.0, "end of the run"),
        ];
        let axis = Axis::default();
        let xs = [0.0, 100.0].into_iter();
        let scale = Scale::over(&axis, xs, Start::Lowest, 5, (40.0, 470.0));
        let names = event_places(&events, &scale, 470.0);
        // The first name lies over the second's line, and therefore above the second's name.
        assert_eq!(names.iter().map(|name| name.row).collect::<Vec<_>>(), [1, 0, 0, 0]);
        assert_eq!(names.iter().filter(|name| name.leftwards).count(), 1);
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].iter().any(|other| name.disturbs(other)), "{name:?}");
        }
    }
}
