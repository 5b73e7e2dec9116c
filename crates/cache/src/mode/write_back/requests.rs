//! Requests of clients.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

use braid_block::{Completion, Errno, Flags, Io};
use braid_engine::Pending;

use super::core::{Operation, Phase, WriteBack};
use crate::canary::Canary;
use crate::contents::Piece;
use crate::cursor::Cursor;
use crate::mode::write_through;

impl WriteBack {
    /// Caches a write, at once if there is space.
    pub(crate) fn write(self: &Rc<Self>, mut io: Io) -> Pending {
        self.is_busy.set(true);
        if self.is_large(&io) {
            return self.write_large(io);
        }
        let blocks = self.state.contents.borrow().blocks(io.span);
        let is_free = self.changes.is_free(&blocks) && self.has_room(blocks);
        if is_free && !io.flags.contains(Flags::FUA) && self.cache_all(&mut io) {
            self.count(&io);
            return Pending::ready(io.complete(Ok(())));
        }
        let this = Rc::clone(self);
        Pending::task(async move { this.write_when_possible(io).await })
    }

    /// Caches a write block by block, as space becomes available. A FUA write is flushed.
    pub(super) async fn write_when_possible(&self, mut io: Io) -> Completion {
        let (pieces, blocks) = {
            let contents = self.state.contents.borrow();
            (contents.pieces(io.span), contents.blocks(io.span))
        };
        let taken = self.changes.take(blocks).await;
        if self.is_closed.get() {
            drop(taken);
            return write_through::change(Rc::clone(&self.state), io).await;
        }
        let mut cursor = Cursor::new(&mut io.payload);
        for piece in pieces {
            let has_room = || self.has_room(piece.block..piece.block + 1);
            let room = async {
                while !(has_room() && self.cache_piece(piece, &mut cursor)) {
                    self.wait_for(has_room).await?;
                }
                Ok(())
            };
            if let Err(errno) = room.await {
                return io.complete(Err(errno));
            }
        }
        drop(taken);
        self.count(&io);
        let is_forced = io.flags.contains(Flags::FUA);
        let result = if is_forced { self.flush().await } else { Ok(()) };
        io.complete(result)
    }

    /// Waits for space, which a round of draining makes.
    ///
    /// # Errors
    /// The error of a round that failed.
    pub(super) async fn wait_for(&self, has_room: impl Fn() -> bool) -> Result<(), Errno> {
        let round = self.rounds.ask();
        self.changed.notify();
        self.changed.until(|| self.rounds.outcome(round).is_some() || has_room()).await;
        match self.rounds.outcome(round) {
            Some(false) => Err(self.drain_error.get().unwrap_or(Errno::IO)),
            _ => Ok(()),
        }
    }

    /// Returns whether all `blocks` can become dirty and be logged.
    fn has_room(&self, blocks: Range<u64>) -> bool {
        let (mut dirty_more, mut unlogged_more) = (0, 0);
        let mut is_in_bounds = true;
        if let Some(dirty) = self.state.contents.borrow().dirty() {
            for block in blocks {
                dirty_more += u64::from(!dirty.has(block));
                unlogged_more += u64::from(!dirty.is_unlogged(block));
            }
            is_in_bounds = dirty.block_count() + dirty_more <= self.dirty_blocks.get();
        }
        is_in_bounds && (unlogged_more == 0 || self.has_log_room(unlogged_more))
    }

    fn cache_all(&self, io: &mut Io) -> bool {
        let pieces = self.state.contents.borrow().pieces(io.span);
        let mut cursor = Cursor::new(&mut io.payload);
        pieces.into_iter().all(|piece| self.cache_piece(piece, &mut cursor))
    }

    /// Caches a piece as dirty. Returns whether a slot was available.
    fn cache_piece(&self, piece: Piece, cursor: &mut Cursor<'_>) -> bool {
        let Some(put) = self.state.contents.borrow_mut().put_dirty(piece) else { return false };
        let memory = self.state.memory.borrow();
        cursor.each(piece.len, |done, part| memory.write(put.at + done, part));
        let counters = &mut *self.state.counters.borrow_mut();
        counters.cache_writes += 1;
        counters.write_replacement += u64::from(put.replaced);
        true
    }

    fn count(&self, io: &Io) {
        let counters = &mut *self.state.counters.borrow_mut();
        counters.writes += 1;
        counters.bytes_written += io.span.len;
        self.note_dirty();
        if !self.rounds.is_under_way() && self.is_near_limit() {
            self.changed.notify();
        }
    }

    /// Queues a request that changes a span without data.
    pub(crate) fn operate(self: &Rc<Self>, io: Io) -> Pending {
        self.is_busy.set(true);
        let operation = Rc::new(Operation {
            op: io.op,
            span: io.span,
            flags: io.flags,
            position: Cell::default(),
            is_done: Cell::default(),
            result: Cell::default(),
        });
        self.asked.borrow_mut().push_back(Rc::clone(&operation));
        self.changed.notify();
        let this = Rc::clone(self);
        Pending::task(async move {
            this.changed.until(|| operation.result.get().is_some()).await;
            io.complete(operation.result.get().unwrap_or(Err(Errno::IO)))
        })
    }

    /// Makes all completed writes durable.
    pub(crate) fn start_flush(self: &Rc<Self>, io: Io) -> Pending {
        let this = Rc::clone(self);
        Pending::task(async move {
            let result = this.flush().await;
            io.complete(result)
        })
    }

    /// Makes all completed writes durable, in the log or on the origin.
    pub(super) async fn flush(&self) -> Result<(), Errno> {
        if self.phase.get() == Phase::Logged {
            if Canary::FlushSkipsLog.is_planted() {
                return Ok(());
            }
            if self.commit_once().await {
                return self.flush_bypassed().await;
            }
        }
        if self.is_closed.get() {
            return self.state.origin.start(Io::flush()).await.result;
        }
        let round = self.rounds.ask();
        self.changed.notify();
        self.changed.until(|| self.rounds.outcome(round).is_some()).await;
        match self.rounds.outcome(round) {
            Some(true) => self.flush_bypassed().await,
            _ => Err(self.drain_error.get().unwrap_or(Errno::IO)),
        }
    }

    /// Logs all unlogged data. Returns whether the log accepted them.
    pub(super) async fn commit_once(&self) -> bool {
        let commit = self.commits.ask();
        self.changed.notify();
        self.changed.until(|| self.commits.outcome(commit).is_some()).await;
        self.commits.outcome(commit) == Some(true)
    }
}
