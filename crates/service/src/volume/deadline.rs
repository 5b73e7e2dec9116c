//! Time limits for requests to members.

use std::str::FromStr;
use std::time::Duration;

use braid_device::Deadline;
use braid_stack::Latency;
use serde::{Deserialize, Serialize};

/// The default time limit of a member.
const USUAL: Duration = Deadline::USUAL;

/// The least that can be asked for: a disk that has to turn its heads, or a stick that tidies up, is not
/// dead.
const LEAST: Duration = Duration::from_secs(1);

/// Time limits for requests to members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Latency", into = "Latency")]
pub enum MemberDeadline {
    /// 30 s below arrays that can go on without a member, of members that are used without page cache;
    /// else for ever. A member without a substitute is waited for.
    #[default]
    Usual,
    /// For ever, all of them.
    Never,
    /// So long, all of them.
    After(Latency),
}

impl MemberDeadline {
    /// Returns true for the default.
    pub fn is_usual(&self) -> bool {
        *self == MemberDeadline::Usual
    }

    /// Returns the limit of a member that `is_below` an array that survives losses, and `is_direct`ly used.
    pub(super) fn of(self, is_below: bool, is_direct: bool) -> Option<Duration> {
        match self {
            MemberDeadline::Usual => (is_below && is_direct).then_some(USUAL),
            MemberDeadline::Never => None,
            MemberDeadline::After(limit) => Some(limit.duration()),
        }
    }
}

impl TryFrom<Latency> for MemberDeadline {
    type Error = String;

    fn try_from(limit: Latency) -> Result<MemberDeadline, String> {
        match limit.duration() {
            Duration::ZERO => Ok(MemberDeadline::Never),
            short if short < LEAST => {
                Err(format!("a deadline of {limit:#} is too short: from 1s on, or 0 for none"))
            }
            _ => Ok(MemberDeadline::After(limit)),
        }
    }
}

impl From<MemberDeadline> for Latency {
    /// [`MemberDeadline::Usual`] is not written.
    fn from(deadline: MemberDeadline) -> Latency {
        match deadline {
            MemberDeadline::Usual | MemberDeadline::Never => Latency(0),
            MemberDeadline::After(limit) => limit,
        }
    }
}

impl FromStr for MemberDeadline {
    type Err = String;

    fn from_str(text: &str) -> Result<MemberDeadline, String> {
        let limit: Latency = text.parse().map_err(|error| format!("{error}"))?;
        MemberDeadline::try_from(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for text in ["1s", "90s", "0s"] {
            let deadline: MemberDeadline = text.parse().expect("a deadline");
            assert_eq!(Latency::from(deadline).to_string(), text);
            assert_eq!(MemberDeadline::try_from(Latency::from(deadline)), Ok(deadline));
        }
        for (text, why) in [("999ms", "too short"), ("30", "unit"), ("soon", "")] {
            let refused = text.parse::<MemberDeadline>().expect_err("no deadline");
            assert!(refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn what_has_nobody_to_stand_in_for_it_is_waited_for() {
        let usual = MemberDeadline::Usual;
        assert_eq!(usual.of(true, true), Some(USUAL));
        assert_eq!([usual.of(false, true), usual.of(true, false)], [None; 2]);
        assert_eq!(MemberDeadline::Never.of(true, true), None);
        let told: MemberDeadline = "2s".parse().expect("a deadline");
        assert_eq!(told.of(false, false), Some(Duration::from_secs(2)));
    }
}
