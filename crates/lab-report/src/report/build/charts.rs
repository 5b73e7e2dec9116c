//! Charts: how axes, effects and numbers look in every chart alike.

use super::cells::evenly;
use crate::analysis::{Cell, Standing};
use crate::report::model::{Axis, Block, Chart, Point, Series, Shape};
use crate::report::units::{Scale, is_sane};
use crate::stats::Effect;
use braid_lab::metric::Metric;

/// Most lines or bars of a chart, as many as have a look of their own.
pub(super) const MOST_SERIES: usize = 8;

pub(super) fn axis(label: &str, unit: &str) -> Axis {
    Axis { label: label.to_owned(), unit: unit.to_owned(), ..Axis::default() }
}

/// Bars in these groups; their points are at 0, 1, 2 and so on. `None` where no bar is to be drawn.
pub(super) fn bars(
    title: &str,
    groups: impl Iterator<Item = String>,
    y: Axis,
    series: Vec<Series>,
) -> Option<Chart> {
    let ticks = (0..).map(f64::from).zip(groups).collect();
    let chart = Chart {
        title: title.to_owned(),
        x: Axis { ticks, ..Axis::default() },
        y,
        series,
        ..Chart::default()
    };
    let is_empty = chart.points().next().is_none();
    (!is_empty).then_some(chart)
}

/// Lines over `x`, in as many charts as it takes; none of nothing.
pub(super) fn lines(
    id: &str,
    title: &str,
    note: &str,
    axes: (Axis, Axis),
    series: &[Series],
) -> Vec<Block> {
    let parts = series.chunks(evenly(series.len(), MOST_SERIES));
    let chart = |part: &[Series]| {
        Block::Chart(Chart {
            id: id.to_owned(),
            title: title.to_owned(),
            note: note.to_owned(),
            shape: Shape::Lines,
            x: axes.0.clone(),
            y: axes.1.clone(),
            series: part.to_vec(),
            ..Chart::default()
        })
    };
    parts.map(chart).collect()
}

/// The speed ratio as a point.
pub(super) fn of_effect(x: f64, effect: &Effect, standing: Standing) -> Point {
    Point {
        x,
        y: effect.ratio,
        interval: (effect.has_interval() && is_sane(effect)).then_some((effect.low, effect.high)),
        suspect: standing != Standing::Ok,
    }
}

/// The median of a metric with the range of its repetitions; `None` of what may not be used.
pub(super) fn of_cell(x: f64, cell: &Cell, metric: Metric, scale: Scale) -> Option<Point> {
    let estimate = cell.get(metric).filter(|_| cell.is_usable())?;
    let [y, low, high] =
        [estimate.median, estimate.low, estimate.high].map(|value| scale.apply(value));
    [y, low, high].iter().all(|value| value.is_finite()).then(|| Point {
        x,
        y,
        interval: (estimate.count > 1).then_some((low, high)),
        suspect: is_suspect(cell),
    })
}

/// True if there is a reason to doubt the numbers of a cell.
pub(super) fn is_suspect(cell: &Cell) -> bool {
    cell.standing == Standing::Suspect
}
