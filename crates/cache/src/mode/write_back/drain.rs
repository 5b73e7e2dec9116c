//! Draining: rounds write all dirty data to the origin, in the order of their offsets.
//!
//! A round begins on request, when dirty data or the log exceed half of their limits, when data
//! reach the age limit, or when clients are idle.

use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use braid_block::{Errno, Flags, Io, Span};

use super::core::{Phase, WriteBack};
use super::future_set::{FutureSet, either};
use crate::canary::Canary;
use crate::log::store::wait_all;
use crate::rounds::{DEPTH, IDLE, part_blocks, run_blocks};

/// Delay after a failed round.
const RETRY: Duration = Duration::from_millis(500);

impl WriteBack {
    /// Drains whenever a round is due.
    pub(super) async fn run_drain(&self) {
        loop {
            self.wait_for_work().await;
            self.is_awaited.set(self.rounds.is_wanted());
            self.rounds.begin();
            self.since_next.set(None);
            let result = self.round().await;
            if result.is_ok() {
                self.since.set(self.since_next.get());
            }
            self.drain_error.set(result.err());
            self.rounds.end(result.is_ok());
            self.changed.notify();
            if result.is_err() {
                self.clock.sleep(RETRY).await;
            }
        }
    }

    async fn wait_for_work(&self) {
        let is_time =
            || self.rounds.is_wanted() || self.since.get().is_some() && self.is_near_limit();
        loop {
            self.changed.until(|| is_time() || self.since.get().is_some()).await;
            self.is_busy.set(false);
            if is_time() || self.until_age_limit().is_zero() {
                return;
            }
            let pause = IDLE.min(self.until_age_limit());
            either(self.clock.sleep(pause), self.changed.until(is_time)).await;
            let is_idle = pause == IDLE && !self.is_busy.get();
            if is_time() || self.until_age_limit().is_zero() || is_idle {
                return;
            }
        }
    }

    /// Drains all dirty data, flushes the origin, and retires records.
    async fn round(&self) -> Result<(), Errno> {
        if self.is_lost.get() {
            return Err(Errno::IO);
        }
        if Canary::ForsakenBeforeDrain.is_planted() && self.phase.get() == Phase::LogFailing {
            self.invalidate_log().await?;
        }
        if self.logged().is_some() && !Canary::DrainBeforeLog.is_planted() {
            self.commit_once().await;
        }
        let phase = self.phase.get();
        let durable = self.logged().map(|log| log.durable());
        let mut next = 0;
        loop {
            self.drain_some(&mut next, durable).await?;
            if self.phase.get() == Phase::Logged {
                self.retire().await?;
            }
            if self.run_from(next).is_none() {
                break;
            }
            // Writers that wait for space can continue.
            self.changed.notify();
        }
        match self.phase.get() {
            // The current round may not cover data that were dirty when the log failed, if it began
            // before.
            Phase::LogFailing if phase == Phase::LogFailing => self.invalidate_log().await,
            Phase::LogFailing => Err(Errno::IO),
            Phase::Logged | Phase::LogGivenUp | Phase::Volatile => Ok(()),
        }
    }

    /// Drains part of the dirty data, from block `next` on, and flushes the origin. The part is
    /// large enough to make the flush cheap, and small enough to keep waits short.
    async fn drain_some(&self, next: &mut u64, durable: Option<u64>) -> Result<(), Errno> {
        let (mut blocks, mut result) = (Vec::new(), Ok(()));
        let failed_before = self.failed_flushes.get();
        let mut left = part_blocks(self.dirty_blocks.get());
        let mut under_way = FutureSet::new();
        loop {
            while under_way.len() < DEPTH
                && left > 0
                && self.rate_delay().is_zero()
                && let Some(run) = self.run_from(*next)
            {
                *next = run.end;
                left = left.saturating_sub(run.end - run.start);
                self.pay(&run);
                under_way.push(self.drain_run(run, durable));
            }
            if under_way.len() == 0 {
                let pause = self.rate_delay();
                if pause.is_zero() || left == 0 || self.run_from(*next).is_none() {
                    break;
                }
                // Wakes up in between, to notice completed requests.
                let pause = pause.min(self.until_age_limit());
                let hurried = self.changed.until(|| self.rate_delay().is_zero());
                either(self.clock.sleep(pause), hurried).await;
                continue;
            }
            let (run, outcome) = under_way.next().await;
            match outcome {
                Ok(()) => blocks.extend(run),
                Err(errno) => result = Err(errno),
            }
        }
        self.make_durable(&blocks, failed_before).await?;
        result
    }

