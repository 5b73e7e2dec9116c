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
//! y │ ×                      range too wide or line too steep: not part of it
//!   │     ×   ┌───────────┐
//!   │         │×  ×   ×  ×│  the last rounds, as many as keep to both: steady
//!   └─────────┴───────────┴── round
//! ```
//!
//! SNIA ends the test with the first such window. Where rounds go on, the last five decide, and
//! the window grows backwards as long as all of it keeps to both limits: the plateau that a cache
//! holds up for the first rounds is not taken for what the device keeps up. A window that later
//! rounds contradict is one that was left.

use super::effect::ByRepetition;

/// Fewest rounds in a measurement window.
const WINDOW: usize = 5;
/// Largest range as a part of the average.
const RANGE_UP_TO: f64 = 0.20;
/// Largest excursion of the slope as a part of the average.
const SLOPE_UP_TO: f64 = 0.10;
/// Nothing measured is larger, and with it sums and ratios stay finite.
const LARGEST: f64 = 1e100;
/// What the last bits of a sum may add to a range or slope that is exactly at the limit.
const ROUNDING: f64 = 1e-12;

/// What a window of rounds looks like.
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
}

impl Window {
    /// Whether a round is in it, by its number.
    pub fn holds(&self, round: u32) -> bool {
        round.checked_sub(self.first).is_some_and(|after| (after as usize) < self.rounds)
    }

    /// Number of the last round in it.
    pub fn last(&self) -> u32 {
        let after = u32::try_from(self.rounds.saturating_sub(1)).unwrap_or(u32::MAX);
        self.first.saturating_add(after)
    }

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
        /// Whether that round is below the window's average, or above it.
        fell: bool,
    },
    /// Nowhere are there as many rounds in a row as a window has.
    TooShort {
        /// The most that there are in a row.
        have: usize,
        /// How many it takes.
        needed: usize,
    },
}

/// Measures one window of any length; `first` is only passed on. `None` of nothing, of values that are
/// not from 0 to 1e100, and when all are 0.
pub fn judge_window(values: &[f64], first: u32) -> Option<Window> {
    let rounds = values.len();
    let average = values.iter().sum::<f64>() / rounds as f64;
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
    let slope = if rounds > 1 { products / squares * (rounds - 1) as f64 } else { 0.0 };
    Some(Window { first, rounds, average, range: largest - smallest, slope })
}

/// Where the rounds have settled, or why they have not. `rounds` are by their numbers: a number
/// that is missing ends a row, for nobody knows what the device did meanwhile. The last row of at
/// least five rounds decides, and no later round may contradict it. `None` of values that are not from
/// 0 to 1e100, and when the last five rounds have nothing but 0.
pub fn find_steady_state(rounds: &ByRepetition) -> Option<SteadyState> {
    let rows = rows_of(rounds);
    let Some((first, values)) = rows.iter().rfind(|(_, values)| values.len() >= WINDOW) else {
        let have = rows.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
        return Some(SteadyState::TooShort { have, needed: WINDOW });
    };
    if let Some(window) = window_at_end(values, *first)? {
        return Some(first_contradiction(&window, rounds)?.unwrap_or(SteadyState::Steady(window)));
    }
    // It was steady once, perhaps: the latest such window, which the next round ends.
    for end in (WINDOW..values.len()).rev() {
        // Five rounds of nothing but 0 are no steady state to have left.
        if let Some(Some(was)) = window_at_end(&values[..end], *first) {
            let round = was.last().saturating_add(1);
            return Some(SteadyState::Left { was, round, fell: values[end] < was.average });
        }
    }
    let before = values.len() - WINDOW;
    Some(SteadyState::NotSteady(judge_window(&values[before..], first + before as u32)?))
}

/// The longest steady window at the end of a row, if its last five rounds are steady. `None` where a
/// window cannot be judged.
fn window_at_end(values: &[f64], first: u32) -> Option<Option<Window>> {
    let mut found = None;
    for rounds in WINDOW..=values.len() {
        let before = values.len() - rounds;
        // Numbers are 32 bits wide, so a row has no more of them.
        let window = judge_window(&values[before..], first + before as u32)?;
        if !window.is_steady() {
            break;
        }
        found = Some(window);
    }
    Some(found)
}

/// The first round after a window and a gap that does not go with it. Such rounds are too few in a
/// row to settle anything, and enough to say that what came before them is not what is kept up. `None`
/// where they cannot be judged.
fn first_contradiction(window: &Window, rounds: &ByRepetition) -> Option<Option<SteadyState>> {
    let inside = rounds.iter().filter(|(round, _)| window.holds(**round));
    let mut values: Vec<f64> = inside.map(|(_, value)| *value).collect();
    for (&round, &value) in rounds.range(window.last().saturating_add(1)..) {
        if window.holds(round) {
            continue;
        }
        values.push(value);
        if !judge_window(&values, window.first)?.is_steady() {
            let fell = value < window.average;
            return Some(Some(SteadyState::Left { was: *window, round, fell }));
        }
    }
    Some(None)
}

/// Rounds that follow each other without a gap: the number of the first, and the values.
fn rows_of(rounds: &ByRepetition) -> Vec<(u32, Vec<f64>)> {
    let mut rows: Vec<(u32, Vec<f64>)> = Vec::new();
    let mut before: Option<u32> = None;
    for (&round, &value) in rounds {
        match rows.last_mut().filter(|_| before.and_then(|b| b.checked_add(1)) == Some(round)) {
            Some((_, values)) => values.push(value),
            None => rows.push((round, vec![value])),
        }
        before = Some(round);
    }
    rows
}
