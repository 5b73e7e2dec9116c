//! Zeroes and discards: they go to the origin at once, after a record in the log.
//!
//! A task of the cache carries them out, so that no drain writes to their span at the same time,
//! even if their client disappeared.

use std::pin::Pin;
use std::rc::Rc;

use braid_block::{Flags, Io, Payload};

use super::core::{Operation, WriteBack};
use super::future_set::{FutureSet, either};
use crate::canary::Canary;
use crate::contents::{Contents, Piece};
use crate::mode::write_through;

impl WriteBack {
    /// Carries out operations as they arrive.
    pub(super) async fn run_operations(&self) {
        let mut under_way = FutureSet::new();
        loop {
            let has_come = || !(self.asked.borrow().is_empty() && self.large.borrow().is_empty());
            either(under_way.next(), self.changed.until(has_come)).await;
            while let Some(operation) = self.asked.borrow_mut().pop_front() {
                under_way
                    .push(Box::pin(self.carry_out(operation)) as Pin<Box<dyn Future<Output = ()>>>);
            }
            while let Some(large) = self.large.borrow_mut().pop_front() {
                under_way.push(Box::pin(self.execute_large(large)));
            }
        }
    }

    async fn carry_out(&self, operation: Rc<Operation>) {
        let Operation { op, span, flags, .. } = *operation;
        let (pieces, blocks) = {
            let contents = self.state.contents.borrow();
            (contents.pieces(span).collect::<Vec<_>>(), contents.blocks(span))
        };
        let changes = self.changes.take(blocks.clone()).await;
        if self.is_closed.get() {
            drop(changes);
            let io = Io { op, span, flags, payload: Payload::None };
            let done = write_through::change(Rc::clone(&self.state), io).await;
            operation.result.set(Some(done.result));
            return self.changed.notify();
        }
        // A round may have to drain these blocks to make space in the log: a waiting operation must
        // not lock them.
        let taken = loop {
            if !self.has_log_room(1)
                && let Err(errno) = self.wait_for(|| self.has_log_room(1)).await
            {
                operation.result.set(Some(Err(errno)));
                self.changed.notify();
                return;
            }
            let taken = self.state.ranges.take(blocks.clone()).await;
            if self.has_log_room(1) {
                break taken;
            }
        };
        let is_logged = self.logged().is_some() && !Canary::ZeroesPastLog.is_planted();
        if is_logged {
            self.unlogged.borrow_mut().push(Rc::clone(&operation));
        }
        self.unflushed.borrow_mut().push(Rc::clone(&operation));
        let is_logged = is_logged && self.commit_once().await;
        let io = Io { op, span, flags: without_fua(flags), payload: Payload::None };
        let mut result = self.state.origin.start(io).await.result;
        match result {
            Ok(()) => {
                let mut dropped = 0;
                self.for_each(&pieces, |contents, piece| {
                    dropped += u64::from(contents.forget(piece));
                });
                self.state.counters.borrow_mut().write_invalidates += dropped;
            }
            Err(_) => {
                self.for_each(&pieces, |contents, piece| {
                    if let Some((dirty, slot)) = contents.dirty_of(piece.block) {
                        dirty.restore(piece.block, slot, Contents::sectors(piece));
                    }
                    contents.drop_clean(piece);
                });
            }
        }
        // A failed operation may have been carried out in part; the next flush must make that
        // durable, too.
        operation.is_done.set(true);
        self.state.counters.borrow_mut().disk_writes += 1;
        self.note_dirty();
        drop((taken, changes));
        if result.is_ok() && flags.contains(Flags::FUA) && !is_logged {
            result = self.flush().await;
        }
        operation.result.set(Some(result));
        self.changed.notify();
    }

    fn for_each(&self, pieces: &[Piece], mut f: impl FnMut(&mut Contents, Piece)) {
        let mut contents = self.state.contents.borrow_mut();
        pieces.iter().for_each(|piece| f(&mut contents, *piece));
    }
}

fn without_fua(flags: Flags) -> Flags {
    if flags.contains(Flags::NO_UNMAP) { Flags::NO_UNMAP } else { Flags::NONE }
}
