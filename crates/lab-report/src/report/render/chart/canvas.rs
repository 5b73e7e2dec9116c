//! The ground on which a chart is drawn: SVG's rectangles, lines, areas, discs and texts, in pixels of
//! the picture's natural size, under a layer of tooltips.
//!
//! Invariants: no element but these is written, and every text is escaped here; places are rounded to
//! a tenth of a pixel, which is finer than an eye sees.

use std::fmt::{self, Display, Write as _};

use super::colours::{Colour, INK, PAPER, SOFT};
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

/// How wide a text will be, from a table of a wide font (DejaVu Sans), because the reader's font
/// is not known.
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

/// How a text is anchored to its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// How a text looks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    pub(super) size: f64,
    pub(super) bold: bool,
    pub(super) colour: Colour,
}

impl Look {
    /// Names of what is drawn.
    pub(super) const NAME: Self = Self { size: TEXT, bold: false, colour: INK };
    /// Values beside what is drawn.
    pub(super) const VALUE: Self = Self { size: SMALL, ..Self::NAME };
    /// Ticks and names of axes.
    pub(super) const TICK: Self = Self { colour: SOFT, ..Self::VALUE };
}

/// What makes a line's points known without its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marker {
    Disc,
    Square,
    Triangle,
    Diamond,
    Down,
    Cross,
    Bar,
    Plus,
}

impl Marker {
    /// Of the series at a place.
    pub(super) fn of(place: usize) -> Self {
        use Marker::{Bar, Cross, Diamond, Disc, Down, Plus, Square, Triangle};
        // The second round of colours starts with another marker.
        let order = [Disc, Square, Triangle, Diamond, Down, Cross, Bar, Plus];
        order[(place + place / order.len()) % order.len()]
    }

    /// Its corners around zero, for a disc of radius 1; of a cross the strokes.
    fn corners(self) -> &'static [Place] {
        match self {
            Self::Disc => &[],
            Self::Square => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            Self::Triangle => &[(-1.1, 0.8), (1.1, 0.8), (0.0, -1.15)],
            Self::Down => &[(-1.1, -0.8), (1.1, -0.8), (0.0, 1.15)],
            Self::Diamond => &[(-1.25, 0.0), (0.0, -1.25), (1.25, 0.0), (0.0, 1.25)],
            Self::Bar => &[(-1.25, -0.55), (1.25, -0.55), (1.25, 0.55), (-1.25, 0.55)],
            Self::Cross => &[(-1.0, -1.0), (1.0, 1.0), (0.0, 0.0), (-1.0, 1.0), (1.0, -1.0)],
            Self::Plus => &[(-1.2, 0.0), (1.2, 0.0), (0.0, 0.0), (0.0, -1.2), (0.0, 1.2)],
        }
    }
}

/// A picture that is being drawn.
#[derive(Default)]
pub(super) struct Canvas {
    body: String,
    tips: String,
    /// Where the picture ends.
    pub(super) height: f64,
}

impl Canvas {
    /// The drawing with its tooltips on top, without a frame.
    pub(super) fn finish(self) -> String {
        let Self { body, tips, .. } = self;
        format!("{body}<g class=\"tips\" fill=\"none\" pointer-events=\"all\">\n{tips}</g>\n")
    }

