//! The last answers of volumes that are asked again and again, each on its own: one that does not answer delays
//! no other. Pure; times are given.
//!
//! ```text
//!   to ask ──begin──▶ asked ──heard──▶ a view, or that it is silent; then it may be asked again
//!                       │ no answer for [`PATIENCE`]
//!                       ▼
//!                     silent since it was asked
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use braid_control::Health;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A volume that does not answer for so long is shown as silent: longer than a volume waits for a shard
/// of its own before it says so itself.
const PATIENCE: Duration = Duration::from_secs(3);

/// The same for one that has not been heard of yet: the first look waits for all.
const FIRST: Duration = Duration::from_secs(1);

/// The answer of a volume.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Heard {
    /// Its status.
    View(Value),
    /// The volume is not there, as it is shown.
    Gone(Value),
    /// It did not answer, or not sensibly: why, and what to do.
    Silent(String, String),
}

#[derive(Debug, Default)]
struct One {
    /// Its last answer.
    view: Option<Value>,
    /// Since when it is asked, if it is.
    asked_ms: Option<u64>,
    /// Since when it does not answer, and what is known of that.
    silent: Option<(u64, String, String)>,
}

/// Volumes that are up, or should be. Times are milliseconds since 1970.
#[derive(Debug, Default)]
pub(crate) struct Seen(BTreeMap<String, One>);

impl Seen {
    /// The volumes that are there now; answers those that are to be asked, which are asked from now on.
    pub(crate) fn begin(&mut self, there: &BTreeSet<String>, now_ms: u64) -> Vec<String> {
        self.0.retain(|name, _| there.contains(name));
        let mut to_ask = Vec::new();
        for name in there {
            let one = self.0.entry(name.clone()).or_default();
            if one.asked_ms.is_none() {
                one.asked_ms = Some(now_ms);
                to_ask.push(name.clone());
            }
        }
        to_ask
    }

    /// Takes the answer of a volume, if it is still there.
    pub(crate) fn hear(&mut self, name: &str, heard: Heard) {
        let Some(one) = self.0.get_mut(name) else { return };
        let asked_ms = one.asked_ms.take().unwrap_or_default();
        match heard {
            Heard::View(view) | Heard::Gone(view) => (one.view, one.silent) = (Some(view), None),
            Heard::Silent(why, next) => {
                let since = one.silent.as_ref().map_or(asked_ms, |(since, ..)| *since);
                one.silent = Some((since, why, next));
            }
        }
    }

    /// Forgets all answers; questions under way stay so.
    pub(crate) fn forget(&mut self) {
        self.0.values_mut().for_each(|one| one.view = None);
    }

    /// Returns true if all volumes that are asked have answered once, or count as silent.
    pub(crate) fn is_complete(&self, now_ms: u64) -> bool {
        self.0.iter().all(|(name, one)| one.view.is_some() || one.show(name, now_ms).is_some())
    }

    /// Returns true if no volume is asked.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.values().all(|one| one.asked_ms.is_none())
    }

    /// All of them, as they are shown.
    pub(crate) fn views(&self, now_ms: u64) -> Map<String, Value> {
        let shown = self.0.iter().filter_map(|(name, one)| {
            let view = one.show(name, now_ms).or_else(|| one.view.clone())?;
            Some((name.clone(), view))
        });
        shown.collect()
    }
}

impl One {
    /// Returns the view of a volume while it is silent.
    fn show(&self, name: &str, now_ms: u64) -> Option<Value> {
        let patience = if self.view.is_some() { PATIENCE } else { FIRST };
        let waits = self
            .asked_ms
            .filter(|asked| u128::from(now_ms.saturating_sub(*asked)) >= patience.as_millis());
        let (since, why, next) = match (&self.silent, waits) {
            (Some((since, why, next)), _) => (*since, why.clone(), next.clone()),
            (None, Some(asked)) => {
                let error = braid_control::ControlError::TimedOut(patience);
                (asked, error.to_string(), error.next(name))
            }
            (None, None) => return None,
        };
        let mut view = not_told(name, "stalled", Some(&why), &next);
        view["silent_since_ms"] = since.into();
        Some(view)
    }
}

/// Returns the view of a volume that says nothing of itself.
pub(crate) fn not_told(name: &str, state: &str, why: Option<&str>, next: &str) -> Value {
    let health = Health::of_state(state);
    json!({ "name": name, "state": state, "health": health, "why": why, "next": next })
}

/// Returns the health of all volumes by their views.
pub(crate) fn health_of(views: &Map<String, Value>) -> Health {
    let health = |view: &Value| Health::deserialize(&view["health"]).unwrap_or(Health::Failed);
    Health::of_all(views.values().map(health))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn one_that_does_not_answer_is_silent_since_it_was_asked_and_keeps_nobody_waiting() {
        let mut seen = Seen::default();
        let both = there(&["a", "b"]);
        assert_eq!(seen.begin(&both, 1000), ["a", "b"]);
        seen.hear("a", Heard::View(json!({ "state": "online" })));
        assert!(!seen.is_complete(1000) && !seen.is_idle());
        // It is not asked twice at a time; the other goes on.
        assert_eq!(seen.begin(&both, 1500), ["a"]);
        seen.hear("a", Heard::View(json!({ "state": "degraded" })));
        assert_eq!(seen.views(1500).len(), 1, "what was never heard of is not guessed at");
        let views = seen.views(4000);
        assert_eq!(
            (&views["a"]["state"], &views["b"]["state"]),
            (&json!("degraded"), &json!("stalled"))
        );
        assert_eq!(views["b"]["silent_since_ms"], 1000);
        assert!(seen.is_complete(4000));
        // Its time is over, and it is asked again: it has been silent since the first time.
        seen.hear("b", Heard::Silent("did not answer".into(), "look".into()));
        assert!(seen.begin(&both, 6000).contains(&"b".to_owned()));
        // Its time is over once more, which begins no new silence.
        seen.hear("b", Heard::Silent("did not answer".into(), "look".into()));
        let silent = &seen.views(6000)["b"];
        assert_eq!(
            (&silent["silent_since_ms"], &silent["why"]),
            (&json!(1000), &json!("did not answer"))
        );
        seen.hear("b", Heard::View(json!({ "state": "online" })));
        assert_eq!(seen.views(6000)["b"], json!({ "state": "online" }));
        // A late answer of a volume that is gone is dropped.
        assert_eq!(seen.begin(&there(&["b"]), 7000), ["b"]);
        seen.hear("a", Heard::View(json!({})));
        assert_eq!(seen.views(7000).len(), 1);
    }

    #[test]
    fn what_it_said_last_is_shown_until_it_is_taken_for_silent() {
        let mut seen = Seen::default();
        let one = there(&["a"]);
        seen.begin(&one, 0);
        seen.hear("a", Heard::View(json!({ "state": "online" })));
        assert!(seen.is_idle());
        seen.begin(&one, 500);
        assert_eq!(seen.views(3499)["a"]["state"], "online");
        assert_eq!(seen.views(3500)["a"]["state"], "stalled");
        seen.hear("a", Heard::Gone(json!({ "state": "gone" })));
        assert_eq!(seen.views(9000)["a"]["state"], "gone");
    }
}
