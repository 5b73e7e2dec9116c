//! The requests of a workload to a block device: recorded traces of other programs, fio's job files, and the
//! lines of traces that braid records.
//!
//! ```text
//!   blkparse's text ──┐
//!   fio iolog v2, v3 ─┴─▶ Reader ──▶ Trace: requests in order of time ──▶ Totals, Summary
//!   a volume's requests ──▶ iolog: lines of version 3, which fio replays and Reader reads
//!   a fio job file ──▶ parse_jobs ──▶ Jobs: closed and checked
//! ```
//!
//! Invariants
//! * A text is read in one pass, in pieces of any size; a request takes 32 bytes, and no line is kept.
//! * Unknown text is an error with line and column, the found and the expected text; nothing is guessed, and no
//!   key that changes the requests is ignored.
//! * A line without an end was torn, by a crash or a full disk: it does not count, and is reported.
//!
//! Deliberately absent: I/O, clocks, the data of requests, completions and latencies. A trace contains the
//! requests and their times; models predict their outcome elsewhere.

mod error;
pub mod fuzz;
pub mod iolog;
mod job;
mod read;
mod request;
mod summary;
mod trace;
mod words;

pub use error::{SyntaxError, TraceError};
pub use job::{Distribution, Extent, Job, Pattern, parse_jobs};
pub use read::{Reader, parse};
pub use request::{Kind, Request};
pub use summary::{Burst, Busiest, SizeClass, Summary};
pub use trace::{AT_ONCE, Format, Totals, Trace, busiest};