    fn put(&mut self, element: fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.body, "{element}");
    }

    /// Draws what belongs together, in a group with these attributes.
    pub(super) fn group(&mut self, attributes: &str, paint: impl FnOnce(&mut Self)) {
        self.put(format_args!("<g{attributes}>"));
        paint(self);
        self.put(format_args!("</g>"));
    }

    /// A tooltip on a disc.
    pub(super) fn tip_disc(&mut self, (x, y): Place, radius: f64, tip: &str) {
        let (x, y, r, tip) = (Px(x), Px(y), Px(radius), escape_xml(tip));
        let _ = writeln!(
            self.tips,
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\"><title>{tip}</title></circle>"
        );
    }

    /// A tooltip on a field.
    pub(super) fn tip_field(&mut self, (x, y): Place, width: f64, height: f64, tip: &str) {
        let (x, y, width, height) = (Px(x), Px(y), Px(width.max(0.1)), Px(height.max(0.1)));
        let _ = writeln!(
            self.tips,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"><title>{}</title></rect>",
            escape_xml(tip)
        );
    }

    pub(super) fn rect(&mut self, from: Place, to: Place, colour: Colour, alpha: f64) {
        let (x, y) = (Px(from.0.min(to.0)), Px(from.1.min(to.1)));
        let (width, height) = (Px((to.0 - from.0).abs()), Px((to.1 - from.1).abs()));
        self.put(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"{} fill=\"{colour}\"/>",
            opacity(alpha)
        ));
    }

    pub(super) fn line(&mut self, points: &[Place], colour: Colour, width: f64) {
        self.put(format_args!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{}\"/>",
            list(points),
            Px(width)
        ));
    }

    pub(super) fn area(&mut self, points: &[Place], colour: Colour, alpha: f64) {
        self.put(format_args!(
            "<polygon points=\"{}\"{} fill=\"{colour}\"/>",
            list(points),
            opacity(alpha)
        ));
    }

    pub(super) fn disc(&mut self, (x, y): Place, radius: f64, colour: Colour) {
        let (x, y, r) = (Px(x), Px(y), Px(radius));
        self.put(format_args!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\" fill=\"{colour}\"/>"));
    }

    /// A text whose middle line is at the point.
    pub(super) fn text(&mut self, (x, y): Place, anchor: Anchor, look: Look, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let bold = if look.bold { " font-weight=\"bold\"" } else { "" };
        let (x, y, size, colour) = (Px(x), Px(y), Px(look.size), look.colour);
        self.put(format_args!(
            "<text x=\"{x}\" y=\"{y}\" dy=\".5ex\"{anchor} font-size=\"{size}\"{bold} fill=\"{colour}\">{}</text>",
            escape_xml(text)
        ));
    }

    /// What stands for a value of the series at a place; with stripes if something speaks against
    /// the value.
    pub(super) fn field(&mut self, from: Place, to: Place, place: usize, suspect: bool) {
        let colour = super::colours::series(place);
        let is_light = super::colours::is_light(place);
        self.rect(from, to, colour, if is_light { 0.3 } else { 0.8 });
        if suspect {
            self.stripes(from, to);
        }
        if suspect || is_light {
            self.frame(from, to, colour);
        }
    }

    /// A field with stripes that belongs to no series.
    pub(super) fn striped(&mut self, from: Place, to: Place, colour: Colour) {
        self.rect(from, to, colour, 0.8);
        self.stripes(from, to);
        self.frame(from, to, colour);
    }

    /// A line along the inner edge of a rectangle.
    fn frame(&mut self, from: Place, to: Place, colour: Colour) {
        let (left, right) = (from.0 + 0.5, (to.0 - 0.5).max(from.0 + 0.5));
        let (top, bottom) = (from.1 + 0.5, to.1 - 0.5);
        let corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
        self.line(&corners, colour, 1.0);
    }

    /// Stripes of the ground across a rectangle, which show it through.
    fn stripes(&mut self, (left, top): Place, (right, bottom): Place) {
        const EVERY: f64 = 6.0;
        const WIDE: f64 = 2.4;
        let height = bottom - top;
        // Each begins at the lower edge, `start` right of the left end, and rises to the right.
        let count = ((right - left + height) / EVERY).ceil().clamp(0.0, 1000.0) as usize;
        for stripe in 0..count {
            let start = left - height + EVERY * (stripe as f64 + 0.5);
            let (low, high) = (start.max(left), (start + height).min(right));
            if low < high {
                let ends = [(low, bottom - (low - start)), (high, bottom - (high - start))];
                self.line(&ends, PAPER, WIDE);
            }
        }
    }

    pub(super) fn marker(&mut self, marker: Marker, (x, y): Place, r: f64, colour: Colour) {
        let corners = marker.corners().iter().map(|(across, down)| (x + across * r, y + down * r));
        let corners: Vec<Place> = corners.collect();
        match marker {
            Marker::Disc => self.disc((x, y), r, colour),
            Marker::Cross | Marker::Plus => self.line(&corners, colour, 1.8),
            _ => self.area(&corners, colour, 1.0),
        }
    }

    /// The same with a hole: of a value that something speaks against.
    pub(super) fn hollow(&mut self, marker: Marker, at: Place, r: f64, colour: Colour) {
        self.marker(marker, at, r * 1.15, colour);
        self.marker(marker, at, r * 0.62, PAPER);
    }
}

/// As an attribute; nothing of what is not seen through.
fn opacity(alpha: f64) -> String {
    if alpha < 1.0 { format!(" opacity=\"{alpha}\"") } else { String::new() }
}

/// As the points of a line or an area.
fn list(points: &[Place]) -> String {
    let mut list = String::with_capacity(points.len() * 12);
    for (place, (x, y)) in points.iter().enumerate() {
        let gap = if place == 0 { "" } else { " " };
        let _ = write!(list, "{gap}{},{}", Px(*x), Px(*y));
    }
    list
}
