//! What a write-back cache knows beside what it holds.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use braid_block::{Completion, Errno, Flags, Io, Op, Span};
use braid_engine::{Clock, Signal};
use braid_mem::Pool;

use super::turns::Turns;
use crate::config::dirty_blocks;
use crate::held::Held;
use crate::log::error::Replayed;
use crate::log::format::BLOCK;
use crate::log::store::{Log, LogSetup};
use crate::pace::Pace;
use crate::ranges::{Ranges, Taken};

/// Memory for what is on its way to the log and to the origin.
const POOL: usize = 8 << 20;

/// How a write-back cache is made.
pub struct WriteBackConfig {
    /// Dirty bytes beyond which writers wait.
    pub dirty: u64,
    /// How long something may be dirty before it is drained.
    pub age: Duration,
    /// Bytes a second that are drained while nobody waits for it, and nothing is that old; as fast as it
    /// goes for none.
    pub drain: Option<u64>,
    /// Time.
    pub clock: Rc<dyn Clock>,
    /// The log; none for a cache that keeps what is dirty in memory alone.
    pub log: Option<LogSetup>,
}

/// What makes an acknowledged FLUSH true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The log has what was flushed.
    Logged,
    /// The log's device failed: it still counts, until the origin has everything.
    LogFailing,
    /// It failed, and does not count any more: the origin has what was flushed.
    LogGivenUp,
    /// There is none: the origin has what was flushed.
    Volatile,
}

/// A request that changes a span of the origin without data.
pub(super) struct Operation {
    pub(super) op: Op,
    pub(super) span: Span,
    pub(super) flags: Flags,
    /// Where its record lies.
    pub(super) position: Cell<Option<u64>>,
    /// The origin has answered it.
    pub(super) is_done: Cell<bool>,
    pub(super) result: Cell<Option<Result<(), Errno>>>,
}

/// A write that is to go past the cache.
pub(super) struct Large {
    /// Until somebody carries it out.
    pub(super) io: RefCell<Option<Io>>,
    /// Until it is answered.
    pub(super) done: RefCell<Option<Completion>>,
}

/// How a log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStatus {
    /// Bytes for records.
    pub size: u64,
    /// Of these, those that may have to be replayed.
    pub used: u64,
    /// Records that were written.
    pub writes: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What the origin does not have, and what becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteBackStatus {
    /// What makes an acknowledged FLUSH true.
    pub phase: Phase,
    /// Bytes that the origin does not have, durably.
    pub dirty: u64,
    /// Beyond so many writers wait.
    pub dirty_limit: u64,
    /// How long the oldest of them may have been dirty.
    pub oldest: Option<Duration>,
    /// Bytes that were drained.
    pub drained: u64,
    /// Bytes a second that draining is held to, while there is time.
    pub drain_rate: Option<u64>,
    /// The log, while it is open.
    pub log: Option<LogStatus>,
    /// What the log held when the cache came up.
    pub replayed: Option<Replayed>,
    /// Why what is dirty could not be drained the last time that it was tried.
    pub drain_error: Option<Errno>,
    /// Why the log is not used any more.
    pub log_error: Option<Errno>,
}

/// A write-back cache's own.
pub(crate) struct WriteBack {
    pub(super) held: Rc<Held>,
    pub(super) clock: Rc<dyn Clock>,
    pub(super) pool: Pool,
    /// What it was opened with, until it is closed while the cache goes on.
    pub(super) setup: RefCell<Option<Rc<LogSetup>>>,
    pub(super) log: RefCell<Option<Rc<Log>>>,
    pub(super) replayed: Cell<Option<Replayed>>,
    pub(super) phase: Cell<Phase>,
    pub(super) block: u64,
    /// Dirty bytes beyond which writers wait, as they were asked for.
    dirty: u64,
    /// In blocks, of those that there are.
    pub(super) dirty_blocks: Cell<u64>,
    age: Duration,
    /// What draining is held to.
    pub(super) pace: Cell<Pace>,
    /// The round under way was asked for: somebody waits for it.
    pub(super) is_awaited: Cell<bool>,
    /// Blocks that are not to be written in memory now: they wait, or are being made zeroes.
    pub(super) changes: Rc<Ranges>,
    /// All of these, until write-back mode begins.
    pub(super) waiting: RefCell<Option<Taken>>,
    pub(super) asked: RefCell<VecDeque<Rc<Operation>>>,
    /// Those whose records are to be written.
    pub(super) unlogged: RefCell<Vec<Rc<Operation>>>,
    /// Those that the origin may not have durably.
    pub(super) unflushed: RefCell<Vec<Rc<Operation>>>,
    /// Large writes, as they come.
    pub(super) large: RefCell<VecDeque<Rc<Large>>>,
    /// What records have something of, and where these lie, in their order: those that may count.
    pub(super) recorded: RefCell<VecDeque<(Span, u64)>>,
    /// Writes that went past, and how many of them the origin has durably.
    pub(super) passed: Cell<u64>,
    pub(super) passed_durable: Cell<u64>,
    /// Large writes that are not done, also those whose clients have gone.
    pub(super) undone: Cell<u64>,
    /// Of writes that go past, those that the origin has been asked for.
    pub(super) passing: Cell<u64>,
    /// The origin may have lost some that it had answered.
    pub(super) is_past_lost: Cell<bool>,
    /// Flushes of the origin that failed.
    pub(super) failed_flushes: Cell<u64>,
    pub(super) commits: Turns,
    pub(super) rounds: Turns,
    /// Anything.
    pub(super) changed: Signal,
    /// Since when something is dirty that the round under way, or the next one, drains.
    pub(super) since: Cell<Option<Duration>>,
    /// Since when something is dirty that the round under way need not drain.
    pub(super) since_next: Cell<Option<Duration>>,
    /// Somebody asked for something.
    pub(super) is_busy: Cell<bool>,
    pub(super) drained: Cell<u64>,
    pub(super) drain_error: Cell<Option<Errno>>,
    pub(super) log_error: Cell<Option<Errno>>,
    /// The origin lost what it had answered: nothing that it is asked makes up for it.
    pub(super) is_lost: Cell<bool>,
    /// The origin has everything, and nothing is dirty any more: whoever comes writes through.
    pub(super) is_closed: Cell<bool>,
}

