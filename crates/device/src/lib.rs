//! Leaf devices: what a stack stands on.
//!
//! Each comes in two parts. A *medium* ([`Ram`], [`File`], [`Modelled`]) holds what there is one
//! of: the memory, the open file, the timetable. It may be shared by threads. From it each shard
//! makes its own [`Device`](braid_engine::Device) with its own executor, so that shards share
//! nothing but the medium. [`Metered`] times what a shard asks of one, and answers for a medium that
//! does not.
//!
//! Deliberately absent: whether a path may be used at all (`braid-probe` answers that before
//! anything is opened), and errors that are not the device's own.

pub mod canary;
mod file;
mod follow;
mod metered;
mod modelled;
mod ram;
mod tally;
mod unreadable;

pub use file::{Access, File, FileDevice};
pub use follow::{Follow, Followed, Part, Seen};
pub use metered::{Deadline, Metered, Stopwatch};
pub use modelled::{Buses, Modelled, ModelledDevice};
pub use ram::{Ram, RamDevice, RamError, RamOptions};
pub use tally::Tally;
pub use unreadable::Unreadable;
