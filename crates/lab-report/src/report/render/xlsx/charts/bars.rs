//! Bars over their data.

use rust_xlsxwriter::{
    Chart as Drawing, ChartAxisCrossing, ChartFormat, ChartLine, ChartPatternFill,
    ChartPatternFillType, ChartPoint, ChartSolidFill, ChartType, Color, XlsxError,
};

use super::{Page, colour, rgb, set_limits};
use crate::report::model::{Axis, BarSeries, Datum, Spread};
use crate::report::render::chart::colours::{SOFT, is_light};
use crate::report::render::chart::{axis_title, value_text};

impl Page<'_> {
    /// Writes the data and draws it, if there is any.
    pub(super) fn bars(
        &mut self,
        title: u32,
        axis: &Axis,
        categories: &[String],
        series: &[BarSeries],
        mark: Option<f64>,
    ) -> Result<Option<Drawing>, XlsxError> {
        // Categories, values, the mark, down and up.
        let place = self.room(title, 2 + 3 * series.len());
        let (head, first, column) = (place.head(), place.first(), place.column);
        let last = (first + categories.len() as u32).saturating_sub(1).max(first);
        self.text(place.row, column + 1, &axis_title(axis), &self.looks.soft)?;
        for (row, name) in (first..).zip(categories) {
            self.text(row, column, name, &self.looks.plain)?;
        }
        let mut chart = Drawing::new(ChartType::Bar);
        let names: Vec<&str> = series.iter().map(|series| series.name.as_str()).collect();
        for (index, (one, looks)) in series.iter().zip(self.palette.places(&names)).enumerate() {
            // The mark is right of the values.
            let (values, ends) = (column + 1 + index, column + 2 + series.len() + 2 * index);
            self.text(head, values, &one.name, &self.looks.head_number)?;
            self.text(head, ends, &format!("{} −", one.name), &self.looks.head_number)?;
            self.text(head, ends + 1, &format!("{} +", one.name), &self.looks.head_number)?;
            for (row, value) in (first..=last).zip(&one.values) {
                match value {
                    Datum::Value(Spread { value, low, high, suspect, .. }) => {
                        self.value(row, values, *value, *suspect)?;
                        self.number(row, ends, value - low)?;
                        self.number(row, ends + 1, high - value)?;
                    }
                    Datum::Gap(gap) => self.text(row, values, gap.words(), &self.looks.soft)?,
                }
            }
            let drawing = chart.add_series();
            drawing
                .set_name(&self.range((head, head), values)?)
                .set_categories(&self.range((first, last), column)?)
                .set_values(&self.range((first, last), values)?)
                .set_format(&mut fill(looks))
                .set_gap(60);
            if one.values.iter().filter_map(Datum::value).any(|spread| spread.suspect) {
                drawing.set_points(&points(one, looks));
            }
            if one.values.iter().filter_map(Datum::value).any(|spread| spread.low < spread.high) {
                // Values of bars that lie on their side are on x here.
                drawing.set_x_error_bars(&self.intervals((first, last), ends)?);
            }
        }
        if categories.is_empty() || series.is_empty() {
            return Ok(None);
        }
        let mark = mark.filter(|mark| mark.is_finite());
        if let Some(mark) = mark {
            // What the others are compared with is a bar of its own in each group.
            let values = column + 1 + series.len();
            let name = format!("{} {}", value_text(mark), axis.unit);
            self.text(head, values, name.trim(), &self.looks.head_number)?;
            for row in first..=last {
                self.number(row, values, mark)?;
            }
            chart
                .add_series()
                .set_name(&self.range((head, head), values)?)
                .set_categories(&self.range((first, last), column)?)
                .set_values(&self.range((first, last), values)?)
                .set_format(
                    ChartFormat::new().set_solid_fill(solid(rgb(SOFT)).set_transparency(60)),
                );
        }
        // Of bars that lie on their side y are the categories, the first on top; the values stay
        // below.
        chart.y_axis().set_reverse().set_crossing(ChartAxisCrossing::Max);
        chart.x_axis().set_name(&self.range((place.row, place.row), column + 1)?);
        let spreads = series.iter().flat_map(|one| &one.values).filter_map(Datum::value);
        let ends = spreads.flat_map(|spread| [spread.value, spread.low, spread.high]).chain(mark);
        set_limits(chart.x_axis(), axis, ends);
        Ok(Some(chart))
    }
}

fn solid(colour: Color) -> ChartSolidFill {
    ChartSolidFill::new().set_color(colour).clone()
}

fn fill(place: usize) -> ChartFormat {
    let mut fill = solid(colour(place));
    if is_light(place) {
        fill.set_transparency(70);
    }
    let mut format = ChartFormat::new();
    format.set_solid_fill(&fill).set_border(ChartLine::new().set_color(colour(place)));
    format
}

/// The looks of each bar where some are suspect.
fn points(series: &BarSeries, place: usize) -> Vec<ChartPoint> {
    let striped = || {
        let mut format = ChartFormat::new();
        let mut pattern = ChartPatternFill::new();
        pattern
            .set_pattern(ChartPatternFillType::DiagonalStripesWideUpwards)
            .set_foreground_color(colour(place))
            .set_background_color(Color::White);
        format.set_pattern_fill(&pattern).set_border(ChartLine::new().set_color(colour(place)));
        ChartPoint::new().set_format(&mut format)
    };
    let look = |value: &Datum<Spread>| match value {
        Datum::Value(spread) if spread.suspect => striped(),
        _ => ChartPoint::new(),
    };
    series.values.iter().map(look).collect()
}
