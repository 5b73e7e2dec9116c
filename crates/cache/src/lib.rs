//! A RAM cache in front of a device, the *origin*.
//!
//! ```text
//!   request ──▶ Cache ──▶ state: contents (directory, policy, marks, dirty), memory, streams
//!                 │         ranges: one request per block at a time ──▶ origin
//!                 └─────▶ mode: write_through, write_around; write_back ──▶ log ──▶ its device
//! ```
//!
//! Pure: `aside`, `contents`, `dirty`, `directory`, `marks`, `pace`, `policy`, `rounds`, `shadow`, `streams`, `log::format`,
//! `log::ring`.
//!
//! Invariant: the origin is always complete, except for the dirty data that a write-back cache
//! reports. Deliberately absent: threads, clocks, and metadata on the origin.

mod aside;
mod cache;
pub mod canary;
mod config;
mod contents;
mod cursor;
pub mod curve;
mod directory;
mod dirty;
pub mod fuzz;
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
mod state;
mod streams;
pub mod warm;
mod warming;

pub use aside::{AsideStatus, Figures, Rules, Standing};
pub use cache::Cache;
pub use config::Config;
pub use directory::Directory;
pub use log::error::{LogError, Replayed, Rot};
pub use log::store::{GivenUp, LogId, LogSetup, least_log};
pub use memory::Memory;
pub use mode::write_back::{LogStatus, Phase, WriteBackConfig, WriteBackStatus};
pub use shadow::{Behind, Shadow};
pub use slot::Slot;
pub use warming::Snapshot;
