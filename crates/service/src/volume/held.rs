//! The memory that the kernel holds for RAM disks. Asking for it is expensive, and therefore rare.
//!
//! The kernel walks the page tables of the whole process for an answer, with what maps and faults waiting: some
//! milliseconds for each GiB. Invariant: answers take a hundredth of the time at most, however often a
//! status is asked for; in between the last one stands.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An answer stands for so many times as long as it took.
const STANDS: u32 = 100;

/// The last answer.
#[derive(Debug, Default)]
pub(super) struct Held(Mutex<Option<Answer>>);

#[derive(Debug)]
struct Answer {
    at: Instant,
    took: Duration,
    /// For each RAM disk, in bytes; none where the kernel does not say.
    bytes: Vec<Option<u64>>,
}

impl Held {
    /// For `count` RAM disks: the last answer, or what `ask` says.
    pub(super) fn of(
        &self,
        count: usize,
        ask: impl FnOnce() -> Vec<Option<u64>>,
    ) -> Vec<Option<u64>> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = last.as_ref()
            && answer.bytes.len() == count
            && answer.at.elapsed() < answer.took * STANDS
        {
            return answer.bytes.clone();
        }
        let began = Instant::now();
        let bytes = ask();
        let at = Instant::now();
        *last = Some(Answer { at, took: at - began, bytes: bytes.clone() });
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_dear_is_not_asked_again_soon() {
        let held = Held::default();
        let slow = || {
            std::thread::sleep(Duration::from_millis(100));
            vec![Some(1)]
        };
        assert_eq!(held.of(1, slow), [Some(1)]);
        assert_eq!(held.of(1, || vec![Some(2)]), [Some(1)], "it stands for ten seconds");
        assert_eq!(held.of(2, || vec![Some(2), None]), [Some(2), None], "there is another disk");
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(held.of(2, || vec![None, None]), [None, None], "that took next to nothing");
    }
}
