//! One request of a trace.

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Read bytes.
    Read,
    /// Write bytes.
    Write,
    /// Drop the contents of a range.
    Discard,
    /// Make what was written durable; a request without a range.
    Flush,
}

/// A request, without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it was made, in nanoseconds since the trace began.
    pub at_ns: u64,
    /// Where it begins, in bytes; 0 for a flush.
    pub offset: u64,
    /// Its length in bytes: at least 1, but for a flush, which has 0. `offset + length` is below 2^64.
    pub length: u64,
    /// What is asked.
    pub kind: Kind,
    /// Whether a write is to be durable before it is answered (forced unit access).
    pub fua: bool,
}

// What is promised of the memory of a trace.
const _: () = assert!(size_of::<Request>() <= 32);

impl Request {
    /// A flush.
    pub const fn flush(at_ns: u64) -> Request {
        Request { at_ns, offset: 0, length: 0, kind: Kind::Flush, fua: false }
    }

    /// Where it ends, in bytes.
    pub const fn end(&self) -> u64 {
        self.offset + self.length
    }

    /// Whether it moves data.
    pub const fn has_data(&self) -> bool {
        matches!(self.kind, Kind::Read | Kind::Write)
    }
}
