//! Work that is done in turns, each for all who asked before it began.

use std::cell::Cell;

/// Turns of one worker. The worker and those who ask tell each other by a signal of the owner's.
#[derive(Default)]
pub(super) struct Turns {
    wanted: Cell<u64>,
    begun: Cell<u64>,
    done: Cell<u64>,
    /// The last that ended well.
    well: Cell<u64>,
}

impl Turns {
    /// The next turn to begin: its number.
    pub(super) fn ask(&self) -> u64 {
        let turn = self.begun.get() + 1;
        self.wanted.set(turn);
        turn
    }

    /// Whether somebody waits for a turn to begin.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted.get() > self.begun.get()
    }

    /// Whether one has begun and not ended.
    pub(super) fn is_under_way(&self) -> bool {
        self.begun.get() > self.done.get()
    }

    /// A turn begins.
    pub(super) fn begin(&self) {
        self.begun.set(self.begun.get() + 1);
    }

    /// It has ended.
    pub(super) fn end(&self, is_well: bool) {
        self.done.set(self.begun.get());
        if is_well {
            self.well.set(self.done.get());
        }
    }

    /// Whether `turn` has ended; what one does well a later one does, too.
    pub(super) fn outcome(&self, turn: u64) -> Option<bool> {
        (self.done.get() >= turn).then(|| self.well.get() >= turn)
    }
}
