//! How a write-back cache comes up, and what it does of itself while it is up.

use std::rc::Rc;

use super::core::{Phase, WriteBack};
use super::together::either;
use crate::canary::Canary;
use crate::log::error::{LogError, Replayed};
use crate::log::store::Log;

impl WriteBack {
    /// Opens the log, and writes to the origin what it holds. Nothing may be asked before.
    ///
    /// # Errors
    /// [`LogError`].
    pub(crate) async fn restart(&self) -> Result<Option<Replayed>, LogError> {
        let setup = self.setup.borrow().clone();
        let Some(setup) = setup else { return Ok(None) };
        let opened = Log::open(&setup, &self.held.origin, &self.pool, self.block).await;
        let (log, replayed) = opened?;
        if log.is_none() {
            self.phase.set(Phase::Volatile);
        }
        self.log.replace(log.map(Rc::new));
        self.replayed.set(Some(replayed));
        Ok(Some(replayed))
    }

    /// Who changes something waits, until [`WriteBack::begin`].
    pub(crate) fn have_changes_wait(&self) {
        self.waiting.replace(Some(self.changes.take_free(0..u64::MAX)));
    }

    /// The origin has answered whatever was asked past it: what is changed from now on is held.
    pub(crate) fn begin(&self) {
        // A flush has to cover that, too.
        if !Canary::SwitchNotFlushed.is_planted() {
            self.passed.set(self.passed.get() + 1);
        }
        self.waiting.take();
    }

    /// It does not begin: writes go through.
    pub(crate) async fn end_waiting(&self) {
        // Nothing is in the log: one that cannot be closed has nothing to replay either.
        let _ = self.settle().await;
        self.is_closed.set(true);
        self.let_go();
        self.waiting.take();
    }

    /// Whoever locked the log's device may unlock it.
    pub(super) fn let_go(&self) {
        self.log.take();
        self.setup.take();
    }

    /// Writes the log, drains, carries out what changes the origin: without end.
    pub(crate) async fn run(self: Rc<Self>) {
        let log_and_origin = either(self.commit_in_turns(), self.drain_in_time());
        either(log_and_origin, self.operate_as_asked()).await;
    }
}
