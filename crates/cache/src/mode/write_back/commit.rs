//! Into the log: all that waits, in as few and as long writes as there can be, and one flush.
//!
//! Invariants
//! * What was unlogged when a turn began is in a record when the turn ends: whoever waited for the turn relies on it.
//!   Zeroes that come while the turn writes take nothing out of it: their own record is of the next turn, and a
//!   crash between both turns would leave neither what was written nor the zeroes.
//! * Zeroes and discards lie behind the data of their turn. Nothing of their blocks is written until they are done,
//!   so no record behind theirs has anything that they replace.

use std::rc::Rc;

use braid_block::{Errno, Op, Span};

use super::core::{Operation, WriteBack};
use crate::canary::Canary;
use crate::contents::Piece;
use crate::log::format::{BLOCK, Extent, Kind, MAX_EXTENTS};
use crate::log::store::{Log, all_well};
use crate::marks::SECTOR;

/// Records on their way at once.
const DEPTH: usize = 3;

/// What goes into one record.
#[derive(Default)]
struct Collected {
    extents: Vec<Extent>,
    len: u64,
    blocks: Vec<u64>,
}

impl Collected {
    /// What follows in memory what is there, and on the origin what came last, is one extent with it.
    fn push(&mut self, span: Span, kind: Kind) {
        match self.extents.last_mut() {
            Some(last) if last.kind == kind && last.span.end() == span.offset => {
                last.span.len += span.len;
            }
            _ => self.extents.push(Extent { span, kind }),
        }
    }
}

impl WriteBack {
    /// Commits whenever somebody asks.
    pub(super) async fn commit_in_turns(&self) {
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

    /// Has `log` take all that is unlogged now, and makes it durable.
    async fn commit(&self, log: &Log) -> Result<(), Errno> {
        let mut blocks =
            self.held.contents.borrow().dirty().map_or(Vec::new(), |dirty| dirty.unlogged());
        blocks.reverse();
        // Those that come while others are written are of the next turn.
        let mut operations = std::mem::take(&mut *self.unlogged.borrow_mut());
        operations.reverse();
        if blocks.is_empty() && operations.is_empty() {
            return Ok(());
        }
        let (mut writes, mut written) = (Vec::new(), Vec::new());
        while !(blocks.is_empty() && operations.is_empty()) {
            let mut buf = log.buffer().await;
            let mut collected = Collected::default();
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
                all_well(std::mem::take(&mut writes)).await?;
            }
        }
        all_well(writes).await?;
        log.flush().await?;
        let mut contents = self.held.contents.borrow_mut();
        for (block, position) in written {
            if let Some((dirty, _)) = contents.dirty_of(block) {
                dirty.durable(block, position);
            }
        }
        Ok(())
    }

    /// What is dirty of `blocks` is in the record at `position`, which is being written.
    fn note_logged(&self, blocks: &[u64], position: u64) {
        let mut contents = self.held.contents.borrow_mut();
        for block in blocks {
            if let Some((dirty, slot)) = contents.dirty_of(*block) {
                dirty.logged(*block, slot, position);
            }
        }
    }

    /// Copies what is dirty of the last of `blocks` to `data`, as many as there is room for.
    fn collect(&self, blocks: &mut Vec<u64>, data: &mut [u8], collected: &mut Collected) {
        let mut contents = self.held.contents.borrow_mut();
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
                let Some(at) = contents.held_at(piece) else { continue };
                let to = &mut data[collected.len as usize..][..len as usize];
                self.held.memory.borrow().read(at, to);
                collected.push(Span::new(block * self.block + within, len), Kind::Data);
                collected.len += len;
            }
            collected.blocks.push(block);
        }
    }

    /// Whether an operation waits for a record of the next turn that changes something of `block`.
    fn has_operation_at(&self, block: u64) -> bool {
        let span = Span::new(block * self.block, self.block);
        self.unlogged.borrow().iter().any(|one| one.span.overlaps(span))
    }
}

fn kind_of(operation: &Rc<Operation>) -> Kind {
    match operation.op {
        Op::Discard => Kind::Discard,
        Op::Read | Op::Write | Op::Flush | Op::WriteZeroes => Kind::Zeroes,
    }
}
