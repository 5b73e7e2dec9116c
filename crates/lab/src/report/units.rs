//! Numbers with units, three significant digits.

use crate::stats::{Estimate, IntervalKind, Ratio, Verdict};

/// Three significant digits without an exponent: 1234, 123, 12.3, 1.23.
pub(super) fn digits(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Bytes per second in MiB/s.
pub(super) fn mib_per_s(bytes_per_s: f64) -> String {
    digits(bytes_per_s / f64::from(1 << 20))
}

/// A count per second: 950, 14.5k, 1.20M.
pub(super) fn count(value: f64) -> String {
    match value {
        v if v >= 999_500.0 => format!("{}M", digits(v / 1e6)),
        v if v >= 9_995.0 => format!("{}k", digits(v / 1e3)),
        v if v >= 99.95 => format!("{v:.0}"),
        v => digits(v),
    }
}

/// Nanoseconds in the unit that suits them.
pub(super) fn time(ns: f64) -> String {
    match ns {
        v if v >= 999.5e6 => format!("{} s", digits(v / 1e9)),
        v if v >= 999.5e3 => format!("{} ms", digits(v / 1e6)),
        v => format!("{} µs", digits(v / 1e3)),
    }
}

/// `median [low, high]`, each written by `write`; one repetition has no interval.
pub(super) fn interval(estimate: &Estimate, write: impl Fn(f64) -> String) -> String {
    match estimate.kind {
        IntervalKind::Range(1) => write(estimate.median),
        _ => format!(
            "{} [{}, {}]",
            write(estimate.median),
            write(estimate.low),
            write(estimate.high)
        ),
    }
}

/// `low to high` with the unit once where both have it: `8.85 to 15.9 ms`.
pub(super) fn span(low: &str, high: &str) -> String {
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

/// A percent without its sign: whole from 10 on, else three digits.
pub(super) fn percent_number(value: f64) -> String {
    if value >= 9.995 { format!("{value:.0}") } else { digits(value) }
}

/// A ratio in percent with its interval.
pub(super) fn percent(ratio: &Ratio) -> String {
    let percent = &ratio.percent;
    match percent.kind {
        IntervalKind::Range(1) => format!("{} %", percent_number(percent.median)),
        _ => format!(
            "{} % [{}, {}]",
            percent_number(percent.median),
            percent_number(percent.low),
            percent_number(percent.high)
        ),
    }
}

/// What a comparison of throughputs says, in words; a range of few repetitions only hints.
pub(super) fn verdict(ratio: &Ratio) -> &'static str {
    let hint = matches!(ratio.percent.kind, IntervalKind::Range(_));
    match (ratio.verdict(), hint) {
        (Verdict::Above, false) => "faster",
        (Verdict::Above, true) => "likely faster",
        (Verdict::Below, false) => "slower",
        (Verdict::Below, true) => "likely slower",
        (Verdict::NotDistinguishable, _) => "not distinguishable",
    }
}

/// Seconds since 1970 as `2026-11-21 21:48 UTC`.
pub(super) fn date(unix_s: u64) -> String {
    // Days to a civil date by Howard Hinnant's algorithm, in eras of 400 years from 0000-03-01.
    let days = unix_s / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute) = (unix_s / 3600 % 24, unix_s / 60 % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
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
        assert_eq!(time(49_408.0), "49.4 µs");
        assert_eq!(time(2_344_950.0), "2.34 ms");
        assert_eq!(time(1.5e9), "1.50 s");
        assert_eq!(mib_per_s(1048576.0 * 250.0), "250");
    }

    #[test]
    fn intervals_are_written_out() {
        let three = estimate(&[1.0, 2.0, 4.0]).unwrap();
        assert_eq!(interval(&three, digits), "2.00 [1.00, 4.00]");
        assert_eq!(span("8.85 ms", "15.9 ms"), "8.85 to 15.9 ms");
        assert_eq!(span("831 µs", "4.15 ms"), "831 µs to 4.15 ms");
        assert_eq!(interval(&estimate(&[2.0]).unwrap(), digits), "2.00");
    }

    #[test]
    fn few_repetitions_only_hint() {
        let ratio = |values: &[f64]| Ratio { percent: estimate(values).unwrap() };
        assert_eq!(verdict(&ratio(&[150.0, 160.0, 170.0])), "likely faster");
        assert_eq!(verdict(&ratio(&[50.0; 7])), "slower");
        assert_eq!(verdict(&ratio(&[90.0, 100.0, 170.0])), "not distinguishable");
    }

    #[test]
    fn dates_are_civil() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_826_440), "2000-02-29 12:14 UTC");
        assert_eq!(date(1_795_297_686), "2026-11-21 21:48 UTC");
    }
}
