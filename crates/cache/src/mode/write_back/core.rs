//! State of write-back mode, in addition to that of the cache.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use braid_block::{Completion, Errno, Flags, Io, Op, Span};
use braid_engine::{Clock, Signal};
use braid_mem::Pool;

use super::rounds::Rounds;
use crate::config::dirty_blocks;
use crate::log::error::Replayed;
use crate::log::format::BLOCK;
use crate::log::store::{Log, LogSetup};
use crate::pace::Pace;
use crate::ranges::{Locked, Ranges};
use crate::state::CacheState;

/// Memory for data in flight to the log and the origin, in bytes.
const POOL: usize = 8 << 20;

/// Configuration of write-back mode.
pub struct WriteBackConfig {
    /// Limit of dirty bytes; writers wait at the limit.
    pub dirty: u64,
    /// Age at which dirty data are drained.
    pub age: Duration,
    /// Rate limit of draining in bytes per second, which does not apply to old data or waiting
    /// clients; `None` for no limit.
    pub drain: Option<u64>,
    /// The clock.
    pub clock: Rc<dyn Clock>,
    /// The log; `None` keeps dirty data in memory only.
    pub log: Option<LogSetup>,
}

/// Place where flushed data are durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// In the log.
    Logged,
    /// On the origin and in the log, whose device failed; the log is still valid until the origin
    /// is complete.
    LogFailing,
    /// On the origin; the log failed and was invalidated.
    LogGivenUp,
    /// On the origin, without a log.
    Volatile,
}

/// A request that changes a span without data: zeroing or discard.
pub(super) struct Operation {
    pub(super) op: Op,
    pub(super) span: Span,
    pub(super) flags: Flags,
    /// Position of its record.
    pub(super) position: Cell<Option<u64>>,
    /// The origin has completed it.
    pub(super) is_done: Cell<bool>,
    pub(super) result: Cell<Option<Result<(), Errno>>>,
}

/// A large write, which is to bypass the cache.
pub(super) struct LargeWrite {
    /// The request, until it is carried out.
    pub(super) io: RefCell<Option<Io>>,
    /// The completion, until the client takes it.
    pub(super) done: RefCell<Option<Completion>>,
}

/// State of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStatus {
    /// Size of the ring in bytes.
    pub size: u64,
    /// Bytes of records that may have to be replayed.
    pub used: u64,
    /// Number of written records.
    pub writes: u64,
    /// Bytes of written records.
    pub bytes: u64,
}

/// State of write-back mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteBackStatus {
    /// Place where flushed data are durable.
    pub phase: Phase,
    /// Bytes that are not durable on the origin.
    pub dirty: u64,
    /// Limit of dirty bytes.
    pub dirty_limit: u64,
    /// Upper bound of the age of the oldest dirty data.
    pub oldest: Option<Duration>,
    /// Number of drained bytes.
    pub drained: u64,
    /// Rate limit of draining in bytes per second.
    pub drain_rate: Option<u64>,
    /// The log, while it is open.
    pub log: Option<LogStatus>,
    /// Result of the replay at the start.
    pub replayed: Option<Replayed>,
    /// Error of the last attempt to drain.
    pub drain_error: Option<Errno>,
    /// Error that ended the use of the log.
    pub log_error: Option<Errno>,
}

