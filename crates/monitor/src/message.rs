//! Events as a receiver gets them: a mail's subject and text, a webhook's JSON, a program's arguments and
//! environment. Pure.

use std::collections::BTreeMap;

use braid_shell::shown;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::event::Event;
use crate::span::time;

/// Raised when a key of the JSON changes its meaning or goes.
const OUTPUT_VERSION: u32 = 1;

/// One event, or many at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Message {
    pub(crate) events: Vec<Event>,
    /// Further events, by their names and what they are of.
    pub(crate) more: BTreeMap<String, u64>,
    /// Further events that are not even counted by name.
    pub(crate) others: u64,
    /// Events before these that could not be delivered to the receiver.
    pub(crate) undelivered: u64,
}

impl Message {
    pub(crate) fn of(event: Event) -> Message {
        Message { events: vec![event], ..Message::default() }
    }

    /// The number of its events.
    pub(crate) fn count(&self) -> u64 {
        let events = u64::try_from(self.events.len()).unwrap_or(u64::MAX);
        self.more.values().sum::<u64>() + self.others + events
    }

    fn single(&self) -> Option<&Event> {
        self.events.first().filter(|_| self.count() == 1)
    }

    /// As mdadm's: what, where, which machine.
    pub(crate) fn subject(&self, host: &str) -> String {
        let subject = match self.single() {
            Some(event) => {
                let again = if event.reminder { "still: " } else { "" };
                let of = event.ended.as_ref().map_or(String::new(), |was| format!(" ({was})"));
                format!("{again}{}{of} event on {}:{host}", event.name, event.place())
            }
            None => format!("{} events on volumes of {host}", self.count()),
        };
        // What a member is called may be anything, and a header is one line.
        shown(&subject).into_owned()
    }

    /// For people.
    pub(crate) fn text(&self, host: &str) -> String {
        let mut parts = Vec::new();
        if self.single().is_none() {
            parts.push(format!(
                "More happened than messages may be sent: {} events are told at once.\n",
                self.count()
            ));
        }
        parts.extend(self.events.iter().map(|event| of_event(event, host)));
        if !self.more.is_empty() || self.others > 0 {
            let mut counts = "And, only counted:\n".to_owned();
            let others =
                (self.others > 0).then(|| ("of other kinds and places".to_owned(), self.others));
            for (what, count) in self.more.clone().into_iter().chain(others) {
                counts.push_str(&format!("  {count:>6}  {what}\n"));
            }
            parts.push(counts);
        }
        if self.undelivered > 0 {
            parts.push(format!("{} events before could not be delivered.\n", self.undelivered));
        }
        parts.push(format!("`braid status` on {host} shows how volumes are now.\n"));
        parts.join("\n")
    }

    /// For programs: the body of a webhook.
    pub(crate) fn json(&self, host: &str) -> Value {
        json!({
            "output_version": OUTPUT_VERSION,
            "host": host,
            "subject": self.subject(host),
            "count": self.count(),
            "events": self.events,
            "only_counted": self.more,
            "others": self.others,
            "undelivered_before": self.undelivered,
        })
    }

    /// mdadm's arguments to a program: the event, the device, and the component if there is one.
    pub(crate) fn arguments(&self) -> Vec<String> {
        match self.single() {
            Some(event) => {
                let words = [event.name.as_str(), event.device_or_name()].into_iter();
                words.chain(event.member.as_deref()).map(ToOwned::to_owned).collect()
            }
            None => vec!["ManyEvents".to_owned(), "machine".to_owned()],
        }
    }

    /// Further facts for a program.
    pub(crate) fn environment(&self, host: &str) -> Vec<(&'static str, String)> {
        let mut all = vec![
            ("BRAID_HOST", host.to_owned()),
            ("BRAID_TEXT", self.text(host)),
            ("BRAID_JSON", self.json(host).to_string()),
        ];
        let Some(event) = self.single() else { return all };
        let optional = |value: &Option<String>| value.clone().unwrap_or_default();
        all.extend([
            ("BRAID_SEVERITY", event.severity.word().to_owned()),
            ("BRAID_VOLUME", event.volume.clone()),
            ("BRAID_ARRAY", optional(&event.array)),
            ("BRAID_MEMBER", optional(&event.member)),
            ("BRAID_SINCE", time(event.since)),
            ("BRAID_WHAT", event.what.clone()),
            ("BRAID_MEANING", event.meaning.clone()),
            ("BRAID_NEXT", optional(&event.next)),
            ("BRAID_ENDED", optional(&event.ended)),
        ]);
        // No environment takes a zero byte, which a path has none of; what is typed may.
        all.iter_mut().for_each(|(_, value)| value.retain(|c| c != '\0'));
        all
    }
}

/// The event, its time, its meaning, and the next command.
fn of_event(event: &Event, host: &str) -> String {
    let mut lines = vec![
        ("event", format!("{} ({})", event.name, severity(event))),
        ("where", format!("{}, on {host}", event.place())),
    ];
    lines.extend(event.device.clone().map(|device| ("device", device)));
    let since = match event.reminder {
        true => format!("{}, and still so", time(event.since)),
        false => time(event.since),
    };
    lines.extend([
        ("what", event.what.clone()),
        ("since", since),
        ("meaning", event.meaning.clone()),
    ]);
    lines.extend(event.next.clone().map(|next| ("next", next)));
    lines.iter().map(|(key, value)| format!("{key:>8}: {}\n", shown(value))).collect()
}

/// The severity; for an ended event, its former severity.
fn severity(event: &Event) -> String {
    let word = event.severity.word();
    if event.ended.is_some() { format!("was {word}") } else { word.to_owned() }
}

/// One line, for a log.
pub(crate) fn line(event: &Event) -> String {
    let next = event.next.as_ref().map_or(String::new(), |next| format!("; next: {next}"));
    let again = if event.reminder { "still " } else { "" };
    let place = event.place();
    let severity = severity(event);
    shown(&format!("{again}{} on {place} ({severity}): {}{next}", event.name, event.what))
        .into_owned()
}
