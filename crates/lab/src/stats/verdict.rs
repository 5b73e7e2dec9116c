//! What a comparison with 100 % says.

use super::estimate::{Estimate, IntervalKind};

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