    /// Returns how long draining must wait for its rate limit: zero if a client waits for this or
    /// the next round, or data have reached the age limit.
    fn rate_delay(&self) -> Duration {
        let is_hurried = self.is_awaited.get() || self.rounds.is_wanted();
        if is_hurried || self.until_age_limit().is_zero() {
            return Duration::ZERO;
        }
        self.pace.get().wait(self.clock.now())
    }

    /// Charges the dirty data of `run` to the rate limit.
    fn pay(&self, run: &Range<u64>) {
        let mut pace = self.pace.get();
        if pace.rate().is_some() {
            let mut contents = self.state.contents.borrow_mut();
            let of =
                |block| contents.dirty_of(block).map_or(0, |(dirty, slot)| dirty.bytes_of(slot));
            pace.take(run.clone().map(of).sum(), self.clock.now());
            self.pace.set(pace);
        }
    }

    /// Returns the first run of adjacent dirty blocks from `block` on.
    fn run_from(&self, block: u64) -> Option<Range<u64>> {
        self.state.contents.borrow().dirty_run(block, run_blocks(self.block))
    }

    /// Writes the dirty data of `run` to the origin; with `durable`, only data logged before that
    /// position.
    async fn drain_run(
        &self,
        run: Range<u64>,
        durable: Option<u64>,
    ) -> (Range<u64>, Result<(), Errno>) {
        let taken = self.state.ranges.take(run.clone()).await;
        let bytes = (run.end - run.start) * self.block;
        let mut buf = self.pool.get_wait(bytes as usize).await;
        let spans = self.copy_dirty(run.clone(), durable, &mut buf);
        let mut writes = Vec::with_capacity(spans.len());
        for Span { offset, len } in spans {
            let rest = buf.split_off(len as usize);
            let part = std::mem::replace(&mut buf, rest);
            writes.push(self.state.origin.start(Io::write(offset, part, Flags::NONE)));
        }
        drop(buf);
        self.state.counters.borrow_mut().disk_writes += writes.len() as u64;
        let result = wait_all(writes).await;
        if result.is_err() {
            self.undo_drain(run.clone());
        }
        drop(taken);
        (run, result)
    }

    /// Copies the dirty data of `run` to `to`, packed. Returns the span on the origin of each
    /// contiguous part.
    fn copy_dirty(&self, run: Range<u64>, durable: Option<u64>, to: &mut [u8]) -> Vec<Span> {
        let memory = self.state.memory.borrow();
        let mut done = 0;
        self.state.contents.borrow_mut().drain(run, durable, |at, len| {
            memory.read(at, &mut to[done..done + len as usize]);
            done += len as usize;
        })
    }

    /// Marks the drained data of `blocks` as dirty again: they are not, or not durably, on the
    /// origin.
    fn undo_drain(&self, blocks: impl IntoIterator<Item = u64>) {
        let mut contents = self.state.contents.borrow_mut();
        for block in blocks {
            if let Some((dirty, slot)) = contents.dirty_of(block) {
                dirty.drain_failed(slot);
            }
        }
    }

    /// Flushes the origin, and marks the drained data of `blocks` as clean unless they were written
    /// since. `failed_before` is the number of failed flushes before the drain began.
    async fn make_durable(&self, blocks: &[u64], failed_before: u64) -> Result<(), Errno> {
        let mut operations = self.unflushed.borrow().clone();
        operations.retain(|one| one.is_done.get());
        let is_late = Canary::TailBeforeOriginFlush.is_planted();
        let mut flushed = if is_late { Ok(()) } else { self.flush_origin().await };
        // A concurrent flush that failed may have lost the data written for this one, or zeroes of
        // this round, which only the log has now. No record may be retired.
        if self.failed_flushes.get() != failed_before || self.is_lost.get() {
            flushed = flushed.and(Err(Errno::IO));
        }
        if let Err(errno) = flushed {
            self.undo_drain(blocks.iter().copied());
            return Err(errno);
        }
        let is_flushed = |one: &Rc<_>| operations.iter().any(|done| Rc::ptr_eq(one, done));
        self.unflushed.borrow_mut().retain(|one| !is_flushed(one));
        let drained = self.state.contents.borrow_mut().drained(blocks.iter().copied());
        self.drained.set(self.drained.get() + drained);
        Ok(())
    }

