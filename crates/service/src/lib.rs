//! A volume as a service: the process that serves its data, its members, and what is kept of both between two runs.
//!
//! ```text
//!   braid ── Spec ──▶ process ──▶ volume ◀── Order ── control ◀── braid, web, monitor
//!                                   │
//!            record, places         ├─▶ metadata, membership    superblocks, and which members are the volume's
//!            beside, ownership      └─▶ array, cache, exports   (crates engine, cache, export-…)
//! ```
//!
//! Nothing here parses a command line or prints a table: that is the program `braid`.

/// Writes to the volume's log, perhaps on a disk that is full, in a file of bounded size.
macro_rules! eprintln {
    ($($text:tt)*) => {
        crate::log::line(format_args!($($text)*))
    };
}

/// Writes only with `--verbose`.
macro_rules! verbose {
    ($($text:tt)*) => {
        if crate::log::is_verbose() {
            eprintln!("braid: {}", format_args!($($text)*));
        }
    };
}

pub mod beside;
pub mod canary;
pub mod cgroup;
pub mod confine;
pub mod control;
pub mod examined;
pub mod failure;
pub mod log;
pub mod membership;
pub mod metadata;
pub mod ownership;
pub mod places;
pub mod process;
pub mod record;
pub mod refusal;
pub mod volume;
mod why;
