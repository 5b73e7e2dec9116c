//! From what volumes say at a time, and what was known before, to events.
//!
//! ```text
//!   Status ──view──▶ VolumeView ─┬─ the earlier one ──changes──▶ moments:  Fail, RebuildStarted, …
//!          └─conditions──────────┴─▶ causes that last ──opened, ended, or time to remind──▶ Event
//! ```
//!
//! Invariants:
//! * Pure: `now` is an argument, and time that goes backwards does no harm.
//! * A cause is told when it begins, and as `WellAgain` when it has been away for `settle`; one that comes back
//!   before is the same cause, and nothing is told.
//! * While a volume does not answer, what was known of it stands: nothing of it begins or ends.

mod changes;
mod conditions;
mod moves;
mod view;

use std::collections::{BTreeMap, BTreeSet};

use braid_control::{SpareMove, Status};
use serde::{Deserialize, Serialize};

use crate::event::{
    DEGRADED_ARRAY, DEVICE_DISAPPEARED, Event, FAIL, FAIL_SPARE, Kind, NEW_ARRAY, TEST_MESSAGE,
    WELL_AGAIN,
};
use changes::changes;
use conditions::{conditions, silence, thirst};
use moves::Moves;
pub(crate) use moves::Step;
use view::VolumeView;

/// The answer of a volume.
#[derive(Clone, Debug)]
pub(crate) enum Seen {
    /// It reported its status.
    Up(Box<Status>),
    /// It is there and does not answer.
    Silent(String),
    /// Its socket still exists, but the process is gone.
    Dead(String),
    /// It cannot be asked, or its answer is not understood.
    Unreadable(String),
}

/// Memory of the machine, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) total: u64,
    pub(crate) available: u64,
}

/// All volumes at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observation {
    pub(crate) volumes: BTreeMap<String, Seen>,
    pub(crate) memory: Option<Memory>,
}

/// When something is worth telling.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    /// Progress is told in steps of so many percent.
    pub(crate) increment: u8,
    /// A cause has ended when it has been away for so many seconds.
    pub(crate) settle: u64,
    /// A cause that lasts is told again after so many seconds; 0 for never.
    pub(crate) reminder: u64,
    /// The greatest permitted age of unwritten blocks in a cache, in seconds.
    pub(crate) write_back_age: u64,
    /// The greatest permitted use of a cache's log, in percent.
    pub(crate) log_full: u8,
    /// The memory of the machine that must be available, in bytes; `None` for a twentieth of it.
    pub(crate) memory: Option<u64>,
    /// The wanted number of spares of each volume.
    pub(crate) spares: BTreeMap<String, usize>,
}

/// An event before the time of its start is known.
#[derive(Clone, Debug)]
struct Draft {
    kind: &'static Kind,
    /// The event's name where that is not the kind's.
    name: Option<String>,
    array: Option<String>,
    member: Option<String>,
    what: String,
    next: Option<String>,
}

impl Draft {
    fn new(kind: &'static Kind, what: impl Into<String>) -> Draft {
        Draft { kind, name: None, array: None, member: None, what: what.into(), next: None }
    }

    fn array(mut self, array: &str) -> Draft {
        self.array = Some(array.to_owned());
        self
    }

    fn member(mut self, member: &str) -> Draft {
        self.member = Some(member.to_owned());
        self
    }

    fn next(mut self, next: Option<String>) -> Draft {
        self.next = next;
        self
    }

    /// The key that distinguishes its cause from others.
    fn cause(&self, volume: &str) -> String {
        let parts = [self.array.as_deref(), self.member.as_deref()];
        let parts = parts.map(|part| part.unwrap_or("-"));
        format!("{}:{volume}:{}:{}", self.kind.name, parts[0], parts[1])
    }

