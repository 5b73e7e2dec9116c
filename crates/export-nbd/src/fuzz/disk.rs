//! The small disk behind a fuzzed connection, and what the input's first bytes choose of it and of
//! the connection.
//!
//! It answers at once, late, or with errors, and depends on nothing but the input: the server's and
//! the expectation's are alike. It asserts that nothing is asked of it that it does not have.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Poll;

use braid_block::{Errno, Extent, Io, Limits, Op, Payload, Span};
use braid_engine::{Device, Extents, Pending};

/// Bytes of the disk: little, so that requests overlap.
const SIZE: usize = 16 << 10;
/// A failing disk fails each of so many requests.
const FAILS: u32 = 5;

/// The choices of the first two bytes.
#[derive(Clone, Copy)]
pub(super) struct Settings {
    immediate: bool,
    /// Requests are done some turns later, and replies may come in another order.
    pub(super) late: bool,
    read_only: bool,
    discard: bool,
    block: u32,
    fails: bool,
    /// Bytes come and go in pieces.
    pub(super) pieces: bool,
    pub(super) dice: u8,
}

impl Settings {
    pub(super) fn new(bits: u8, dice: u8) -> Settings {
        let bit = |index: u8| bits >> index & 1 == 1;
        Settings {
            immediate: bit(0),
            late: bit(1) && !bit(0),
            read_only: bit(2),
            discard: !bit(3),
            block: if bit(4) { 4096 } else { 512 },
            fails: bit(5),
            pieces: bit(6),
            dice,
        }
    }

    /// Returns true if a write of a part of a block is visible as several requests: the expectation has one.
    pub(super) fn is_strange(&self) -> bool {
        self.late || self.fails
    }

    fn limits(&self) -> Limits {
        Limits {
            read_only: self.read_only,
            discard: self.discard,
            immediate: self.immediate,
            ..Limits::new(SIZE as u64, self.block)
        }
    }
}

/// Numbers that depend on nothing but the input.
pub(super) struct Dice(Cell<u32>);

impl Dice {
    pub(super) fn new(seed: u8) -> Dice {
        Dice(Cell::new(u32::from(seed) + 1))
    }

    pub(super) fn below(&self, limit: usize) -> usize {
        let next = self.0.get().wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0.set(next);
        (next >> 16) as usize % limit
    }
}

/// The disk, also as the expectation has it: what starts first is there first.
pub(super) struct Disk {
    pub(super) bytes: RefCell<Vec<u8>>,
    settings: Settings,
    started: Cell<u32>,
    dice: Dice,
}

impl Disk {
    pub(super) fn new(settings: Settings) -> Disk {
        Disk {
            bytes: RefCell::new((0..32).flat_map(|block| [block * 8 + 1; SIZE / 32]).collect()),
            settings,
            started: Cell::new(0),
            dice: Dice::new(settings.dice),
        }
    }

    /// Returns true if the next request fails; called once for each.
    pub(super) fn next_fails(&self) -> bool {
        self.started.set(self.started.get() + 1);
        self.settings.fails && self.started.get().is_multiple_of(FAILS)
    }

    /// Puts zeroes where `span` is.
    pub(super) fn clear(&self, span: Span) {
        self.bytes.borrow_mut()[range(span)].fill(0);
    }

    /// Puts zeroes into the blocks of which all is in `span`.
    pub(super) fn trim(&self, span: Span) {
        let block = u64::from(self.settings.block);
        let (from, to) = (span.offset.next_multiple_of(block), span.end() / block * block);
        self.clear(Span::new(from, to.saturating_sub(from)));
    }

    fn carry_out(&self, io: &mut Io) -> Result<(), Errno> {
        assert!(io.span.is_within(SIZE as u64), "{:?} of {} outside", io.op, io.span);
        assert!(!(self.settings.read_only && io.op.is_modifying()), "{:?}, read-only", io.op);
        if self.next_fails() {
            return Err(Errno::IO);
        }
        let mut at = io.span.offset as usize;
        match io.op {
            Op::Read => {
                for buf in io.payload.bufs_mut() {
                    let end = at + buf.len();
                    buf.copy_from_slice(&self.bytes.borrow()[at..end]);
                    at = end;
                }
            }
            Op::Write => {
                for buf in io.payload.bufs() {
                    self.bytes.borrow_mut()[at..at + buf.len()].copy_from_slice(buf);
                    at += buf.len();
                }
            }
            Op::Flush => {}
            Op::Discard | Op::WriteZeroes => self.clear(io.span),
        }
        Ok(())
    }
}

pub(super) fn range(span: Span) -> std::ops::Range<usize> {
    span.offset as usize..(span.offset + span.len) as usize
}

pub(super) struct Shared(pub(super) Rc<Disk>);

impl Device for Shared {
    fn limits(&self) -> Limits {
        self.0.settings.limits()
    }

    fn start(&self, mut io: Io) -> Pending {
        let result = self.0.carry_out(&mut io);
        if !self.0.settings.late {
            return Pending::ready(io.complete(result));
        }
        let mut turns = self.0.dice.below(5);
        let mut io = Some(io);
        Pending::task(std::future::poll_fn(move |cx| {
            if turns > 0 {
                turns -= 1;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            // The first poll has no waiting task.
            let io = io.take().unwrap_or_else(|| Io::read(0, Payload::None));
            Poll::Ready(io.complete(result))
        }))
    }

    fn extents(&self, span: Span) -> Extents {
        let bytes = self.0.bytes.borrow();
        let blocks = bytes[range(span)].chunks(self.0.settings.block as usize);
        let extents = blocks
            .map(|block| match block.iter().all(|byte| *byte == 0) {
                true => Extent::hole(block.len() as u64),
                false => Extent::data(block.len() as u64),
            })
            .collect();
        Extents::Known(extents)
    }
}
