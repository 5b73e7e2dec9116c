//! Warnings of a start, and the events that end each of them.
//!
//! ```text
//!   a member that is not used     until it takes part, or the array that lacked it is complete
//!   a risk of an array            until the array that was not complete is
//!   anything else                 until the volume's end
//! ```
//!
//! Deliberately absent: what the machine lacks, which `braid doctor` says, and what a start did, which it
//! says once.

use crate::control::ArrayStatus;

/// A warning of the start.
#[derive(Clone, Debug)]
pub struct Warning {
    pub text: String,
    /// The array that it is about, by its identifier.
    array: Option<String>,
    /// The member that is not used.
    member: Option<String>,
}

impl Warning {
    /// Holds to the volume's end.
    pub(super) fn lasting(text: String) -> Warning {
        Warning { text, array: None, member: None }
    }

    /// About an array, and a member that is not used, if it is that.
    pub(super) fn of_array(text: String, array: String, member: Option<String>) -> Warning {
        Warning { text, array: Some(array), member }
    }

    fn array<'a>(&self, arrays: &'a [ArrayStatus]) -> Option<&'a ArrayStatus> {
        let uuid = self.array.as_ref()?;
        arrays.iter().find(|one| one.uuid.as_ref() == Some(uuid))
    }
}

/// The warnings of a start, each with whether its array lacked a member then.
pub(super) struct Warnings(Vec<(Warning, bool)>);

fn is_complete(array: &ArrayStatus) -> bool {
    array.in_sync.iter().all(|in_sync| *in_sync)
}

impl Warnings {
    /// As the start found it, with its arrays as they are then.
    pub(super) fn new(found: Vec<Warning>, arrays: &[ArrayStatus]) -> Warnings {
        let with = |one: Warning| {
            let was_short = one.array(arrays).is_some_and(|array| !is_complete(array));
            (one, was_short)
        };
        Warnings(found.into_iter().map(with).collect())
    }

    /// Those that still hold.
    pub(super) fn now(&self, arrays: &[ArrayStatus]) -> Vec<String> {
        let holds = |(one, was_short): &&(Warning, bool)| {
            let Some(array) = one.array(arrays) else { return true };
            let is_used = |member: &String| {
                array.members.iter().any(|one| one.member == *member && one.state != "faulty")
            };
            let has_ended = *was_short && is_complete(array);
            !has_ended && !one.member.as_ref().is_some_and(is_used)
        };
        self.0.iter().filter(holds).map(|(one, _)| one.text.clone()).collect()
    }
}
