//! From values to places: the range of an axis, its ticks and their texts.

use crate::report::model::Axis;

/// No axis gets more ticks than this, whatever its range.
const MOST_TICKS: usize = 12;

/// A range of values laid over a range of pixels.
pub(super) struct Scale {
    low: f64,
    high: f64,
    pixels: (f64, f64),
    log: bool,
    /// Values with their texts, low to high.
    pub(super) ticks: Vec<(f64, String)>,
}

/// The start of an axis without a logarithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// At zero, so that lengths can be compared, or below.
    Zero,
    /// At the lowest value.
    Lowest,
}

impl Scale {
    /// Over all values that are finite (and above zero if logarithmic), with about `wanted` ticks.
    pub(super) fn over(
        axis: &Axis,
        values: impl Iterator<Item = f64>,
        start: Start,
        wanted: usize,
        pixels: (f64, f64),
    ) -> Self {
        let (mut low, mut high) = values
            .chain(axis.ticks.iter().map(|(value, _)| *value))
            .filter(|value| can_be_drawn(axis, *value))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        if low > high {
            (low, high) = if axis.log { (1.0, 10.0) } else { (0.0, 1.0) };
        }
        if axis.log {
            Self::logarithmic(axis, (low, high), wanted, pixels)
        } else {
            if start == Start::Zero {
                (low, high) = (low.min(0.0), high.max(0.0));
            }
            Self::linear(axis, (low, high), start, wanted, pixels)
        }
    }

    fn linear(
        axis: &Axis,
        (mut low, mut high): (f64, f64),
        start: Start,
        wanted: usize,
        pixels: (f64, f64),
    ) -> Self {
        if low == high {
            let room = if low == 0.0 { 1.0 } else { low.abs() * 0.5 };
            (low, high) =
                if start == Start::Zero { (low, low + room) } else { (low - room, high + room) };
        }
        let step = round_step((high - low) / wanted as f64);
        if start == Start::Zero {
            (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
        }
        let first = (low / step).ceil() as i64;
        let ticks = (first..)
            .map(|n| n as f64 * step)
            .take_while(|value| *value <= high + step * 1e-6)
            .take(MOST_TICKS);
        let ticks = ticks.map(|value| (value, tick_text(value, step))).collect();
        Self { low, high, pixels, log: false, ticks: chosen(axis, ticks) }
    }

    fn logarithmic(
        axis: &Axis,
        (mut low, mut high): (f64, f64),
        wanted: usize,
        pixels: (f64, f64),
    ) -> Self {
        if axis.ticks.is_empty() {
            (low, high) = (round_down(low), round_up(high));
        }
        if low >= high {
            (low, high) = (low / 2.0, high * 2.0);
        }
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let decades = usize::try_from(last - first).unwrap_or(0).max(1);
        // 1, 2, 5, 10 where there is room, else every decade, or every so many.
        let steps: &[f64] = if decades * 3 <= wanted + 2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let every = decades.div_ceil(wanted.clamp(1, MOST_TICKS)).max(1);
        let ticks = (first..=last)
            .step_by(every)
            .flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)))
            .filter(|value| *value >= low * 0.999 && *value <= high * 1.001);
        let ticks = ticks.map(|value| (value, tick_text(value, value))).collect();
        Self { low, high, pixels, log: true, ticks: chosen(axis, ticks) }
    }

    /// The pixel of a value; what lies outside ends at the axis' ends.
    pub(super) fn at(&self, value: f64) -> f64 {
        let value = if value.is_nan() { self.low } else { value.clamp(self.low, self.high) };
        let of = |value: f64| if self.log { value.log10() } else { value };
        let share = (of(value) - of(self.low)) / (of(self.high) - of(self.low));
        self.pixels.0 + share * (self.pixels.1 - self.pixels.0)
    }

    /// The pixel from which bars grow: zero, or the low end of a logarithmic axis.
    pub(super) fn base(&self) -> f64 {
        self.at(if self.log { self.low } else { 0.0 })
    }
}

/// The ends of an axis of values, from zero or below, that hold all of these; `None` if none of
/// them can be drawn.
pub(in crate::report::render) fn limits(
    axis: &Axis,
    values: impl Iterator<Item = f64>,
) -> Option<(f64, f64)> {
    let values: Vec<f64> = values.filter(|value| can_be_drawn(axis, *value)).collect();
    let scale = Scale::over(axis, values.iter().copied(), Start::Zero, 5, (0.0, 1.0));
    (!values.is_empty()).then_some((scale.low, scale.high))
}

