//! The charts of a section on one sheet, each above the data that it draws.
//!
//! ```text
//! title
//! note
//! [ chart, 20 rows high ]
//! name of x   name of y
//!             series 1   series 2   −       +       −       +
//! category    value      value      down    up      down    up
//! ```

use rust_xlsxwriter::{
    Chart as Drawing, ChartAxisCrossing, ChartEmptyCells, ChartErrorBars, ChartErrorBarsType,
    ChartFormat, ChartLegendPosition, ChartLine, ChartMarker, ChartMarkerType, ChartRange,
    ChartSolidFill, ChartType, Color, ConditionalFormat3ColorScale, Format, Worksheet, XlsxError,
};

use super::cell_text;
use super::looks::Looks;
use crate::report::model::{Axis, BarSeries, Chart, Datum, LineSeries, Plot, Shade, Spread};
use crate::report::render::chart::axis_title;
use crate::report::render::chart::colours::{self, Palette, heat};

/// Rows under a chart, at 20 pixels each.
const CHART_ROWS: u32 = 20;
/// A line with more points has no markers.
const DENSE: usize = 100;

pub(super) fn sheet(
    charts: &[&Chart],
    name: &str,
    palette: &Palette,
    looks: &Looks,
) -> Result<Worksheet, XlsxError> {
    let mut page = Page { sheet: Worksheet::new(), name, looks, row: 0 };
    page.sheet.set_column_width(0, 30)?;
    for column in 1..16 {
        page.sheet.set_column_width(column, 14)?;
    }
    for chart in charts {
        page.text(page.row, 0, &chart.title, &looks.bold)?;
        page.text(page.row + 1, 0, &chart.note, &looks.soft)?;
        let title = page.row;
        page.row += 2;
        match &chart.plot {
            Plot::Bars { axis, categories, series, .. } => {
                page.bars(title, axis, categories, series, palette)?;
            }
            Plot::Lines { x, y, series, .. } => page.lines(title, (x, y), series, palette)?,
            Plot::HeatMap { x, y, columns, rows, values, unit } => {
                page.heat_map((x, y), columns, rows, values, unit)?;
            }
        }
        page.row += 2;
    }
    Ok(page.sheet)
}

struct Page<'a> {
    sheet: Worksheet,
    name: &'a str,
    looks: &'a Looks,
    row: u32,
}

