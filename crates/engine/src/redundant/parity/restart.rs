//! Repair by the log after a crash, before the first request.
//!
//! ```text
//!   superblocks say "clean" ──▶ nothing to do; the log starts anew
//!   they say "active"       ──▶ partial parity: rows that were being written get the parity of
//!                               the old and the new data on the members
//!                           ──▶ records: complete records are replayed
//!                           ──▶ durable, and the array is in sync as far as it was
//! ```
//!
//! A log that is unreadable, even in part, does no harm: its rows are resynchronised, if all members are there.
//! If a member is missing, the array is not started.

use std::rc::Rc;

use braid_array::MemberSpan;
use braid_md::Resync;

use super::{Parity, rows_of_unit};
use crate::redundant::keeping::Inner;
use crate::redundant::kind::JobKind;
use crate::redundant::log::{Outcome, RestartError, Restarted};

impl Parity {
    /// Returns a line for the notes if a repair was made, which then has to be recorded.
    pub(super) async fn make_good(
        &self,
        inner: &Rc<Inner>,
    ) -> Result<Option<String>, RestartError> {
        let core = &inner.core;
        let Some(log) = self.log.as_ref().filter(|_| !core.read_only) else { return Ok(None) };
        let is_dirty = !core.agreement.is_clean();
        let Restarted { outcome, resync, unfit } =
            log.restart(core, &self.geometry, is_dirty).await?;
        for rows in unfit {
            self.make_fit(inner, rows).await;
        }
        match outcome {
            Outcome::Good(0) => Ok(None),
            Outcome::Good(count) => {
                let stopped = |_| RestartError::Write { why: "a flush failed".to_owned() };
                let _flushed = core.flush().await.map_err(stopped)?;
                core.agreement.restart_at(resync);
                Ok(Some(format!("{count} writes were made good by the log")))
            }
            Outcome::Doubtful(why) if core.gate.is_degraded() => Err(RestartError::Log { why }),
            Outcome::Doubtful(why) => {
                core.agreement.restart_at(Resync::From(0));
                Ok(Some(format!("the log cannot be used, all is resynchronised: {why}")))
            }
        }
    }

    async fn make_fit(&self, inner: &Rc<Inner>, rows: MemberSpan) {
        let chunk = self.geometry.chunk();
        let mut start = rows.offset;
        while start < rows.end() {
            let most = rows_of_unit(&self.geometry).min(chunk - start % chunk);
            let part = MemberSpan::new(start, (rows.end() - start).min(most));
            self.compare_rows(inner, part, JobKind::Resync).await;
            start = part.end();
        }
    }
}
