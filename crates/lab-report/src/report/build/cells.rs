//! Cells of tables: how a number, a ratio, a gap look in every table alike.

use crate::analysis::{Cell as Measured, Outlook, Standing, State};
use crate::report::model::{Cell, Column, Row, Tone};
use crate::report::units::{Scale, digits, ends, interval, is_sane};
use crate::stats::Effect;
use braid_lab::metric::{Better, Metric};
use braid_lab::prediction::NOT_PREDICTED;

/// A cell of words.
pub(crate) fn words(text: impl Into<String>) -> Cell {
    Cell { text: text.into(), ..Cell::default() }
}

/// A cell of words with something smaller under it.
pub(crate) fn words_with(text: impl Into<String>, detail: impl Into<String>) -> Cell {
    Cell { detail: detail.into(), ..words(text) }
}

/// A plain number.
pub(crate) fn number(text: impl Into<String>, number: f64) -> Cell {
    Cell { number: Some(number).filter(|number| number.is_finite()), ..words(text) }
}

/// Nothing, and why.
pub(super) fn missing(why: impl Into<String>) -> Cell {
    Cell { tone: Tone::Missing, ..words_with("—", why) }
}

/// A heading over words.
pub(crate) fn column(heading: impl Into<String>) -> Column {
    Column { heading: heading.into(), numeric: false }
}

/// A heading over numbers.
pub(crate) fn numbers(heading: impl Into<String>) -> Column {
    Column { heading: heading.into(), numeric: true }
}

/// A row that is no total.
pub(crate) fn row(cells: Vec<Cell>) -> Row {
    Row { cells, total: false }
}

/// A heading or a title with its unit.
pub(super) fn in_unit(heading: &str, unit: &str) -> String {
    if unit.is_empty() { heading.to_owned() } else { format!("{heading} [{unit}]") }
}

/// Why a cell has no numbers; empty when it has.
pub(crate) fn why_missing(cell: &Measured) -> String {
    match &cell.state {
        State::Measured => String::new(),
        State::Unsettled(reason) => format!("not settled: {reason}"),
        State::Failed(reason) => format!("failed: {reason}"),
        State::Impossible(reason) if reason.starts_with(NOT_PREDICTED) => reason.clone(),
        State::Impossible(reason) => format!("impossible: {reason}"),
        State::NotYet => "not measured yet".to_owned(),
        State::NotPlanned => "not planned".to_owned(),
    }
}

/// The remark of a table about its percentiles without a number.
pub(super) const UNSUPPORTED: &str = "A percentile is left out where a repetition has fewer than ten \
     requests beyond it: 95 % takes 200, 99 % 1,000, 99.9 % 10,000.";

/// The tone of a standing, or another tone if the number is trusted.
pub(super) fn tone_of(standing: Standing, otherwise: Tone) -> Tone {
    match standing {
        Standing::Ok => otherwise,
        Standing::Suspect => Tone::Suspect,
        Standing::Invalid => Tone::Invalid,
    }
}

/// The median of a metric with the range of its repetitions. An invalid one is shown and has no number
/// behind it, so that no spreadsheet adds it up.
pub(super) fn median(cell: &Measured, metric: Metric, scale: Scale) -> Cell {
    let Some(estimate) = cell.get(metric) else {
        let why = match (why_missing(cell), cell.unsupported.contains(&metric)) {
            (why, _) if !why.is_empty() => why,
            (_, true) => String::new(),
            (_, false) => "the tool does not say".to_owned(),
        };
        return missing(why);
    };
    let text = scale.write(estimate.median);
    if cell.standing == Standing::Invalid {
        return Cell { tone: Tone::Invalid, ..words_with(text, "invalid") };
    }
    Cell {
        detail: ends(estimate, |end| scale.write(end)).unwrap_or_default(),
        ends: (estimate.count > 1).then(|| (scale.apply(estimate.low), scale.apply(estimate.high))),
        tone: tone_of(cell.standing, Tone::Plain),
        ..number(text, scale.apply(estimate.median))
    }
}

/// A ratio, times `scale`, with its 95 % interval; coloured by what it says, as far as both its sides
/// can be believed: `standing` is that of the worse one.
pub(super) fn ratio(
    effect: &Effect,
    scale: f64,
    outlook: Option<Outlook>,
    standing: Standing,
) -> Cell {
    let said = match outlook {
        None => Tone::Plain,
        Some(Outlook::Better) => Tone::Better,
        Some(Outlook::Worse) => Tone::Worse,
        Some(Outlook::Same) => Tone::Same,
    };
    let [value, low, high] = [effect.ratio, effect.low, effect.high].map(|end| end * scale);
    Cell {
        detail: interval(effect, scale).unwrap_or_default(),
        ends: (effect.has_interval() && is_sane(effect)).then_some((low, high)),
        tone: tone_of(standing, said),
        ..number(digits(value), value)
    }
}

/// Which way is better, as a note under a chart.
pub(super) fn note_on_better(metric: Metric) -> String {
    match metric.better() {
        Better::Higher => "More is better.".to_owned(),
        Better::Lower => "Less is better.".to_owned(),
        Better::Neither => String::new(),
    }
}

/// So many in each part that none is nearly empty: nine are five and four.
pub(super) fn evenly(count: usize, most: usize) -> usize {
    count.div_ceil(count.div_ceil(most).max(1)).max(1)
}

/// The unit that suits a metric over some cells.
pub(super) fn scale_of<'c>(cells: impl IntoIterator<Item = &'c Measured>, metric: Metric) -> Scale {
    let medians = cells.into_iter().filter_map(|cell| Some(cell.get(metric)?.median));
    Scale::of(metric, medians.fold(0.0, f64::max))
}
