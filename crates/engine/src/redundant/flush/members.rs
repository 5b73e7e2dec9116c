//! Flushing the members, which makes completed writes durable.
//!
//! ```text
//!   writes completed ──▶ flush of every member ──▶ Flushed
//!                                                    │ superblocks name the members that are out
//!                                                    ▼
//!                                                  Durable ──▶ a log may forget
//! ```
//!
//! A flush counts for the members that completed it. A member that was out by then was not flushed, but as long
//! as superblocks count on that member, a crash makes it a member in sync again whose cache was never flushed.
//! So a [`Flushed`] proves nothing to a log. A [`Durable`] does: it exists only if the flushed membership is
//! the recorded one.
//!
//! Invariants
//! * Every flush of an array is made here: a flush that fails takes its member out, because no later flush can
//!   tell what the failed one lost.
//! * One flush of the members at a time, for all callers that asked before it began: a concurrent flush could
//!   succeed on the member that the first is about to lose, and complete before the loss is known.
//!
//! Source: Linux `drivers/md/md.c` (`md_flush_request`), which merges flushes in the same way.

use std::rc::Rc;

use braid_block::{Errno, Io};

use super::{Durable, Ended, Flushed};
use crate::canary::Canary;
use crate::join_all;
use crate::redundant::core::{Core, answer, failures};
use crate::redundant::roster::Member;

impl Flushed {
    /// Returns the proof that a log needs, if superblocks on the members name the members that are out.
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
    /// Flushes every written member. Members that fail are taken out.
    ///
    /// # Errors
    /// The flush failed on the last members, or the array is stopped.
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
        // They were answered, and the proof is about all that were.
        self.behind.until_caught_up().await;
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
        self.judge_flush(number, units, &failures(members, &completions))
    }

    /// Takes the members out whose flush failed, and makes the proof.
    fn judge_flush(
        &self,
        number: u64,
        units: u64,
        failed: &[(Rc<Member>, Errno)],
    ) -> Result<Flushed, Errno> {
        if !failed.is_empty() && !self.take_out_failed(failed, "a flush") {
            // The durable part of the only copy is unknown, and no later flush can tell: a system that reported
            // an error once may have dropped dirty pages.
            self.stop(&format!("a flush of the last members failed ({})", failed[0].1));
            return Err(failed[0].1);
        }
        self.check_running()?;
        Ok(Flushed { of: self.id, number, units, generation: self.roster.generation() })
    }

    /// Returns the proof of [`Core::settle`], if each member flushes within the call, and superblocks name the members
    /// already. Members that fail are taken out.
    ///
    /// # Panics
    /// If a member that promised to answer within the call does not.
    pub(in crate::redundant) fn settle_now(&self) -> Option<Durable> {
        let _published =
            self.published().filter(|_| self.lane.is_immediate() && self.behind.is_empty())?;
        let running = self.flushes.start_now()?;
        let units = self.follower.as_ref().map_or(0, |log| log.units_in_place());
        let mut failed = Vec::new();
        for member in self.roster.slots().values().flat_map(|slot| slot.written()) {
            if let Err(errno) = answer(member.dev.start(Io::flush())).result {
                failed.push((Rc::clone(member), errno));
            }
        }
        let flushed = self.judge_flush(running.number(), units, &failed);
        running.end(flushed);
        flushed.ok()?.durable(self)
    }

    /// Flushes, and records in the superblocks which members did not take part.
    ///
    /// # Errors
    /// The array is stopped.
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
