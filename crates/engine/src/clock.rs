//! Time and tasks, as the engine and its leaves receive them.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// A clock and timers of the executor, real or virtual.
pub trait Clock {
    /// Returns the time since some moment in the past, which never goes back. It may be the time at which the
    /// executor's turn began: a reading of the machine's clock costs more than all that many requests need it for.
    fn now(&self) -> Duration;

    /// Reads the clock anew, to time what happens within a turn. [`Clock::now`] is not earlier from then on.
    fn reading(&self) -> Duration {
        self.now()
    }

    /// Returns the time since 1970, for superblocks.
    fn unix_time(&self) -> Duration;

    /// Completes after `duration`.
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()>>>;
}

/// A clock whose executor also runs tasks, for devices that do work of their own.
pub trait Tasks: Clock {
    /// Runs `task` beside the other tasks of this thread, until it completes.
    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()>>>);
}