    /// Retires the records that a replay no longer needs.
    async fn retire(&self) -> Result<(), Errno> {
        let Some(log) = self.logged() else { return Ok(()) };
        let of_blocks =
            self.state.contents.borrow().dirty().and_then(|dirty| dirty.oldest_record());
        let of_operations =
            self.unflushed.borrow().iter().filter_map(|one| one.position.get()).min();
        // A record in flight is valid as soon as it is durable, and replaces no record before.
        let oldest = of_blocks.into_iter().chain(of_operations).chain([log.durable()]).min();
        let tail = oldest.unwrap_or_default();
        if let Err(errno) = log.retire(tail).await {
            self.log_failed(errno);
            return Err(errno);
        }
        self.note_retired(tail);
        Ok(())
    }

    /// Invalidates the log, because the origin has, or will have, newer data: by its superblock, or
    /// by the external list if its device fails.
    async fn invalidate_log(&self) -> Result<(), Errno> {
        let log = self.log.borrow().clone();
        let Some(log) = log else { return Ok(()) };
        let head = log.ring.borrow().head();
        if let Err(errno) = log.write_superblock(head, false).await {
            self.log_error.set(self.log_error.get().or(Some(errno)));
            let setup = self.setup.borrow().clone();
            let given_up = setup.as_ref().and_then(|setup| setup.given_up.as_ref());
            given_up.ok_or(errno)?.remember(log.id())?;
        }
        self.phase.set(Phase::LogGivenUp);
        Ok(())
    }

    /// Leaves write-back mode under load: drains all data, then locks out changes until the log is
    /// closed. They then write through.
    ///
    /// # Errors
    /// As [`WriteBack::shut_down`]; write-back mode continues.
    pub(crate) async fn close(&self) -> Result<(), Errno> {
        // Drains most of the data before changes have to wait.
        let round = self.rounds.ask();
        self.changed.notify();
        self.changed.until(|| self.rounds.outcome(round).is_some()).await;
        let all = self.changes.take(0..u64::MAX).await;
        self.settle().await?;
        self.phase.set(Phase::Volatile);
        self.is_closed.set(true);
        self.release_device();
        drop(all);
        Ok(())
    }

    /// Drains all data, and closes the log. Call it when there are no more requests.
    ///
    /// # Errors
    /// The origin is incomplete. Flushed data are in the log, if there is one.
    pub(crate) async fn shut_down(&self) -> Result<(), Errno> {
        self.changed.until(|| self.pending_large.get() == 0).await;
        self.settle().await
    }

    /// Drains all data, and closes the log, while changes are locked out.
    pub(super) async fn settle(&self) -> Result<(), Errno> {
        // Flushed data stay in the log if the origin fails.
        self.flush().await?;
        loop {
            let dirty = self.state.contents.borrow().dirty().map_or(0, |dirty| dirty.block_count());
            if dirty == 0 && self.unflushed.borrow().is_empty() {
                break;
            }
            let phase = self.phase.get();
            let round = self.rounds.ask();
            self.changed.notify();
            self.changed.until(|| self.rounds.outcome(round).is_some()).await;
            // If the log failed in this round, the next round invalidates it.
            let is_over = self.phase.get() == phase;
            if self.rounds.outcome(round) != Some(true) && is_over {
                return Err(self.drain_error.get().unwrap_or(Errno::IO));
            }
        }
        // The origin is complete: an error of the log's device only means that the log cannot say
        // so.
        match self.phase.get() {
            Phase::Logged | Phase::LogFailing => self.invalidate_log().await,
            Phase::LogGivenUp => {
                self.close_given_up().await;
                Ok(())
            }
            Phase::Volatile => Ok(()),
        }
    }

    /// Tries again to close a log that was invalidated: the external list is valid on this machine
    /// only, and a closed log needs no entry.
    async fn close_given_up(&self) {
        let log = self.log.borrow().clone();
        if let Some(log) = log {
            let head = log.ring.borrow().head();
            if let Err(errno) = log.write_superblock(head, false).await {
                self.log_error.set(self.log_error.get().or(Some(errno)));
            }
        }
    }
}
