//! The choice between sleeping and a short poll.
//!
//! A thread that sleeps for a result is woken by the kernel, often on another processor: that takes longer than a small
//! request. A client with one request at a time pays it each time. So a wait begins with a poll of at most [`WINDOW`]
//! if the last wait was short and brought few results. Results and requests that come together are left to sleep for: then
//! the cost of being woken is shared.
//!
//! Invariant: polls that find nothing cost at most [`WINDOW`] in [`LEAST_SKIPPED`] waits, and less the longer that goes
//! on. This is the case where the client needs the processor of this thread.

use std::cell::Cell;
use std::time::Duration;

/// The longest poll: about what being woken takes.
pub(crate) const WINDOW: Duration = Duration::from_micros(25);

/// A wait that is no longer, most of which is being woken, may be short enough for a poll.
const SHORT: Duration = Duration::from_micros(100);

/// The most results of a turn that belong to one request at a time: one that is received, one that is sent.
const FEW: usize = 2;

/// Waits without a poll after one that found nothing; twice as many after the next, up to [`MOST_SKIPPED`].
const LEAST_SKIPPED: u32 = 32;
const MOST_SKIPPED: u32 = 4096;

/// The waits so far, as far as they matter for the next.
#[derive(Default)]
pub(crate) struct ShortPoll {
    had_few: Cell<bool>,
    /// The last wait was short, and brought few results.
    is_short: Cell<bool>,
    /// Waits to come that are not polled.
    skip: Cell<u32>,
    /// The number to skip after the next poll without a result; 0 if the last one had results.
    skip_next: Cell<u32>,
}

impl ShortPoll {
    /// Returns true if the wait that begins now is to poll first.
    pub(crate) fn is_worth(&self) -> bool {
        if !self.is_short.get() {
            return false;
        }
        let skip = self.skip.get();
        self.skip.set(skip.saturating_sub(1));
        skip == 0
    }

    /// Takes note of a poll that found nothing in its window.
    pub(crate) fn missed(&self) {
        let skip = self.skip_next.get().max(LEAST_SKIPPED);
        self.skip.set(skip);
        self.skip_next.set((2 * skip).min(MOST_SKIPPED));
    }

    /// Takes note of a poll that found something.
    pub(crate) fn hit(&self) {
        self.skip_next.set(0);
    }

    /// Takes note of more than the results show: the other side does not wait for each answer.
    pub(crate) fn prefer_sleep(&self) {
        self.skip.set(self.skip.get().max(LEAST_SKIPPED));
    }

    /// Returns true if the wait that begins now is to be timed: the last one brought few results.
    pub(crate) fn is_timed(&self) -> bool {
        self.had_few.get()
    }

    /// Takes note of a whole wait, `after` such a time if it was timed, and of its results.
    pub(crate) fn ended(&self, after: Option<Duration>, results: usize) {
        let has_few = (1..=FEW).contains(&results);
        self.had_few.set(has_few);
        self.is_short.set(has_few && after.is_some_and(|after| after <= SHORT));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_micros(40);

    #[test]
    fn only_short_waits_with_few_results_are_followed_by_a_poll() {
        let poll = ShortPoll::default();
        assert!(!poll.is_worth(), "nothing is known of the first");
        for (after, results, is_worth) in [
            (SOON, 1, true),
            (SOON, FEW, true),
            (SOON, FEW + 1, false),
            (SOON, 0, false),
            (SHORT + WINDOW, 1, false),
        ] {
            poll.ended(Some(after), results);
            assert_eq!(poll.is_worth(), is_worth, "{after:?}, {results}");
        }
    }

    #[test]
    fn waits_are_timed_after_few_results() {
        let poll = ShortPoll::default();
        for (results, is_timed) in [(0, false), (1, true), (FEW, true), (FEW + 1, false)] {
            poll.ended(None, results);
            assert_eq!(poll.is_timed(), is_timed, "{results}");
            assert!(!poll.is_worth(), "a wait of unknown length");
        }
    }

    #[test]
    fn a_sender_that_does_not_wait_is_slept_for() {
        let poll = ShortPoll::default();
        poll.ended(Some(SOON), 1);
        poll.prefer_sleep();
        assert_eq!((0..).find(|_| poll.is_worth()), Some(LEAST_SKIPPED));
    }

    #[test]
    fn polls_without_results_become_rare_and_one_with_results_makes_them_usual_again() {
        let poll = ShortPoll::default();
        poll.ended(Some(SOON), 1);
        let waits_until_next = || (0..).find(|_| poll.is_worth()).expect("one comes");
        assert_eq!(waits_until_next(), 0);
        let mut expected = LEAST_SKIPPED;
        for _ in 0..10 {
            poll.missed();
            assert_eq!(waits_until_next(), expected);
            expected = (2 * expected).min(MOST_SKIPPED);
        }
        assert_eq!(expected, MOST_SKIPPED);
        poll.hit();
        assert_eq!(waits_until_next(), 0);
        poll.missed();
        assert_eq!(waits_until_next(), LEAST_SKIPPED);
    }
}
