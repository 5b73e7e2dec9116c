//! The interface that members, arrays and volumes share, and the seam between them.

use std::rc::Rc;

use braid_array::{ArrayByte, ArraySpan};
use braid_block::{Errno, Io, Limits, Op, Span};

use crate::contract::Contract;
use crate::{Extents, Pending};

/// Returns the part of the array that a request addresses: all bytes of an array's device are the array's.
#[inline]
pub(crate) fn addressed(span: Span) -> ArraySpan {
    ArraySpan::new(ArrayByte::new(span.offset), span.len)
}

/// A block device.
///
/// Only [`Dev`] calls implementations, after checks of the request: they may rely on alignment, range,
/// permission and payload length.
pub trait Device {
    /// Returns the limits of every request, which never change.
    fn limits(&self) -> Limits;

    /// Starts a request and returns at once. Never blocks. Requests that overlap in time may be carried out in
    /// any order.
    ///
    /// The completion has a payload of as many bytes as the request, also after an error. A read or a write is
    /// not completed with [`Errno::INTR`] or [`Errno::AGAIN`]: the device retries it.
    fn start(&self, io: Io) -> Pending;

    /// Returns the extents behind `span`, in order, or only the first few if there are more. A device that does
    /// not know them returns "data".
    fn extents(&self, span: Span) -> Extents {
        Extents::data(span.len)
    }
}

/// A device behind the seam. Each request is checked against the device's limits before it starts, and its
/// completion in builds with debug assertions. Cheap to clone; all clones are the same device.
#[derive(Clone)]
pub struct Dev {
    device: Rc<dyn Device>,
    limits: Limits,
}

impl Dev {
    /// Puts `device` behind the seam.
    ///
    /// # Panics
    /// If the device's limits contradict each other.
    pub fn new(device: impl Device + 'static) -> Dev {
        let limits = device.limits();
        assert!(
            limits.logical_block.is_power_of_two() && (512..=4096).contains(&limits.logical_block),
            "a logical block of {} bytes",
            limits.logical_block
        );
        assert!(
            limits.size.is_multiple_of(limits.logical_block.into()),
            "{} bytes are not whole blocks of {}",
            limits.size,
            limits.logical_block
        );
        Dev { device: Rc::new(device), limits }
    }

    /// Returns the limits of every request.
    #[inline]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Starts a request.
    ///
    /// A write to a read-only device completes with [`Errno::PERM`]: the mode of the volume decides, not the
    /// caller.
    ///
    /// # Panics
    /// If the request is out of range, unaligned or carries the wrong payload: an export checks its client's
    /// requests, and an array its own arithmetic.
    // Every request passes here at each level; the code for a wrong request is kept apart.
    #[inline(always)]
    pub fn start(&self, io: Io) -> Pending {
        let Limits { size, logical_block, read_only, .. } = self.limits;
        let expected = if io.op.has_data() { io.span.len } else { 0 };
        let is_sound = io.span.is_within(size)
            && io.span.is_aligned(logical_block)
            && io.payload.len() == expected;
        if !is_sound {
            self.refuse(&io);
        }
        if read_only && io.op.is_modifying() {
            return Pending::ready(io.complete(Err(Errno::PERM)));
        }
        if io.span.is_empty() && io.op != Op::Flush {
            return Pending::ready(io.complete(Ok(())));
        }
        let op = io.op;
        let mut pending = self.device.start(io);
        pending.hold_to(Contract::of(op, expected));
        pending
    }

    /// Panics with the fault of `io`. A separate function keeps the path of every request small.
    #[cold]
    #[inline(never)]
    fn refuse(&self, io: &Io) -> ! {
        let Limits { size, logical_block, .. } = self.limits;
        assert!(io.span.is_within(size), "{:?} of {} outside {size} bytes", io.op, io.span);
        assert!(io.span.is_aligned(logical_block), "{:?} of {} unaligned", io.op, io.span);
        panic!("{:?} of {}: payload", io.op, io.span)
    }

    /// Returns the extents behind `span`.
    ///
    /// # Panics
    /// If `span` is empty or out of range.
    pub fn extents(&self, span: Span) -> Extents {
        assert!(!span.is_empty() && span.is_within(self.limits.size));
        self.device.extents(span).checked(span)
    }
}
