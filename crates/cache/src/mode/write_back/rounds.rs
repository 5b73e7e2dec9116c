//! Numbered rounds of a worker: each round serves all requests made before it began.

use std::cell::Cell;

/// Rounds of a worker. The worker and the waiting requests use a signal of the owner.
#[derive(Default)]
pub(super) struct Rounds {
    wanted: Cell<u64>,
    begun: Cell<u64>,
    done: Cell<u64>,
    /// The last successful round.
    well: Cell<u64>,
}

impl Rounds {
    /// Requests a round, and returns its number: the next one to begin.
    pub(super) fn ask(&self) -> u64 {
        let turn = self.begun.get() + 1;
        self.wanted.set(turn);
        turn
    }

    /// Returns whether a request waits for a round to begin.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted.get() > self.begun.get()
    }

    /// Returns whether a round is in progress.
    pub(super) fn is_under_way(&self) -> bool {
        self.begun.get() > self.done.get()
    }

    /// Starts a round.
    pub(super) fn begin(&self) {
        self.begun.set(self.begun.get() + 1);
    }

    /// Ends a round.
    pub(super) fn end(&self, is_well: bool) {
        self.done.set(self.begun.get());
        if is_well {
            self.well.set(self.done.get());
        }
    }

    /// Returns whether `turn` succeeded, if it has ended. A later successful round counts, too.
    pub(super) fn outcome(&self, turn: u64) -> Option<bool> {
        (self.done.get() >= turn).then(|| self.well.get() >= turn)
    }
}
