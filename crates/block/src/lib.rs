//! The vocabulary that every other crate speaks: what is asked of a block device, and what it
//! answers.
//!
//! * [`Span`]: a range of bytes. Positions and lengths are bytes everywhere; what a device
//!   requires of them is in its [`Limits`].
//! * [`Io`]: one request to a device, owning its [`Payload`]; [`Completion`]: its answer, which
//!   gives the payload back, also on error.
//! * [`Errno`]: a failure, in the numbers that system calls, NBD and FUSE have in common.
//!
//! Invariants: an `Io` with data carries exactly `span.len` bytes of payload, and so does its
//! completion, in the same order. Deliberately absent: I/O, clocks, and sectors.

mod errno;
mod io;
mod limits;
mod payload;
mod span;

pub use errno::Errno;
pub use io::{Completion, Extent, Flags, Io, Op};
pub use limits::{HasLimits, Limits};
pub use payload::Payload;
pub use span::Span;