/// State of write-back mode.
pub(crate) struct WriteBack {
    pub(super) state: Rc<CacheState>,
    pub(super) clock: Rc<dyn Clock>,
    pub(super) pool: Pool,
    /// Parameters of the log, until it is closed while the cache continues.
    pub(super) setup: RefCell<Option<Rc<LogSetup>>>,
    pub(super) log: RefCell<Option<Rc<Log>>>,
    pub(super) replayed: Cell<Option<Replayed>>,
    pub(super) phase: Cell<Phase>,
    pub(super) block: u64,
    /// Configured limit of dirty bytes.
    dirty: u64,
    /// Limit of dirty blocks.
    pub(super) dirty_blocks: Cell<u64>,
    age: Duration,
    /// Rate limiter of draining.
    pub(super) pace: Cell<Pace>,
    /// A client waits for the current round.
    pub(super) is_awaited: Cell<bool>,
    /// Blocks locked against writes in memory: a write waits, or they are being zeroed or
    /// discarded.
    pub(super) changes: Rc<Ranges>,
    /// A lock on all blocks, until write-back mode begins.
    pub(super) waiting: RefCell<Option<Locked>>,
    pub(super) asked: RefCell<VecDeque<Rc<Operation>>>,
    /// Operations without a written record.
    pub(super) unlogged: RefCell<Vec<Rc<Operation>>>,
    /// Operations that may not be durable on the origin.
    pub(super) unflushed: RefCell<Vec<Rc<Operation>>>,
    /// Queue of large writes.
    pub(super) large: RefCell<VecDeque<Rc<LargeWrite>>>,
    /// Spans and positions of the valid records, in order.
    pub(super) recorded: RefCell<VecDeque<(Span, u64)>>,
    /// Number of writes that bypassed the cache, and number of those durable on the origin.
    pub(super) passed: Cell<u64>,
    pub(super) bypassed_durable: Cell<u64>,
    /// Large writes that are not complete, including those of clients that disappeared.
    pub(super) pending_large: Cell<u64>,
    /// Bypassing writes in flight to the origin.
    pub(super) bypass_in_flight: Cell<u64>,
    /// The origin may have lost a completed bypassing write.
    pub(super) is_bypass_lost: Cell<bool>,
    /// Number of failed flushes of the origin.
    pub(super) failed_flushes: Cell<u64>,
    pub(super) commits: Rounds,
    pub(super) rounds: Rounds,
    /// Signals any change of this state.
    pub(super) changed: Signal,
    /// Age reference of the data that the current or the next round drains.
    pub(super) since: Cell<Option<Duration>>,
    /// Age reference of the data that the current round need not drain.
    pub(super) since_next: Cell<Option<Duration>>,
    /// A request arrived since the last check.
    pub(super) is_busy: Cell<bool>,
    pub(super) drained: Cell<u64>,
    pub(super) drain_error: Cell<Option<Errno>>,
    pub(super) log_error: Cell<Option<Errno>>,
    /// The origin lost completed zeroes or discards, which cannot be repeated.
    pub(super) is_lost: Cell<bool>,
    /// Write-back mode has ended: the origin is complete, and later writes go through.
    pub(super) is_closed: Cell<bool>,
}

impl WriteBack {
    /// Creates the state of write-back mode for a cache of `slots` blocks of `block` bytes.
    pub(crate) fn new(
        state: Rc<CacheState>,
        config: WriteBackConfig,
        slots: u32,
        block: u64,
    ) -> io::Result<WriteBack> {
        let phase = if config.log.is_some() { Phase::Logged } else { Phase::Volatile };
        Ok(WriteBack {
            state,
            clock: config.clock,
            pool: Pool::new(POOL)?,
            setup: RefCell::new(config.log.map(Rc::new)),
            log: RefCell::default(),
            replayed: Cell::default(),
            phase: Cell::new(phase),
            block,
            dirty: config.dirty,
            dirty_blocks: Cell::new(dirty_blocks(config.dirty, block, slots)),
            age: config.age,
            pace: Cell::new(Pace::new(config.drain)),
            is_awaited: Cell::default(),
            changes: Rc::default(),
            waiting: RefCell::default(),
            asked: RefCell::default(),
            unlogged: RefCell::default(),
            unflushed: RefCell::default(),
            large: RefCell::default(),
            recorded: RefCell::default(),
            passed: Cell::default(),
            bypassed_durable: Cell::default(),
            pending_large: Cell::default(),
            bypass_in_flight: Cell::default(),
            is_bypass_lost: Cell::default(),
            failed_flushes: Cell::default(),
            commits: Rounds::default(),
            rounds: Rounds::default(),
            changed: Signal::default(),
            since: Cell::default(),
            since_next: Cell::default(),
            is_busy: Cell::default(),
            drained: Cell::default(),
            drain_error: Cell::default(),
            log_error: Cell::default(),
            is_lost: Cell::default(),
            is_closed: Cell::default(),
        })
    }

