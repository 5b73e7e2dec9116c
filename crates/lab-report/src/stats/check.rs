//! What may come in. One limit for all: a magnitude of at most 1e100, so that squares, sums of
//! millions and ratios of any two values stay finite (1e100² · 1e6 = 1e206, below 1e308).

use super::StatsError;

/// Largest magnitude; a disk of 1e100 bytes per second is not a measurement.
const LARGEST: f64 = 1e100;

/// Refuses nothing, NaN, infinity and magnitudes above 1e100.
pub(super) fn check_finite(what: &'static str, values: &[f64]) -> Result<(), StatsError> {
    if values.is_empty() {
        return Err(StatsError::Empty { what });
    }
    for (index, &value) in values.iter().enumerate() {
        let position = index + 1;
        if !value.is_finite() {
            return Err(StatsError::NotFinite { what, position, value });
        }
        if value.abs() > LARGEST {
            let allowed = "numbers from -1e100 to 1e100";
            return Err(StatsError::OutOfRange { what, position, value, allowed });
        }
    }
    Ok(())
}

/// As [`check_finite`], and refuses what is below 0.
pub(super) fn check_not_negative(what: &'static str, values: &[f64]) -> Result<(), StatsError> {
    check_finite(what, values)?;
    match values.iter().position(|value| *value < 0.0) {
        None => Ok(()),
        Some(index) => Err(StatsError::OutOfRange {
            what,
            position: index + 1,
            value: values[index],
            allowed: "numbers from 0 to 1e100",
        }),
    }
}

/// A probability strictly between 0 and 1.
pub(super) fn check_open_unit(what: &'static str, value: f64) -> Result<(), StatsError> {
    if value > 0.0 && value < 1.0 {
        Ok(())
    } else {
        Err(StatsError::BadParameter { what, value, allowed: "above 0 and below 1" })
    }
}
