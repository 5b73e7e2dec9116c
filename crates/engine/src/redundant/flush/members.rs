//! Flushing the members, which makes what was written durable.
//!
//! ```text
//!   writes completed ──▶ flush of every member ──▶ Flushed
//!                                                    │ superblocks say who did not take part
//!                                                    ▼
//!                                                  Durable ──▶ a log may forget
//! ```
//!
//! A flush counts for the members that were asked and answered. A member that is out by then has
//! not been asked, and as long as superblocks count on it, a crash makes it a member in sync
//! again whose cache was never flushed. So a [`Flushed`] proves nothing to a log; [`Durable`]
//! does, and is had only when the membership that was flushed is the one that is recorded.
//!
//! Invariants
//! * Every flush of an array is made here: a flush that fails takes its member out, whoever
//!   asked, because no later flush can tell what the failed one lost.
//! * One flush of the members at a time, for all who asked before it began: one beside it could
//!   succeed on the member that the other is about to lose, and be answered before that is known.
//!
//! Source: Linux `drivers/md/md.c` (`md_flush_request`), which merges flushes in the same way.

use std::rc::Rc;

use braid_block::{Errno, Io};

use super::{Durable, Ended, Flushed};
use crate::canary::Canary;
use crate::join_all;
use crate::redundant::core::{Core, failures};

impl Flushed {
    /// The proof that a log needs, if superblocks on the members name the members that are out.
    pub(in crate::redundant) fn durable(&self, core: &Core) -> Option<Durable> {
        let is_recorded = core.publisher.recorded_generation() >= self.generation;
        let Flushed { of, number, units, .. } = *self;
        (is_recorded || Canary::LogForgottenBeforeFence.is_planted()).then_some(Durable {
            of,
            number,
            units,
        })
    }
}

impl Core {
    /// Flushes every member that is written. Members that fail at it are taken out.
    ///
    /// # Errors
    /// The last members failed at it, or nothing is written any more.
    pub(in crate::redundant) async fn flush(self: &Rc<Self>) -> Result<Flushed, Errno> {
        let running = match self.flushes.join(self.flushes.begun()).await {
            Ok(Ended { result, .. }) => {
                self.check_running()?;
                return result;
            }
            Err(running) => running,
        };
        let result = self.flush_once(running.number()).await;
        running.end(result);
        result
    }

    async fn flush_once(self: &Rc<Self>, number: u64) -> Result<Flushed, Errno> {
        let mut members = self.roster.written();
        let units = self.follower.as_ref().map_or(0, |log| log.units_in_place());
        if Canary::InSyncBeforeFlush.is_planted() {
            members.retain(|member| member.is_in_sync());
        }
        if Canary::FlushOfOneMember.is_planted() {
            members.truncate(1);
        }
        let started = members.iter().map(|member| member.dev.start(Io::flush())).collect();
        let completions = join_all(started).await;
        let failed = failures(members, &completions);
        if !failed.is_empty() && !self.take_out_failed(&failed, "a flush") {
            // It is unknown which part of the only copy is durable, and no later flush can tell: a system
            // that answered an error once may have dropped what it could not write.
            self.stop(&format!("a flush of the last members failed ({})", failed[0].1));
            return Err(failed[0].1);
        }
        self.check_running()?;
        Ok(Flushed { of: self.id, number, units, generation: self.roster.generation() })
    }

    /// Flushes, and has the superblocks say who did not take part.
    ///
    /// # Errors
    /// Nothing is written any more.
    pub(in crate::redundant) async fn settle(self: &Rc<Self>) -> Result<Durable, Errno> {
        loop {
            let flushed = self.flush().await?;
            self.fence().await?;
            if let Some(durable) = flushed.durable(self) {
                return Ok(durable);
            }
            // The membership changed while it was being recorded.
            self.publish().await?;
        }
    }
}
