//! Bars from left to right: names are read without turning one's head, values stand in a column.
//!
//! ```text
//! random read 4K, depth 32
//! ██████████████├──┤            14.5k
//! █████████├─┤                   9.8k
//! ```

use super::axis::{draw_nothing, draw_ticks, draw_title, tip_of, value_text};
use super::canvas::{Anchor, Canvas, Look, SMALL, TEXT, WIDTH, fit, text_width};
use super::colours::{INK, PAPER, Palette, RULE, SOFT};
use super::legend::{self, Key};
use super::scale::{Scale, Start};
use crate::report::model::{Axis, BarSeries, Datum, Gap, Spread, Tone};
use crate::report::render::markdown::sign;
use crate::report::render::text::printable;

/// Longest name of a category that stands beside its bars instead of above them.
const BESIDE: f64 = 110.0;
const HEADING: f64 = 19.0;
const GROUP_GAP: f64 = 11.0;
/// Height of the plane where there is no bar to draw.
const EMPTY: f64 = 60.0;
/// From this height on the ticks stand above the bars as well.
const TALL: f64 = 420.0;

/// Sizes that depend on what is drawn.
struct Layout {
    top: f64,
    left: f64,
    right: f64,
    bar: f64,
    gap: f64,
    heading: f64,
    group: f64,
    bottom: f64,
}

impl Layout {
    fn new(top: f64, categories: &[String], series: &[BarSeries]) -> Self {
        let widest =
            categories.iter().map(|name| text_width(&printable(name), TEXT)).fold(0.0, f64::max);
        let beside = widest <= BESIDE;
        let values = series.iter().flat_map(|series| &series.values).filter_map(Datum::value);
        let value_width =
            values.map(|spread| text_width(&text_of(spread), SMALL)).fold(24.0, f64::max);
        let (bar, gap) = match series.len() {
            0 | 1 => (16.0, 0.0),
            2..=4 => (13.0, 2.0),
            _ => (11.0, 1.5),
        };
        let heading = if beside { 0.0 } else { HEADING };
        let group = heading + series.len().max(1) as f64 * (bar + gap) - gap + GROUP_GAP;
        Self {
            top,
            left: if beside { widest + 10.0 } else { 0.0 },
            right: WIDTH - value_width - 12.0,
            bar,
            gap,
            heading,
            group,
            bottom: top + categories.len() as f64 * group,
        }
    }

    fn bar_top(&self, category: usize, series: usize) -> f64 {
        self.top
            + category as f64 * self.group
            + self.heading
            + GROUP_GAP / 2.0
            + series as f64 * (self.bar + self.gap)
    }
}

pub(super) fn draw(
    axis: &Axis,
    categories: &[String],
    series: &[BarSeries],
    mark: Option<f64>,
    palette: &Palette,
) -> Canvas {
    let mut canvas = Canvas::default();
    let names: Vec<&str> = series.iter().map(|series| series.name.as_str()).collect();
    let places = palette.places(&names);
    let spreads = || series.iter().flat_map(|series| &series.values).filter_map(Datum::value);
    let suspect = spreads().any(|spread| spread.suspect);
    let legend_end = legend::draw(&mut canvas, &names, &places, Key::Field, suspect);
    let mut layout = Layout::new(legend_end, categories, series);
    let empty = categories.is_empty() || series.is_empty();
    if empty {
        layout.bottom = layout.top + EMPTY.max(layout.bottom - layout.top);
    }
    if layout.bottom - layout.top > TALL {
        (layout.top, layout.bottom) = (layout.top + 18.0, layout.bottom + 18.0);
    }
    let values = spreads()
        .flat_map(|s| [s.value, s.low, s.high].into_iter().chain(s.points.iter().copied()))
        .chain(mark);
    let scale = Scale::over(axis, values, Start::Zero, 5, (layout.left, layout.right));
    draw_grid(&mut canvas, &layout, &scale, mark, axis, legend_end);
    if empty {
        let (from, to) = ((layout.left, layout.top), (layout.right, layout.bottom));
        draw_nothing(&mut canvas, from, to);
    }
    for (category, name) in categories.iter().enumerate() {
        draw_name(&mut canvas, &layout, category, name);
        for (index, one) in series.iter().enumerate() {
            let top = layout.bar_top(category, index);
            let bar = Bar { top, category: name, series: &one.name, place: places[index] };
            match one.values.get(category) {
                Some(Datum::Value(spread)) if spread.value.is_finite() => {
                    draw_bar(&mut canvas, &layout, &scale, &bar, spread, axis);
                }
                Some(Datum::Gap(gap)) => draw_gap(&mut canvas, &layout, &scale, &bar, *gap),
                _ => draw_gap(&mut canvas, &layout, &scale, &bar, Gap::NotMeasured),
            }
        }
    }
    if let Some(mark) = mark.filter(|mark| mark.is_finite()) {
        draw_mark(&mut canvas, &layout, scale.at(mark), categories.len());
    }
    canvas.height = layout.bottom + 42.0;
    canvas
}