impl WriteBack {
    /// In front of what `held` has, with `slots` blocks of `block` bytes.
    pub(crate) fn new(
        held: Rc<Held>,
        config: WriteBackConfig,
        slots: u32,
        block: u64,
    ) -> io::Result<WriteBack> {
        let phase = if config.log.is_some() { Phase::Logged } else { Phase::Volatile };
        Ok(WriteBack {
            held,
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
            passed_durable: Cell::default(),
            undone: Cell::default(),
            passing: Cell::default(),
            is_past_lost: Cell::default(),
            failed_flushes: Cell::default(),
            commits: Turns::default(),
            rounds: Turns::default(),
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

    /// Whether write-back mode has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    /// Draining is held to so many bytes a second from now on, or to nothing.
    pub(crate) fn set_drain(&self, rate: Option<u64>) {
        self.pace.set(Pace::new(rate));
        self.changed.notify();
    }

    /// There are `slots` blocks from now on.
    pub(crate) fn resized(&self, slots: u32) {
        self.dirty_blocks.set(dirty_blocks(self.dirty, self.block, slots));
        self.changed.notify();
    }

    /// The log, if what was flushed is there.
    pub(super) fn logged(&self) -> Option<Rc<Log>> {
        let log = self.log.borrow();
        log.clone().filter(|_| self.phase.get() == Phase::Logged)
    }

    /// Bytes of the log that are left for records of so many blocks or operations more; each has a header
    /// of its own at worst, and a record that does not fit at the ring's end wastes what is left there.
    pub(super) fn has_log_room(&self, more: u64) -> bool {
        let Some(log) = self.logged() else { return true };
        let contents = self.held.contents.borrow();
        let blocks = contents.dirty().map_or(0, |dirty| dirty.unlogged_count());
        let waiting = blocks + self.unlogged.borrow().len() as u64 + more;
        let ring = log.ring.borrow();
        let room = ring.capacity() - ring.used();
        waiting * (self.block + BLOCK) + 2 * log.most() <= room
    }

    /// Something is dirty from now on.
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

    /// Whether what is dirty, or the log, comes near to its bound.
    pub(super) fn is_pressed(&self) -> bool {
        let dirty = self.held.contents.borrow().dirty().map_or(0, |dirty| dirty.block_count());
        let is_half = |log: &Rc<Log>| log.ring.borrow().used() * 2 > log.ring.borrow().capacity();
        dirty * 2 > self.dirty_blocks.get() || self.logged().as_ref().is_some_and(is_half)
    }

    /// How long it takes until something has been dirty for too long.
    pub(super) fn until_old(&self) -> Duration {
        let since = self.since.get().map(|since| self.clock.now().saturating_sub(since));
        self.age.saturating_sub(since.unwrap_or_default())
    }

    /// The log's device failed: what was flushed is on the origin from now on, once the log is given up.
    pub(super) fn log_failed(&self, errno: Errno) {
        if self.phase.get() == Phase::Logged {
            self.phase.set(Phase::LogFailing);
            self.log_error.set(Some(errno));
            self.rounds.ask();
        }
    }

    /// How it is.
    pub(crate) fn status(&self) -> WriteBackStatus {
        let log = self.log.borrow().as_ref().map(|log| {
            let ring = log.ring.borrow();
            let (size, used) = (ring.capacity(), ring.used());
            LogStatus { size, used, writes: log.writes.get(), bytes: log.bytes.get() }
        });
        let dirty = self.held.contents.borrow().dirty().map_or(0, |dirty| dirty.bytes());
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
