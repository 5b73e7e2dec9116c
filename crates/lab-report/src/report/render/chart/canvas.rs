//! The ground on which a chart is drawn: SVG's rectangles, lines, areas, discs and texts, in pixels of
//! the picture's natural size.
//!
//! Invariants: no element but these is written, and every text is escaped here; places are rounded to
//! a tenth of a pixel, which is finer than an eye sees.

use std::fmt::{self, Display, Write as _};

use super::colours::{Colour, INK, PAPER, SOFT, series};
use crate::report::model::Shape;
use crate::report::render::text::{escape_xml, printable, shorten};

/// Width of a picture: on a phone its texts are small but can be read, and two pictures stand side by
/// side on a desk.
pub(super) const WIDTH: f64 = 480.0;
/// Size of texts in pixels.
pub(super) const TEXT: f64 = 12.1;
/// Size of small texts.
pub(super) const SMALL: f64 = 10.9;

/// A place in the picture, from the left and from the top.
pub(super) type Place = (f64, f64);

/// Pixels as they are written.
#[derive(Clone, Copy)]
pub(super) struct Px(pub(super) f64);

impl Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Zero is added so that there is no "-0".
        write!(f, "{}", (self.0 * 10.0).round() / 10.0 + 0.0)
    }
}

/// The width of a text, from a table of a wide font (DejaVu Sans), because the reader's font is not known.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    let em: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 0.34,
            '(' | ')' | '[' | ']' | 'f' | 't' | 'r' | '/' | '-' => 0.42,
            'm' | 'w' | 'M' | 'W' | '%' | '@' | '…' => 0.98,
            c if c.is_ascii_digit() => 0.64,
            c if c.is_ascii_uppercase() => 0.72,
            c if (c as u32) < 0x1100 => 0.62,
            _ => 1.05,
        })
        .sum();
    em * size
}

/// The text on one line, its middle left out if it would be wider.
pub(super) fn fit(text: &str, size: f64, width: f64) -> String {
    let text = printable(text);
    let mut longest = text.chars().count();
    let mut shown = text.clone();
    while text_width(&shown, size) > width && longest > 1 {
        // By the share that is too much, at least one character.
        let share = width / text_width(&shown, size);
        longest = ((longest as f64 * share) as usize).clamp(1, longest - 1);
        shown = shorten(&text, longest);
    }
    shown.into_owned()
}

/// The anchor of a text at its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// The look of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    pub(super) size: f64,
    pub(super) bold: bool,
    /// True if lines may run below it, which are kept at a distance.
    pub(super) over: bool,
    pub(super) colour: Colour,
}

impl Look {
    /// Names of the series.
    pub(super) const NAME: Self = Self { size: TEXT, bold: false, over: false, colour: INK };
    /// Values beside what is drawn.
    pub(super) const VALUE: Self = Self { size: SMALL, ..Self::NAME };
    /// Ticks and names of axes.
    pub(super) const TICK: Self = Self { colour: SOFT, ..Self::VALUE };
}

/// Corners around zero of what marks a line's points without its colour, in the order of the series;
/// of a disc none.
const MARKERS: [&[Place]; 4] = [
    &[],
    &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
    &[(-1.1, 0.8), (1.1, 0.8), (0.0, -1.15)],
    &[(-1.25, 0.0), (0.0, -1.25), (1.25, 0.0), (0.0, 1.25)],
];
const MARKER: f64 = 3.5;
/// Dashes that tell a line from others, in pixels; the first is whole.
const DASHES: [&str; 4] = ["", "7 3.5", "2 3.2", "10 3 2 3"];

/// The dashes of the line of a series. Among eight none has another's marker as well.
pub(super) fn dashes(place: usize) -> &'static str {
    DASHES[(place + place / MARKERS.len()) % DASHES.len()]
}

/// A picture that is being drawn.
#[derive(Default)]
pub(super) struct Canvas {
    pub(super) body: String,
    /// The lower end of the picture.
    pub(super) height: f64,
}

impl Canvas {
    /// An element with its tooltip.
    fn put(&mut self, name: &str, attributes: fmt::Arguments<'_>, tip: &str) {
        // Writing to a String cannot fail.
        let _ = match tip {
            "" => writeln!(self.body, "<{name} {attributes}/>"),
            tip => {
                let tip = escape_xml(tip);
                writeln!(self.body, "<{name} {attributes}><title>{tip}</title></{name}>")
            }
        };
    }

