//! A RAM cache in front of a device, the *origin*.

mod directory;
mod list;
pub mod policy;
mod slot;

pub use directory::Directory;
pub use slot::Slot;
