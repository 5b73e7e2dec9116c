//! Numbers of a status: each is declared once, as a field of a struct. JSON, metrics and sums follow from that.
//!
//! ```text
//!   figures! { pub struct S {                  ──▶ serde      JSON: the field under its own name
//!       /// Requests that failed.              ──▶ Figures    metrics: name, kind, HELP, value
//!       pub errors: u64 = Counter "x_total",
//!   } }
//!   counters! { … }: the same of counters alone ──▶ plus, Shared   sums; counted by one thread, read by any
//! ```
//!
//! The structs in which the data path counts are here: it counts in what a status shows. Those that only a status has
//! are declared in `control`, by the same macros.
//!
//! Invariant: a field whose name ends with its unit (`_ns`, `_us`, `_ms`) is a metric in seconds.
//!
//! Deliberately absent: I/O, clocks, the text of metrics, text for people.

// The macros name this crate, here as elsewhere.
extern crate self as braid_status;

mod cache_counts;
mod export_counts;
mod figure;
mod latencies;
mod log_cost;
mod member_io;
mod shared;

pub use cache_counts::CacheCounts;
pub use export_counts::ExportCounts;
pub use figure::{Figure, Figures, Kind, Measure, Value, in_base_units};
pub use latencies::Latencies;
pub use log_cost::LogCost;
pub use member_io::MemberIo;
#[doc(hidden)]
pub use serde;
pub use shared::{Counters, Shared};
