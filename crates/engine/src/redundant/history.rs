//! The jobs of an array: passes that run or ran, and scrubs from the order to their end, each with a number.
//!
//! ```text
//!   an order ──▶ waiting ──▶ running ──▶ done          a scrub that is interrupted waits again
//!                   │          │ └─────▶ failed
//!                   └──────────┴───────▶ ended         by an order, or because its time is over
//!   resync, recovery, replacement ──▶ running ──▶ done, failed, ended
//! ```
//!
//! Invariants
//! * At most one job runs, and at most one scrub waits or runs.
//! * Numbers grow, also over restarts of the volume while the clock does not go back: a number is the time when
//!   the job came up, in milliseconds since 1970, or one more than the last.

use std::collections::VecDeque;
use std::time::Duration;

use super::kind::JobKind;

/// Jobs that are kept.
const KEPT: usize = 16;

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// Asked for; another pass goes first.
    Waiting,
    /// Under way.
    Running,
    /// Came to its end.
    Done,
    /// Could not go on, or left something undone that it was for.
    Failed,
    /// Ended before its end: by an order, or its reason is gone.
    Ended,
}

/// A job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRecord {
    /// Tells it from other jobs of the array.
    pub number: u64,
    /// Its purpose.
    pub kind: JobKind,
    /// The member that is filled.
    pub member: Option<String>,
    /// Its state.
    pub state: JobState,
    /// Progress in bytes, and where it ends; 0 before it ran.
    pub done: u64,
    /// In bytes.
    pub total: u64,
    /// When it came up, in unix time.
    pub began: Duration,
    /// When it ended, in unix time.
    pub ended: Option<Duration>,
    /// Why it failed.
    pub why: Option<String>,
}

impl JobRecord {
    fn is_open(&self) -> bool {
        self.ended.is_none()
    }

    fn end(&mut self, state: JobState, now: Duration) {
        self.state = state;
        self.ended = Some(now);
    }
}

/// The last jobs of an array, the oldest first. Times are unix time.
#[derive(Default)]
pub(super) struct History(VecDeque<JobRecord>);

impl History {
    fn scrub(&mut self) -> Option<&mut JobRecord> {
        self.0.iter_mut().find(|job| job.is_open() && job.kind.is_scrub())
    }

    fn running(&mut self) -> Option<&mut JobRecord> {
        self.0.iter_mut().find(|job| job.state == JobState::Running)
    }

    fn add(&mut self, kind: JobKind, member: Option<String>, state: JobState, now: Duration) {
        let at = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let number = self.0.back().map_or(at, |last| at.max(last.number + 1));
        let (done, total, ended, why) = (0, 0, None, None);
        let began = now;
        self.0.push_back(JobRecord { number, kind, member, state, done, total, began, ended, why });
        // The oldest that has ended: a scrub may wait for longer than many passes take.
        if self.0.len() > KEPT
            && let Some(oldest) = self.0.iter().position(|job| !job.is_open())
        {
            self.0.remove(oldest);
        }
    }

    /// An order asks for a scrub, or ends the one that waits or runs.
    pub(super) fn order(&mut self, kind: Option<JobKind>, now: Duration) {
        if let Some(scrub) = self.scrub() {
            // The pass that runs goes on for the new order.
            if Some(scrub.kind) == kind {
                return;
            }
            scrub.end(JobState::Ended, now);
        }
        if let Some(kind) = kind {
            self.add(kind, None, JobState::Waiting, now);
        }
    }

    /// A pass begins.
    pub(super) fn begin(&mut self, kind: JobKind, member: Option<&str>, now: Duration) {
        if let Some(scrub) = self.scrub().filter(|scrub| scrub.kind == kind) {
            scrub.state = JobState::Running;
            return;
        }
        self.add(kind, member.map(str::to_owned), JobState::Running, now);
    }

    /// The pass that runs came so far.
    pub(super) fn reached(&mut self, done: u64, total: u64) {
        if let Some(job) = self.running() {
            (job.done, job.total) = (done, total);
        }
    }

    /// The pass that runs is over.
    pub(super) fn end(&mut self, end: Result<bool, String>, now: Duration) {
        let Some(job) = self.running() else { return };
        match end {
            Ok(true) => job.end(JobState::Done, now),
            Ok(false) if job.kind.is_scrub() => job.state = JobState::Waiting,
            Ok(false) => job.end(JobState::Ended, now),
            Err(why) => {
                job.why = Some(why);
                job.end(JobState::Failed, now);
            }
        }
    }

    /// The jobs that are kept, the oldest first.
    pub(super) fn all(&self) -> Vec<JobRecord> {
        self.0.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn states(history: &History) -> Vec<(JobKind, JobState)> {
        history.all().iter().map(|job| (job.kind, job.state)).collect()
    }

    #[test]
    fn a_scrub_is_one_job_from_its_order_to_its_end() {
        use JobKind::{Check, Recovery};
        use JobState::{Done, Ended, Running, Waiting};
        let mut history = History::default();
        history.begin(Recovery, Some("m"), at(1));
        history.order(Some(Check), at(2));
        assert_eq!(states(&history), [(Recovery, Running), (Check, Waiting)]);
        history.reached(5, 10);
        history.end(Ok(true), at(3));
        history.begin(Check, None, at(3));
        assert_eq!(states(&history), [(Recovery, Done), (Check, Running)]);
        // A member is filled first, and the scrub waits again.
        history.end(Ok(false), at(4));
        assert_eq!(states(&history)[1], (Check, Waiting));
        history.begin(Check, None, at(5));
        history.order(Some(Check), at(5));
        history.order(None, at(6));
        history.end(Ok(false), at(7));
        assert_eq!(states(&history)[1], (Check, Ended));
        let all = history.all();
        assert_eq!((all[0].done, all[0].total, all[0].ended), (5, 10, Some(at(3))));
        assert_eq!((all[1].began, all[1].ended), (at(2), Some(at(6))));
        assert_eq!((all[0].number, all[1].number), (1000, 2000));
    }

    #[test]
    fn numbers_differ_and_the_oldest_that_ended_goes() {
        let mut history = History::default();
        history.order(Some(JobKind::Repair), at(1));
        for _ in 0..2 * KEPT {
            history.begin(JobKind::Resync, None, at(1));
            history.end(Err("no".to_owned()), at(1));
        }
        let all = history.all();
        assert_eq!(all.len(), KEPT);
        assert_eq!(all[0].kind, JobKind::Repair, "it waits still");
        assert!(all.windows(2).all(|two| two[0].number < two[1].number));
        assert_eq!((all[1].state, all[1].why.as_deref()), (JobState::Failed, Some("no")));
    }
}
