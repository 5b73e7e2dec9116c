//! Whether a device has settled.
//!
//! The rule is that of the SNIA *Solid State Storage Performance Test Specification* (version
//! 2.0.2, definitions of "steady state" and "measurement window"). Over a window of 5 rounds with
//! the average A:
//!
//! 1. the range, largest − smallest value, is at most 20 % of A, and
//! 2. the excursion of the slope, the difference between the ends of the least-squares line
//!    within the window, that is |slope| · (5 − 1), is at most 10 % of A.
//!
//! ```text
//! y │ ×                      range too wide or line too steep: go on
//!   │     ×   ┌───────────┐
//!   │         │×  ×   ×  ×│  first window that keeps to both: steady
//!   └─────────┴───────────┴── round
//! ```

use super::check::check_not_negative;
use super::error::StatsError;

/// Rounds in a measurement window, and slices of a trial.
const WINDOW: usize = 5;
/// Largest range as a part of the average.
const RANGE_UP_TO: f64 = 0.20;
/// Largest excursion of the slope as a part of the average.
const SLOPE_UP_TO: f64 = 0.10;
/// Values of a time series from which it can be sliced: two in each slice.
const SERIES_FROM: usize = 2 * WINDOW;
/// What the last bits of a sum may add to a range or slope that is exactly at the limit.
const ROUNDING: f64 = 1e-12;

/// What a window of rounds looks like.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Number of the first round in it, from 0.
    pub first: usize,
    /// Rounds in it.
    pub rounds: usize,
    /// Their average.
    pub average: f64,
    /// (largest − smallest) / average.
    pub range: f64,
    /// (end − start) / average of the least-squares line; below 0 when it falls.
    pub slope: f64,
}

impl Window {
    /// Whether the range is at most 20 % of the average.
    pub fn range_is_steady(&self) -> bool {
        self.range <= RANGE_UP_TO + ROUNDING
    }

    /// Whether the line's excursion is at most 10 % of the average.
    pub fn slope_is_steady(&self) -> bool {
        self.slope.abs() <= SLOPE_UP_TO + ROUNDING
    }

    /// Whether both hold.
    pub fn is_steady(&self) -> bool {
        self.range_is_steady() && self.slope_is_steady()
    }
}

/// Whether rounds have reached a steady state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SteadyState {
    /// In this window for the first time.
    Steady(Window),
    /// Not yet; the last window says what is missing.
    NotSteady(Window),
    /// Fewer rounds than a window has.
    TooShort {
        /// How many there are.
        have: usize,
        /// How many it takes.
        needed: usize,
    },
}

/// The shape of one trial over time, judged by the same rule over five equal slices of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TrialShape {
    /// The trial's average describes all of it.
    Steady(Window),
    /// It rose or fell throughout; a longer trial would give another number.
    Trending(Window),
    /// No trend, but slices far apart.
    Noisy(Window),
    /// Too few values to slice.
    TooShort {
        /// How many there are.
        have: usize,
        /// How many it takes.
        needed: usize,
    },
}

/// Measures one window of any length; `first` is only passed on.
///
/// # Errors
///
/// Of nothing, of values below 0 or not finite, and when all are 0.
pub fn judge_window(values: &[f64], first: usize) -> Result<Window, StatsError> {
    let what = "steady state";
    check_not_negative(what, values)?;
    let rounds = values.len();
    let average = values.iter().sum::<f64>() / rounds as f64;
    if average == 0.0 {
        return Err(StatsError::AllZero { what });
    }
    // As parts of the average from the start: no square can then overflow or vanish.
    let parts = || values.iter().map(|value| value / average);
    let largest = parts().fold(0.0, f64::max);
    let smallest = parts().fold(largest, f64::min);
    let middle = (rounds - 1) as f64 / 2.0;
    let distances = || (0..rounds).map(|round| round as f64 - middle);
    let squares: f64 = distances().map(|x| x * x).sum();
    let products: f64 = distances().zip(parts()).map(|(x, y)| x * y).sum();
    let slope = if rounds > 1 { products / squares * (rounds - 1) as f64 } else { 0.0 };
    Ok(Window { first, rounds, average, range: largest - smallest, slope })
}

/// The first window of five rounds that is steady, or why none is.
///
/// # Errors
///
/// Of values below 0 or not finite, and when a window has nothing but 0.
pub fn find_steady_state(rounds: &[f64]) -> Result<SteadyState, StatsError> {
    let mut last = SteadyState::TooShort { have: rounds.len(), needed: WINDOW };
    for (first, values) in rounds.windows(WINDOW).enumerate() {
        let window = judge_window(values, first)?;
        if window.is_steady() {
            return Ok(SteadyState::Steady(window));
        }
        last = SteadyState::NotSteady(window);
    }
    Ok(last)
}

/// The shape of a time series measured at equal intervals within one trial: the averages of five
/// slices, equal to within one value, are judged as five rounds. A slope beyond the limit is a
/// trend, whatever the range; a range beyond the limit without one is noise.
///
/// # Errors
///
/// Of values below 0 or not finite, and when all are 0.
pub fn check_within_trial(values: &[f64]) -> Result<TrialShape, StatsError> {
    if values.len() < SERIES_FROM {
        return Ok(TrialShape::TooShort { have: values.len(), needed: SERIES_FROM });
    }
    check_not_negative("shape of a trial", values)?;
    let edge = |slice: usize| slice * values.len() / WINDOW;
    let averages: Vec<f64> = (0..WINDOW)
        .map(|slice| &values[edge(slice)..edge(slice + 1)])
        .map(|slice| slice.iter().sum::<f64>() / slice.len() as f64)
        .collect();
    let window = judge_window(&averages, 0)?;
    Ok(if !window.slope_is_steady() {
        TrialShape::Trending(window)
    } else if !window.range_is_steady() {
        TrialShape::Noisy(window)
    } else {
        TrialShape::Steady(window)
    })
}
