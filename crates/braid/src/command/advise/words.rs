//! Numbers as they stand in sentences.

use braid_predict::advise::ERROR_90;

/// The interval of a predicted rate.
pub(super) fn interval(rate: f64) -> (f64, f64) {
    (rate * (-ERROR_90).exp(), rate * ERROR_90.exp())
}

/// Bytes per second.
pub(super) fn rate(rate: f64) -> String {
    match rate {
        rate if rate < 0.995e6 => format!("{:.0} kB/s", rate / 1e3),
        rate if rate < 9.95e6 => format!("{:.2} MB/s", rate / 1e6),
        rate => format!("{:.0} MB/s", rate / 1e6),
    }
}

/// Bytes, in the units of those who sell devices.
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
