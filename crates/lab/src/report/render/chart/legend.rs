//! Names of the series above the data, in as many rows as they need.

use super::canvas::{Anchor, Canvas, Look, Marker, TEXT, fit, text_width};
use super::colours::{INK, series};

/// What stands before a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Field,
    Line,
    Dashed,
}

impl Key {
    /// The dashes of a line with this key, as an attribute.
    pub(super) fn dashes(self, place: usize) -> &'static str {
        if self == Self::Dashed { dashes(place) } else { "" }
    }
}

/// Widest name.
const WIDEST: f64 = 270.0;
const ROW: f64 = 19.0;
const GAP: f64 = 14.0;

/// Dashes that tell a line from others, in tenths of a pixel; the first is whole.
fn dashes(place: usize) -> &'static str {
    const DASHES: [&str; 4] = [
        "",
        " stroke-dasharray=\"70 35\"",
        " stroke-dasharray=\"20 32\"",
        " stroke-dasharray=\"100 30 20 30\"",
    ];
    DASHES[(place + place / 8) % DASHES.len()]
}

/// Draws the legend and says where it ends. A single series needs none, as the title names it.
pub(super) fn draw(canvas: &mut Canvas, names: &[&str], places: &[usize], key: Key) -> f64 {
    if names.len() < 2 {
        return 4.0;
    }
    let before = if key == Key::Field { 16.0 } else { 30.0 };
    let (mut x, mut y) = (0.0, ROW / 2.0);
    for (name, &place) in names.iter().zip(places) {
        let name = fit(name, TEXT, WIDEST);
        let width = before + text_width(&name, TEXT);
        if x > 0.0 && x + width > canvas.width() {
            (x, y) = (0.0, y + ROW);
        }
        let colour = series(place);
        match key {
            Key::Field => canvas.layer("", |pen| {
                pen.rect((x, y - 5.5), (x + 11.0, y + 5.5), colour, 1.0);
            }),
            Key::Line | Key::Dashed => {
                canvas.layer(key.dashes(place), |pen| {
                    pen.line(&[(x, y), (x + 25.0, y)], colour, 2.0);
                });
                canvas.layer("", |pen| {
                    pen.marker(Marker::of(place), (x + 12.5, y), 3.6, colour);
                });
            }
        }
        let look = Look { size: TEXT, bold: false, colour: INK };
        canvas.layer("", |pen| pen.text((x + before, y), Anchor::Start, look, &name));
        x += width + GAP;
    }
    y + ROW / 2.0 + 6.0
}
