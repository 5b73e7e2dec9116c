//! The wiring of a stack: its parts become one device.
//!
//! ```text
//!   Part                          wire()            Wired { dev, arrays, caches }
//!     Cached ─────────────────────────────────────▶   Cache ◀─ the ground's clock
//!     ├─ origin: Joined raid1 ────────────────────▶     Redundant ◀─ the ground's clock
//!     │   ├─ Leaf ────── Ground::leaf ────────────▶       Dev
//!     │   └─ Missing
//!     └─ log: Leaf ───── Ground::leaf ────────────▶   Dev
//! ```
//!
//! Leaves, and the clock on which arrays and caches run, come from a [`Ground`]: a shard of a volume's
//! process, the simulator, a test. So what is simulated is what is served.
//!
//! Invariants
//! * [`Wired::arrays`] and [`Wired::caches`] list the lower parts first: in this order a start makes good what a
//!   crash left.
//! * Nothing is read or written here.
//!
//! Deliberately absent: opening leaves and reading metadata, which are the ground's; polling the tasks of
//! arrays and caches, which needs an executor.

mod part;
mod wire;

pub use part::{Decoration, Part};
pub use wire::{Array, CacheAt, Described, Ground, Wired, unnamed, wire};