fn can_be_drawn(axis: &Axis, value: f64) -> bool {
    value.is_finite() && value.abs() < 1e300 && (!axis.log || value > 1e-300)
}

/// The axis' own ticks if it has some.
fn chosen(axis: &Axis, own: Vec<(f64, String)>) -> Vec<(f64, String)> {
    if axis.ticks.is_empty() { own } else { axis.ticks.clone() }
}

/// 1, 2 or 5 times a power of ten, not below the value.
fn round_up(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    steps.into_iter().find(|step| *step >= value * (1.0 - 1e-9)).unwrap_or(value)
}

fn round_down(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let steps = [5.0, 2.0, 1.0].map(|step| step * power);
    steps.into_iter().find(|step| *step <= value * (1.0 + 1e-9)).unwrap_or(value)
}

fn round_step(value: f64) -> f64 {
    let step = round_up(value);
    if step.is_finite() && step > 0.0 { step } else { 1.0 }
}

/// A tick's text, with as many decimals as its step needs.
fn tick_text(value: f64, step: f64) -> String {
    let largest = value.abs();
    let (value, step, suffix) = match largest {
        v if v >= 1e15 => return format!("{value:.0e}"),
        v if v >= 1e9 => (value / 1e9, step / 1e9, "G"),
        v if v >= 1e6 => (value / 1e6, step / 1e6, "M"),
        v if v >= 1e4 => (value / 1e3, step / 1e3, "k"),
        v if v > 0.0 && v < 1e-6 => return format!("{value:.0e}"),
        _ => (value, step, ""),
    };
    let decimals = (-(step.abs().log10() + 1e-9).floor()).clamp(0.0, 6.0) as usize;
    let text = format!("{value:.decimals$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{}{suffix}", if text == "-0" { "0" } else { text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(values: &[f64], log: bool) -> Vec<String> {
        let axis = Axis { log, ..Axis::default() };
        let scale = Scale::over(&axis, values.iter().copied(), Start::Zero, 5, (0.0, 500.0));
        scale.ticks.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(&[87.0, 312.0], false), ["0", "100", "200", "300", "400"]);
        assert_eq!(ticks(&[0.21, 0.93], false), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(ticks(&[-40.0, 60.0], false), ["-40", "-20", "0", "20", "40", "60"]);
        assert_eq!(ticks(&[45_000.0], false), ["0", "10k", "20k", "30k", "40k", "50k"]);
        assert_eq!(ticks(&[2.4e6], false), ["0", "500k", "1M", "1.5M", "2M", "2.5M"]);
    }

    #[test]
    fn logarithmic_ticks_are_decades_or_1_2_5() {
        assert_eq!(ticks(&[3.0, 40.0], true), ["2", "5", "10", "20", "50"]);
        assert_eq!(ticks(&[1.0, 1e6], true), ["1", "100", "10k", "1M"]);
        assert_eq!(ticks(&[100.0], true), ["50", "100", "200"]);
    }

    #[test]
    fn equal_factors_are_equal_lengths_where_it_is_logarithmic() {
        let axis = Axis { log: true, ..Axis::default() };
        let scale = Scale::over(&axis, [1.0, 100.0].into_iter(), Start::Lowest, 5, (0.0, 200.0));
        assert_eq!([1.0, 10.0, 100.0].map(|value| scale.at(value)), [0.0, 100.0, 200.0]);
        assert_eq!(scale.at(1e9), 200.0);
        assert_eq!(scale.at(-1.0), 0.0);
    }

    #[test]
    fn an_axis_over_nothing_or_one_value_has_a_length() {
        assert_eq!(ticks(&[], false), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(ticks(&[f64::NAN, f64::INFINITY], false).len(), 6);
        assert_eq!(ticks(&[0.0, -3.0], true).first().map(String::as_str), Some("1"));
        let axis = Axis::default();
        let scale = Scale::over(&axis, [7.0].into_iter(), Start::Lowest, 5, (0.0, 100.0));
        assert_eq!(scale.at(7.0), 50.0);
    }
}
