//! A part of a device.

use braid_block::{Io, Limits, Op, Span};

use crate::{Dev, Device, Extents, Pending};

/// A part of a device.
pub struct Slice {
    origin: Dev,
    span: Span,
}

impl Slice {
    /// Returns the device that is `span` of `origin`.
    ///
    /// # Panics
    /// If `span` is not within the origin, or not whole blocks of it.
    pub fn new(origin: Dev, span: Span) -> Slice {
        let Limits { size, logical_block, .. } = *origin.limits();
        assert!(span.is_within(size) && span.is_aligned(logical_block), "{span} of {size} bytes");
        Slice { origin, span }
    }

    /// Returns the limits of `span` of a device with the limits `origin`.
    pub fn limits(origin: Limits, span: Span) -> Limits {
        Limits { size: span.len, ..origin }
    }

    fn in_origin(&self, span: Span) -> Span {
        Span::new(self.span.offset + span.offset, span.len)
    }
}

impl Device for Slice {
    fn limits(&self) -> Limits {
        Slice::limits(*self.origin.limits(), self.span)
    }

    #[inline]
    fn start(&self, io: Io) -> Pending {
        let span = if io.op == Op::Flush { io.span } else { self.in_origin(io.span) };
        self.origin.start(Io { span, ..io })
    }

    fn extents(&self, span: Span) -> Extents {
        self.origin.extents(self.in_origin(span))
    }
}
