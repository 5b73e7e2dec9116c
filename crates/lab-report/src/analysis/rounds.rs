//! Campaigns whose repetitions are rounds of one long run, such as the preset `steady`: only the
//! rounds in which a subject has settled count.
//!
//! Invariants: in such a campaign a cell's values are those of its steady window, for every
//! metric; without a window it has none, and its state says why. Findings of a cell are about the
//! rounds that count; a round before them may have every reason to look odd.

use super::{Cell, State};
use crate::stats::{ByRepetition, SteadyState, Window, find_steady_state};

/// The reason for rounds that cannot be judged.
pub(crate) const WITHOUT_WORK: &str = "rounds in which nothing was done cannot settle";

/// The result for a cell's rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Rounds {
    /// The steady state of its headline, or that there is none; `None` for rounds without a value above 0.
    pub settled: Option<SteadyState>,
}

impl Rounds {
    /// The rounds that count; `None` when it has not settled.
    pub fn window(&self) -> Option<&Window> {
        match &self.settled {
            Some(SteadyState::Steady(window)) => Some(window),
            _ => None,
        }
    }

    /// Why there is no window; empty when there is one.
    fn why_not(&self) -> String {
        match &self.settled {
            Some(SteadyState::Steady(_)) => String::new(),
            Some(SteadyState::NotSteady(_)) => "the last five rounds still change".to_owned(),
            Some(SteadyState::Left { was, round, fell }) => format!(
                "it held in rounds {} to {} and {} in round {round}",
                was.first,
                was.last(),
                if *fell { "fell" } else { "rose" }
            ),
            Some(SteadyState::TooShort { have, needed }) => {
                format!("it takes {needed} rounds in a row, and there are {have}")
            }
            None => WITHOUT_WORK.to_owned(),
        }
    }
}

/// Finds where a cell has settled, and says so if nowhere.
pub(super) fn settle(cell: &mut Cell) {
    if cell.state != State::Measured {
        return;
    }
    let nothing = ByRepetition::new();
    let settled = find_steady_state(cell.all.get(&cell.headline).unwrap_or(&nothing));
    let rounds = Rounds { settled };
    if rounds.window().is_none() {
        cell.state = State::Unsettled(rounds.why_not());
    }
    cell.rounds = Some(rounds);
}
