//! To the origin: rounds over all that is dirty, in order of its place.
//!
//! A round is begun when somebody asks for one, when what is dirty or the log is past the half of its
//! bound, when something has been dirty for too long, and when nobody asks for anything.

use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use braid_block::{Errno, Flags, Io, Span};

use super::core::{Phase, WriteBack};
use super::together::{Crowd, either};
use crate::canary::Canary;
use crate::log::store::all_well;
use crate::rounds::{DEPTH, IDLE, part_blocks, run_blocks};

/// After a round that failed, how long before the next one.
const RETRY: Duration = Duration::from_millis(500);

impl WriteBack {
    /// Drains whenever it is time.
    pub(super) async fn drain_in_time(&self) {
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
        let is_time = || self.rounds.is_wanted() || self.since.get().is_some() && self.is_pressed();
        loop {
            self.changed.until(|| is_time() || self.since.get().is_some()).await;
            self.is_busy.set(false);
            if is_time() || self.until_old().is_zero() {
                return;
            }
            let pause = IDLE.min(self.until_old());
            either(self.clock.sleep(pause), self.changed.until(is_time)).await;
            let is_idle = pause == IDLE && !self.is_busy.get();
            if is_time() || self.until_old().is_zero() || is_idle {
                return;
            }
        }
    }

    /// Drains what is dirty, flushes the origin, and lets go of the records that are not needed any more.
    async fn round(&self) -> Result<(), Errno> {
        if self.is_lost.get() {
            return Err(Errno::IO);
        }
        if Canary::ForsakenBeforeDrain.is_planted() && self.phase.get() == Phase::LogFailing {
            self.forsake().await?;
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
            // There is room again for those who wait.
            self.changed.notify();
        }
        match self.phase.get() {
            // What was dirty when it failed was perhaps not all drained by a round that began before.
            Phase::LogFailing if phase == Phase::LogFailing => self.forsake().await,
            Phase::LogFailing => Err(Errno::IO),
            Phase::Logged | Phase::LogGivenUp | Phase::Volatile => Ok(()),
        }
    }

