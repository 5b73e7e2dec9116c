//! A RAM cache in front of a device, the *origin*.
//!
//! ```text
//!   request ──▶ Cache ──▶ held: contents (directory, policy, marks, dirty), memory, streams
//!                 │         ranges: one request a block ──▶ origin
//!                 └─────▶ mode: write_through, write_around; write_back ──▶ log ──▶ its device
//! ```
//!
//! Pure: `aside`, `contents`, `dirty`, `directory`, `marks`, `pace`, `policy`, `rounds`, `shadow`, `streams`, `log::format`,
//! `log::ring`.
//!
//! Invariant: the origin is complete at every moment, but for what a write-back cache says that it has not.
//! Deliberately absent: threads and clocks, and anything on the origin that is the cache's own.

mod aside;
mod cache;
pub mod canary;
mod config;
mod contents;
mod counters;
mod cursor;
pub mod curve;
mod directory;
mod dirty;
pub mod fuzz;
mod held;
mod list;
pub mod log;
mod marks;
mod memory;
mod mode;
mod pace;
pub mod policy;
mod ranges;
mod resize;
mod rounds;
mod shadow;
mod slot;
mod streams;
pub mod warm;
mod warming;

pub use aside::{AsideStatus, Figures, Rules, Standing};
pub use cache::Cache;
pub use config::Config;
pub use counters::Counters;
pub use directory::Directory;
pub use log::error::{LogError, Replayed, Rot};
pub use log::store::{GivenUp, LogId, LogSetup, least_log};
pub use memory::Memory;
pub use mode::write_back::{LogStatus, Phase, WriteBackConfig, WriteBackStatus};
pub use shadow::{Behind, Shadow};
pub use slot::Slot;
pub use warming::Left;
