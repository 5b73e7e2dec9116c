//! Numbers as they stand in sentences.

/// Bytes per second.
pub(super) fn rate(rate: f64) -> String {
    match rate {
        rate if rate < 0.995e6 => format!("{:.0} kB/s", rate / 1e3),
        rate if rate < 9.95e6 => format!("{:.2} MB/s", rate / 1e6),
        rate => format!("{:.0} MB/s", rate / 1e6),
    }
}

/// Two rates, in one unit where they have one.
pub(super) fn between((low, high): (f64, f64)) -> String {
    let (low, high) = (rate(low), rate(high));
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, one)), Some((_, other))) if one == other => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

/// Formats bytes in the decimal units of device vendors.
pub(super) fn size(bytes: u64) -> String {
    let bytes = bytes as f64;
    match bytes {
        bytes if bytes >= 1e12 => format!("{:.1} TB", bytes / 1e12),
        bytes if bytes >= 1e9 => format!("{:.1} GB", bytes / 1e9),
        bytes => format!("{:.0} MB", bytes / 1e6),
    }
}

/// A time in nanoseconds, to three digits.
pub(super) fn time(ns: f64) -> String {
    match ns {
        ..1e6 => format!("{:.0} µs", ns / 1e3),
        ..1e7 => format!("{:.2} ms", ns / 1e6),
        ..1e8 => format!("{:.1} ms", ns / 1e6),
        ..1e9 => format!("{:.0} ms", ns / 1e6),
        _ => format!("{:.1} s", ns / 1e9),
    }
}

/// A sum in any unit: to three digits at least.
pub(super) fn sum(number: f64) -> String {
    let text = digits(number);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A ratio in any unit: to three digits.
pub(super) fn ratio(number: f64) -> String {
    let mut grid = 1.0;
    while number / grid >= 1000.0 {
        grid *= 10.0;
    }
    digits(if grid > 1.0 { (number / grid).round() * grid } else { number })
}

fn digits(number: f64) -> String {
    let (mut decimals, mut above) = (0, number.max(1e-9));
    while above < 100.0 {
        (decimals, above) = (decimals + 1, above * 10.0);
    }
    format!("{number:.decimals$}")
}
