//! Writes are held, and answered; the origin gets them later.
//!
//! ```text
//!   write ──▶ memory: dirty ──▶ answered
//!   large write, of whose place nothing is dirty or logged ──▶ origin ──▶ answered
//!   FLUSH, FUA ──▶ commit: all that is unlogged ──▶ records, flush of the log ──▶ answered
//!
//!   round, now and then:  commit ─▶ drain: runs in order of their place ─▶ flush of the origin ─▶ the log's tail
//! ```
//!
//! Invariants, with a log
//! * What goes to the origin is in the log, durably: a replay never goes back behind what the origin had.
//! * A record counts until the origin has, durably, what it says, or a younger record that counts says it
//!   again.
//! * The log has room for all that is unlogged: whoever would write more waits.
//!
//! Without a log, on purpose or because its device failed, FLUSH and FUA drain all, and flush the origin. A
//! log that failed is given up only when the origin has all of it, and durably, so that nobody replays it:
//! before that, no FLUSH is answered.

mod commit;
mod core;
mod drain;
mod life;
mod operations;
mod past;
mod requests;
mod together;
mod turns;

pub(crate) use self::core::WriteBack;
pub use self::core::{LogStatus, Phase, WriteBackConfig, WriteBackStatus};
