//! Write-back mode: writes complete in memory, and go to the origin later.
//!
//! ```text
//!   write ──▶ memory: dirty ──▶ complete
//!   large write, if its blocks are neither dirty nor logged ──▶ origin ──▶ complete
//!   FLUSH, FUA ──▶ commit: all unlogged data ──▶ records, flush of the log ──▶ complete
//!
//!   round, from time to time:  commit ─▶ drain: runs in order ─▶ flush of the origin ─▶ tail of the log
//! ```
//!
//! Invariants with a log
//! * Data are durable in the log before they go to the origin, so a replay never writes older data
//!   than the origin had.
//! * A record is valid until the origin has its data durably, or a newer valid record repeats them.
//! * The log has space for all unlogged data: further writers wait.
//!
//! Without a log, on purpose or after its device failed, FLUSH and FUA drain all data and flush the
//! origin. A failed log is invalidated, durably, only when the origin has all its data. No FLUSH
//! completes before.

mod bypass;
mod commit;
mod core;
mod drain;
mod future_set;
mod lifecycle;
mod operations;
mod requests;
mod rounds;

pub(crate) use self::core::WriteBack;
pub use self::core::{LogStatus, Phase, WriteBackConfig, WriteBackStatus};
