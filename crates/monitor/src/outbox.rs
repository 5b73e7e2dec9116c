//! The waiting events of one receiver, and their rate: a bucket of `burst` messages that gets another one at
//! regular times.
//!
//! ```text
//!   offer ──▶ events, the first KEPT of them in full ─┬─ they fit into the bucket: a message each
//!         └─▶ beyond: counted by name and volume      └─ they do not: one message that has them all
//! ```
//!
//! Invariants:
//! * Within any time `t`, at most `burst + t / every` messages are taken, however many events there were.
//! * Its size is bounded, and every offered event is in a message, in full or in a count.
//! * Pure: `now` is an argument, in seconds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::Event;
use crate::message::Message;

/// Events that are kept in full.
const KEPT: usize = 30;
/// Kinds of events, of a volume each, that are counted apart.
const COUNTED: usize = 100;

/// The rate of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    /// The number of messages at once.
    pub(crate) burst: u64,
    /// And then one in so many seconds.
    pub(crate) every: u64,
}

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outbox {
    events: Vec<Event>,
    more: BTreeMap<String, u64>,
    others: u64,
    /// The message that was taken, until its outcome is known.
    under_way: Option<Message>,
    /// Events that never reached the receiver.
    undelivered: u64,
    /// The time at which the bucket is full again.
    full_at: u64,
}

impl Outbox {
    /// Lets an event wait.
    pub(crate) fn offer(&mut self, event: Event) {
        if self.events.len() < KEPT {
            self.events.push(event);
            return;
        }
        // Progress is one kind, however far it is.
        let name = match event.name.strip_prefix("Rebuild") {
            Some(step) if step.bytes().all(|byte| byte.is_ascii_digit()) => "RebuildNN",
            _ => &event.name,
        };
        let key = format!("{name} of {}", event.place());
        if self.more.len() < COUNTED || self.more.contains_key(&key) {
            *self.more.entry(key).or_default() += 1;
        } else {
            self.others += 1;
        }
    }

    /// The next message, if there is something to tell and it may go.
    pub(crate) fn take(&mut self, limit: Limit, now: u64) -> Option<Message> {
        if self.under_way.is_some() || self.next_at(limit, now)? > now {
            return None;
        }
        let full_at = self.full_at(limit, now);
        let used = full_at.saturating_sub(now).div_ceil(limit.every.max(1));
        let free = limit.burst.saturating_sub(used);
        let all_fit = self.more.is_empty()
            && self.others == 0
            && u64::try_from(self.events.len()).is_ok_and(|events| events <= free);
        let events = match all_fit {
            true => self.events.drain(..1).collect(),
            false => std::mem::take(&mut self.events),
        };
        let message = Message {
            events,
            more: std::mem::take(&mut self.more),
            others: std::mem::take(&mut self.others),
            undelivered: self.undelivered,
        };
        self.full_at = full_at.max(now) + limit.every;
        self.under_way = Some(message.clone());
        Some(message)
    }

    /// When the next message may be taken; none if there is nothing to tell.
    pub(crate) fn next_at(&self, limit: Limit, now: u64) -> Option<u64> {
        let ahead = limit.every.saturating_mul(limit.burst.saturating_sub(1));
        // An event that is counted came after one that is kept.
        (!self.events.is_empty()).then(|| self.full_at(limit, now).saturating_sub(ahead))
    }

    /// A clock that was set back holds nothing up for longer than an empty bucket does.
    fn full_at(&self, limit: Limit, now: u64) -> u64 {
        self.full_at.min(now.saturating_add(limit.every.saturating_mul(limit.burst)))
    }

    /// The taken message has arrived, or never will.
    pub(crate) fn done(&mut self, is_delivered: bool) {
        let Some(message) = self.under_way.take() else { return };
        match is_delivered {
            true => self.undelivered = 0,
            false => self.undelivered += message.count(),
        }
    }

