//! The clock of an executor, which is read at most once a turn.

use std::cell::Cell;
use std::time::Instant;

/// The time of a turn: that of the last reading of the clock in this turn.
pub(crate) struct TimeOfTurn {
    pub(crate) start: Instant,
    now: Cell<Option<Instant>>,
    pub(crate) readings: Cell<u64>,
}

impl Default for TimeOfTurn {
    fn default() -> TimeOfTurn {
        TimeOfTurn { start: Instant::now(), now: Cell::new(None), readings: Cell::new(0) }
    }
}

impl TimeOfTurn {
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        self.now.get().unwrap_or_else(|| self.read())
    }

    pub(crate) fn read(&self) -> Instant {
        let now = Instant::now();
        self.now.set(Some(now));
        self.readings.set(self.readings.get() + 1);
        now
    }

    /// Another turn begins.
    pub(crate) fn pass(&self) {
        self.now.set(None);
    }
}
