//! One request to a device, and its answer.

use crate::{Errno, Payload, Span};

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Fill the payload from the device.
    Read,
    /// Store the payload.
    Write,
    /// Make all writes that completed before this request started durable. The span is empty.
    Flush,
    /// Drop the contents: they read as anything afterwards. A device may ignore it.
    Discard,
    /// Make the span read as zeroes, giving up its space unless [`Flags::NO_UNMAP`] is set.
    WriteZeroes,
}

impl Op {
    /// True if the request carries a payload.
    pub const fn has_data(self) -> bool {
        matches!(self, Op::Read | Op::Write)
    }

    /// True if the request changes the content of the device.
    pub const fn is_modifying(self) -> bool {
        matches!(self, Op::Write | Op::Discard | Op::WriteZeroes)
    }
}

/// Modifiers of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Flags(u8);

impl Flags {
    /// None.
    pub const NONE: Flags = Flags(0);
    /// Force unit access: durable before it completes. For modifying requests.
    pub const FUA: Flags = Flags(1);
    /// Keep the space allocated. For [`Op::WriteZeroes`].
    pub const NO_UNMAP: Flags = Flags(2);

    /// Both sets.
    #[must_use]
    pub const fn union(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// True if all of `other` are set.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A request, owning the memory it reads into or writes from.
#[derive(Debug)]
pub struct Io {
    /// The kind of the request.
    pub op: Op,
    /// The range, in bytes of the addressed device; empty for a flush.
    pub span: Span,
    /// Modifiers.
    pub flags: Flags,
    /// `span.len` bytes for reads and writes; empty otherwise.
    pub payload: Payload,
}

impl Io {
    /// Fill `payload` from `offset` on.
    #[inline]
    pub fn read(offset: u64, payload: impl Into<Payload>) -> Io {
        Io::with_data(Op::Read, offset, Flags::NONE, payload.into())
    }

    /// Store `payload` at `offset`.
    #[inline]
    pub fn write(offset: u64, payload: impl Into<Payload>, flags: Flags) -> Io {
        Io::with_data(Op::Write, offset, flags, payload.into())
    }

    /// Make completed writes durable.
    pub fn flush() -> Io {
        Io::without_data(Op::Flush, Span::default(), Flags::NONE)
    }

    /// Drop the contents of `span`.
    pub fn discard(span: Span, flags: Flags) -> Io {
        Io::without_data(Op::Discard, span, flags)
    }

    /// Make `span` read as zeroes.
    pub fn write_zeroes(span: Span, flags: Flags) -> Io {
        Io::without_data(Op::WriteZeroes, span, flags)
    }

    #[inline]
    fn with_data(op: Op, offset: u64, flags: Flags, payload: Payload) -> Io {
        let span = Span::new(offset, payload.len());
        Io { op, span, flags, payload }
    }

    fn without_data(op: Op, span: Span, flags: Flags) -> Io {
        Io { op, span, flags, payload: Payload::default() }
    }

    /// The answer to this request.
    #[inline]
    pub fn complete(self, result: Result<(), Errno>) -> Completion {
        Completion { result, payload: self.payload }
    }
}

/// The answer to an [`Io`].
#[derive(Debug)]
pub struct Completion {
    /// `Ok` if the whole request was carried out. After an error, any part of a write may have been carried
    /// out, and the payload of a read has no meaning.
    pub result: Result<(), Errno>,
    /// The memory that came with the request.
    pub payload: Payload,
}

/// The state of the storage behind a part of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Length in bytes, at least 1.
    pub len: u64,
    /// True if space is allocated for it.
    pub allocated: bool,
    /// True if it is known to read as zeroes.
    pub zero: bool,
}

impl Extent {
    /// Allocated data of unknown content.
    pub const fn data(len: u64) -> Extent {
        Extent { len, allocated: true, zero: false }
    }

    /// A hole, which reads as zeroes.
    pub const fn hole(len: u64) -> Extent {
        Extent { len, allocated: false, zero: true }
    }

    /// True if `other` is of the same kind, so that the two can be joined.
    pub const fn is_like(&self, other: &Extent) -> bool {
        self.allocated == other.allocated && self.zero == other.zero
    }
}
