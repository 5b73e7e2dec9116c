//! Numbers with units, three significant digits.

use crate::stats::{Effect, Estimate};
use braid_lab::metric::Metric;

const MIB: f64 = 1_048_576.0;

/// Three significant digits without an exponent: 1234, 123, 12.3, 1.23.
pub(crate) fn digits(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A count per second: 950, 14.5k, 1.20M.
pub(crate) fn count(value: f64) -> String {
    match value {
        v if v >= 999_500.0 => format!("{}M", digits(v / 1e6)),
        v if v >= 9_995.0 => format!("{}k", digits(v / 1e3)),
        v if v >= 99.95 => format!("{v:.0}"),
        v => digits(v),
    }
}

/// The unit in which numbers of one metric are written in one table or chart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    /// Divisor of values of the metric.
    divisor: f64,
    /// The unit that results; empty for plain numbers.
    pub(crate) unit: &'static str,
}

impl Scale {
    /// A unit that suits values up to `largest`, in the metric's own unit.
    pub(crate) fn of(metric: Metric, largest: f64) -> Self {
        let (divisor, unit) = match metric.unit() {
            "B/s" if largest < 0.1 * MIB => (1024.0, "KiB/s"),
            "B/s" => (MIB, "MiB/s"),
            "B" => (MIB, "MiB"),
            "ns" if largest >= 999.5e6 => (1e9, "s"),
            "ns" if largest >= 999.5e3 => (1e6, "ms"),
            "ns" => (1e3, "µs"),
            "1" => (1.0, ""),
            unit => (1.0, unit),
        };
        Self { divisor, unit }
    }

    /// The value in this unit.
    pub(crate) fn apply(&self, value: f64) -> f64 {
        value / self.divisor
    }

    /// The value in this unit, without naming it.
    pub(crate) fn write(&self, value: f64) -> String {
        digits(self.apply(value))
    }

    /// The value with its unit.
    pub(crate) fn with_unit(&self, value: f64) -> String {
        format!("{} {}", self.write(value), self.unit).trim_end().to_owned()
    }
}

/// A value with a unit that suits it.
pub(crate) fn quantity(metric: Metric, value: f64) -> String {
    Scale::of(metric, value.abs()).with_unit(value)
}

/// Returns the name of a metric in headings and axes.
pub(crate) fn title(metric: Metric) -> &'static str {
    match metric {
        Metric::Throughput => "throughput",
        Metric::Iops => "requests per second",
        Metric::Seconds => "time",
        Metric::LatencyMean => "mean latency",
        Metric::LatencyMin => "lowest latency",
        Metric::LatencyP50 => "median latency",
        Metric::LatencyP95 => "95 % latency",
        Metric::LatencyP99 => "99 % latency",
        Metric::LatencyP999 => "99.9 % latency",
        Metric::LatencyMax => "highest latency",
        other => other.describe(),
    }
}

/// The range of the repetitions, `low to high` by `write`; `None` of one repetition.
pub(crate) fn ends(estimate: &Estimate, write: impl Fn(f64) -> String) -> Option<String> {
    (estimate.count > 1).then(|| span(&write(estimate.low), &write(estimate.high)))
}

/// The 95 % interval of an effect, times `scale`; `None` of one pair. Ends of an interval of two wild repetitions may be
/// numbers that nothing is as large as: such a one is named by how far it reaches at least.
pub(crate) fn interval(effect: &Effect, scale: f64) -> Option<String> {
    let (least, most) = (1.0 / VAST, VAST);
    let low = match effect.low {
        low if !is_sane(effect) && low < least => format!("under {}", digits(least * scale)),
        low => digits(low * scale),
    };
    let high = match effect.high {
        high if !is_sane(effect) && high > most => format!("over {}", digits(most * scale)),
        high => digits(high * scale),
    };
    effect.has_interval().then(|| format!("{low} to {high}"))
}

/// Returns true if the interval of an effect, if it has one, has ends that can be drawn beside others.
pub(crate) fn is_sane(effect: &Effect) -> bool {
    effect.high / effect.low <= VAST * VAST
}

/// From here on "so many times as fast" is "over so many", if the interval reaches as far the other way.
const VAST: f64 = 100.0;

/// `low to high` with the unit once where both have it: `8.85 to 15.9 ms`.
pub(crate) fn span(low: &str, high: &str) -> String {
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

/// Seconds since 1970 as `2026-11-21 21:48 UTC`.
pub(crate) fn date(unix_s: u64) -> String {
    let time = i64::try_from(unix_s).ok().and_then(|at| jiff::Timestamp::from_second(at).ok());
    time.unwrap_or(jiff::Timestamp::MAX).strftime("%Y-%m-%d %H:%M UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::estimate;

    #[test]
    fn three_digits_count() {
        assert_eq!(digits(1234.5), "1234");
        assert_eq!(digits(99.96), "100");
        assert_eq!(digits(12.34), "12.3");
        assert_eq!(digits(0.5), "0.50");
        assert_eq!(count(144_512.4), "145k");
        assert_eq!(count(9_994.0), "9994");
        assert_eq!(count(1_200_000.0), "1.20M");
        assert_eq!(quantity(Metric::Throughput, 1048576.0 * 250.0), "250 MiB/s");
        assert_eq!(quantity(Metric::Throughput, 51_200.0), "50.0 KiB/s");
        assert_eq!(quantity(Metric::LatencyP99, 2_344_950.0), "2.34 ms");
        assert_eq!(quantity(Metric::Fairness, 0.5), "0.50");
    }

    #[test]
    fn ranges_are_written_out() {
        let three = estimate(&[1.0, 2.0, 4.0]).unwrap();
        assert_eq!(ends(&three, digits).unwrap(), "1.00 to 4.00");
        assert_eq!(span("8.85 ms", "15.9 ms"), "8.85 to 15.9 ms");
        assert_eq!(span("831 µs", "4.15 ms"), "831 µs to 4.15 ms");
        assert_eq!(ends(&estimate(&[2.0]).unwrap(), digits), None);
    }

    #[test]
    fn an_interval_that_reaches_everywhere_says_so() {
        let of = |logarithms: &[f64]| interval(&Effect::of_logarithms(logarithms).unwrap(), 1.0);
        assert_eq!(of(&[2.0, -1.0]).unwrap(), "under 0.01 to over 100");
        // A cache before a disk: far from 1, and well known.
        assert_eq!(of(&[5.11, 5.12, 5.13]).unwrap(), "163 to 172");
        assert_eq!(of(&[0.1]), None);
    }

    #[test]
    fn dates_are_civil() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_826_440), "2000-02-29 12:14 UTC");
        assert_eq!(date(1_795_297_686), "2026-11-21 21:48 UTC");
    }
}