    /// Returns whether write-back mode has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    /// Limits draining to `rate` bytes per second, or removes the limit.
    pub(crate) fn set_drain(&self, rate: Option<u64>) {
        self.pace.set(Pace::new(rate));
        self.changed.notify();
    }

    /// Adjusts the limits to `slots` blocks.
    pub(crate) fn resized(&self, slots: u32) {
        self.dirty_blocks.set(dirty_blocks(self.dirty, self.block, slots));
        self.changed.notify();
    }

    /// Returns the log, if flushed data are durable there.
    pub(super) fn logged(&self) -> Option<Rc<Log>> {
        let log = self.log.borrow();
        log.clone().filter(|_| self.phase.get() == Phase::Logged)
    }

    /// Returns whether the log has space for `more` records of a block or operation. In the worst
    /// case each has its own header, and one wastes the end of the ring.
    pub(super) fn has_log_room(&self, more: u64) -> bool {
        let Some(log) = self.logged() else { return true };
        let contents = self.state.contents.borrow();
        let blocks = contents.dirty().map_or(0, |dirty| dirty.unlogged_count());
        let waiting = blocks + self.unlogged.borrow().len() as u64 + more;
        let ring = log.ring.borrow();
        let room = ring.capacity() - ring.used();
        waiting * (self.block + BLOCK) + 2 * log.most() <= room
    }

    /// Notes that there are dirty data.
    pub(super) fn note_dirty(&self) {
        let (since, next) = (self.since.get(), self.since_next.get());
        if since.is_some() && (next.is_some() || !self.rounds.is_under_way()) {
            return;
        }
        let now = self.clock.now();
        if since.is_none() {
            self.since.set(Some(now));
            self.changed.notify();
        }
        if self.rounds.is_under_way() {
            self.since_next.set(next.or(Some(now)));
        }
    }

    /// Returns whether the dirty data or the log approach their limits.
    pub(super) fn is_near_limit(&self) -> bool {
        let dirty = self.state.contents.borrow().dirty().map_or(0, |dirty| dirty.block_count());
        let is_half = |log: &Rc<Log>| log.ring.borrow().used() * 2 > log.ring.borrow().capacity();
        dirty * 2 > self.dirty_blocks.get() || self.logged().as_ref().is_some_and(is_half)
    }

    /// Returns the time until dirty data reach the age limit.
    pub(super) fn until_age_limit(&self) -> Duration {
        let since = self.since.get().map(|since| self.clock.now().saturating_sub(since));
        self.age.saturating_sub(since.unwrap_or_default())
    }

    /// Handles a failure of the log's device: flushes go to the origin from now on.
    pub(super) fn log_failed(&self, errno: Errno) {
        if self.phase.get() == Phase::Logged {
            self.phase.set(Phase::LogFailing);
            self.log_error.set(Some(errno));
            self.rounds.ask();
        }
    }

    /// Returns the state.
    pub(crate) fn status(&self) -> WriteBackStatus {
        let log = self.log.borrow().as_ref().map(|log| {
            let ring = log.ring.borrow();
            let (size, used) = (ring.capacity(), ring.used());
            LogStatus { size, used, writes: log.writes.get(), bytes: log.bytes.get() }
        });
        let dirty = self.state.contents.borrow().dirty().map_or(0, |dirty| dirty.bytes());
        let since = self.since.get().filter(|_| dirty > 0);
        WriteBackStatus {
            phase: self.phase.get(),
            dirty,
            dirty_limit: self.dirty_blocks.get() * self.block,
            oldest: since.map(|since| self.clock.now().saturating_sub(since)),
            drained: self.drained.get(),
            drain_rate: self.pace.get().rate(),
            log,
            replayed: self.replayed.get(),
            drain_error: self.drain_error.get(),
            log_error: self.log_error.get(),
        }
    }
}
