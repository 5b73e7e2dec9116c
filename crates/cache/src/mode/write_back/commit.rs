//! Commits: all waiting changes go to the log in few, long writes, followed by one flush.
//!
//! Invariants
//! * All data that are unlogged when a round begins are in a record when it ends, because waiting
//!   requests rely on it. Zeroes that arrive during a round do not replace these data: their record
//!   belongs to the next round, and a crash between both rounds would lose the data and the zeroes.
//! * Zeroes and discards come after the data of their round. Their blocks are locked until they are
//!   done, so no later record has older data.

use std::rc::Rc;

use braid_block::{Errno, Op, Span};

use super::core::{Operation, WriteBack};
use crate::canary::Canary;
use crate::contents::Piece;
use crate::log::format::{BLOCK, Effect, Extent, MAX_EXTENTS};
use crate::log::store::{Log, wait_all};
use crate::marks::SECTOR;

/// Maximum number of records in flight.
const DEPTH: usize = 3;

/// Contents of one record.
#[derive(Default)]
struct RecordContents {
    extents: Vec<Extent>,
    len: u64,
    blocks: Vec<u64>,
}

impl RecordContents {
    /// Adds an extent, or extends the last one if both are contiguous in memory and on the origin.
    fn push(&mut self, span: Span, kind: Effect) {
        match self.extents.last_mut() {
            Some(last) if last.kind == kind && last.span.end() == span.offset => {
                last.span.len += span.len;
            }
            _ => self.extents.push(Extent { span, kind }),
        }
    }
}

impl WriteBack {
    /// Commits whenever a commit is requested.
    pub(super) async fn run_commits(&self) {
        loop {
            self.changed.until(|| self.commits.is_wanted()).await;
            self.commits.begin();
            let result = match self.logged() {
                Some(log) => self.commit(&log).await,
                None => Err(Errno::IO),
            };
            if let Err(errno) = result {
                self.log_failed(errno);
            }
            self.commits.end(result.is_ok());
            self.changed.notify();
        }
    }

    /// Writes all unlogged data to `log`, and makes them durable.
    async fn commit(&self, log: &Log) -> Result<(), Errno> {
        let mut blocks =
            self.state.contents.borrow().dirty().map_or(Vec::new(), |dirty| dirty.unlogged());
        blocks.reverse();
        // Operations that arrive while the others are written belong to the next round.
        let mut operations = std::mem::take(&mut *self.unlogged.borrow_mut());
        operations.reverse();
        if blocks.is_empty() && operations.is_empty() {
            return Ok(());
        }
        let (mut writes, mut written) = (Vec::new(), Vec::new());
        while !(blocks.is_empty() && operations.is_empty()) {
            let mut buf = log.buffer(&mut writes).await?;
            let mut collected = RecordContents::default();
            self.collect(&mut blocks, &mut buf[BLOCK as usize..], &mut collected);
            let mut here = Vec::new();
            if blocks.is_empty() {
                while collected.extents.len() < MAX_EXTENTS
                    && let Some(operation) = operations.pop()
                {
                    collected.push(operation.span, kind_of(&operation));
                    here.push(operation);
                }
            }
            if collected.extents.is_empty() {
                continue;
            }
            let spans: Vec<Span> = collected.extents.iter().map(|extent| extent.span).collect();
            let (position, write) = log.append(buf, collected.extents)?;
            spans.into_iter().for_each(|span| self.note_recorded(span, position));
            self.note_logged(&collected.blocks, position);
            written.extend(collected.blocks.into_iter().map(|block| (block, position)));
            here.iter().for_each(|operation| operation.position.set(Some(position)));
            writes.push(write);
            if writes.len() == DEPTH {
                wait_all(std::mem::take(&mut writes)).await?;
            }
        }
        wait_all(writes).await?;
        log.flush().await?;
        let mut contents = self.state.contents.borrow_mut();
        for (block, position) in written {
            if let Some((dirty, _)) = contents.dirty_of(block) {
                dirty.durable(block, position);
            }
        }
        Ok(())
    }

    /// Notes that the dirty data of `blocks` are in the record at `position`, which is being
    /// written.
    fn note_logged(&self, blocks: &[u64], position: u64) {
        let mut contents = self.state.contents.borrow_mut();
        for block in blocks {
            if let Some((dirty, slot)) = contents.dirty_of(*block) {
                dirty.logged(*block, slot, position);
            }
        }
    }

    /// Moves blocks from the end of `blocks` to the record, and copies their dirty data to `data`,
    /// as long as there is space.
    fn collect(&self, blocks: &mut Vec<u64>, data: &mut [u8], collected: &mut RecordContents) {
        let mut contents = self.state.contents.borrow_mut();
        while let Some(&block) = blocks.last() {
            if Canary::ZeroesLeaveOutData.is_planted() && self.has_operation_at(block) {
                blocks.pop();
                continue;
            }
            let runs = match contents.dirty_of(block) {
                Some((dirty, slot)) if dirty.is_unlogged(block) => dirty.runs(slot),
                _ => Vec::new(),
            };
            let len: u64 = runs.iter().map(|run| run.len() as u64 * SECTOR).sum();
            if collected.len + len > data.len() as u64
                || collected.extents.len() + runs.len() > MAX_EXTENTS
            {
                return;
            }
            blocks.pop();
            for run in runs {
                let (within, len) = (run.start as u64 * SECTOR, run.len() as u64 * SECTOR);
                let piece = Piece { block, within, len };
                let Some(at) = contents.cached_at(piece) else { continue };
                let to = &mut data[collected.len as usize..][..len as usize];
                self.state.memory.borrow().read(at, to);
                collected.push(Span::new(block * self.block + within, len), Effect::Data);
                collected.len += len;
            }
            collected.blocks.push(block);
        }
    }

    /// Returns whether an operation on `block` waits for a record of the next round.
    fn has_operation_at(&self, block: u64) -> bool {
        let span = Span::new(block * self.block, self.block);
        self.unlogged.borrow().iter().any(|one| one.span.overlaps(span))
    }
}

fn kind_of(operation: &Rc<Operation>) -> Effect {
    match operation.op {
        Op::Discard => Effect::Discard,
        Op::Read | Op::Write | Op::Flush | Op::WriteZeroes => Effect::Zeroes,
    }
}
