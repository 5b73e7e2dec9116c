//! Time for the engine: the machine's clocks and the executor's timers.

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

use crate::Handle;
use braid_engine::{Clock, Tasks};

/// The clocks of the machine and the timers of an executor. All of one executor show the same time.
pub struct ExecutorClock {
    handle: Handle,
}

impl ExecutorClock {
    /// For arrays that live on the executor of `handle`.
    pub fn new(handle: &Handle) -> ExecutorClock {
        ExecutorClock { handle: handle.clone() }
    }
}

impl Clock for ExecutorClock {
    #[inline]
    fn now(&self) -> Duration {
        self.handle.since_start(self.handle.now())
    }

    fn reading(&self) -> Duration {
        self.handle.since_start(self.handle.read_clock())
    }

    fn unix_time(&self) -> Duration {
        // A clock before 1970 is wrong, and nothing depends on it.
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()>>> {
        let handle = self.handle.clone();
        Box::pin(async move { handle.sleep(duration).await })
    }
}

impl Tasks for ExecutorClock {
    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()>>>) {
        self.handle.spawn(task);
    }
}