    fn event(self, volume: &str, device: Option<&str>, now: u64) -> Event {
        Event {
            cause: self.cause(volume),
            name: self.name.unwrap_or_else(|| self.kind.name.to_owned()),
            severity: self.kind.severity,
            volume: volume.to_owned(),
            device: device.map(ToOwned::to_owned),
            array: self.array,
            member: self.member,
            since: now,
            at: now,
            what: self.what,
            meaning: self.kind.meaning.to_owned(),
            next: self.next,
            ended: None,
            reminder: false,
        }
    }
}

/// A cause that lasts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Open {
    event: Event,
    told_at: u64,
    /// Since when it was not seen.
    away_since: Option<u64>,
}

/// The knowledge so far; kept over restarts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known {
    volumes: BTreeMap<String, VolumeView>,
    open: BTreeMap<String, Open>,
    #[serde(default)]
    moves: Moves,
}

impl Known {
    /// The events of `observation`, which is remembered.
    pub(crate) fn step(
        &mut self,
        observation: &Observation,
        policy: &Policy,
        now: u64,
    ) -> Vec<Event> {
        let mut told = self.disappeared(observation, now);
        let mut lasting = Vec::new();
        let spares_before = self.spares();
        // Volumes whose conditions are known: of the others what was open stays as it is.
        let mut answered: BTreeSet<&str> = BTreeSet::new();
        for (name, seen) in &observation.volumes {
            let device = self.volumes.get(name).and_then(|view| view.device.clone());
            let Seen::Up(status) = seen else {
                self.volumes.entry(name.clone()).or_default();
                lasting.push(silence(name, seen).event(name, device.as_deref(), now));
                continue;
            };
            answered.insert(name);
            let view = VolumeView::of(status, policy.increment);
            let before = self.volumes.insert(name.clone(), view.clone()).unwrap_or_default();
            let event = |draft: Draft| draft.event(name, view.device.as_deref(), now);
            let moments = changes(&before, &view, status, &spares_before);
            told.extend(moments.into_iter().map(event));
            lasting.extend(conditions(status, policy).into_iter().map(event));
            let of_moves = self.moves.conditions().remove(name.as_str()).unwrap_or_default();
            lasting.extend(of_moves.into_iter().map(event));
        }
        if let Some(memory) = observation.memory {
            answered.insert("");
            lasting.extend(thirst(memory, policy, observation).map(|one| one.event("", None, now)));
        }
        // What failed just now tells why the array is degraded.
        let failed = |array: &Event| {
            let is_failure = |name: &str| name == FAIL.name || name == FAIL_SPARE.name;
            array.name == DEGRADED_ARRAY.name
                && told.iter().any(|one| {
                    is_failure(&one.name) && one.volume == array.volume && one.array == array.array
                })
        };
        let silently: BTreeSet<String> =
            lasting.iter().filter(|one| failed(one)).map(|one| one.cause.clone()).collect();
        let seen: BTreeSet<String> = lasting.iter().map(|one| one.cause.clone()).collect();
        for event in lasting {
            told.extend(self.lasts(event, &silently, policy, now));
        }
        told.extend(self.end(&seen, &answered, policy, now));
        told
    }

    /// A `TestMessage` for each array that is up, or for the machine if none is.
    pub(crate) fn test_messages(observation: &Observation, now: u64) -> Vec<Event> {
        let test = || Draft::new(TEST_MESSAGE, "this is a test of the monitor's messages");
        let up = observation.volumes.iter().filter_map(|(name, seen)| match seen {
            Seen::Up(status) => Some((name, VolumeView::of(status, 100))),
            _ => None,
        });
        let events: Vec<Event> = up
            .flat_map(|(name, view)| {
                let of = |draft: Draft| draft.event(name, view.device.as_deref(), now);
                view.of_each(test).into_iter().map(of).collect::<Vec<_>>()
            })
            .collect();
        match events.is_empty() {
            true => vec![test().event("", None, now)],
            false => events,
        }
    }

    /// Causes that last now, the worst first.
    pub(crate) fn open(&self) -> Vec<&Event> {
        let mut open: Vec<&Event> = self.open.values().map(|open| &open.event).collect();
        open.sort_by_key(|event| std::cmp::Reverse(event.severity));
        open
    }

