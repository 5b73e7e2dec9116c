//! A device with unreadable ranges.
//!
//! ```text
//!   origin   |■■■■■■■■■■■■|░░|■■■■■■■■|
//!   read          └──┘              passed on
//!   read               └────┘       EIO, without a request to the origin
//! ```
//!
//! A hole may lie beyond the end of the origin, which is then shorter than the device: a copy that ended too early.
//!
//! Nothing can be written: an array above would otherwise write what it reconstructed into the image, and the hole
//! would be one no longer, though the map says so.

use std::sync::Arc;

use braid_block::{Errno, Io, Limits, Op, Span};

use crate::{Dev, Device, Extents, Pending};

/// A device with unreadable ranges. It is read-only.
pub struct Holes {
    origin: Dev,
    /// In order, without overlaps.
    holes: Arc<[Span]>,
}

impl Holes {
    /// Returns `origin` with `holes`, which are in order and do not overlap. All bytes beyond the end of the origin are in
    /// the last one, if there are any.
    pub fn new(origin: Dev, holes: Arc<[Span]>) -> Holes {
        debug_assert!(holes.windows(2).all(|pair| pair[0].end() <= pair[1].offset), "in order");
        Holes { origin, holes }
    }

    /// Returns the limits of a device with the limits `origin` behind `holes`.
    pub fn limits(origin: Limits, holes: &[Span]) -> Limits {
        let end = holes.last().map_or(0, |last| last.end());
        Limits { read_only: true, size: origin.size.max(end), ..origin }
    }

    /// Returns the first hole that touches `span`.
    #[inline]
    fn first_hole(&self, span: Span) -> Option<Span> {
        let from = self.holes.partition_point(|hole| hole.end() <= span.offset);
        self.holes.get(from).copied().filter(|hole| hole.overlaps(span))
    }
}

impl Device for Holes {
    fn limits(&self) -> Limits {
        Holes::limits(*self.origin.limits(), &self.holes)
    }

    #[inline]
    fn start(&self, io: Io) -> Pending {
        if io.op == Op::Read && self.first_hole(io.span).is_some() {
            return Pending::ready(io.complete(Err(Errno::IO)));
        }
        self.origin.start(io)
    }

    /// A hole is data, whatever the origin has there: a client that skips what is not allocated would take it for
    /// zeroes.
    fn extents(&self, span: Span) -> Extents {
        match self.first_hole(span) {
            None => self.origin.extents(span),
            Some(hole) if hole.offset <= span.offset => {
                Extents::data(hole.end().min(span.end()) - span.offset)
            }
            Some(hole) => self.origin.extents(Span::new(span.offset, hole.offset - span.offset)),
        }
    }
}
