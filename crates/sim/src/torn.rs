//! Rows that nothing can make good: requests failed on more members than redundancy makes up for.
//!
//! Invariant: with parity, a read is excused only in the stripes of such rows, and in those of writes that failed over
//! them. Zeroes of several rows are one request of a member: when it fails, each of its rows is in doubt.

use std::cell::{Cell, RefCell};

use braid_array::Geometry as _;
use braid_block::{Op, Span};
use braid_engine::redundant::Layout;

#[derive(Default)]
pub(crate) struct Torn {
    /// In bytes of the members' data.
    rows: Cell<Option<Span>>,
    /// Ranges of the array.
    failed: RefCell<Vec<Span>>,
}

impl Torn {
    pub(crate) fn set(&self, rows: Span) {
        self.rows.set(Some(rows));
    }

    pub(crate) fn is_any(&self) -> bool {
        self.rows.get().is_some()
    }

    pub(crate) fn clear(&self) {
        self.rows.set(None);
        self.failed.borrow_mut().clear();
    }

    /// True if a request may be answered with an error; one that did is taken note of.
    pub(crate) fn excuses(&self, layout: &Layout, op: Op, span: Span) -> bool {
        let Some(rows) = self.rows.get() else { return false };
        let Layout::Parity(geometry) = layout else { return op != Op::Read };
        let (chunk, width) = (geometry.chunk(), geometry.stripe());
        let first = rows.offset / chunk * width;
        let torn = Span::new(first, rows.end().div_ceil(chunk) * width - first);
        let meets = |one: &Span| {
            let first = one.offset / width * width;
            span.offset < one.end().next_multiple_of(width) && first < span.end()
        };
        if op == Op::Read {
            return meets(&torn) || self.failed.borrow().iter().any(meets);
        }
        if op.is_modifying() && meets(&torn) {
            self.failed.borrow_mut().push(span);
        }
        true
    }
}
