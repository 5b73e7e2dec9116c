//! The moves of spares, one at a time, and the reports about spares that did not arrive.
//!
//! ```text
//!   planned ──▶ under way: taken from its array, given to the other ──▶ it is there: over
//!                 │ the other does not take it: given back ───────────▶ it is at home: held back for HELD
//!                 ▼ neither has it (this process ended half way, or both refuse)
//!               stranded: given to the other while that needs it, then back, again and again ──▶ given up
//! ```
//!
//! Invariants: pure; no decision uses a look that began before the last attempt ended; the move is in the state
//! before it begins, so that after a restart the monitor knows that a spare is in neither array.

use std::collections::BTreeMap;

use braid_control::{SpareMove, Status, plan_moves};
use serde::{Deserialize, Serialize};

use super::{Draft, Observation, Seen};
use crate::event::MOVE_SPARE_FAILED;

/// For so many seconds a spare that an array did not take is not offered to it again.
const HELD: u64 = 3_600;
/// Attempts to give a stranded spare to the array that needs it, before it is given back.
const ONWARD: u32 = 3;
/// Attempts in all, before it is given up.
const MOST: u32 = 20;
/// Seconds between two of them.
const PAUSE: u64 = 15;

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It is taken from its array and given to the other, or back.
    Move,
    /// It is in no array: it is given to the array that needs it.
    Place,
    /// It is in no array: it is given back.
    Return,
}

impl Step {
    /// For people.
    pub(crate) fn describe(self, spare: &SpareMove) -> String {
        let SpareMove { member, from, to, .. } = spare;
        match self {
            Step::Move => format!("{member}, a spare of {from}, goes to {to}, which needs it"),
            Step::Place => format!("{member}, which is in no array, goes to {to}, which needs it"),
            Step::Return => format!("{member}, which is in no array, goes back to {from}"),
        }
    }
}

/// A spare on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Moving {
    spare: SpareMove,
    failures: u32,
    /// Why the last attempt failed.
    why: Option<String>,
    /// The earliest time of the next attempt.
    not_before: u64,
}

/// A spare that an array did not take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Held {
    spare: SpareMove,
    why: String,
    /// No array has it.
    is_stranded: bool,
    until: u64,
}

/// All of it; kept over restarts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Moves {
    moving: Option<Moving>,
    held: Vec<Held>,
}

fn up(observation: &Observation) -> Vec<&Status> {
    let ups = observation.volumes.values().filter_map(|seen| match seen {
        Seen::Up(status) => Some(&**status),
        _ => None,
    });
    ups.collect()
}

impl Moves {
    /// The next step, after a look that began when no move was in progress any more.
    pub(super) fn next(
        &mut self,
        observation: &Observation,
        now: u64,
    ) -> Option<(Step, SpareMove)> {
        let up = up(observation);
        let is_up = |name: &str| up.iter().any(|one| one.name == name);
        let has = |name: &str, member: &str| {
            let arrays = up.iter().filter(|one| one.name == name).flat_map(|one| &one.arrays);
            arrays.flat_map(|array| &array.members).any(|one| one.member == member)
        };
        // A clock that was set back holds nothing back for longer.
        self.held.retain(|held| {
            held.until > now && held.until <= now + HELD && held.spare.is_wanted(&up)
        });
        if let Some(Moving { spare, failures, why, not_before }) = self.moving.clone() {
            if has(&spare.to, &spare.member) {
                self.moving = None;
                return None;
            }
            if has(&spare.from, &spare.member) {
                self.moving = None;
                self.held.extend(why.map(|why| Held {
                    spare,
                    why,
                    is_stranded: false,
                    until: now + HELD,
                }));
                return None;
            }
            if failures >= MOST {
                let why = why.unwrap_or_default();
                self.moving = None;
                self.held.push(Held { spare, why, is_stranded: true, until: now + HELD });
                return None;
            }
            if now < not_before && not_before <= now + PAUSE {
                return None;
            }
            let step = match spare.is_wanted(&up) && failures < ONWARD {
                true => Step::Place,
                false => Step::Return,
            };
            return (is_up(&spare.to) && is_up(&spare.from)).then_some((step, spare));
        }
        let is_held = |one: &SpareMove| {
            self.held.iter().any(|held| held.spare.member == one.member && held.spare.to == one.to)
        };
        let spare = plan_moves(&up).into_iter().find(|one| !is_held(one))?;
        let moving = Moving { spare: spare.clone(), failures: 0, why: None, not_before: now };
        self.moving = Some(moving);
        Some((Step::Move, spare))
    }

    /// The outcome of the last step.
    pub(super) fn ended(&mut self, outcome: Result<(), String>, now: u64) {
        if let (Some(moving), Err(why)) = (&mut self.moving, outcome) {
            moving.failures += 1;
            moving.why = Some(why);
            moving.not_before = now + PAUSE;
        }
    }

    /// The spare that is on its way, and whose it was.
    pub(super) fn on_its_way(&self) -> Option<(String, String)> {
        let SpareMove { member, from, from_array, .. } = &self.moving.as_ref()?.spare;
        Some((member.clone(), format!("{from} {from_array}")))
    }

    /// The problems of moves, by the volume that lacks a member.
    pub(super) fn conditions(&self) -> BTreeMap<&str, Vec<Draft>> {
        let mut found: BTreeMap<&str, Vec<Draft>> = BTreeMap::new();
        let stranded = self.moving.iter().filter_map(|moving| {
            Some((&moving.spare, moving.why.as_ref()?, true, "it is tried again"))
        });
        let held = self.held.iter().map(|held| {
            let what =
                if held.is_stranded { "nothing more is tried" } else { "it is where it was" };
            (&held.spare, &held.why, held.is_stranded, what)
        });
        for (spare, why, is_stranded, what) in stranded.chain(held) {
            let SpareMove { member, from, to, array, .. } = spare;
            let path = braid_shell::shell_path(member);
            let text = format!("{member}, a spare of {from}, was to go to {to}: {why}; {what}");
            let next = match is_stranded {
                true => {
                    format!("`braid member add {to} {path}`, or `braid member add {from} {path}`")
                }
                false => format!("`braid member add {to} DEVICE` gives it another"),
            };
            let draft =
                Draft::new(MOVE_SPARE_FAILED, text).array(array).member(member).next(Some(next));
            found.entry(to).or_default().push(draft);
        }
        found
    }
}

#[cfg(test)]
mod tests;
