//! Charts as SVG: the same picture in the page and as a file.
//!
//! ```text
//!  legend, as many rows as it needs        a chart has no fixed height: what must be read gets
//!  axis, with its unit                     the room that it needs, and the picture ends below
//!  ┌───────────────────────┐
//!  │ data                  │               layers: grid, data, texts, and on top a transparent
//!  └───────────────────────┘               shape with a tooltip for each value
//!  ticks
//! ```
//!
//! Invariants:
//!
//! * nothing covers data: legends, names of events and values have places of their own;
//! * a series can be told by its colour, and without colours by its marker and dashes (lines) or
//!   by its place (bars);
//! * colours are the ones of [`colours`], so that a page can exchange them for the dark;
//! * a value that is not finite is drawn as a gap; no chart makes a renderer fail.

mod axis;
mod bars;
mod canvas;
pub(super) mod colours;
mod legend;
mod lines;
mod scale;
#[cfg(test)]
mod tests;

pub use colours::Palette;

pub(super) use self::axis::{axis_title, value_text};
use self::canvas::{Canvas, Px, WIDTH};
pub(super) use self::scale::limits;
use super::text::escape_xml;
use crate::report::model::{Chart, Plot};

/// Where a picture stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// In a page that gives it heading, width and background.
    Inline,
    /// Alone: with its title, a size of its own and a white ground.
    Alone,
}

/// A chart as an SVG element.
pub fn render_svg(chart: &Chart, palette: &Palette, frame: Frame) -> String {
    let canvas = match &chart.plot {
        Plot::Bars { axis, categories, series, mark } => {
            bars::draw(axis, categories, series, *mark, palette)
        }
        Plot::Lines { x, y, series, events } => lines::draw(x, y, series, events, palette),
    };
    finish(chart, canvas, frame)
}

/// Height of the title above a picture that stands alone.
const TITLE: f64 = 34.0;
const TITLE_TEXT: f64 = 15.0;
/// Around a picture that stands alone.
const MARGIN: f64 = 12.0;

fn finish(chart: &Chart, canvas: Canvas, frame: Frame) -> String {
    let title = escape_xml(&chart.title);
    let note = match chart.note.as_str() {
        "" => String::new(),
        note => format!("<desc>{}</desc>\n", escape_xml(note)),
    };
    let said = format!(
        "font-family=\"sans-serif\" role=\"img\" aria-label=\"{title}\">\n<title>{title}</title>\n{note}"
    );
    let height = canvas.height;
    let body = canvas.finish();
    if frame == Frame::Inline {
        let (width, height) = (Px(WIDTH), Px(height));
        return format!(
            "<svg class=\"chart\" viewBox=\"0 0 {width} {height}\" {said}{body}</svg>\n"
        );
    }
    let (left, top) = (Px(-MARGIN), Px(-TITLE - MARGIN));
    let (width, height) = (Px(WIDTH + 2.0 * MARGIN), Px(height + TITLE + 2.0 * MARGIN));
    // A little narrower for being bold.
    let shown = escape_xml(&canvas::fit(&chart.title, TITLE_TEXT * 1.1, WIDTH));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"{left} {top} {width} {height}\" {said}\
         <rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill=\"{}\"/>\n\
         <text x=\"0\" y=\"{}\" font-size=\"{}\" font-weight=\"bold\" fill=\"{}\">{shown}</text>\n\
         {body}</svg>\n",
        colours::PAPER,
        Px(17.0 - TITLE),
        Px(TITLE_TEXT),
        colours::INK,
    )
}
