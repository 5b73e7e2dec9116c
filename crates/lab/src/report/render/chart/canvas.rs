//! The ground on which a chart is drawn: layers of plotters' elements under a layer of tooltips.
//!
//! plotters counts in whole units. Here a unit is a tenth of a pixel of the picture's natural
//! size, so that lines do not move in steps that could be seen.

use std::fmt::Write as _;

use plotters::coord::Shift;
use plotters::prelude::{
    Circle, DrawingArea, IntoDrawingArea, PathElement, Polygon, Rectangle, SVGBackend,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontDesc, FontFamily, FontStyle, RGBColor, ShapeStyle, TextStyle};

use crate::report::render::text::{escape_xml, printable, shorten};

/// A pixel in plotters' units.
const FINE: f64 = 10.0;
/// Room for the highest chart: plotters wants to know before.
const HIGHEST: u32 = 10_000_000;

/// Pixels in plotters' units.
pub(super) fn fine(pixels: f64) -> i32 {
    (pixels * FINE).round() as i32
}

/// plotters' units in pixels.
pub(super) fn pixels(fine: i32) -> f64 {
    f64::from(fine) / FINE
}

/// Width of a picture, unless it needs more: on a phone its texts are small but can be read, and two
/// pictures stand side by side on a desk.
pub(super) const WIDTH: f64 = 480.0;
/// Size of texts in pixels; ten times it, times 1.24 and divided by it, is whole again.
pub(super) const TEXT: f64 = 12.1;
/// Size of small texts.
pub(super) const SMALL: f64 = 10.9;

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
    pub(super) colour: RGBColor,
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
}

/// A finished drawing, without its frame.
pub(super) struct Drawing {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) body: String,
}

/// A picture that is being drawn.
pub(super) struct Canvas {
    width: f64,
    height: f64,
    body: String,
    tips: String,
    failed: Option<String>,
}

impl Canvas {
    pub(super) fn new(width: f64) -> Self {
        Self { width, height: 0.0, body: String::new(), tips: String::new(), failed: None }
    }

    pub(super) fn width(&self) -> f64 {
        self.width
    }

    /// Says where the picture ends.
    pub(super) fn end_at(&mut self, height: f64) {
        self.height = height;
    }

    /// Draws what belongs together, in a group with these attributes.
    pub(super) fn layer(&mut self, attributes: &str, paint: impl FnOnce(&mut Pen<'_>)) {
        let mut svg = String::new();
        {
            let size = (fine(self.width).unsigned_abs(), HIGHEST);
            let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
            let mut pen = Pen { root, failed: None };
            paint(&mut pen);
            let present = || pen.root.present().err().map(|error| error.to_string());
            let failed = pen.failed.or_else(present);
            self.failed = self.failed.take().or(failed);
        }
        // Between plotters' own opening and closing tag.
        let inner = svg.split_once(">\n").map_or("", |(_, rest)| rest);
        let inner = inner.strip_suffix("</svg>\n").unwrap_or(inner);
        // Said of each element; the first is so anyway, the second is said once for the picture.
        let inner = inner.replace(" opacity=\"1\"", "").replace(" font-family=\"sans-serif\"", "");
        if !inner.is_empty() {
            // Writing to a String cannot fail.
            let _ = write!(self.body, "<g{attributes}>\n{inner}</g>\n");
        }
    }

    /// A tooltip on a disc.
    pub(super) fn tip_disc(&mut self, (x, y): (f64, f64), radius: f64, tip: &str) {
        let _ = writeln!(
            self.tips,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\"><title>{}</title></circle>",
            fine(x),
            fine(y),
            fine(radius),
            escape_xml(tip)
        );
    }

    /// A tooltip on a field.
    pub(super) fn tip_field(&mut self, (x, y): (f64, f64), width: f64, height: f64, tip: &str) {
        let _ = writeln!(
            self.tips,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>",
            fine(x),
            fine(y),
            fine(width.max(1.0)),
            fine(height.max(1.0)),
            escape_xml(tip)
        );
    }

    /// The drawing, or why plotters could not make it.
    pub(super) fn finish(self) -> Result<Drawing, String> {
        let Self { width, height, mut body, tips, failed } = self;
        if let Some(reason) = failed {
            return Err(reason);
        }
        let _ =
            write!(body, "<g class=\"tips\" fill=\"none\" pointer-events=\"all\">\n{tips}</g>\n");
        Ok(Drawing { width, height, body })
    }
}

/// Draws on one layer, in pixels. A failure is kept and ends the drawing.
pub(super) struct Pen<'a> {
    root: DrawingArea<SVGBackend<'a>, Shift>,
    failed: Option<String>,
}

fn point((x, y): (f64, f64)) -> (i32, i32) {
    (fine(x), fine(y))
}

fn stroke(colour: RGBColor, width: f64) -> ShapeStyle {
    colour.stroke_width(fine(width).unsigned_abs())
}

