//! Linux md's on-disk metadata: bytes in, checked facts out, and back to bytes.
//!
//! ```text
//!   bytes ──parse──▶ Superblock (checked) ──several──▶ Assembly ──▶ what to start, or why not
//!     ▲                   │
//!     └──────encode───────┘        bitmap, bad-block log: the same way
//! ```
//!
//! * [`superblock`]: versions 0.90, 1.0, 1.1 and 1.2 as one type; [`Rejection`]: why bytes are none.
//! * [`detect`]: which of them lie on a member, and which one holds.
//! * [`bitmap`], [`bad_blocks`]: what lies beside it.
//! * [`ppl`]: md's partial parity log of raid5; [`stripe_log`]: braid's own of raid4, 5 and 6.
//! * [`fuzz`]: entry points that take `&[u8]` and assert the invariants.
//! * [`assembly`]: which members make an array, and whether it can be started.
//! * [`create`]: what a new array's metadata is.
//!
//! Invariants: a [`Superblock`] was checked (checksum, ranges, what its version can say), so that
//! no arithmetic on it overflows; what was read and is not understood is written back as it was;
//! sizes and offsets are in bytes, whatever unit the disk has. Deliberately absent: I/O, clocks
//! and randomness (times and identifiers are arguments), and what people are shown of it: that is
//! braid-md-text's.

pub mod assembly;
pub mod bad_blocks;
pub mod bitmap;
pub mod canary;
pub mod create;
pub mod detect;
pub mod fuzz;
pub mod ppl;
pub mod rejection;
pub mod stripe_log;
pub mod superblock;
pub mod uuid;
pub mod version;

pub use bad_blocks::BadBlocks;
pub use bitmap::{Bitmap, BitmapHeader};
pub use braid_level::Level;
pub use rejection::Rejection;
pub use superblock::{Features, Reshape, Resync, Role, Superblock, Timestamp};
pub use uuid::Uuid;
pub use version::Version;

/// md's unit of size and position on disk, in bytes.
pub const SECTOR: u64 = 512;