    /// The message in flight; when the monitor has ended meanwhile, it is taken again.
    pub(crate) fn under_way(&self) -> Option<&Message> {
        self.under_way.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use braid_seed::Rng;

    use super::*;
    use crate::event::{FAIL, REBUILD_NN};

    fn event(name: &str, volume: &str) -> Event {
        Event {
            name: name.to_owned(),
            severity: FAIL.severity,
            volume: volume.to_owned(),
            device: None,
            array: None,
            member: None,
            since: 1,
            at: 1,
            what: "a".repeat(200),
            meaning: String::new(),
            next: None,
            cause: String::new(),
            ended: None,
            reminder: false,
        }
    }

    const LIMIT: Limit = Limit { burst: 10, every: 300 };

    #[test]
    fn a_few_events_are_a_message_each() {
        let mut outbox = Outbox::default();
        (0..10).for_each(|_| outbox.offer(event("Fail", "home")));
        for _ in 0..10 {
            let message = outbox.take(LIMIT, 1000).expect("a message");
            assert_eq!(message.count(), 1);
            assert_eq!(outbox.take(LIMIT, 1000), None, "one at a time");
            outbox.done(true);
        }
        assert_eq!(outbox.next_at(LIMIT, 1000), None);
        outbox.offer(event("Fail", "home"));
        assert_eq!(outbox.next_at(LIMIT, 1000), Some(1300));
        assert_eq!(outbox.take(LIMIT, 1299), None);
        assert_eq!(outbox.take(LIMIT, 1300).map(|message| message.count()), Some(1));
    }

    #[test]
    fn a_storm_at_once_is_one_message_that_counts_all() {
        let mut outbox = Outbox::default();
        for index in 0..10_000 {
            outbox.offer(event("Fail", &format!("v{}", index % 500)));
            outbox.offer(event(
                &REBUILD_NN.name.replace("NN", &(index % 90 + 10).to_string()),
                "home",
            ));
        }
        assert!(serde_json::to_string(&outbox).expect("JSON").len() < 40_000);
        let message = outbox.take(LIMIT, 1000).expect("a message");
        assert_eq!(message.count(), 20_000);
        outbox.done(false);
        assert_eq!(outbox.take(LIMIT, 1000), None);
        outbox.offer(event("Fail", "home"));
        let message = outbox.take(LIMIT, 1000).expect("a message");
        assert_eq!((message.count(), message.undelivered), (1, 20_000));
    }

    /// Events at any time, a receiver of any speed: the bound holds, and nothing goes uncounted.
    #[test]
    fn storms_are_bounded_and_counted() {
        for seed in 0..40 {
            let mut rng = Rng::new(seed);
            let limit = Limit { burst: 1 + rng.below(12), every: 1 + rng.below(400) };
            let mut outbox = Outbox::default();
            let (mut now, mut offered, mut told) = (rng.below(1 << 40), 0, 0);
            let mut taken: Vec<u64> = Vec::new();
            for _ in 0..2000 {
                now += [0, 0, 1, rng.below(50)][usize::try_from(rng.below(4)).expect("small")];
                for _ in 0..rng.below(20) {
                    outbox.offer(event("Fail", &format!("v{}", rng.below(200))));
                    offered += 1;
                }
                if let Some(message) = outbox.take(limit, now) {
                    assert_eq!(outbox.under_way(), Some(&message));
                    told += message.count();
                    taken.push(now);
                }
                if rng.below(3) == 0 {
                    outbox.done(rng.below(2) == 0);
                }
            }
            for (index, start) in taken.iter().enumerate() {
                for (count, end) in (1..).zip(&taken[index..]) {
                    let most = limit.burst + (end - start) / limit.every;
                    assert!(count <= most, "{count} of {most}, seed {seed}");
                }
            }
            outbox.done(true);
            while let Some(at) = outbox.next_at(limit, now) {
                now = now.max(at);
                told += outbox.take(limit, now).map_or(0, |message| message.count());
                outbox.done(true);
            }
            assert_eq!(told, offered, "seed {seed}");
        }
    }

    #[test]
    fn a_clock_that_was_set_back_holds_nothing_up_for_long() {
        let mut outbox = Outbox::default();
        for _ in 0..100 {
            outbox.offer(event("Fail", "home"));
            outbox.take(LIMIT, 1 << 40);
            outbox.done(true);
        }
        outbox.offer(event("Fail", "home"));
        assert!(outbox.next_at(LIMIT, 1000).expect("something waits") <= 1000 + 300);
    }
}