impl Page<'_> {
    fn text(
        &mut self,
        row: u32,
        column: usize,
        text: &str,
        look: &Format,
    ) -> Result<(), XlsxError> {
        if !text.is_empty() {
            self.sheet.write_string_with_format(row, place(column)?, cell_text(text), look)?;
        }
        Ok(())
    }

    fn number(&mut self, row: u32, column: usize, value: f64) -> Result<(), XlsxError> {
        if value.is_finite() {
            self.sheet.write_number(row, place(column)?, value)?;
        }
        Ok(())
    }

    /// Cells of one column of this sheet.
    fn range(&self, rows: (u32, u32), column: usize) -> Result<ChartRange, XlsxError> {
        let column = place(column)?;
        Ok(ChartRange::new_from_range(self.name, rows.0, column, rows.1, column))
    }

    fn bars(
        &mut self,
        title: u32,
        axis: &Axis,
        categories: &[String],
        series: &[BarSeries],
        palette: &Palette,
    ) -> Result<(), XlsxError> {
        let drawn = !categories.is_empty() && !series.is_empty();
        let at = self.row;
        let head = at + if drawn { CHART_ROWS } else { 0 } + 1;
        self.text(head - 1, 1, &axis_title(axis), &self.looks.soft)?;
        let (first, last) = (head + 1, head + categories.len() as u32);
        for (row, name) in (first..).zip(categories) {
            self.text(row, 0, name, &self.looks.plain)?;
        }
        let mut chart = Drawing::new(ChartType::Bar);
        let names: Vec<&str> = series.iter().map(|series| series.name.as_str()).collect();
        for (index, (one, place)) in series.iter().zip(palette.places(&names)).enumerate() {
            let (values, ends) = (1 + index, 1 + series.len() + 2 * index);
            self.text(head, values, &one.name, &self.looks.head_number)?;
            self.text(head, ends, &format!("{} −", one.name), &self.looks.head_number)?;
            self.text(head, ends + 1, &format!("{} +", one.name), &self.looks.head_number)?;
            let mut spreads = false;
            for (row, spread) in (first..=last).zip(&one.values) {
                let Datum::Value(Spread { value, low, high, .. }) = spread else { continue };
                self.number(row, values, *value)?;
                self.number(row, ends, value - low)?;
                self.number(row, ends + 1, high - value)?;
                spreads |= low < high;
            }
            let colour = colour(place);
            let drawing = chart.add_series();
            drawing
                .set_name(&self.range((head, head), values)?)
                .set_categories(&self.range((first, last), 0)?)
                .set_values(&self.range((first, last), values)?)
                .set_format(
                    ChartFormat::new().set_solid_fill(ChartSolidFill::new().set_color(colour)),
                )
                .set_gap(60);
            if spreads {
                // Values of bars that lie on their side are on x here.
                drawing.set_x_error_bars(&self.intervals((first, last), ends)?);
            }
        }
        if drawn {
            // Of bars that lie on their side y are the categories, the first on top; the values
            // stay below.
            chart.y_axis().set_reverse().set_crossing(ChartAxisCrossing::Max);
            let values = chart.x_axis();
            values.set_name(&self.range((head - 1, head - 1), 1)?);
            if axis.log {
                values.set_log_base(10);
            }
            self.place_chart(&mut chart, at, title)?;
        }
        self.row = last + 1;
        Ok(())
    }

    fn lines(
        &mut self,
        title: u32,
        (x, y): (&Axis, &Axis),
        series: &[LineSeries],
        palette: &Palette,
    ) -> Result<(), XlsxError> {
        let longest = series.iter().map(|series| series.points.len()).max().unwrap_or(0);
        let at = self.row;
        let head = at + if longest > 0 { CHART_ROWS } else { 0 } + 1;
        self.text(head - 1, 0, &axis_title(x), &self.looks.soft)?;
        self.text(head - 1, 1, &axis_title(y), &self.looks.soft)?;
        let mut chart = Drawing::new(ChartType::ScatterStraight);
        let names: Vec<&str> = series.iter().map(|series| series.name.as_str()).collect();
        for (index, (one, place)) in series.iter().zip(palette.places(&names)).enumerate() {
            // x, y, down, up
            let column = index * 4;
            self.text(head, column, &x.label, &self.looks.head)?;
            self.text(head, column + 1, &one.name, &self.looks.head_number)?;
            let intervals = one.points.iter().any(|point| point.interval.is_some());
            if intervals {
                self.text(head, column + 2, "−", &self.looks.head_number)?;
                self.text(head, column + 3, "+", &self.looks.head_number)?;
            }
            for (row, point) in (head + 1..).zip(&one.points) {
                self.number(row, column, point.x)?;
                self.number(row, column + 1, point.y)?;
                if let Some((low, high)) = point.interval {
                    self.number(row, column + 2, point.y - low)?;
                    self.number(row, column + 3, high - point.y)?;
                }
            }
            if one.points.is_empty() {
                continue;
            }
            let rows = (head + 1, head + one.points.len() as u32);
            let drawing = chart.add_series();
            drawing
                .set_name(&self.range((head, head), column + 1)?)
                .set_categories(&self.range(rows, column)?)
                .set_values(&self.range(rows, column + 1)?)
                .set_format(
                    ChartFormat::new()
                        .set_line(ChartLine::new().set_color(colour(place)).set_width(1.75)),
                )
                .set_marker(&marker(place, one.points.len()));
            if intervals && one.points.len() <= DENSE {
                drawing.set_y_error_bars(&self.intervals(rows, column + 2)?);
            }
        }
        if longest > 0 {
            chart.show_empty_cells_as(ChartEmptyCells::Gaps);
            chart.x_axis().set_name(&self.range((head - 1, head - 1), 0)?);
            chart.y_axis().set_name(&self.range((head - 1, head - 1), 1)?);
            if x.log {
                chart.x_axis().set_log_base(10);
            }
            if y.log {
                chart.y_axis().set_log_base(10);
            }
            self.place_chart(&mut chart, at, title)?;
        }
        self.row = head + 1 + longest as u32;
        Ok(())
    }

    /// Error bars from the columns "down" and "up".
    fn intervals(&self, rows: (u32, u32), down: usize) -> Result<ChartErrorBars, XlsxError> {
        let (minus, plus) = (self.range(rows, down)?, self.range(rows, down + 1)?);
        let mut bars = ChartErrorBars::new();
        bars.set_type(ChartErrorBarsType::Custom(plus, minus));
        Ok(bars)
    }

    fn place_chart(&mut self, chart: &mut Drawing, row: u32, title: u32) -> Result<(), XlsxError> {
        chart.title().set_name(&self.range((title, title), 0)?);
        chart.legend().set_position(ChartLegendPosition::Bottom);
        chart.set_width(900).set_height((CHART_ROWS - 1) * 20);
        self.sheet.insert_chart(row, 0, chart)?;
        Ok(())
    }

    fn heat_map(
        &mut self,
        (x, y): (&str, &str),
        columns: &[String],
        rows: &[String],
        values: &[Vec<Datum<Shade>>],
        unit: &str,
    ) -> Result<(), XlsxError> {
        let head = self.row;
        self.text(head, 0, &format!("{y} \\ {x} ({unit})"), &self.looks.head)?;
        for (column, name) in columns.iter().enumerate() {
            self.text(head, column + 1, name, &self.looks.head_number)?;
        }
        for (index, name) in rows.iter().enumerate() {
            let row = head + 1 + index as u32;
            self.text(row, 0, name, &self.looks.plain)?;
            let cells = values.get(index).into_iter().flatten().take(columns.len());
            for (column, value) in cells.enumerate() {
                self.number(row, column + 1, value.value().map_or(f64::NAN, |shade| shade.value))?;
            }
        }
        if !columns.is_empty() && !rows.is_empty() {
            let scale = ConditionalFormat3ColorScale::new()
                .set_minimum_color(rgb(heat(0.0)))
                .set_midpoint_color(rgb(heat(0.5)))
                .set_maximum_color(rgb(heat(0.8)));
            let (last_row, last_column) = (head + rows.len() as u32, place(columns.len())?);
            self.sheet.add_conditional_format(head + 1, 1, last_row, last_column, &scale)?;
        }
        self.row = head + 1 + rows.len() as u32;
        Ok(())
    }
}

fn place(column: usize) -> Result<u16, XlsxError> {
    u16::try_from(column).map_err(|_| XlsxError::RowColumnLimitError)
}

fn rgb(colour: plotters::style::RGBColor) -> Color {
    let plotters::style::RGBColor(red, green, blue) = colour;
    Color::RGB(u32::from_be_bytes([0, red, green, blue]))
}

fn colour(place: usize) -> Color {
    rgb(colours::series(place))
}

fn marker(place: usize, points: usize) -> ChartMarker {
    use ChartMarkerType::{Circle, Diamond, PlusSign, Square, Star, Triangle, X};
    let mut marker = ChartMarker::new();
    if points > DENSE {
        marker.set_none();
        return marker;
    }
    let order = [Circle, Square, Triangle, Diamond, X, Star, PlusSign];
    let line = ChartLine::new().set_color(colour(place)).clone();
    let fill = ChartSolidFill::new().set_color(colour(place)).clone();
    marker
        .set_type(order[place % order.len()])
        .set_size(6)
        .set_format(ChartFormat::new().set_solid_fill(&fill).set_line(&line));
    marker
}
