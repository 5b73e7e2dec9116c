//! How a write-back cache comes up, and what it does of itself while it is up.

use std::rc::Rc;

use super::core::{Phase, WriteBack};
use super::together::either;
use crate::log::store::{Log, LogError, Replayed};

impl WriteBack {
    /// Opens the log, and writes to the origin what it holds. Nothing may be asked before.
    ///
    /// # Errors
    /// [`LogError`].
    pub(crate) async fn restart(&self) -> Result<Option<Replayed>, LogError> {
        let Some(setup) = &self.setup else { return Ok(None) };
        let opened = Log::open(setup, &self.held.origin, &self.pool, self.block).await;
        let (log, replayed) = opened?;
        if log.is_none() {
            self.phase.set(Phase::Volatile);
        }
        self.log.replace(log.map(Rc::new));
        self.replayed.set(Some(replayed));
        Ok(Some(replayed))
    }

    /// Writes the log, drains, carries out what changes the origin: without end.
    pub(crate) async fn run(self: Rc<Self>) {
        let log_and_origin = either(self.commit_in_turns(), self.drain_in_time());
        either(log_and_origin, self.operate_as_asked()).await;
    }
}
