//! Native charts, and the sheet of the numbers that they draw.
//!
//! ```text
//! title
//! x axis    y axis
//!           series 1                    series 2
//! place     value      −     +   place  value     −     +     (the next chart's, further right)
//! ```
//!
//! Invariant: an axis of values begins at zero and holds every interval, because a program that
//! chooses the ends itself makes much of little.

use rust_xlsxwriter::{
    Chart as Drawing, ChartAxisCrossing, ChartErrorBars, ChartErrorBarsType, ChartFormat,
    ChartLegendPosition, ChartLine, ChartLineDashType, ChartMarker, ChartRange, ChartSolidFill,
    ChartType, Worksheet, XlsxError,
};

use super::looks::Looks;
use super::text::cell_text;
use crate::report::model::{Chart, Point, Series, Shape};
use crate::report::render::chart::colours::{Palette, SOFT, series as colour_of};
use crate::report::render::chart::{axis_title, limits, value_text};

/// The sheet of the numbers.
const SHEET: &str = "chart data";
/// The rows of a chart's title, of its axes, of the names of the series, and the first of the values.
const TITLE: u32 = 0;
const AXES: u32 = 1;
const NAMES: u32 = 2;
const FIRST: u32 = 3;
/// Columns of a series.
const WIDE: u16 = 4;
/// A line with more points has no markers and no intervals.
const DENSE: usize = 100;

pub(super) struct Charts<'a> {
    sheet: Worksheet,
    palette: Palette,
    looks: &'a Looks,
    /// The next free column.
    column: u16,
}

impl<'a> Charts<'a> {
    /// An empty sheet.
    pub(super) fn new(palette: Palette, looks: &'a Looks) -> Result<Self, XlsxError> {
        let mut sheet = Worksheet::new();
        sheet.set_name(SHEET)?;
        Ok(Self { sheet, palette, looks, column: 0 })
    }

    /// The sheet, if a chart was drawn.
    pub(super) fn finish(self) -> Option<Worksheet> {
        (self.column > 0).then_some(self.sheet)
    }

    /// Writes the numbers and draws them; `None` of nothing.
    pub(super) fn draw(&mut self, chart: &Chart) -> Result<Option<Drawing>, XlsxError> {
        let ends = || chart.points().flat_map(Point::reach).chain(chart.mark);
        let Some((low, high)) = limits(&chart.y, ends()) else { return Ok(None) };
        let first = self.column;
        let has_places = chart.shape != Shape::Bars;
        let mut drawing = Drawing::new(match chart.shape {
            Shape::Bars => ChartType::Bar,
            Shape::Lines => ChartType::ScatterStraight,
            Shape::Marks => ChartType::Scatter,
        });
        self.text(TITLE, first, &chart.title)?;
        self.text(AXES, first, &axis_title(&chart.x))?;
        self.text(AXES, first + 1, &axis_title(&chart.y))?;
        let names = chart.series.iter().map(|series| series.name.as_str());
        let mut is_empty = true;
        for (one, place) in chart.series.iter().zip(self.palette.places(names)) {
            is_empty &= !self.series(&mut drawing, chart, one, Some(colour_of(place)))?;
        }
        if is_empty {
            return Ok(None);
        }
        for one in marks(chart, (low, high)) {
            self.series(&mut drawing, chart, &one, None)?;
        }
        let values = if has_places { drawing.y_axis() } else { drawing.x_axis() };
        values.set_name(&range((AXES, AXES), first + 1)).set_min(low).set_max(high);
        if chart.y.log {
            values.set_log_base(10);
        }
        if has_places {
            drawing.x_axis().set_name(&range((AXES, AXES), first));
            if chart.x.log {
                drawing.x_axis().set_log_base(10);
            }
        } else {
            // Of bars that lie on their side y are the categories, the first on top; the values stay
            // below.
            drawing.y_axis().set_reverse().set_crossing(ChartAxisCrossing::Max);
        }
        drawing.title().set_name(&range((TITLE, TITLE), first));
        drawing.legend().set_position(ChartLegendPosition::Bottom);
        drawing.set_width(900).set_height(380);
        self.column = self.column.checked_add(1).ok_or(XlsxError::RowColumnLimitError)?;
        Ok(Some(drawing))
    }

