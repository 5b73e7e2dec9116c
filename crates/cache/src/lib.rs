//! A RAM cache in front of a device, the *origin*.
//!
//! ```text
//!   request ──▶ Cache ──▶ contents: directory, policy, marks ──▶ a place in memory      pure
//!                 │       streams: what goes past it                                    pure
//!                 │       curve: what it would hit if it were another                   pure
//!                 └─────▶ ranges: one request a block ──▶ origin
//! ```
//!
//! Invariant: the origin is complete at every moment. Deliberately absent: threads and clocks, any format
//! on a disk, and writes that are answered before the origin has them.

mod cache;
mod contents;
mod counters;
pub mod curve;
mod directory;
mod list;
mod marks;
mod memory;
pub mod policy;
mod ranges;
mod resize;
mod slot;
mod streams;
pub mod warm;
mod warming;

pub use cache::{Cache, Config};
pub use counters::Counters;
pub use directory::Directory;
pub use memory::Memory;
pub use slot::Slot;
pub use warming::Left;