    /// Drains a part of what is dirty, from block `next` on, and flushes the origin: so much that the flush
    /// costs little, and so little that nobody waits long for it.
    async fn drain_some(&self, next: &mut u64, durable: Option<u64>) -> Result<(), Errno> {
        let (mut blocks, mut result) = (Vec::new(), Ok(()));
        let failed_before = self.failed_flushes.get();
        let mut left = part_blocks(self.dirty_blocks.get());
        let mut under_way = Crowd::new();
        loop {
            while under_way.len() < DEPTH
                && left > 0
                && self.held_back().is_zero()
                && let Some(run) = self.run_from(*next)
            {
                *next = run.end;
                left = left.saturating_sub(run.end - run.start);
                self.pay(&run);
                under_way.push(self.drain_run(run, durable));
            }
            if under_way.len() == 0 {
                let pause = self.held_back();
                if pause.is_zero() || left == 0 || self.run_from(*next).is_none() {
                    break;
                }
                // A while, so that what comes to an end meanwhile is seen.
                let pause = pause.min(self.until_old());
                let hurried = self.changed.until(|| self.held_back().is_zero());
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

    /// How long draining waits for its rate: not where somebody waits for the round or the next one, nor
    /// where something is too old.
    fn held_back(&self) -> Duration {
        let is_hurried = self.is_awaited.get() || self.rounds.is_wanted();
        if is_hurried || self.until_old().is_zero() {
            return Duration::ZERO;
        }
        self.pace.get().wait(self.clock.now())
    }

    /// Counts what of `run` is dirty towards the rate.
    fn pay(&self, run: &Range<u64>) {
        let mut pace = self.pace.get();
        if pace.rate().is_some() {
            let mut contents = self.held.contents.borrow_mut();
            let of =
                |block| contents.dirty_of(block).map_or(0, |(dirty, slot)| dirty.bytes_of(slot));
            pace.take(run.clone().map(of).sum(), self.clock.now());
            self.pace.set(pace);
        }
    }

    /// Blocks beside each other with something dirty: the first from `block` on.
    fn run_from(&self, block: u64) -> Option<Range<u64>> {
        self.held.contents.borrow().dirty_run(block, run_blocks(self.block))
    }

    /// Writes what is dirty of `run` to the origin; with `durable`, what the log has before it.
    async fn drain_run(
        &self,
        run: Range<u64>,
        durable: Option<u64>,
    ) -> (Range<u64>, Result<(), Errno>) {
        let taken = self.held.ranges.take(run.clone()).await;
        let bytes = (run.end - run.start) * self.block;
        let mut buf = self.pool.get_wait(bytes as usize).await;
        let spans = self.copy_dirty(run.clone(), durable, &mut buf);
        let mut writes = Vec::with_capacity(spans.len());
        for Span { offset, len } in spans {
            let rest = buf.split_off(len as usize);
            let part = std::mem::replace(&mut buf, rest);
            writes.push(self.held.origin.start(Io::write(offset, part, Flags::NONE)));
        }
        drop(buf);
        self.held.counters.borrow_mut().disk_writes += writes.len() as u64;
        let result = all_well(writes).await;
        if result.is_err() {
            self.give_back(run.clone());
        }
        drop(taken);
        (run, result)
    }

    /// Copies what is dirty of `run` to `to`, one after the other; answers where on the origin each part
    /// goes that lies in one piece there, and how long it is.
    fn copy_dirty(&self, run: Range<u64>, durable: Option<u64>, to: &mut [u8]) -> Vec<Span> {
        let memory = self.held.memory.borrow();
        let mut done = 0;
        self.held.contents.borrow_mut().drain(run, durable, |at, len| {
            memory.read(at, &mut to[done..done + len as usize]);
            done += len as usize;
        })
    }

    /// What was drained of `blocks` has not arrived, or not durably: it stays dirty.
    fn give_back(&self, blocks: impl IntoIterator<Item = u64>) {
        let mut contents = self.held.contents.borrow_mut();
        for block in blocks {
            if let Some((dirty, slot)) = contents.dirty_of(block) {
                dirty.drain_failed(slot);
            }
        }
    }

    /// Flushes the origin: what was drained of `blocks`, and not written since, is clean. Before any of it was
    /// drained so many flushes had failed.
    async fn make_durable(&self, blocks: &[u64], failed_before: u64) -> Result<(), Errno> {
        let mut operations = self.unflushed.borrow().clone();
        operations.retain(|one| one.is_done.get());
        let is_late = Canary::TailBeforeOriginFlush.is_planted();
        let mut flushed = if is_late { Ok(()) } else { self.flush_origin().await };
        // One that failed beside it may have taken with it what was written for this one; or, since the round
        // began, zeroes, which are in the log alone now: no record may go.
        if self.failed_flushes.get() != failed_before || self.is_lost.get() {
            flushed = flushed.and(Err(Errno::IO));
        }
        if let Err(errno) = flushed {
            self.give_back(blocks.iter().copied());
            return Err(errno);
        }
        let is_flushed = |one: &Rc<_>| operations.iter().any(|done| Rc::ptr_eq(one, done));
        self.unflushed.borrow_mut().retain(|one| !is_flushed(one));
        let drained = self.held.contents.borrow_mut().drained(blocks.iter().copied());
        self.drained.set(self.drained.get() + drained);
        Ok(())
    }

    /// Lets go of the records that need not be replayed any more.
    async fn retire(&self) -> Result<(), Errno> {
        let Some(log) = self.logged() else { return Ok(()) };
        let of_blocks = self.held.contents.borrow().dirty().and_then(|dirty| dirty.oldest_record());
        let of_operations =
            self.unflushed.borrow().iter().filter_map(|one| one.position.get()).min();
        // What is being written counts as soon as it is durable, and instead of nothing before.
        let oldest = of_blocks.into_iter().chain(of_operations).chain([log.durable()]).min();
        let tail = oldest.unwrap_or_default();
        if let Err(errno) = log.retire(tail).await {
            self.log_failed(errno);
            return Err(errno);
        }
        self.note_retired(tail);
        Ok(())
    }

    /// Has nothing in the log count any more, because the origin has, or will have, what is newer: its
    /// superblock says so, or, if its device does not take that, who remembers it elsewhere.
    async fn forsake(&self) -> Result<(), Errno> {
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

    /// Drains all, and closes the log, while requests come: those that change something wait for its end,
    /// and write through.
    ///
    /// # Errors
    /// As [`WriteBack::shut_down`]; all goes on as before.
    pub(crate) async fn close(&self) -> Result<(), Errno> {
        // Most of it before anybody has to wait.
        let round = self.rounds.ask();
        self.changed.notify();
        self.changed.until(|| self.rounds.outcome(round).is_some()).await;
        let all = self.changes.take(0..u64::MAX).await;
        self.settle().await?;
        self.phase.set(Phase::Volatile);
        self.is_closed.set(true);
        self.let_go();
        drop(all);
        Ok(())
    }

    /// Drains all, and closes the log: to be called when nobody asks for anything any more.
    ///
    /// # Errors
    /// The origin does not have everything. What was flushed is in the log, if there is one.
    pub(crate) async fn shut_down(&self) -> Result<(), Errno> {
        self.changed.until(|| self.undone.get() == 0).await;
        self.settle().await
    }

    /// The same, where those that change something wait.
    pub(super) async fn settle(&self) -> Result<(), Errno> {
        // What the log has stays there if the origin fails.
        self.flush().await?;
        loop {
            let dirty = self.held.contents.borrow().dirty().map_or(0, |dirty| dirty.block_count());
            if dirty == 0 && self.unflushed.borrow().is_empty() {
                break;
            }
            let phase = self.phase.get();
            let round = self.rounds.ask();
            self.changed.notify();
            self.changed.until(|| self.rounds.outcome(round).is_some()).await;
            // If the log failed in this one, the next one gives it up.
            let is_over = self.phase.get() == phase;
            if self.rounds.outcome(round) != Some(true) && is_over {
                return Err(self.drain_error.get().unwrap_or(Errno::IO));
            }
        }
        // The origin has all of it: what the log's device fails at is only to say so.
        match self.phase.get() {
            Phase::Logged | Phase::LogFailing => self.forsake().await,
            Phase::LogGivenUp => {
                self.close_given_up().await;
                Ok(())
            }
            Phase::Volatile => Ok(()),
        }
    }

    /// Tries once more to close a log that was given up: a note elsewhere stays on this machine, and a log that
    /// is closed needs none.
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
