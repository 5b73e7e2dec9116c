//! Cells of tables: how a number, a percent, a gap look in every table alike.

use crate::analysis::{Cell as Measured, Outlook, Standing, State};
use crate::report::model::{Cell, Column, Datum, Gap, Row, Spread, Tone};
use crate::report::units::{Scale, digits, ends, span};
use crate::stats::Effect;
use braid_lab::metric::{Better, Metric};

/// A cell of words.
pub(super) fn words(text: impl Into<String>) -> Cell {
    Cell { text: text.into(), ..Cell::default() }
}

/// A cell of words with something smaller under it.
pub(super) fn words_with(text: impl Into<String>, detail: impl Into<String>) -> Cell {
    Cell { text: text.into(), detail: detail.into(), ..Cell::default() }
}

/// A plain number.
pub(super) fn number(text: impl Into<String>, number: f64) -> Cell {
    let number = number.is_finite().then_some(number);
    Cell { text: text.into(), number, ..Cell::default() }
}

/// A count.
pub(super) fn count(count: usize) -> Cell {
    number(count.to_string(), count as f64)
}

/// Nothing, and why.
pub(super) fn missing(why: impl Into<String>) -> Cell {
    Cell { text: "—".to_owned(), detail: why.into(), tone: Tone::Missing, ..Cell::default() }
}

/// A heading over words.
pub(super) fn column(heading: impl Into<String>) -> Column {
    Column { heading: heading.into(), numeric: false }
}

/// A heading over numbers.
pub(super) fn numbers(heading: impl Into<String>) -> Column {
    Column { heading: heading.into(), numeric: true }
}

/// A heading over numbers with their unit.
pub(super) fn numbers_in(heading: &str, unit: &str) -> Column {
    numbers(if unit.is_empty() { heading.to_owned() } else { format!("{heading} [{unit}]") })
}

/// A row that is no total.
pub(super) fn row(cells: Vec<Cell>) -> Row {
    Row { cells, total: false }
}

/// Why a cell has no numbers; empty when it has.
pub(crate) fn why_missing(cell: &Measured) -> String {
    match &cell.state {
        State::Measured => String::new(),
        State::Unsettled(reason) => format!("not settled: {reason}"),
        State::Failed(reason) => format!("failed: {reason}"),
        State::Impossible(reason) => format!("impossible: {reason}"),
        State::NotYet => "not measured yet".to_owned(),
        State::NotPlanned => "not planned".to_owned(),
    }
}

/// What a table says of its percentiles that have no number.
pub(super) const UNSUPPORTED: &str = "A percentile is left out where a repetition has fewer than ten \
     requests beyond it: 95 % takes 200, 99 % 1,000, 99.9 % 10,000.";

/// What a standing looks like over a tone that it leaves alone.
pub(super) fn tone_of(standing: Standing, otherwise: Tone) -> Tone {
    match standing {
        Standing::Ok => otherwise,
        Standing::Suspect => Tone::Suspect,
        Standing::Invalid => Tone::Invalid,
    }
}

/// The median of a metric with the range of its repetitions. An invalid one is shown and has no number behind it,
/// so that no spreadsheet adds it up.
pub(super) fn median(cell: &Measured, metric: Metric, scale: Scale) -> Cell {
    let Some(estimate) = cell.get(metric) else {
        let why = match (why_missing(cell), cell.unsupported.contains(&metric)) {
            (why, _) if !why.is_empty() => why,
            (_, true) => String::new(),
            (_, false) => "the tool does not say".to_owned(),
        };
        return missing(why);
    };
    let value = scale.apply(estimate.median);
    Cell {
        text: scale.write(estimate.median),
        detail: match cell.standing {
            Standing::Invalid => "invalid".to_owned(),
            _ => ends(estimate, |end| scale.write(end)).unwrap_or_default(),
        },
        number: (cell.standing != Standing::Invalid && value.is_finite()).then_some(value),
        ends: (estimate.count > 1 && cell.standing != Standing::Invalid)
            .then(|| (scale.apply(estimate.low), scale.apply(estimate.high))),
        tone: tone_of(cell.standing, Tone::Plain),
        strength: 0.0,
    }
}

