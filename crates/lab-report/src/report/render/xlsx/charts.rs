//! The charts of a section on one sheet, their data right of them.
//!
//! ```text
//! title                            name of x   name of y
//! note                                         series 1   series 2   −      +      −      +
//! [ chart, 20 rows high ]          category    value      value      down   up     down   up
//!                                  ...
//! title                                                    (the next one's data, further right)
//! ```
//!
//! Invariants: an axis of values begins at zero and holds every interval, because a program that
//! chooses the ends itself makes much of little; charts are printed and their data is not.

mod bars;
mod lines;

use rust_xlsxwriter::{
    ChartAxis, ChartErrorBars, ChartErrorBarsType, ChartLegendPosition, ChartRange, Color, Format,
    Worksheet, XlsxError,
};

use super::cell_text;
use super::looks::Looks;
use super::paper::{set_page, to_column};
use crate::report::model::{Axis, Chart, Datum, Plot};
use crate::report::render::chart::colours::{self, Colour, Palette};
use crate::report::render::chart::limits;

/// Rows under a chart, at 20 pixels each.
const CHART_ROWS: u32 = 20;
/// Columns under a chart.
const CHART_COLUMNS: usize = 9;

pub(super) fn sheet(
    charts: &[&Chart],
    name: &str,
    palette: &Palette,
    looks: &Looks,
) -> Result<Worksheet, XlsxError> {
    let mut page =
        Page { sheet: Worksheet::new(), name, looks, palette, row: 0, data: CHART_COLUMNS + 1 };
    page.sheet.set_column_width(0, 30)?;
    for column in 1..CHART_COLUMNS {
        page.sheet.set_column_width(to_column(column)?, 14)?;
    }
    for chart in charts {
        page.chart(chart)?;
        page.row += 2;
    }
    set_page(&mut page.sheet, page.row, CHART_COLUMNS)?;
    Ok(page.sheet)
}

struct Page<'a> {
    sheet: Worksheet,
    name: &'a str,
    looks: &'a Looks,
    palette: &'a Palette,
    /// The next free row left of the data.
    row: u32,
    /// The next free column of data: each chart's stands right of those of the charts above.
    data: usize,
}

/// Where the data of a chart stands.
#[derive(Clone, Copy)]
struct Place {
    /// The row of the names of the axes; the heads of the columns are in the next.
    row: u32,
    column: usize,
}

impl Place {
    /// The row of the names of the series.
    fn head(self) -> u32 {
        self.row + 1
    }

    /// The first row of values.
    fn first(self) -> u32 {
        self.row + 2
    }
}

impl Page<'_> {
    fn chart(&mut self, chart: &Chart) -> Result<(), XlsxError> {
        let title = self.row;
        self.text(title, 0, &chart.title, &self.looks.bold)?;
        self.text(title + 1, 0, &note_of(chart), &self.looks.soft)?;
        self.row += 2;
        let drawn = match &chart.plot {
            Plot::Bars { axis, categories, series, mark } => {
                self.bars(title, axis, categories, series, *mark)?
            }
            Plot::Lines { x, y, series, events } => self.lines(title, (x, y), series, events)?,
        };
        if let Some(mut drawing) = drawn {
            drawing.title().set_name(&self.range((title, title), 0)?);
            drawing.legend().set_position(ChartLegendPosition::Bottom);
            drawing.set_width(900).set_height((CHART_ROWS - 1) * 20);
            self.sheet.insert_chart(self.row, 0, &drawing)?;
            self.row += CHART_ROWS;
        }
        Ok(())
    }

    /// Room for so many columns of values beside the chart that begins in this row.
    fn room(&mut self, title: u32, columns: usize) -> Place {
        let place = Place { row: title, column: self.data };
        self.data += columns + 1;
        place
    }

    fn text(
        &mut self,
        row: u32,
        column: usize,
        text: &str,
        look: &Format,
    ) -> Result<(), XlsxError> {
        if !text.is_empty() {
            self.sheet.write_string_with_format(row, to_column(column)?, cell_text(text), look)?;
        }
        Ok(())
    }

    fn number(&mut self, row: u32, column: usize, value: f64) -> Result<(), XlsxError> {
        if value.is_finite() {
            self.sheet.write_number(row, to_column(column)?, value)?;
        }
        Ok(())
    }

    /// A value, coloured where something speaks against it.
    fn value(
        &mut self,
        row: u32,
        column: usize,
        value: f64,
        suspect: bool,
    ) -> Result<(), XlsxError> {
        if suspect && value.is_finite() {
            let look = &self.looks.suspect;
            self.sheet.write_number_with_format(row, to_column(column)?, value, look)?;
            return Ok(());
        }
        self.number(row, column, value)
    }

    /// Cells of one column of this sheet.
    fn range(&self, rows: (u32, u32), column: usize) -> Result<ChartRange, XlsxError> {
        let column = to_column(column)?;
        Ok(ChartRange::new_from_range(self.name, rows.0, column, rows.1, column))
    }

    /// Error bars from the columns "down" and "up".
    fn intervals(&self, rows: (u32, u32), down: usize) -> Result<ChartErrorBars, XlsxError> {
        let (minus, plus) = (self.range(rows, down)?, self.range(rows, down + 1)?);
        let mut bars = ChartErrorBars::new();
        bars.set_type(ChartErrorBarsType::Custom(plus, minus));
        Ok(bars)
    }
}

/// The note, and how suspect values look if there are any.
fn note_of(chart: &Chart) -> String {
    let suspect = match &chart.plot {
        Plot::Bars { series, .. } => {
            let mut values = series.iter().flat_map(|one| &one.values).filter_map(Datum::value);
            values.any(|spread| spread.suspect).then_some("Striped bars are suspect.")
        }
        Plot::Lines { series, .. } => {
            let mut points = series.iter().flat_map(|one| &one.points);
            points.any(|point| point.suspect).then_some("Hollow points are suspect.")
        }
    };
    [chart.note.as_str(), suspect.unwrap_or_default()].join(" ").trim().to_owned()
}

/// From zero, or below, to beyond the highest of these values; left to the program where nothing
/// can be drawn.
fn set_limits(drawn: &mut ChartAxis, axis: &Axis, values: impl Iterator<Item = f64>) {
    if axis.log {
        drawn.set_log_base(10);
    }
    if let Some((low, high)) = limits(axis, values) {
        drawn.set_min(low).set_max(high);
    }
}

fn rgb(colour: Colour) -> Color {
    let Colour(red, green, blue) = colour;
    Color::RGB(u32::from_be_bytes([0, red, green, blue]))
}

fn colour(place: usize) -> Color {
    rgb(colours::series(place))
}
