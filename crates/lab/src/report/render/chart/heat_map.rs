//! A field of values: colour for the eye, the number in each field for whoever wants it.

use super::canvas::{Anchor, Canvas, Look, SMALL, TEXT, WIDTH, fit, text_width};
use super::colours::{EMPTY, INK, ON_DARK, ON_LIGHT, SOFT, heat};
use super::scale::value_text;
use crate::report::model::{Datum, Gap, Shade, Tone};
use crate::report::render::markdown::sign;

const CELL: f64 = 32.0;
const NARROWEST: f64 = 46.0;
const GAP: f64 = 1.5;
/// Widest name of a row, and of a column, whose fields get as wide as their names.
const SIDE: f64 = 160.0;
const HEAD: f64 = 120.0;

pub(super) fn draw(
    x: &str,
    y: &str,
    columns: &[String],
    rows: &[String],
    values: &[Vec<Datum<Shade>>],
    unit: &str,
) -> Canvas {
    let heads: Vec<String> = columns.iter().map(|name| fit(name, SMALL, HEAD)).collect();
    let sides: Vec<String> = rows.iter().map(|name| fit(name, SMALL, SIDE)).collect();
    let widest =
        |names: &[String]| names.iter().map(|name| text_width(name, SMALL)).fold(0.0, f64::max);
    let left = widest(&sides).max(text_width(&fit(y, SMALL, SIDE), SMALL)) + 12.0;
    let room = (WIDTH - left) / columns.len().max(1) as f64;
    let shades = || values.iter().flatten().filter_map(Datum::value);
    let texts: Vec<String> = shades().map(text_of).collect();
    let widest_text = texts.iter().map(|text| text_width(text, TEXT)).fold(NARROWEST, f64::max);
    let cell = room.min(110.0).max(widest(&heads) + 8.0).max(widest_text + 4.0);
    let mut canvas = Canvas::new(WIDTH);
    canvas.widen(left + cell * columns.len() as f64);
    let top = 40.0;
    draw_heads(&mut canvas, (x, y), (&heads, &sides), (left, top), cell);
    let datum = |row: usize, column: usize| values.get(row).and_then(|row| row.get(column));
    let shade = |row: usize, column: usize| {
        datum(row, column)?.value().filter(|shade| shade.value.is_finite())
    };
    let places = || (0..rows.len()).flat_map(|row| (0..columns.len()).map(move |c| (row, c)));
    let all = || places().filter_map(|(row, column)| shade(row, column));
    let (low, high) = all().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), shade| {
        (low.min(shade.value), high.max(shade.value))
    });
    for (row, column) in places() {
        let at = (left + cell * column as f64, top + CELL * row as f64);
        let shade = shade(row, column);
        let gap = match datum(row, column) {
            Some(Datum::Gap(gap)) => *gap,
            _ => Gap::NotMeasured,
        };
        let drawn = shade.ok_or(gap).map(|shade| (shade, share(shade.value, low, high)));
        draw_cell(&mut canvas, at, cell, drawn);
        let text = match shade {
            Some(shade) if shade.suspect => format!("{}, suspect", with_unit(shade.value, unit)),
            Some(shade) => with_unit(shade.value, unit),
            None => gap.words().to_owned(),
        };
        let tip = format!("{} {}, {} {}: {text}", columns[column], x, rows[row], y);
        canvas.tip_field(at, cell - GAP, CELL - GAP, &tip);
    }
    let bottom = top + CELL * rows.len() as f64;
    if low <= high {
        draw_key(&mut canvas, (left, bottom + 14.0), (low, high), unit);
    }
    canvas.end_at(bottom + 44.0);
    canvas
}

fn with_unit(value: f64, unit: &str) -> String {
    format!("{} {unit}", value_text(value)).trim_end().to_owned()
}

/// Where between lowest and highest; the middle where there is only one value.
fn share(value: f64, low: f64, high: f64) -> f64 {
    let share = (value - low) / (high - low);
    if share.is_finite() { share } else { 0.5 }
}

fn draw_heads(
    canvas: &mut Canvas,
    (x, y): (&str, &str),
    (heads, sides): (&[String], &[String]),
    (left, top): (f64, f64),
    cell: f64,
) {
    let look = Look { size: SMALL, bold: false, colour: INK };
    let title = Look { colour: SOFT, ..look };
    canvas.layer("", |pen| {
        pen.text((left, 9.0), Anchor::Start, title, &fit(x, SMALL, WIDTH - left));
        pen.text((left - 10.0, top - 11.0), Anchor::End, title, &fit(y, SMALL, SIDE));
        for (column, head) in heads.iter().enumerate() {
            let middle = left + cell * (column as f64 + 0.5) - GAP / 2.0;
            pen.text((middle, top - 11.0), Anchor::Middle, look, head);
        }
        for (row, side) in sides.iter().enumerate() {
            let middle = top + CELL * (row as f64 + 0.5) - GAP / 2.0;
            pen.text((left - 10.0, middle), Anchor::End, look, side);
        }
    });
}

/// The value, with the sign that tables have where something speaks against it.
fn text_of(shade: &Shade) -> String {
    let sign = if shade.suspect { sign(Tone::Suspect) } else { "" };
    format!("{sign}{}", value_text(shade.value))
}

fn draw_cell(
    canvas: &mut Canvas,
    (x, y): (f64, f64),
    cell: f64,
    drawn: Result<(&Shade, f64), Gap>,
) {
    let corner = (x + cell - GAP, y + CELL - GAP);
    let middle = (x + (cell - GAP) / 2.0, y + (CELL - GAP) / 2.0);
    canvas.layer("", |pen| match drawn {
        Ok((shade, share)) => {
            pen.rect((x, y), corner, heat(share), 1.0);
            // Where white and black are equally far from the blue.
            let colour = if share > 0.72 { ON_DARK } else { ON_LIGHT };
            let look = Look { size: TEXT, bold: false, colour };
            pen.text(middle, Anchor::Middle, look, &text_of(shade));
        }
        Err(gap) => {
            pen.rect((x, y), corner, EMPTY, 1.0);
            let look = Look { size: TEXT, bold: false, colour: SOFT };
            let text = if gap == Gap::Invalid { "✕" } else { "—" };
            pen.text(middle, Anchor::Middle, look, text);
        }
    });
}

/// A strip from the lowest to the highest colour, with their values.
fn draw_key(canvas: &mut Canvas, (x, y): (f64, f64), (low, high): (f64, f64), unit: &str) {
    const STEPS: usize = 24;
    const STEP: f64 = 7.0;
    let look = Look { size: SMALL, bold: false, colour: SOFT };
    let low_text = value_text(low);
    let strip = x + text_width(&low_text, SMALL) + 8.0;
    canvas.layer("", |pen| {
        pen.text((x, y + 6.0), Anchor::Start, look, &low_text);
        for step in 0..STEPS {
            let left = strip + step as f64 * STEP;
            let share = step as f64 / (STEPS - 1) as f64;
            // A little under the next one, so that no seam is seen.
            pen.rect((left, y), (left + STEP + 0.5, y + 12.0), heat(share), 1.0);
        }
        let end = strip + STEPS as f64 * STEP + 8.0;
        pen.text((end, y + 6.0), Anchor::Start, look, &fit(&with_unit(high, unit), SMALL, 160.0));
    });
}
