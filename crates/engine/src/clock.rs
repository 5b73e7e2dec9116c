//! Time, as the engine is given it.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// A clock and timers; the executor's, real or virtual.
pub trait Clock {
    /// Time since some moment in the past, which never goes back.
    fn now(&self) -> Duration;

    /// Time since 1970, for superblocks.
    fn unix_time(&self) -> Duration;

    /// Completes after `duration`.
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()>>>;
}