impl Pen<'_> {
    fn keep<E: std::fmt::Display>(&mut self, result: Result<(), E>) {
        if let Err(error) = result {
            self.failed.get_or_insert_with(|| error.to_string());
        }
    }

    pub(super) fn rect(&mut self, from: (f64, f64), to: (f64, f64), colour: RGBColor, alpha: f64) {
        let corners = [point(from), point(to)];
        let drawn = self.root.draw(&Rectangle::new(corners, colour.mix(alpha).filled()));
        self.keep(drawn);
    }

    pub(super) fn line(&mut self, points: &[(f64, f64)], colour: RGBColor, width: f64) {
        let points: Vec<_> = points.iter().copied().map(point).collect();
        let drawn = self.root.draw(&PathElement::new(points, stroke(colour, width)));
        self.keep(drawn);
    }

    pub(super) fn area(&mut self, points: &[(f64, f64)], colour: RGBColor, alpha: f64) {
        let points: Vec<_> = points.iter().copied().map(point).collect();
        let drawn = self.root.draw(&Polygon::new(points, colour.mix(alpha).filled()));
        self.keep(drawn);
    }

    pub(super) fn disc(&mut self, at: (f64, f64), radius: f64, colour: RGBColor, alpha: f64) {
        let style = colour.mix(alpha).filled();
        let drawn = self.root.draw(&Circle::new(point(at), fine(radius), style));
        self.keep(drawn);
    }

    /// What stands for a value of the series at a place; with stripes if something speaks against
    /// the value.
    pub(super) fn field(&mut self, from: (f64, f64), to: (f64, f64), place: usize, suspect: bool) {
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
    pub(super) fn striped(&mut self, from: (f64, f64), to: (f64, f64), colour: RGBColor) {
        self.rect(from, to, colour, 0.8);
        self.stripes(from, to);
        self.frame(from, to, colour);
    }

    /// A line along the inner edge of a rectangle.
    fn frame(&mut self, from: (f64, f64), to: (f64, f64), colour: RGBColor) {
        let (left, right) = (from.0 + 0.5, (to.0 - 0.5).max(from.0 + 0.5));
        let (top, bottom) = (from.1 + 0.5, to.1 - 0.5);
        let corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
        self.line(&corners, colour, 1.0);
    }

    /// Stripes of the ground across a rectangle, which show it through.
    fn stripes(&mut self, (left, top): (f64, f64), (right, bottom): (f64, f64)) {
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
                self.line(&ends, super::colours::PAPER, WIDE);
            }
        }
    }

    pub(super) fn marker(&mut self, marker: Marker, (x, y): (f64, f64), r: f64, colour: RGBColor) {
        match marker {
            Marker::Disc => self.disc((x, y), r, colour, 1.0),
            Marker::Square => {
                let r = r * 0.9;
                self.rect((x - r, y - r), (x + r, y + r), colour, 1.0);
            }
            Marker::Triangle => {
                let corners =
                    [(x - r * 1.1, y + r * 0.8), (x + r * 1.1, y + r * 0.8), (x, y - r * 1.15)];
                self.area(&corners, colour, 1.0);
            }
            Marker::Down => {
                let corners =
                    [(x - r * 1.1, y - r * 0.8), (x + r * 1.1, y - r * 0.8), (x, y + r * 1.15)];
                self.area(&corners, colour, 1.0);
            }
            Marker::Diamond => {
                let r = r * 1.25;
                self.area(&[(x - r, y), (x, y - r), (x + r, y), (x, y + r)], colour, 1.0);
            }
            Marker::Cross => {
                self.line(&[(x - r, y - r), (x + r, y + r)], colour, 1.8);
                self.line(&[(x - r, y + r), (x + r, y - r)], colour, 1.8);
            }
            Marker::Plus => {
                let r = r * 1.2;
                self.line(&[(x - r, y), (x + r, y)], colour, 1.8);
                self.line(&[(x, y - r), (x, y + r)], colour, 1.8);
            }
            Marker::Bar => {
                self.rect((x - r * 1.25, y - r * 0.55), (x + r * 1.25, y + r * 0.55), colour, 1.0);
            }
        }
    }

    /// The same with a hole: of a value that something speaks against.
    pub(super) fn hollow(&mut self, marker: Marker, at: (f64, f64), r: f64, colour: RGBColor) {
        self.marker(marker, at, r * 1.15, colour);
        self.marker(marker, at, r * 0.62, super::colours::PAPER);
    }

    /// A text whose middle line is at the point.
    pub(super) fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, look: Look, text: &str) {
        let h_pos = match anchor {
            Anchor::Start => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::End => HPos::Right,
        };
        let style = if look.bold { FontStyle::Bold } else { FontStyle::Normal };
        // plotters divides by 1.24.
        let size = look.size * FINE * 1.24;
        let font = FontDesc::new(FontFamily::SansSerif, size, style);
        let style = TextStyle::from(font).color(&look.colour).pos(Pos::new(h_pos, VPos::Center));
        let drawn = self.root.draw_text(&printable(text), &style, point((x, y)));
        self.keep(drawn);
    }
}