    /// A series in its colour, or, without one, what is drawn over others; says whether there is anything
    /// of it.
    fn series(
        &mut self,
        drawing: &mut Drawing,
        chart: &Chart,
        one: &Series,
        colour: Option<&str>,
    ) -> Result<bool, XlsxError> {
        let column = self.column;
        self.column = column.checked_add(WIDE).ok_or(XlsxError::RowColumnLimitError)?;
        self.text(NAMES, column + 1, &one.name)?;
        self.text(NAMES, column + 2, "−")?;
        self.text(NAMES, column + 3, "+")?;
        let mut rows = FIRST;
        if chart.shape == Shape::Bars {
            for (row, (place, name)) in (FIRST..).zip(&chart.x.ticks) {
                self.text(row, column, name)?;
                if let Some(point) = one.points.iter().find(|point| point.x == *place) {
                    self.point(row, column, point)?;
                }
                rows = row + 1;
            }
        } else {
            for (row, point) in (FIRST..).zip(&one.points) {
                self.number(row, column, point.x)?;
                self.point(row, column, point)?;
                rows = row + 1;
            }
        }
        if rows == FIRST {
            return Ok(false);
        }
        let rows = (FIRST, rows - 1);
        let is_dense = one.points.len() > DENSE;
        let mut line = ChartLine::new();
        line.set_color(colour.unwrap_or(SOFT)).set_width(1.75);
        let mut format = ChartFormat::new();
        let mut marker = ChartMarker::new();
        if colour.is_none() {
            line.set_dash_type(ChartLineDashType::Dash);
        }
        if colour.is_none() || is_dense {
            marker.set_none();
        }
        match chart.shape {
            Shape::Bars => {
                let fill = ChartSolidFill::new().set_color(colour.unwrap_or(SOFT)).clone();
                format.set_solid_fill(&fill);
            }
            Shape::Lines => {
                format.set_line(&line);
            }
            // A mark over the whole chart is drawn as a line.
            Shape::Marks if colour.is_none() => {
                format.set_line(&line);
            }
            Shape::Marks => {}
        }
        let drawn = drawing.add_series();
        drawn
            .set_name(&range((NAMES, NAMES), column + 1))
            .set_categories(&range(rows, column))
            .set_values(&range(rows, column + 1))
            .set_format(&mut format)
            .set_marker(&marker);
        if !is_dense && one.points.iter().any(|point| point.interval.is_some()) {
            let (down, up) = (range(rows, column + 2), range(rows, column + 3));
            let mut bars = ChartErrorBars::new();
            bars.set_type(ChartErrorBarsType::Custom(up, down));
            match chart.shape {
                // Values of bars that lie on their side are on x here.
                Shape::Bars => drawn.set_x_error_bars(&bars),
                Shape::Lines | Shape::Marks => drawn.set_y_error_bars(&bars),
            };
        }
        Ok(true)
    }

    /// The value of a point, coloured where something speaks against it, and how far its interval is
    /// from it.
    fn point(&mut self, row: u32, column: u16, point: &Point) -> Result<(), XlsxError> {
        self.number(row, column + 1, point.y)?;
        if point.suspect {
            self.sheet.set_cell_format(row, column + 1, &self.looks.suspect)?;
        }
        if let Some((low, high)) = point.interval {
            self.number(row, column + 2, point.y - low)?;
            self.number(row, column + 3, high - point.y)?;
        }
        Ok(())
    }

    fn text(&mut self, row: u32, column: u16, text: &str) -> Result<(), XlsxError> {
        if !text.is_empty() {
            self.sheet.write_string(row, column, cell_text(text))?;
        }
        Ok(())
    }

    fn number(&mut self, row: u32, column: u16, value: f64) -> Result<(), XlsxError> {
        if value.is_finite() {
            self.sheet.write_number(row, column, value)?;
        }
        Ok(())
    }
}

/// Draws over the series: the mark in each group of bars, and the named moments, from the lowest value to the
/// highest.
fn marks(chart: &Chart, (low, high): (f64, f64)) -> Vec<Series> {
    let point = |x: f64, y: f64| Point { x, y, ..Point::default() };
    let mark = chart.mark.filter(|mark| mark.is_finite() && chart.shape == Shape::Bars);
    let mark = mark.map(|mark| Series {
        name: format!("{} {}", value_text(mark), chart.y.unit).trim().to_owned(),
        points: chart.x.ticks.iter().map(|(x, _)| point(*x, mark)).collect(),
    });
    let events = chart.events.iter().filter(|event| event.x.is_finite() && event.x.abs() < 1e300);
    let events = events.map(|event| Series {
        name: format!("{} at {} {}", event.label, value_text(event.x), chart.x.unit),
        points: vec![point(event.x, low), point(event.x, high)],
    });
    mark.into_iter().chain(events).collect()
}

/// Cells of one column of the numbers.
fn range(rows: (u32, u32), column: u16) -> ChartRange {
    ChartRange::new_from_range(SHEET, rows.0, column, rows.1, column)
}
