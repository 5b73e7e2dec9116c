//! Charts as SVG: the same picture in the page and as a file.
//!
//! ```text
//!  legend, as many rows as it needs        a chart has no fixed height: what must be read gets
//!  axis, with its unit                     the room that it needs, and the picture ends below
//!  ┌───────────────────────┐
//!  │ data                  │               each value has a tooltip
//!  └───────────────────────┘
//!  ticks
//! ```
//!
//! Invariants:
//!
//! * nothing covers data: legends, names of events and values have places of their own;
//! * the picture has no title to be seen: a heading in page or Markdown is above it;
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
use self::canvas::{Px, WIDTH};
pub(super) use self::scale::limits;
use super::text::escape_xml;
use crate::report::model::{Chart, Shape};

/// Around a picture, where its file is shown without a page.
const MARGIN: f64 = 4.0;

/// A chart as an SVG element, which is a file of its own as well.
pub fn render_svg(chart: &Chart, palette: &Palette) -> String {
    let places = palette.places(chart.series.iter().map(|series| series.name.as_str()));
    let canvas = match chart.shape {
        Shape::Bars => bars::draw(chart, &places),
        Shape::Lines | Shape::Marks => lines::draw(chart, &places),
    };
    let title = escape_xml(&chart.title);
    let (from, width, height) =
        (Px(-MARGIN), Px(WIDTH + 2.0 * MARGIN), Px(canvas.height + 2.0 * MARGIN));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"{from} {from} {width} {height}\" font-family=\"sans-serif\" role=\"img\" \
         aria-label=\"{title}\">\n<title>{title}</title>\n\
         <rect x=\"{from}\" y=\"{from}\" width=\"{width}\" height=\"{height}\" fill=\"{}\"/>\n{}</svg>\n",
        colours::PAPER,
        canvas.body,
    )
}
