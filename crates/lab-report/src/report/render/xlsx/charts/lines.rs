//! Lines over their data, with the moments that have a name.

use rust_xlsxwriter::{
    Chart as Drawing, ChartEmptyCells, ChartFormat, ChartLine, ChartLineDashType, ChartMarker,
    ChartMarkerType, ChartPoint, ChartSolidFill, ChartType, Color, XlsxError,
};

use super::{Page, Place, colour, rgb, set_limits};
use crate::report::model::{Axis, Event, LineSeries};
use crate::report::render::chart::colours::SOFT;
use crate::report::render::chart::{axis_title, limits, value_text};

/// A line with more points has no markers.
const DENSE: usize = 100;

impl Page<'_> {
    /// Writes the data and draws it, if there is any.
    pub(super) fn lines(
        &mut self,
        title: u32,
        (x, y): (&Axis, &Axis),
        series: &[LineSeries],
        events: &[Event],
    ) -> Result<Option<Drawing>, XlsxError> {
        let longest = series.iter().map(|series| series.points.len()).max().unwrap_or(0);
        let place = self.room(title, 2 * (series.len() + events.len()));
        self.text(place.row, place.column, &axis_title(x), &self.looks.soft)?;
        self.text(place.row, place.column + 1, &axis_title(y), &self.looks.soft)?;
        let mut chart = Drawing::new(ChartType::ScatterStraight);
        let names: Vec<&str> = series.iter().map(|series| series.name.as_str()).collect();
        for (index, (one, looks)) in series.iter().zip(self.palette.places(&names)).enumerate() {
            self.line(&mut chart, place, 2 * index, (one, looks), x)?;
        }
        if longest == 0 {
            return Ok(None);
        }
        let ends = || {
            let points = series.iter().flat_map(|one| &one.points);
            points.flat_map(|point| {
                let (low, high) = point.interval.unwrap_or((point.y, point.y));
                [point.y, low, high]
            })
        };
        if let Some(height) = limits(y, ends()) {
            for (index, event) in events.iter().enumerate() {
                self.event(&mut chart, place, 2 * (series.len() + index), (event, x), height)?;
            }
        }
        chart.show_empty_cells_as(ChartEmptyCells::Gaps);
        chart.x_axis().set_name(&self.range((place.row, place.row), place.column)?);
        chart.y_axis().set_name(&self.range((place.row, place.row), place.column + 1)?);
        if x.log {
            chart.x_axis().set_log_base(10);
        }
        set_limits(chart.y_axis(), y, ends());
        Ok(Some(chart))
    }

    fn line(
        &mut self,
        chart: &mut Drawing,
        place: Place,
        offset: usize,
        (one, looks): (&LineSeries, usize),
        x: &Axis,
    ) -> Result<(), XlsxError> {
        let (head, first, column) = (place.head(), place.first(), place.column + offset);
        self.text(head, column, &x.label, &self.looks.head)?;
        self.text(head, column + 1, &one.name, &self.looks.head_number)?;
        for (row, point) in (first..).zip(&one.points) {
            self.number(row, column, point.x)?;
            self.value(row, column + 1, point.y, point.suspect)?;
        }
        if one.points.is_empty() {
            return Ok(());
        }
        let rows = (first, first + one.points.len() as u32 - 1);
        let line = ChartLine::new().set_color(colour(looks)).set_width(1.75).clone();
        let drawing = chart.add_series();
        drawing
            .set_name(&self.range((head, head), column + 1)?)
            .set_categories(&self.range(rows, column)?)
            .set_values(&self.range(rows, column + 1)?)
            .set_format(ChartFormat::new().set_line(&line))
            .set_marker(&marker(looks, one.points.len()));
        if one.points.iter().any(|point| point.suspect) && one.points.len() <= DENSE {
            drawing.set_points(&points(one, looks));
        }
        Ok(())
    }

    /// A line from the lowest to the highest value at a moment, with its name in the legend.
    fn event(
        &mut self,
        chart: &mut Drawing,
        place: Place,
        offset: usize,
        (event, x): (&Event, &Axis),
        (low, high): (f64, f64),
    ) -> Result<(), XlsxError> {
        if !event.x.is_finite() || event.x.abs() > 1e300 {
            return Ok(());
        }
        let (head, first, column) = (place.head(), place.first(), place.column + offset);
        let name = format!("{} at {} {}", event.label, value_text(event.x), x.unit);
        self.text(head, column + 1, name.trim(), &self.looks.head_number)?;
        for (row, y) in [(first, low), (first + 1, high)] {
            self.number(row, column, event.x)?;
            self.number(row, column + 1, y)?;
        }
        let mut line = ChartLine::new();
        line.set_color(rgb(SOFT)).set_width(1.25).set_dash_type(ChartLineDashType::Dash);
        let mut marker = ChartMarker::new();
        marker.set_none();
        chart
            .add_series()
            .set_name(&self.range((head, head), column + 1)?)
            .set_categories(&self.range((first, first + 1), column)?)
            .set_values(&self.range((first, first + 1), column + 1)?)
            .set_format(ChartFormat::new().set_line(&line))
            .set_marker(&marker);
        Ok(())
    }
}

fn marker(place: usize, points: usize) -> ChartMarker {
    use ChartMarkerType::{Circle, Diamond, PlusSign, Square, Star, Triangle, X};
    let mut marker = ChartMarker::new();
    if points > DENSE {
        marker.set_none();
        return marker;
    }
    let order = [Circle, Square, Triangle, Diamond, X, Star, PlusSign];
    marker.set_type(order[place % order.len()]).set_size(6).set_format(&mut inside(place, false));
    marker
}

/// The looks of each point where some are suspect.
fn points(series: &LineSeries, place: usize) -> Vec<ChartPoint> {
    let look = |suspect| match suspect {
        true => ChartPoint::new().set_format(&mut inside(place, true)),
        false => ChartPoint::new(),
    };
    series.points.iter().map(|point| look(point.suspect)).collect()
}

fn inside(place: usize, hollow: bool) -> ChartFormat {
    let inner = if hollow { Color::White } else { colour(place) };
    let mut format = ChartFormat::new();
    format
        .set_solid_fill(ChartSolidFill::new().set_color(inner))
        .set_line(ChartLine::new().set_color(colour(place)));
    format
}
