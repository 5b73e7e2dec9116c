//! Campaigns whose repetitions are rounds of one long run, such as the preset `steady`: only the
//! rounds in which a subject has settled count.
//!
//! Invariants: in such a campaign a cell's values are those of its steady window, for every
//! metric; without a window it has none, and its state says why. Findings of a cell are about the
//! rounds that count; a round before them may have every reason to look odd.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{Cell, State};
use crate::stats::{ByRepetition, SteadyState, Window, find_steady_state};
use braid_lab::campaign::Campaign;
use braid_lab::metric::Metric;
use braid_lab::store::{Outcome, Results};

/// Of rounds that cannot be judged.
pub(crate) const WITHOUT_WORK: &str = "rounds in which nothing was done cannot settle";

/// What became of a cell's rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Rounds {
    /// Everything that was measured, by metric and round; [`Cell::values`] has what counts.
    pub all: BTreeMap<Metric, ByRepetition>,
    /// Whether its headline has settled, and where; `None` of rounds without anything above 0.
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

/// Whether the repetitions of a campaign are rounds of one long run.
pub fn has_rounds(campaign: &Campaign) -> bool {
    campaign.rounds
}

/// Leaves a cell only what it measured after it had settled.
pub(super) fn settle(cell: &mut Cell) {
    if cell.state != State::Measured {
        return;
    }
    let all = std::mem::take(&mut cell.values);
    let nothing = ByRepetition::new();
    let settled = find_steady_state(all.get(&cell.headline).unwrap_or(&nothing));
    let rounds = Rounds { all, settled };
    match rounds.window() {
        Some(window) => {
            let counted = |values: &ByRepetition| -> ByRepetition {
                let counted = values.iter().filter(|(round, _)| window.holds(**round));
                counted.map(|(round, value)| (*round, *value)).collect()
            };
            let counted = rounds.all.iter().map(|(metric, values)| (*metric, counted(values)));
            cell.values = counted.filter(|(_, values)| !values.is_empty()).collect();
        }
        None => cell.state = State::Unsettled(rounds.why_not()),
    }
    cell.rounds = Some(rounds);
}

/// The results without the rounds that do not count. Failed trials stay, and so do all of a cell
/// that has not settled.
pub(super) fn counted_results<'r>(results: &'r Results, cells: &[Cell]) -> Cow<'r, Results> {
    let mut keep = vec![true; results.trials.len()];
    for cell in cells {
        let Some(window) = cell.rounds.as_ref().and_then(Rounds::window) else { continue };
        for index in &cell.trials {
            let trial = &results.trials[*index];
            keep[*index] = trial.outcome != Outcome::Ok || window.holds(trial.repetition);
        }
    }
    if keep.iter().all(|keep| *keep) {
        return Cow::Borrowed(results);
    }
    let trials = results.trials.iter().zip(keep).filter(|(_, keep)| *keep);
    Cow::Owned(Results {
        trials: trials.map(|(trial, _)| trial.clone()).collect(),
        planned: results.planned.clone(),
        facts: results.facts.clone(),
        sessions: results.sessions.clone(),
    })
}
