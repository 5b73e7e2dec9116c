//! Charts as SVG, drawn with plotters: the same picture in the page and as a file.
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

mod bars;
mod canvas;
pub(super) mod colours;
mod legend;
mod lines;
mod scale;
#[cfg(test)]
mod tests;

pub use colours::Palette;

use self::canvas::Canvas;
pub(super) use self::scale::{axis_title, limits, value_text};
use super::text::escape_xml;
use crate::error::LabError;
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
///
/// # Errors
///
/// When the drawing library fails, which is a mistake in this program.
pub fn render_svg(chart: &Chart, palette: &Palette, frame: Frame) -> Result<String, LabError> {
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

fn finish(chart: &Chart, canvas: Canvas, frame: Frame) -> Result<String, LabError> {
    let drawing =
        canvas.finish().map_err(|reason| LabError::Serialise { what: "a chart", reason })?;
    let (width, height) = (drawing.width, drawing.height);
    let label = escape_xml(&chart.title);
    let mut svg = String::with_capacity(drawing.body.len() + 1024);
    let fine = canvas::fine;
    match frame {
        Frame::Inline => {
            svg += &format!(
                "<svg class=\"chart\"{} viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" role=\"img\" aria-label=\"{label}\">\n",
                narrowest(width),
                fine(width),
                fine(height),
            );
        }
        Frame::Alone => {
            let margin = 12.0;
            svg += &format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0}\" height=\"{:.0}\" \
                 viewBox=\"{} {} {} {}\" font-family=\"sans-serif\" role=\"img\" aria-label=\"{label}\">\n",
                width + 2.0 * margin,
                height + TITLE + 2.0 * margin,
                -fine(margin),
                -fine(TITLE + margin),
                fine(width + 2.0 * margin),
                fine(height + TITLE + 2.0 * margin),
            );
        }
    }
    svg += &format!("<title>{label}</title>\n");
    if !chart.note.is_empty() {
        svg += &format!("<desc>{}</desc>\n", escape_xml(&chart.note));
    }
    if frame == Frame::Alone {
        // A little narrower for being bold.
        let title = escape_xml(&canvas::fit(&chart.title, TITLE_TEXT * 1.1, width));
        svg += &format!(
            "<rect x=\"-50%\" y=\"-50%\" width=\"200%\" height=\"200%\" fill=\"#FFFFFF\"/>\n\
             <text x=\"0\" y=\"{}\" font-size=\"{}\" \
             font-weight=\"bold\" fill=\"{}\">{title}</text>\n",
            -fine(TITLE - 17.0),
            fine(TITLE_TEXT),
            colours::hex(colours::INK),
        );
    }
    svg += &drawing.body;
    svg += "</svg>\n";
    Ok(svg)
}

/// A page hardly shrinks a picture that is wider than others; its place then scrolls.
fn narrowest(width: f64) -> String {
    if width > canvas::WIDTH {
        format!(" style=\"min-width:{:.0}px\"", width * 0.92)
    } else {
        String::new()
    }
}
