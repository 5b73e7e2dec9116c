//! Pairs of one subject and a baseline, as percent of the baseline.

use super::estimate::{Estimate, IntervalKind, estimate};

/// A comparison with the baseline, in percent of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// 100 is equal, 200 is twice the baseline.
    pub percent: Estimate,
}

/// What a comparison says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval is above 100 %.
    Above,
    /// The whole interval is below 100 %.
    Below,
    /// The interval holds 100 %, or there is only one repetition.
    NotDistinguishable,
}

impl Verdict {
    /// What an interval in percent says. It is one comparison at the interval's own confidence
    /// ([`IntervalKind::confidence`]: 75 % for the range of three); naming a winner among many
    /// is [`super::find_winner`]'s.
    pub(super) fn of_percent(percent: &Estimate) -> Self {
        let alone = percent.kind == IntervalKind::Range(1);
        if alone || percent.holds(100.0) {
            Self::NotDistinguishable
        } else if percent.low > 100.0 {
            Self::Above
        } else {
            Self::Below
        }
    }
}

impl Ratio {
    /// What may be said.
    pub fn verdict(&self) -> Verdict {
        Verdict::of_percent(&self.percent)
    }
}

/// The ratio to the baseline, made in pairs: value and baseline of the same repetition, so that
/// what drifts between repetitions cancels out. Pairs with a baseline of 0 are left out. `None`
/// when no pair is left or a ratio is not a finite number.
pub fn compare(pairs: &[(f64, f64)]) -> Option<Ratio> {
    let percents: Vec<f64> = pairs
        .iter()
        .filter(|(_, baseline)| *baseline > 0.0)
        .map(|(value, baseline)| value / baseline * 100.0)
        .collect();
    estimate(&percents).map(|percent| Ratio { percent })
}
