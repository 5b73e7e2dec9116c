//! Names of the series above the data, in as many rows as they need.

use super::canvas::{Anchor, Canvas, Look, Marker, TEXT, WIDTH, fit, text_width};
use super::colours::{SOFT, series};

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

/// Dashes that tell a line from others, in pixels; the first is whole.
fn dashes(place: usize) -> &'static str {
    const DASHES: [&str; 4] = [
        "",
        " stroke-dasharray=\"7 3.5\"",
        " stroke-dasharray=\"2 3.2\"",
        " stroke-dasharray=\"10 3 2 3\"",
    ];
    DASHES[(place + place / 8) % DASHES.len()]
}

/// What stands in a legend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry<'a> {
    /// A series, with its place.
    Series(&'a str, usize),
    /// How a value looks that something speaks against.
    Suspect,
}

/// Draws the legend and says where it ends: also of a single series, because no title names it, and
/// with what is `suspect` where something is.
pub(super) fn draw(
    canvas: &mut Canvas,
    names: &[&str],
    places: &[usize],
    key: Key,
    suspect: bool,
) -> f64 {
    let named = names.iter().zip(places).filter(|(name, _)| names.len() > 1 || !name.is_empty());
    let mut entries: Vec<_> = named.map(|(name, place)| Entry::Series(name, *place)).collect();
    entries.extend(suspect.then_some(Entry::Suspect));
    if entries.is_empty() {
        return 4.0;
    }
    let before = if key == Key::Field { 16.0 } else { 30.0 };
    let (mut x, mut y) = (0.0, ROW / 2.0);
    for entry in entries {
        let name = match entry {
            Entry::Series(name, _) => fit(name, TEXT, WIDEST),
            Entry::Suspect => "⚠ suspect".to_owned(),
        };
        let width = before + text_width(&name, TEXT);
        if x > 0.0 && x + width > WIDTH {
            (x, y) = (0.0, y + ROW);
        }
        draw_key(canvas, (x, y), key, entry);
        canvas.text((x + before, y), Anchor::Start, Look::NAME, &name);
        x += width + GAP;
    }
    y + ROW / 2.0 + 6.0
}

fn draw_key(canvas: &mut Canvas, (x, y): (f64, f64), key: Key, entry: Entry<'_>) {
    let (from, to) = ((x, y - 5.5), (x + 11.0, y + 5.5));
    match (key, entry) {
        (Key::Field, Entry::Series(_, place)) => canvas.field(from, to, place, false),
        (Key::Field, Entry::Suspect) => canvas.striped(from, to, SOFT),
        (_, Entry::Series(_, place)) => {
            let colour = series(place);
            canvas.group(key.dashes(place), |canvas| {
                canvas.line(&[(x, y), (x + 25.0, y)], colour, 2.0);
            });
            canvas.marker(Marker::of(place), (x + 12.5, y), 3.6, colour);
        }
        (_, Entry::Suspect) => canvas.hollow(Marker::Disc, (x + 12.5, y), 3.6, SOFT),
    }
}
