//! A RAM cache in front of a device, the *origin*.

mod cache;
mod contents;
mod counters;
mod directory;
mod list;
mod marks;
pub mod policy;
mod ranges;
mod slot;
mod streams;

pub use cache::{Cache, Config};
pub use counters::Counters;
pub use directory::Directory;
pub use slot::Slot;