/// What an outlook looks like.
pub(super) fn tone_of_outlook(outlook: Outlook) -> Tone {
    match outlook {
        Outlook::Better => Tone::Better,
        Outlook::Worse => Tone::Worse,
        Outlook::Same => Tone::Same,
    }
}

/// A ratio of two numbers in percent with its 95 % interval, coloured by what the comparison of the
/// two subjects says, as far as both its sides can be believed: `standing` is that of the worse one.
pub(super) fn percent(ratio: &Effect, outlook: Option<Outlook>, standing: Standing) -> Cell {
    let tone = tone_of(standing, outlook.map_or(Tone::Plain, tone_of_outlook));
    let [value, low, high] = [ratio.ratio, ratio.low, ratio.high].map(|ratio| ratio * 100.0);
    let is_used = standing != Standing::Invalid;
    Cell {
        text: digits(value),
        detail: match ratio.has_interval() {
            true => span(&digits(low), &digits(high)),
            false => String::new(),
        },
        number: is_used.then_some(value),
        ends: (is_used && ratio.has_interval()).then_some((low, high)),
        strength: match tone {
            Tone::Better | Tone::Worse => strength(value),
            _ => 0.0,
        },
        tone,
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

/// So many in each chart that none is nearly empty: nine lines are five and four.
pub(super) fn evenly(count: usize, most: usize) -> usize {
    count.div_ceil(count.div_ceil(most).max(1)).max(1)
}

/// How far a percent is from 100, so that half and twice are equally strong: 1 from there on.
pub(super) fn strength(percent: f64) -> f64 {
    if percent <= 0.0 {
        return 1.0;
    }
    ((percent / 100.0).log2().abs()).min(1.0)
}

/// A metric of a cell for a chart.
pub(super) fn datum(cell: &Measured, metric: Metric, scale: Scale) -> Datum<Spread> {
    let (Some(estimate), true) = (cell.get(metric), cell.is_usable()) else {
        return Datum::Gap(gap(cell, metric));
    };
    let points = cell.values.get(&metric).into_iter().flat_map(|values| values.values());
    let [value, low, high] =
        [estimate.median, estimate.low, estimate.high].map(|value| scale.apply(value));
    if ![value, low, high].iter().all(|value| value.is_finite()) {
        return Datum::Gap(Gap::Invalid);
    }
    let points = points.map(|value| scale.apply(*value)).collect();
    Datum::Value(Spread { value, low, high, points, suspect: is_suspect(cell) })
}

/// Whether something speaks against the numbers of a cell.
pub(super) fn is_suspect(cell: &Measured) -> bool {
    cell.standing == Standing::Suspect
}

/// Why a chart has no value for a cell.
pub(super) fn gap(cell: &Measured, metric: Metric) -> Gap {
    match &cell.state {
        State::Measured if cell.standing == Standing::Invalid => Gap::Invalid,
        State::Measured if cell.unsupported.contains(&metric) => Gap::Unsupported,
        State::Measured => Gap::NotGiven,
        State::Unsettled(_) => Gap::Unsettled,
        State::Failed(_) => Gap::Failed,
        State::Impossible(_) => Gap::Impossible,
        State::NotYet => Gap::NotMeasured,
        State::NotPlanned => Gap::NotPlanned,
    }
}

/// The unit that suits a metric over some cells.
pub(super) fn scale_of<'c>(cells: impl IntoIterator<Item = &'c Measured>, metric: Metric) -> Scale {
    let medians = cells.into_iter().filter_map(|cell| Some(cell.get(metric)?.median));
    Scale::of(metric, medians.fold(0.0, f64::max))
}
