//! Start of write-back mode, and its background task.

use std::rc::Rc;

use super::core::{Phase, WriteBack};
use super::future_set::either;
use crate::canary::Canary;
use crate::log::error::{LogError, Replayed};
use crate::log::store::Log;

impl WriteBack {
    /// Opens the log, and replays it to the origin. Call it before the first request.
    ///
    /// # Errors
    /// [`LogError`].
    pub(crate) async fn restart(&self) -> Result<Option<Replayed>, LogError> {
        let setup = self.setup.borrow().clone();
        let Some(setup) = setup else { return Ok(None) };
        let opened = Log::open(&setup, &self.state.origin, &self.pool, self.block).await;
        let (log, replayed) = opened?;
        if log.is_none() {
            self.phase.set(Phase::Volatile);
        }
        self.log.replace(log.map(Rc::new));
        self.replayed.set(Some(replayed));
        Ok(Some(replayed))
    }

    /// Locks out changes until [`WriteBack::begin`].
    pub(crate) fn lock_out_changes(&self) {
        self.waiting.replace(Some(self.changes.take_free(0..u64::MAX)));
    }

    /// Starts write-back mode: the origin has completed all requests that bypassed it.
    pub(crate) fn begin(&self) {
        // The next flush must cover the requests that bypassed the cache, too.
        if !Canary::SwitchNotFlushed.is_planted() {
            self.passed.set(self.passed.get() + 1);
        }
        self.waiting.take();
    }

    /// Cancels the start of write-back mode: writes go through.
    pub(crate) async fn cancel_begin(&self) {
        // The log is empty: if it cannot be closed, there is nothing to replay.
        let _ = self.settle().await;
        self.is_closed.set(true);
        self.release_device();
        self.waiting.take();
    }

    /// Releases the log's device, so that its owner can unlock it.
    pub(super) fn release_device(&self) {
        self.log.take();
        self.setup.take();
    }

    /// Commits, drains and carries out operations; never ends.
    pub(crate) async fn run(self: Rc<Self>) {
        let log_and_origin = either(self.run_commits(), self.run_drain());
        either(log_and_origin, self.run_operations()).await;
    }
}