/// The line across all bars. It leaves out the names that stand above them.
fn draw_mark(canvas: &mut Canvas, layout: &Layout, x: f64, categories: usize) {
    canvas.group(" stroke-dasharray=\"5 3\"", |pen| {
        if layout.heading == 0.0 {
            pen.line(&[(x, layout.top), (x, layout.bottom)], INK, 1.3);
            return;
        }
        for category in 0..categories {
            let top = layout.bar_top(category, 0);
            let height = layout.group - layout.heading - GROUP_GAP;
            pen.line(&[(x, top - 2.0), (x, top + height + 2.0)], INK, 1.3);
        }
    });
}

fn draw_grid(
    canvas: &mut Canvas,
    layout: &Layout,
    scale: &Scale,
    mark: Option<f64>,
    axis: &Axis,
    legend_end: f64,
) {
    for (value, _) in &scale.ticks {
        let x = scale.at(*value);
        canvas.line(&[(x, layout.top), (x, layout.bottom)], RULE, 1.0);
    }
    let base = scale.base();
    canvas.line(&[(base, layout.top), (base, layout.bottom)], SOFT, 1.0);
    draw_ticks(canvas, scale, layout.bottom + 11.0, mark);
    if layout.top > legend_end {
        draw_ticks(canvas, scale, layout.top - 9.0, mark);
    }
    draw_title(canvas, axis, (layout.left, layout.right), layout.bottom + 31.0);
}

fn draw_name(canvas: &mut Canvas, layout: &Layout, category: usize, name: &str) {
    let first = layout.bar_top(category, 0);
    let (at, anchor, bold) = if layout.heading > 0.0 {
        ((0.0, first - HEADING / 2.0 + 0.5), Anchor::Start, true)
    } else {
        let middle = first + (layout.group - GROUP_GAP) / 2.0;
        ((layout.left - 8.0, middle), Anchor::End, false)
    };
    let look = Look { bold, ..Look::NAME };
    // Bold letters are wider than the table of widths says.
    let name = fit(name, TEXT * 1.1, WIDTH);
    canvas.text(at, anchor, look, &name);
}

/// Which bar is drawn.
struct Bar<'a> {
    top: f64,
    category: &'a str,
    series: &'a str,
    place: usize,
}

fn draw_bar(
    canvas: &mut Canvas,
    layout: &Layout,
    scale: &Scale,
    bar: &Bar<'_>,
    spread: &Spread,
    axis: &Axis,
) {
    let (from, to) = (scale.base(), scale.at(spread.value));
    let (top, middle) = (bar.top, bar.top + layout.bar / 2.0);
    let has_interval = spread.low < spread.high;
    let (low, high) = (scale.at(spread.low), scale.at(spread.high));
    let (left, right) = (from.min(to), from.max(to));
    canvas.field((left, top), (right, top + layout.bar), bar.place, spread.suspect);
    if has_interval {
        let cap = layout.bar / 2.0 - 2.5;
        // On dark bars ink is seen by its light edge.
        for (colour, width) in [(PAPER, 3.4), (INK, 1.4)] {
            canvas.line(&[(low, middle), (high, middle)], colour, width);
            canvas.line(&[(low, middle - cap), (low, middle + cap)], colour, width);
            canvas.line(&[(high, middle - cap), (high, middle + cap)], colour, width);
        }
    }
    for (index, point) in spread.points.iter().enumerate().filter(|(_, p)| p.is_finite()) {
        // Up, on and below the middle in turn, so that equal ones are seen.
        let y = middle + (index % 3) as f64 * 3.0 - 3.0;
        canvas.disc((scale.at(*point), y), 2.2, PAPER);
        canvas.disc((scale.at(*point), y), 1.5, INK);
    }
    canvas.text((WIDTH, middle), Anchor::End, Look::VALUE, &text_of(spread));
    let interval = has_interval.then_some((spread.low, spread.high));
    let value = tip_of(spread.value, interval, &axis.unit, spread.suspect);
    let tip = format!("{}, {}: {value}", bar.category, bar.series);
    let (left, right) = (left.min(low), right.max(high));
    canvas.tip_field((left, top), right - left, layout.bar, &tip);
}

/// The value, with the sign that tables have where something speaks against it.
fn text_of(spread: &Spread) -> String {
    let sign = if spread.suspect { sign(Tone::Suspect) } else { "" };
    format!("{sign}{}", value_text(spread.value))
}

fn draw_gap(canvas: &mut Canvas, layout: &Layout, scale: &Scale, bar: &Bar<'_>, gap: Gap) {
    let middle = bar.top + layout.bar / 2.0;
    let look = Look { size: SMALL - 1.0, ..Look::TICK };
    canvas.text((scale.base() + 4.0, middle), Anchor::Start, look, gap.words());
    canvas.text((WIDTH, middle), Anchor::End, look, "—");
}