    /// The former place of each spare.
    fn spares(&self) -> BTreeMap<String, String> {
        let of = |(name, view): (&String, &VolumeView)| {
            view.spares()
                .map(|(array, member)| (member, format!("{name} {array}")))
                .collect::<Vec<_>>()
        };
        self.volumes.iter().flat_map(of).chain(self.moves.on_its_way()).collect()
    }

    /// The next move of a spare, after a look that began when no move was in progress any more.
    pub(crate) fn next_move(
        &mut self,
        observation: &Observation,
        now: u64,
    ) -> Option<(Step, SpareMove)> {
        self.moves.next(observation, now)
    }

    /// The outcome of the move of a spare.
    pub(crate) fn move_ended(&mut self, outcome: Result<(), String>, now: u64) {
        self.moves.ended(outcome, now);
    }

    /// Volumes that were there, and are not any more: nothing more is known of their causes.
    fn disappeared(&mut self, observation: &Observation, now: u64) -> Vec<Event> {
        let is_there = |name: &String| observation.volumes.contains_key(name);
        let gone: Vec<String> =
            self.volumes.keys().filter(|name| !is_there(name)).cloned().collect();
        self.open.retain(|_, open| !gone.contains(&open.event.volume));
        gone.iter()
            .flat_map(|name| {
                let view = self.volumes.remove(name).unwrap_or_default();
                let next = Some(format!("`braid up {name}` brings it up again"));
                let what =
                    || Draft::new(DEVICE_DISAPPEARED, "it is not up any more").next(next.clone());
                let of = |draft: Draft| draft.event(name, view.device.as_deref(), now);
                view.of_each(what).into_iter().map(of).collect::<Vec<_>>()
            })
            .collect()
    }

    /// The events of a cause that is present.
    fn lasts(
        &mut self,
        event: Event,
        silently: &BTreeSet<String>,
        policy: &Policy,
        now: u64,
    ) -> Option<Event> {
        let Some(open) = self.open.get_mut(&event.cause) else {
            let is_told = !silently.contains(&event.cause);
            let open = Open { event: event.clone(), told_at: now, away_since: None };
            self.open.insert(event.cause.clone(), open);
            return is_told.then_some(event);
        };
        open.away_since = None;
        if policy.reminder == 0 || now.saturating_sub(open.told_at) < policy.reminder {
            return None;
        }
        open.told_at = now;
        open.event = Event { since: open.event.since, ..event };
        Some(Event { reminder: true, ..open.event.clone() })
    }

    /// The events of causes that are no longer present.
    fn end(
        &mut self,
        seen: &BTreeSet<String>,
        answered: &BTreeSet<&str>,
        policy: &Policy,
        now: u64,
    ) -> Vec<Event> {
        let mut told = Vec::new();
        self.open.retain(|cause, open| {
            if seen.contains(cause) || !answered.contains(open.event.volume.as_str()) {
                return true;
            }
            let since = *open.away_since.get_or_insert(now);
            let is_settled = now.saturating_sub(since) >= policy.settle;
            if is_settled {
                told.push(well_again(&open.event, since, now));
            }
            !is_settled
        });
        told
    }
}

fn well_again(was: &Event, since: u64, now: u64) -> Event {
    Event {
        name: WELL_AGAIN.name.to_owned(),
        severity: was.severity,
        since,
        at: now,
        what: format!(
            "it is well again: {}, of {}, has ended ({})",
            was.name,
            crate::span::time(was.since),
            was.what
        ),
        meaning: WELL_AGAIN.meaning.to_owned(),
        next: None,
        ended: Some(was.name.clone()),
        reminder: false,
        ..was.clone()
    }
}

/// The events of a new array or volume.
fn is_new(view: &VolumeView) -> Vec<Draft> {
    view.of_each(|| Draft::new(NEW_ARRAY, "it is up"))
}

#[cfg(test)]
mod tests;
