//! Test of a steady state of a device.
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
//! y │ ×                      range too wide or line too steep: not part of it
//!   │     ×   ┌───────────┐
//!   │         │×  ×   ×  ×│  the last rounds, as many as keep to both: steady
//!   └─────────┴───────────┴── round
//! ```
//!
//! SNIA ends the test with the first such window. Where rounds go on, the last five decide, and
//! the window grows backwards as long as all of it keeps to both limits: the plateau that a cache
//! holds up for the first rounds is not taken for what the device keeps up. A window that later
//! rounds contradict is one that was left. A round without a value ends the row, since the
//! work of the device meanwhile is unknown; only the last row counts.

use super::effect::{ByRepetition, mean};
use super::student::Student;

/// Fewest rounds in a measurement window.
const WINDOW: usize = 5;
/// Largest range as a part of the average.
const RANGE_UP_TO: f64 = 0.20;
/// Largest excursion of the slope as a part of the average.
const SLOPE_UP_TO: f64 = 0.10;
/// Nothing measured is larger, and with it sums and ratios stay finite.
const LARGEST: f64 = 1e100;
/// Rounding error of a sum, for a range or slope that is exactly at the limit.
const ROUNDING: f64 = 1e-12;

/// Range and slope of a window of rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Number of the first round in it.
    pub first: u32,
    /// Rounds in it, one after the other.
    pub rounds: usize,
    /// Their average.
    pub average: f64,
    /// (largest − smallest) / average.
    pub range: f64,
    /// (end − start) / average of the least-squares line; below 0 when it falls.
    pub slope: f64,
    /// Probability that values that only scatter have such a line: Student's test of its slope. 1 of
    /// fewer than three values.
    pub slope_p: f64,
}

impl Window {
    /// Returns true if the round of this number is in it.
    pub fn holds(&self, round: u32) -> bool {
        round.checked_sub(self.first).is_some_and(|after| (after as usize) < self.rounds)
    }

    /// Number of the last round in it.
    pub fn last(&self) -> u32 {
        let after = u32::try_from(self.rounds.saturating_sub(1)).unwrap_or(u32::MAX);
        self.first.saturating_add(after)
    }

    /// Returns true if it keeps to both limits.
    pub fn is_steady(&self) -> bool {
        self.range <= RANGE_UP_TO + ROUNDING && self.slope.abs() <= SLOPE_UP_TO + ROUNDING
    }
}

/// Verdict on the steady state of rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SteadyState {
    /// In this window.
    Steady(Window),
    /// Never; the last five rounds say what is missing.
    NotSteady(Window),
    /// It was steady in a window, and is so no more.
    Left {
        /// The latest such window.
        was: Window,
        /// The first round that does not go with it.
        round: u32,
        /// The round is below the window's average, or above it.
        fell: bool,
    },
    /// The last row has fewer rounds than a window.
    TooShort {
        /// So many.
        have: usize,
        /// Number of rounds that are needed.
        needed: usize,
    },
}

/// Measures one window of any length; `first` is only passed on. `None` of nothing, of values that are
/// not from 0 to 1e100, and when all are 0.
pub fn judge_window(values: &[f64], first: u32) -> Option<Window> {
    let rounds = values.len();
    let average = mean(values);
    let can_be_judged = values.iter().all(|value| (0.0..=LARGEST).contains(value)) && average > 0.0;
    if !can_be_judged {
        return None;
    }
    // As parts of the average from the start: no square can then overflow or vanish.
    let parts = || values.iter().map(|value| value / average);
    let largest = parts().fold(0.0, f64::max);
    let smallest = parts().fold(largest, f64::min);
    let middle = (rounds - 1) as f64 / 2.0;
    let distances = || (0..rounds).map(|round| round as f64 - middle);
    let squares: f64 = distances().map(|x| x * x).sum();
    let products: f64 = distances().zip(parts()).map(|(x, y)| x * y).sum();
    let scatter: f64 = parts().map(|y| (y - 1.0).powi(2)).sum();
    let step = if rounds > 1 { products / squares } else { 0.0 };
    // What the line leaves; the rounding of a sum does not make it less than nothing.
    let left = (scatter - step * products).max(f64::MIN_POSITIVE);
    let slope_p = Student::new(rounds as f64 - 2.0).map_or(1.0, |t| {
        let error = (left / (rounds as f64 - 2.0) / squares).sqrt();
        (2.0 * t.above(step.abs() / error)).min(1.0)
    });
    let (range, slope) = (largest - smallest, step * (rounds - 1) as f64);
    Some(Window { first, rounds, average, range, slope, slope_p })
}

/// Returns the window in which the rounds have settled, or the reason why they have not. `rounds` are by their numbers. `None` where the
/// last five cannot be judged: they have nothing but 0, or a value that is not from 0 to 1e100.
pub fn find_steady_state(rounds: &ByRepetition) -> Option<SteadyState> {
    let (first, values) = last_row(rounds);
    if values.len() < WINDOW {
        return Some(SteadyState::TooShort { have: values.len(), needed: WINDOW });
    }
    // The latest row that was steady: that of all rounds, or one that the next round ended.
    for end in (WINDOW..=values.len()).rev() {
        let Some(was) = longest_steady(&values[..end], first) else { continue };
        let round = was.last().saturating_add(1);
        return Some(match values.get(end) {
            None => SteadyState::Steady(was),
            Some(next) => SteadyState::Left { was, round, fell: *next < was.average },
        });
    }
    judge_end(&values, WINDOW, first).map(SteadyState::NotSteady)
}

/// The longest steady window at the end of at least five rounds, if their last five are steady.
fn longest_steady(values: &[f64], first: u32) -> Option<Window> {
    let windows = (WINDOW..=values.len()).map(|rounds| judge_end(values, rounds, first));
    windows.map_while(|window| window.filter(Window::is_steady)).last()
}

/// The window of the last so many of the rounds from `first` on.
fn judge_end(values: &[f64], rounds: usize, first: u32) -> Option<Window> {
    let before = values.len() - rounds;
    // Numbers are 32 bits wide, so a row has no more of them.
    judge_window(&values[before..], first + before as u32)
}

/// The last rounds that follow each other without a gap: the number of the first, and the values.
fn last_row(rounds: &ByRepetition) -> (u32, Vec<f64>) {
    let (mut first, mut row) = (0, Vec::new());
    for (&round, &value) in rounds.iter().rev() {
        if !row.is_empty() && round.checked_add(1) != Some(first) {
            break;
        }
        first = round;
        row.insert(0, value);
    }
    (first, row)
}