    /// Draws the shape for a value of a series: pale inside of its edge if there is a reason to doubt the
    /// value.
    pub(super) fn field(&mut self, from: Place, to: Place, colour: Colour, pale: bool, tip: &str) {
        let (x, y) = (Px(from.0.min(to.0)), Px(from.1.min(to.1)));
        let (width, height) = (Px((to.0 - from.0).abs()), Px((to.1 - from.1).abs()));
        let inside = if pale { 0.25 } else { 0.8 };
        let edge = if pale { format!(" stroke=\"{colour}\"") } else { String::new() };
        self.put(
            "rect",
            format_args!(
                "x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{colour}\" \
                 fill-opacity=\"{inside}\"{edge}"
            ),
            tip,
        );
    }

    pub(super) fn line(&mut self, points: &[Place], colour: Colour, width: f64) {
        self.dashed(points, colour, width, "", "");
    }

    pub(super) fn dashed(
        &mut self,
        points: &[Place],
        colour: Colour,
        width: f64,
        dashes: &str,
        tip: &str,
    ) {
        let dashes = match dashes {
            "" => String::new(),
            dashes => format!(" stroke-dasharray=\"{dashes}\""),
        };
        let (points, width) = (list(points), Px(width));
        self.put(
            "polyline",
            format_args!(
                "points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"{dashes}"
            ),
            tip,
        );
    }

    /// From one end of an interval to the other, with a stroke across each; on a light ground, because
    /// it may lie over a dark field.
    pub(super) fn interval(&mut self, low: Place, high: Place, colour: Colour) {
        let across = if low.1 == high.1 { (0.0, 3.5) } else { (3.5, 0.0) };
        let end =
            |(x, y): Place| [(x - across.0, y - across.1), (x + across.0, y + across.1), (x, y)];
        let mut points = end(low).to_vec();
        points.extend(end(high).into_iter().rev());
        self.line(&points, PAPER, 3.2);
        self.line(&points, colour, 1.3);
    }

    /// The mark of a series at a point: hollow if something speaks against the value.
    pub(super) fn marker(
        &mut self,
        at: Place,
        place: usize,
        colour: Colour,
        hollow: bool,
        tip: &str,
    ) {
        let edge = format!(
            "fill=\"{}\" stroke=\"{colour}\" stroke-width=\"1.5\"",
            if hollow { PAPER } else { colour }
        );
        match MARKERS[place % MARKERS.len()] {
            [] => {
                let (x, y, r) = (Px(at.0), Px(at.1), Px(MARKER));
                self.put("circle", format_args!("cx=\"{x}\" cy=\"{y}\" r=\"{r}\" {edge}"), tip);
            }
            corners => {
                let corners = corners.iter().map(|c| (at.0 + c.0 * MARKER, at.1 + c.1 * MARKER));
                let points = list(&corners.collect::<Vec<_>>());
                self.put("polygon", format_args!("points=\"{points}\" {edge}"), tip);
            }
        }
    }

    /// A text whose middle line is at the point.
    pub(super) fn text(&mut self, (x, y): Place, anchor: Anchor, look: Look, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let bold = if look.bold { " font-weight=\"bold\"" } else { "" };
        let edge = match look.over {
            true => format!(" stroke=\"{PAPER}\" stroke-width=\"3\" paint-order=\"stroke\""),
            false => String::new(),
        };
        let (x, y, size, colour) = (Px(x), Px(y), Px(look.size), look.colour);
        let text = escape_xml(text);
        let _ = writeln!(
            self.body,
            "<text x=\"{x}\" y=\"{y}\" dy=\".5ex\"{anchor} font-size=\"{size}\"{bold} \
             fill=\"{colour}\"{edge}>{text}</text>"
        );
    }

    /// The key of a series in a legend, so that it looks like what it stands for.
    pub(super) fn key(&mut self, (x, y): Place, shape: Shape, place: Option<usize>) {
        // Without a series it is what something speaks against.
        let (colour, hollow) = (place.map_or(SOFT, series), place.is_none());
        let place = place.unwrap_or(0);
        match shape {
            Shape::Bars => self.field((x, y - 5.5), (x + 11.0, y + 5.5), colour, hollow, ""),
            Shape::Marks => self.marker((x + 5.5, y), place, colour, hollow, ""),
            Shape::Lines => {
                self.dashed(&[(x, y), (x + 25.0, y)], colour, 2.0, dashes(place), "");
                self.marker((x + 12.5, y), place, colour, hollow, "");
            }
        }
    }
}

/// As the points of a line or an area.
fn list(points: &[Place]) -> String {
    let points = points.iter().map(|(x, y)| format!("{},{}", Px(*x), Px(*y)));
    points.collect::<Vec<_>>().join(" ")
}
